"""Tables of fixed versions as DataFrames, without a catalog."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lance_core.format.manifest import parse_manifest_file, serialized_manifest
from spark_catalog import CatalogServer, GraphWrite
from spark_catalog.errors import InvalidWrite
from spark_catalog.read import read_graph, read_pinned, read_table
from spark_catalog.tables.frames import columnar_frame, mapped_frame, scan_frame
from spark_catalog.tables.pinned import MAX_OPEN, PinnedTable
from spark_catalog.tables.planned import PlannedScan, count_rows, plan_scan
from spark_catalog.tables.scans import Scan
from table_data.errors import VersionGone

pytestmark = pytest.mark.spark

MakeFrame = Callable[[SparkSession, PlannedScan], DataFrame]
with_and_without_the_jar = pytest.mark.parametrize("make", [columnar_frame, mapped_frame])

NOON = datetime(2013, 7, 1, 12, tzinfo=UTC)
WALL_CLOCK = NOON.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("stored", "value", "shown", "seen"),
    [
        (pa.uint8(), 255, "smallint", 255),
        (pa.uint32(), 2**32 - 1, "bigint", 2**32 - 1),
        (pa.uint64(), 2**64 - 1, "decimal(20,0)", Decimal(2**64 - 1)),
        (pa.float16(), 0.5, "float", 0.5),
        (pa.large_string(), "x", "string", "x"),
        (pa.list_(pa.float32(), 2), [1.0, 2.0], "array<float>", [1.0, 2.0]),
        (pa.list_(pa.uint16()), [1, None], "array<int>", [1, None]),
        (pa.struct([("a", pa.uint8())]), {"a": 7}, "struct<a:smallint>", {"a": 7}),
        (pa.dictionary(pa.int32(), pa.string()), "x", "string", "x"),
        (pa.timestamp("ms", tz="Europe/Berlin"), NOON, "timestamp", NOON),
        (pa.timestamp("us"), WALL_CLOCK, "timestamp_ntz", WALL_CLOCK),
        (pa.timestamp("ns"), WALL_CLOCK, "timestamp_ntz", WALL_CLOCK),
        (pa.date32(), date(1582, 10, 4), "date", date(1582, 10, 4)),
        (pa.date64(), date(1970, 1, 2), "date", date(1970, 1, 2)),
        (pa.time32("s"), time(23, 59), "time(6)", time(23, 59)),
        (pa.decimal128(38, 10), Decimal("-1.5000000000"), "decimal(38,10)", Decimal("-1.5000000000")),
        (pa.binary(), b"\x00", "binary", b"\x00"),
        (pa.large_binary(), b"", "binary", b""),
        (pa.binary(3), b"abc", "binary", b"abc"),
        (
            pa.list_(pa.struct([("a", pa.list_(pa.uint8()))])),
            [{"a": [1]}],
            "array<struct<a:array<smallint>>>",
            [{"a": [1]}],
        ),
        (pa.map_(pa.string(), pa.uint8()), [("k", 1)], "map<string,smallint>", [("k", 1)]),
    ],
    ids=str,
)
def test_every_stored_type_has_a_spark_type(
    spark: SparkSession, uri: str, stored: pa.DataType, value: Any, shown: str, seen: Any
) -> None:
    lance.write_dataset(pa.table({"x": pa.array([value, None], stored)}), uri, data_storage_version="2.2")
    frame = read_pinned(spark, PinnedTable(uri, 1))
    assert frame.dtypes == [("x", shown)]
    assert frame.toArrow()["x"].to_pylist() == [seen, None]


def test_only_the_given_columns_are_read(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": [1], "b": [2], "c": [3]}), uri)
    assert read_pinned(spark, PinnedTable(uri, 1), columns=["c", "a"]).collect() == [(3, 1)]
    with pytest.raises(InvalidWrite, match="expected columns among"):
        read_pinned(spark, PinnedTable(uri, 1), columns=["d"])


def test_filtered_and_deleted_rows_are_left_out(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": pa.array([1, 2, 3, None, 5])}), uri, max_rows_per_file=2)
    lance.dataset(uri).delete("a = 2")
    kept = read_pinned(spark, PinnedTable(uri, 2), columns=["a"], filter="(a > 4) IS NOT TRUE")
    assert [row.a for row in kept.orderBy("a").collect()] == [None, 1, 3]
    assert read_pinned(spark, PinnedTable(uri, 1)).count() == 5


def test_a_table_without_fragments_is_empty(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.schema([("a", pa.int64())]).empty_table(), uri)
    assert read_pinned(spark, PinnedTable(uri, 1)).collect() == []


def test_some_fragments_of_a_version_are_read(spark: SparkSession, uri: str) -> None:
    rows = pa.table({"a": pa.array([1, 2, 3], pa.uint32()), "b": ["x", "y", "z"]})
    lance.write_dataset(rows, uri, max_rows_per_file=1)
    some = read_pinned(spark, PinnedTable(uri, 1), columns=["a"], only=[0, 2])
    assert some.orderBy("a").collect() == [(1,), (3,)]


def test_a_version_that_is_not_published_is_read_by_its_manifest(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), uri)
    [path] = Path(uri.removeprefix("file://"), "_versions").glob("*.manifest")
    manifest = serialized_manifest(parse_manifest_file(path.read_bytes()))
    path.unlink()
    assert read_pinned(spark, PinnedTable(uri, 1, manifest=manifest)).count() == 3


def test_a_branch_that_is_made_again_has_other_columns(uri: str) -> None:
    """It has the files of its table, as the one before it had, and the same number."""
    lance.write_dataset(pa.table({"a": [1], "b": [2]}), uri)
    for renamed, value in (("a", 1), ("b", 2)):
        branch = lance.dataset(uri).create_branch("x")
        branch.alter_columns({"path": renamed, "name": "v"})
        planned = plan_scan(PinnedTable(f"{uri}/tree/x", branch.version), Scan(columns=("v",)))
        assert planned.table.opened().to_table(columns=["v"])["v"].to_pylist() == [value]
        lance.dataset(uri).branches.delete("x")


def test_digits_below_a_microsecond_are_dropped(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"x": pa.array([1999], pa.timestamp("ns", "UTC"))}), uri)
    assert read_pinned(spark, PinnedTable(uri, 1)).toArrow()["x"].cast(pa.int64()).to_pylist() == [1]


def test_a_type_that_spark_does_not_have_is_refused_by_name(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": [1], "wide": pa.array([Decimal(1)], pa.decimal256(60, 0))}), uri)
    with pytest.raises(InvalidWrite, match=r"column wide: decimal256\(60, 0\) has no type in Spark"):
        read_pinned(spark, PinnedTable(uri, 1))
    assert read_pinned(spark, PinnedTable(uri, 1), columns=["a"]).collect() == [(1,)]


def test_blobs_are_read_as_bytes(spark: SparkSession, uri: str) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table(
        [pa.array([1, 2, 3]), pa.array([b"one", None, b""], pa.large_binary())],
        schema=pa.schema([pa.field("a", pa.int64()), blob]),
    )
    lance.write_dataset(rows, uri, data_storage_version="2.1")
    frame = read_pinned(spark, PinnedTable(uri, 1))
    assert frame.dtypes == [("a", "bigint"), ("blob", "binary")]
    assert [bytes(row.blob or b"") for row in frame.orderBy("a").collect()] == [b"one", b"", b""]


@with_and_without_the_jar
def test_a_large_fragment_is_read_by_several_tasks(spark: SparkSession, uri: str, make: MakeFrame) -> None:
    dataset = lance.write_dataset(pa.table({"a": range(600_000)}), uri, max_rows_per_file=10**6)
    dataset.delete("a % 3 = 0 AND a < 300000")
    planned = plan_scan(PinnedTable(uri, 2), max_rows=100_000)
    assert [split.rows for split in planned.splits] == [100_000] * 5
    frame = make(spark, planned)
    assert frame.rdd.getNumPartitions() == 5
    counted = frame.selectExpr("count(*) n", "count(DISTINCT a) d", "sum(a) s").first()
    expected = [a for a in range(600_000) if a % 3 or a >= 300_000]
    assert tuple(counted) == (500_000, 500_000, sum(expected))


def test_a_table_of_many_large_fragments_has_as_many_tasks(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": range(32_000)}), uri, max_rows_per_file=1000)
    planned = plan_scan(PinnedTable(uri, 1), max_rows=1000)
    frame = scan_frame(spark, planned)
    assert (len(planned.splits), frame.rdd.getNumPartitions()) == (32, 32)
    assert frame.selectExpr("count(DISTINCT a)").first()[0] == 32_000
    assert len(plan_scan(PinnedTable(uri, 1)).splits) == 1


def test_splits_are_made_for_the_tasks_that_run_at_the_same_time(uri: str) -> None:
    lance.write_dataset(pa.table({"a": range(600_000)}), uri, max_rows_per_file=10**6)
    tables = [plan_scan(PinnedTable(uri, 1), tasks=tasks) for tasks in (1, 4, 100)]
    assert [len(planned.splits) for planned in tables] == [1, 4, 5]
    assert count_rows(PinnedTable(uri, 1)) == 600_000


def optimized_size(frame: DataFrame) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


@with_and_without_the_jar
def test_spark_knows_how_large_a_table_is(spark: SparkSession, uri: str, make: MakeFrame) -> None:
    lance.write_dataset(pa.table({"a": range(200_000), "b": range(200_000)}), uri)
    whole = make(spark, plan_scan(PinnedTable(uri, 1)))
    assert 200_000 * 24 <= optimized_size(whole) <= 200_000 * 24 * 1.05
    narrow = make(spark, plan_scan(PinnedTable(uri, 1), Scan(("a",))))
    assert 200_000 * 16 <= optimized_size(narrow) <= 200_000 * 16 * 1.05
    assert optimized_size(whole.select("a")) < optimized_size(whole)
    assert optimized_size(make(spark, plan_scan(PinnedTable(uri, 1), Scan(limit=10)))) < 10_000


@with_and_without_the_jar
@pytest.mark.parametrize(("threshold", "chosen"), [("1m", "SortMergeJoin"), ("100m", "BroadcastHashJoin")])
def test_a_table_is_broadcast_only_if_it_fits(
    spark: SparkSession, uri: str, threshold: str, chosen: str, make: MakeFrame
) -> None:
    lance.write_dataset(pa.table({"a": range(200_000)}), uri)
    frame = make(spark, plan_scan(PinnedTable(uri, 1)))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        joined = spark.range(10**9).join(frame, F.col("id") == F.col("a"), "left_semi")
        assert chosen in joined._jdf.queryExecution().sparkPlan().toString()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_metadata_columns_are_read_where_they_are_named(spark: SparkSession, uri: str) -> None:
    names = ["_rowaddr", "a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    dataset = lance.write_dataset(pa.table({"a": range(5)}), uri, max_rows_per_file=2, enable_stable_row_ids=True)
    dataset.update({"a": "a + 100"}, where="a = 3")
    frame = read_pinned(spark, PinnedTable(uri, 2), columns=names)
    expected = lance.dataset(uri).to_table(columns=names).to_pylist()
    assert sorted(frame.collect()) == sorted(tuple(row.values()) for row in expected)
    assert sorted(row._row_last_updated_at_version for row in frame.collect()) == [1, 1, 1, 1, 2]


def test_filters_and_limits_are_applied_by_the_tasks(spark: SparkSession, uri: str) -> None:
    lance.write_dataset(pa.table({"a": range(5000), "b": ["x"] * 5000}), uri, max_rows_per_file=700)
    table = PinnedTable(uri, 1)
    assert read_pinned(spark, table, columns=["b"], filter="a % 1000 = 7").count() == 5
    assert read_pinned(spark, table, limit=1234).count() == 1234
    assert read_pinned(spark, table, filter="a >= 4990", limit=7).count() == 7
    assert read_pinned(spark, table, limit=0).collect() == []
    with pytest.raises(InvalidWrite, match="limit -1"):
        read_pinned(spark, table, limit=-1)
    with pytest.raises(InvalidWrite, match="No field named nix"):
        read_pinned(spark, table, filter="nix = 1")


def test_a_graph_is_read_with_the_columns_and_rows_that_are_named(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str]
) -> None:
    with GraphWrite(spark, catalog, namespace=namespace) as tx:
        tx.append("person", spark.range(5).selectExpr("id", "id * 2 AS twice"))
        tx.append("knows", spark.range(3).selectExpr("id AS src", "id AS dst"))
    read = read_graph(
        spark, catalog, namespace, columns={"person": ["id"]}, filter={"person": "id > 2", "knows": "src = 0"}
    )
    assert sorted(read.tables["person"].collect()) == [(3,), (4,)]
    assert read.tables["knows"].collect() == [(0, 0)]
    named = read_table(spark, catalog, [*namespace, "person"], columns=["twice"], filter="id = 4", limit=3)
    assert named.collect() == [(8,)]
    with pytest.raises(InvalidWrite, match="columns or filter of nix: expected tables among knows, person"):
        read_graph(spark, catalog, namespace, columns={"nix": ["id"]})


def test_a_version_is_opened_once_by_a_process(uri: str) -> None:
    lance.write_dataset(pa.table({"a": [1]}), uri)
    first = plan_scan(PinnedTable(uri, 1)).table
    assert first.opened() is first.opened() is PinnedTable(uri, 1, {}, first.committed_ms).opened()
    shutil.rmtree(uri.removeprefix("file://"))
    lance.write_dataset(pa.table({"a": [2]}), uri)
    second = plan_scan(PinnedTable(uri, 1)).table
    assert second.opened().to_table()["a"].to_pylist() == [2]
    tables = [replace(second, storage_options={"number": str(number)}) for number in range(MAX_OPEN)]
    opened = [table.opened() for table in tables]
    assert tables[-1].opened() is opened[-1]
    with pytest.raises(VersionGone, match="version 1 was replaced by another one"):
        first.opened()
