"""Tables of fixed versions as DataFrames, without a catalog."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_catalog.errors import InvalidWrite
from spark_catalog.read import read_data_files, read_pinned
from spark_catalog.tables.pinned import PinnedTable

pytestmark = pytest.mark.spark

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
    ],
    ids=str,
)
def test_every_stored_type_has_a_spark_type(
    spark: SparkSession, uri: str, stored: pa.DataType, value: Any, shown: str, seen: Any
) -> None:
    lance.write_dataset(pa.table({"x": pa.array([value, None], stored)}), uri)
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


def test_data_files_are_read_before_they_are_committed(spark: SparkSession, uri: str) -> None:
    rows = pa.table({"a": pa.array([1, 2, 3], pa.uint32()), "b": ["x", "y", "z"]})
    fragments = lance.fragment.write_fragments(rows, uri, mode="overwrite", max_rows_per_file=2)
    files = [f"data/{file.path}" for fragment in fragments for file in fragment.files]
    assert len(files) == 2
    assert read_data_files(spark, uri, files, ["a"], {}).orderBy("a").collect() == [(1,), (2,), (3,)]
