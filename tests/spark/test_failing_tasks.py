"""Every kind of change while half of the tasks die at their first attempt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pytest

from spark_catalog import CatalogServer
from tests.directory.gc.unreferenced import check_and_remove

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = textwrap.dedent(
    """
    import json, os, sys
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    from spark_catalog import Edge, Graph, GraphCheckFailed, GraphWrite, Node
    from spark_catalog.tasks import staging
    from spark_catalog.graph_writes.calls import deletes
    from spark_catalog.graph_writes.calls import merges
    from spark_catalog.spark_session import configure, start

    url, namespace, marks = sys.argv[1], [sys.argv[2]], sys.argv[3]
    merges.DRIVER_JOIN_BYTES = -1
    builder = SparkSession.builder.master("local[2,4]")
    spark = start(configure(builder, shuffle_partitions=4, driver_memory="1g", quick_start=True), log_level="OFF")
    graph = Graph({"person": Node("id")}, {"knows": Edge("person", "person", src="a", dst="b")})

    def flaky(rows):
        def dying(batches):
            yield from batches
            context = TaskContext.get()
            if context.attemptNumber() == 0 and context.partitionId() % 2:
                open(f"{marks}/{context.stageId()}-{context.partitionId()}", "w").close()
                os._exit(1)  # all rows are passed on, and the file is not ended

        return rows.mapInArrow(dying, rows.schema)

    def people(first, last, name):
        return flaky(spark.range(first, last, 1, 4).selectExpr("id", f"concat('{name}', id) AS name"))

    def pairs(first, last):
        return flaky(spark.range(first, last, 1, 4).selectExpr("id AS a", "id + 1 AS b"))

    def write():
        return GraphWrite(spark, url, namespace=namespace, graph=graph, check="full", driver_bytes=0)

    def die(kind, number):
        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() == number:
            open(f"{marks}/{kind}", "w").close()
            os._exit(1)

    def unended(batches):
        yield from batches
        die("merged", 0)  # the file of updated rows is not ended

    with write() as tx:
        tx.append("person", people(0, 4001, "p"))
        tx.append("knows", pairs(0, 4000))
    with write() as tx:
        tx.upsert("person", people(3000, 5000, "q"), on="id")
        tx.append("knows", pairs(4000, 4900))
    with write() as tx:
        tx.delete("knows", pairs(100, 200), on=["a", "b"])
        tx.delete_nodes("person", people(1000, 2000, "p").select("id"))
        tx.overwrite("person", people(0, 50, "r"), where="id < 50")
    changes = merges._write_changes
    merges._write_changes = lambda rows, *given, **named: changes(
        rows.mapInArrow(unended, rows.schema), *given, **named
    )
    with write() as tx:
        tx.upsert("person", people(0, 60, "s"), on="id", when_matched="source.id % 2 = 0", when_not_matched="ignore")
        tx.overwrite("knows", pairs(0, 500))


    def killed_after(remove):
        def killed(fragment):
            found = remove(fragment)  # the deletion file is written
            die("deleted", 0)
            return found

        return killed

    def late(task):
        def reporting(batches):
            yield from task(batches)  # the data files are written, as those of a slower copy of the task
            die("staged", 1)

        return reporting

    delete, run_reporting = deletes._delete, staging.run_reporting
    deletes._delete = lambda *given, most_here: delete(*given[:-1], killed_after(given[-1]), most_here=0)
    with write() as tx:
        tx.delete("knows", "a % 100 = 99")
    deletes._delete = delete
    staging.run_reporting = lambda df, task: run_reporting(df, late(task))
    numbers = spark.range(0, 100, 1, 4)
    with write() as tx:
        tx.append("person", numbers.selectExpr("id + 6000 AS id", "'t' AS name"))
    notes = []
    try:
        with write() as tx:
            tx.append("person", numbers.selectExpr("id + 6050 AS id", "'u' AS name"))
    except GraphCheckFailed as refused:
        notes = refused.__notes__
    print(json.dumps({"died": sorted(os.listdir(marks)), "notes": notes}))
    spark.stop()
    """
)


LEFT = [("person", "data"), ("knows", "deletion")]


def expected_people() -> dict[int, str]:
    people = {number: f"p{number}" for number in range(4001)}
    people |= {number: f"q{number}" for number in range(3000, 5000)}
    people = {number: name for number, name in people.items() if not 1000 <= number < 2000}
    people |= {number: f"r{number}" for number in range(50)}
    people |= {number: f"s{number}" for number in range(0, 60, 2)}
    return people | dict.fromkeys(range(6000, 6100), "t")


def test_rows_are_exact_though_tasks_die_after_they_passed_their_rows_on(
    java: str, catalog: CatalogServer, namespace: list[str], tmp_path: Path
) -> None:
    home = str(Path(__file__).resolve().parents[2])
    marks = tmp_path / "marks"
    marks.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, catalog.url, namespace[0], str(marks)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])},
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert {"merged", "deleted", "staged"} <= set(told["died"])
    assert len(told["died"]) >= 8 * 2
    [note] = told["notes"]
    assert f"`lance-namespace gc ROOT --dry-run --table '{namespace[0]}$person'` lists them" in note
    tables = {}
    for name in ("person", "knows"):
        state = catalog.pins().tables[(*namespace, name)]
        tables[name] = lance.dataset(state.uri, version=state.version)
        tables[name].validate()
    root = Path(urlsplit(catalog.state().root).path)
    report = check_and_remove(root, *([*namespace, name] for name in tables))
    left = {(orphan.table, orphan.kind) for orphan in report.orphans if orphan.table is not None}
    assert left == {(f"{namespace[0]}${name}", f"{kind} file") for name, kind in LEFT}
    rows = tables["person"].to_table().to_pylist()
    assert len(rows) == len(expected_people())
    assert {row["id"]: row["name"] for row in rows} == expected_people()
    pairs = [number for number in range(500) if number % 100 != 99]
    assert sorted(row["a"] for row in tables["knows"].to_table().to_pylist()) == pairs
    assert tables["knows"].checkout_version(tables["knows"].version - 2).count_rows() == 4900 - 100 - 1001
