"""Writes while Spark starts second copies of slow tasks. Those need executors on two hosts."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pytest

from namespace_client.http import CatalogServer
from tests.directory.gc.unreferenced import check_and_remove
from tests.server.servers import REPOSITORY, ServerProcess
from tests.spark.clusters.conftest import QUICK_START, SPARK_HOME, spark_process

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.usefixtures("java")]

SCRIPT = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    from spark_catalog import Edge, Graph, GraphWrite, Node
    from spark_catalog.graph_writes.calls import deletes
    from spark_catalog.graph_writes.calls import merges
    from spark_catalog.spark_session import configure, start

    url, master, marks, path = sys.argv[1:]
    builder = SparkSession.builder.master(master).config("spark.executor.memory", "512m")
    for name, value in {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.task.duration.threshold": "1s",
        "spark.executorEnv.PYTHONPATH": path,
        "spark.executor.extraJavaOptions": "QUICK_START",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    spark = start(configure(builder, shuffle_partitions=2, driver_memory="512m", quick_start=True), log_level="OFF")
    merges.DRIVER_JOIN_BYTES = -1
    graph = Graph({"person": Node("id")}, {"knows": Edge("person", "person", src="a", dst="b")})

    def wait(kind):
        context = TaskContext.get()
        if context.partitionId() == 0:
            Path(f"{marks}/{kind}-{context.stageId()}-{min(context.attemptNumber(), 1)}").touch()
            if context.attemptNumber() == 0:
                time.sleep(60)  # until the second copy has ended and Spark kills this one
            first = Path(f"{marks}/{kind}-{context.stageId()}-0")
            while not first.exists():  # a second copy may be quicker than the first, which is to be here, too
                time.sleep(0.1)

    def slow(rows, kind):
        def passing(batches):
            yield from batches
            wait(kind)  # the file of these rows is written and not ended

        return rows.mapInArrow(passing, rows.schema)

    def after(remove, kind):
        def slow_remove(fragment):
            found = remove(fragment)
            wait(kind)  # the deletion file is written and not reported
            return found

        return slow_remove

    def people(first, last, name):
        return spark.range(first, last, 1, 2).selectExpr("id", f"concat('{name}', id) AS name")

    def write():
        return GraphWrite(spark, url, namespace=["n"], graph=graph, check="full", driver_bytes=0)

    with write() as tx:
        tx.append("person", slow(people(0, 1000, "p"), "append"))
        tx.append("knows", spark.range(0, 999, 1, 2).selectExpr("id AS a", "id + 1 AS b"))

    write_changes, delete = merges._write_changes, deletes._delete
    merges._write_changes = lambda rows, target, stable: write_changes(slow(rows, "merge"), target, stable=stable)
    with write() as tx:
        tx.upsert("person", people(900, 1100, "q"), on="id", when_matched="source.id % 2 = 0")

    deletes._delete = lambda *given, most_here: delete(*given[:-1], after(given[-1], "delete"), most_here=0)
    with write() as tx:
        tx.delete_nodes("person", spark.range(100, 200, 1, 2))
    with write() as tx:
        tx.overwrite("person", slow(people(0, 50, "r"), "overwrite"), where="id < 60")
        tx.delete("knows", "a < 60 OR b < 60")
    spark.stop()
    """
).replace("QUICK_START", QUICK_START)


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[str]:
    """URL of a standalone cluster with workers on two addresses, which Spark takes for two hosts."""
    script = str(SPARK_HOME / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    ports = ("--port", "0", "--webui-port", "0")
    options = {"SPARK_DAEMON_JAVA_OPTS": QUICK_START, "SPARK_DAEMON_MEMORY": "128m"}
    master = (script, f"{deploy}.master.Master", "--host", "127.0.0.1", *ports)
    with ExitStack() as running:
        started = r"spark://127\.0\.0\.1:\d+"
        url = running.enter_context(spark_process(tmp_path / "master.log", started, *master, **options))
        for host in ("127.0.0.1", "127.0.0.2"):
            resources = ("--cores", "2", "--memory", "600m", "--work-dir", str(tmp_path / "work"))
            worker = (script, f"{deploy}.worker.Worker", "--host", host, *ports, *resources, url)
            registered = "Successfully registered with master"
            log = tmp_path / f"{host}.log"
            running.enter_context(spark_process(log, registered, *worker, **options | {"SPARK_LOCAL_IP": host}))
        yield url


def test_rows_are_written_once_though_two_copies_of_a_task_write_them(
    tmp_path: Path, server: ServerProcess, two_hosts: str
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with CatalogServer(server.url) as catalog:
        catalog.ensure_namespace(["n"])
        path = str(REPOSITORY)
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, server.url, two_hosts, str(marks), path],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=tmp_path,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        tables = catalog.pins().tables
        root = Path(urlsplit(catalog.state().root).path)
    copies = {tuple(mark.name.split("-")[::2]) for mark in marks.iterdir()}
    assert copies == {(kind, copy) for kind in ("append", "merge", "delete", "overwrite") for copy in "01"}
    person, knows = (
        lance.dataset(tables["n", name].uri, version=tables["n", name].version) for name in ("person", "knows")
    )
    check_and_remove(root, ["n", "person"], ["n", "knows"])
    for table in (person, knows):
        table.validate()
    rows = person.to_table().to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    assert {row["id"]: row["name"] for row in rows} == expected_people()
    gone = {*range(60), *range(100, 200)}
    pairs = [(number, number + 1) for number in range(999) if not {number, number + 1} & gone]
    assert sorted((row["a"], row["b"]) for row in knows.to_table().to_pylist()) == pairs


def expected_people() -> dict[int, str]:
    people = {number: f"p{number}" for number in range(1000)}
    people |= {number: f"q{number}" for number in range(900, 1100) if number >= 1000 or number % 2 == 0}
    people = {number: name for number, name in people.items() if not 100 <= number < 200 and number >= 60}
    return people | {number: f"r{number}" for number in range(50)}
