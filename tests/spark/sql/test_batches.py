"""Sizes of the Arrow batches in which the tasks of SQL and of DataFrame writers get their rows."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.spark.sql.conftest import NewSession

pytestmark = pytest.mark.spark

Sizes = Callable[[], list[int]]

RECORDER = textwrap.dedent(
    """
    from pathlib import Path
    from spark_catalog.source import batch_writer as writer
    from spark_catalog.tasks import row_writes as tasks

    def recording(batches):
        for batch in batches:
            if batch.num_rows:
                with Path(__file__).with_name("sizes").open("a") as sizes:
                    print(batch.num_rows, file=sizes)
            yield batch

    rows, changes, stage = tasks.write_rows, tasks.write_changes, writer.stage_partition
    tasks.write_rows = lambda write, batches: rows(write, recording(batches))
    tasks.write_changes = lambda write, batches: changes(write, recording(batches))
    writer.stage_partition = lambda batches, *given: stage(recording(batches), *given)
    """
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter for tasks that records sizes, beside the file with them. Spark starts it once for all tests."""
    place = tmp_path_factory.mktemp("recording")
    (place / "sitecustomize.py").write_text(RECORDER)
    python = place / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{place}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def sizes(sql: SparkSession, recording: Path) -> Sizes:
    """Rows of each batch that tasks got to write since the last call."""
    found = recording.with_name("sizes")
    found.unlink(missing_ok=True)
    sql.conf.set("spark.sql.execution.pyspark.python", str(recording))

    def take() -> list[int]:
        batches = [int(line) for line in found.read_text().splitlines()]
        found.unlink()
        return batches

    return take


def test_batches_are_limited_by_rows_where_columns_bound_them(sql: SparkSession, ns: str, sizes: Sizes) -> None:
    sql.sql(f"CREATE TABLE {ns}.n AS SELECT id, id * 0.5D AS half FROM range(0, 70000, 1, 1)")
    assert sizes() == [65_536, 4_464]
    sql.sql(f"INSERT INTO {ns}.n SELECT id, 0 FROM range(70000, 140000, 1, 1)")
    assert sizes() == [65_536, 4_464]
    sql.sql(f"UPDATE {ns}.n SET half = -1 WHERE id < 70000")
    assert sum(sizes()) == 70_000
    sql.range(0, 66_000, 1, 1).selectExpr("id", "0D AS half").writeTo(f"{ns}.n").append()
    assert sizes() == [65_536, 464]
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT id, concat('n', id) AS name FROM range(0, 5000, 1, 1)")
    assert sizes() == [4_096, 904]
    sql.sql(f"CREATE TABLE {ns}.a AS SELECT id, array(id) AS ids FROM range(0, 11000, 1, 1)")
    assert sizes() == [10_000, 1_000]
    many = ", ".join(f"id AS c{place}" for place in range(127))
    sql.sql(f"CREATE TABLE {ns}.m AS SELECT 'a' AS a, struct({many}) AS rest FROM range(0, 2500, 1, 1)")
    assert sizes() == [2_048, 452]
    sql.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 40_000)
    sql.sql(f"INSERT INTO {ns}.n SELECT id, 0 FROM range(0, 70000, 1, 1)")
    assert sizes() == [40_000, 30_000]


def test_rows_of_any_size_keep_the_limit_of_bytes(sql: SparkSession, ns: str, sizes: Sizes) -> None:
    sql.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", 1 << 20)
    rows = "unhex(repeat('ab', 60000)) AS data FROM range(0, 40, 1, 1)"
    sql.sql(f"CREATE TABLE {ns}.b AS SELECT {rows}")
    assert max(sizes()) < 20
    sql.sql(f"CREATE TABLE {ns}.t AS SELECT hex(data) AS data FROM {ns}.b")
    assert max(sizes()) < 20


def test_batches_of_the_data_source(sql: SparkSession, uri: str, sizes: Sizes) -> None:
    write = sql.range(0, 70_000, 1, 1).write.format("lance")
    write.mode("append").save(uri)
    assert sizes() == [65_536, 4_464]
    write.mode("overwrite").save(uri)
    assert sizes() == [65_536, 4_464]
    assert lance.dataset(uri).to_table()["id"].to_pylist() == list(range(70_000))


def test_batches_of_a_query_stay_as_they_are(new_session: NewSession, ns: str) -> None:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            size = pa.array([batch.num_rows] * batch.num_rows, pa.int64())
            yield pa.record_batch([pc.list_value_length(batch.column(0)).cast(pa.int64()), size], names=["n", "size"])

    session = new_session()
    wide = session.range(0, 140_000, 1, 2).selectExpr("array(id) AS ids")
    wide.mapInArrow(count, "n long, size long").coalesce(1).writeTo(f"{ns}.q").create()
    assert session.sql(f"SELECT max(size) FROM {ns}.q").first() == (10_000,)
