"""Rows are exact when tasks are tried again, and the files of failed attempts are known: of the data source, of SQL.

In a process of its own: tasks are tried again only by a master that is configured so.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from namespace_client.http import CatalogServer
from tests.server.servers import REPOSITORY

pytestmark = pytest.mark.spark

SCRIPT = textwrap.dedent(
    """
    import json, sys
    from pathlib import Path
    import lance
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    from spark_catalog.spark_session import configure, start
    from spark_catalog.sql.settings import session

    def dies_once(batches):
        context = TaskContext.get()
        for batch in batches:
            yield batch
        if context.partitionId() % 2 and not context.attemptNumber():
            raise RuntimeError("worker lost")

    url, ns, uri = sys.argv[1:]
    builder = configure(
        SparkSession.builder.master("local[2,3]"), shuffle_partitions=2, driver_memory="1g", quick_start=True
    )
    spark = start(session(builder, uri=url), log_level="OFF")

    rows = spark.range(0, 400_000, 1, 4)
    for mode in ("append", "append", "overwrite"):
        rows.mapInArrow(dies_once, "id long").write.format("lance").mode(mode).save(uri)
    dataset = lance.dataset(uri)
    second = lance.dataset(uri, version=2).to_table()["id"].to_pylist()
    named = {file.path for n in (1, 2, 3) for f in lance.dataset(uri, version=n).get_fragments()
             for file in f.metadata.files}
    before = {path.name for path in Path(uri, "data").iterdir()}
    dataset.cleanup_old_versions(retain_versions=3, delete_unverified=True)
    after = {path.name for path in Path(uri, "data").iterdir()}

    rows = spark.range(0, 40_000, 1, 8).mapInArrow(dies_once, "id long")
    rows.writeTo(f"lance.{ns}.t").create()
    rows.writeTo(f"lance.{ns}.t").append()
    rows.createOrReplaceTempView("again")
    spark.sql(f"MERGE INTO lance.{ns}.t t USING (SELECT id + 20000 AS id FROM again WHERE id < 20000) s "
              "ON t.id = s.id WHEN MATCHED THEN DELETE")

    print(json.dumps({
        "exact": sorted(dataset.to_table()["id"].to_pylist()) == list(range(400_000)),
        "doubled": len(second) == 800_000 and len(set(second)) == 400_000,
        "orphans": len(before - named), "left": sorted(after - named), "kept": named <= after,
        "sql": list(spark.sql(f"SELECT count(*), sum(id), count(DISTINCT id) FROM lance.{ns}.t").first()),
    }))
    spark.stop()
    """
)


@pytest.fixture(scope="module")
def seen(java: str, jar: str, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the process has found."""
    home, namespace = tmp_path_factory.mktemp("again"), f"n{secrets.token_hex(4)}"
    with CatalogServer(server_url) as server:
        server.ensure_namespace([namespace])
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, server_url, namespace, str(home / "t")],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=home,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_rows_of_the_data_source_are_exact_and_the_files_of_failed_attempts_are_known(seen: dict[str, Any]) -> None:
    assert seen["exact"]
    assert seen["doubled"]
    assert seen["kept"]
    assert seen["orphans"] > 0
    assert seen["left"] == []


def test_sql_writes_each_row_once(seen: dict[str, Any]) -> None:
    assert seen["sql"] == [40_000, 2 * 199_990_000, 20_000]
