"""A planned scan as a DataFrame whose size Spark knows.

With the jar of the SQL catalog the plan is a data source of the jar. Without it, the plan is a range of numbers whose
first one of each partition becomes the split of that number, in `mapInArrow`. Spark takes the output of `mapInArrow` to
be as large as its input. So the range is made as large, in the eyes of the optimizer, as the rows are: by a column of
nulls whose type Spark takes for wide, and by numbers that a filter drops before they are passed on. Only functions of
the public API are used, so that Spark Connect has the sizes, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame, SparkSession

from spark_catalog.requirements import EXTENSIONS, JAVA_PACKAGE
from spark_catalog.tables.planned import PlannedScan
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.split_server import SplitRead, encode_split
from spark_catalog.tables.types import arrow_schema

_PLANNED_SPLITS: Final = f"{JAVA_PACKAGE}.PlannedSplits"
_WIDE_FIELDS: Final = 64
_WIDE_TYPE: Final = "struct<" + ",".join(f"f{number}:binary" for number in range(_WIDE_FIELDS)) + ">"
_WIDE_BYTES: Final = (8 + 8 + 100 * _WIDE_FIELDS) // 2
"""The optimizer's estimate of a number with the wide column: the 8 bytes of a number, times the ratio of the rows."""
_MAX_BYTES: Final = 1 << 40
"""Larger scans are shown as of this size, which no setting broadcasts."""


def scan_frame(spark: SparkSession, planned: PlannedScan) -> DataFrame:
    """The rows of a planned scan, one task for each split. The tasks open the version without a catalog.

    Rows arrive as columns in a session that has the jar of the SQL catalog.
    """
    if EXTENSIONS in str(spark.conf.get("spark.sql.extensions", "")).split(","):
        return columnar_frame(spark, planned)
    return mapped_frame(spark, planned)


def columnar_frame(spark: SparkSession, planned: PlannedScan) -> DataFrame:
    """The rows of a planned scan, which the jar of the SQL catalog reads."""
    read = SplitRead(planned.table, planned.scan, arrow_schema(planned.schema))
    plan = {
        "name": f"{planned.table.uri} version {planned.table.version}",
        "read": read.encode(),
        "splits": [encode_split(split) for split in planned.splits],
        "rows": planned.rows,
        "bytes": planned.bytes,
    }
    return spark.read.format(_PLANNED_SPLITS).schema(planned.schema).option("plan", json.dumps(plan)).load()


def mapped_frame(spark: SparkSession, planned: PlannedScan) -> DataFrame:
    """The rows of a planned scan, which Spark's Python workers read: functions of PySpark and no jar."""
    table, scan, splits = planned.table, planned.scan, planned.splits
    schema = arrow_schema(planned.schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_split(table, scan, splits[number], schema)

    return sized_numbers(spark, len(splits), planned.bytes).mapInArrow(read, planned.schema)


def parallelism(spark: SparkSession) -> int:
    """The number of tasks that a session runs at the same time, if it is known; 1 on Spark Connect."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkAttributeError:
        return int(spark.conf.get("spark.default.parallelism", "") or 1)


def sized_numbers(spark: SparkSession, count: int, size: int) -> DataFrame:
    """A DataFrame of the numbers 0 to `count` - 1, one in each partition, that Spark takes for `size` bytes."""
    partitions = max(1, count)
    each = max(1, -(-min(size, _MAX_BYTES) // (partitions * _WIDE_BYTES)))
    numbers = spark.range(0, count * each, 1, partitions)
    return numbers.where(f"id % {each} = 0").selectExpr(f"id div {each} AS id", f"CAST(NULL AS {_WIDE_TYPE}) AS wide")
