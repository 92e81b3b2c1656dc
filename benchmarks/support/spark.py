"""What the benchmarks of Spark share: a session, the rows of a social graph, and the time of an action."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_catalog.spark_session import configure, start
from spark_catalog.sql.settings import session


@contextmanager
def spark_session(url: str | None = None) -> Iterator[SparkSession]:
    """A session with a task for each core, which ends with the block. With `url` its catalog `lance` is that server."""
    cores = os.cpu_count() or 1
    builder = configure(SparkSession.builder.master("local[*]"), shuffle_partitions=2 * cores, driver_memory="2g")
    spark = start(builder if url is None else session(builder, uri=url), log_level="ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def people(spark: SparkSession, rows: int, first: int = 0) -> DataFrame:
    """Persons with consecutive ids."""
    return spark.range(first, first + rows, 1, 4).selectExpr(
        "id", "concat('person ', id) AS name", "CAST(id % 90 AS int) AS age", "id * 0.5D AS score"
    )


def friendships(spark: SparkSession, rows: int, nodes: int, first: int = 0) -> DataFrame:
    """Edges between `nodes` persons."""
    return spark.range(first, first + rows, 1, 4).selectExpr(
        f"id % {nodes} AS src",
        f"(id * 7919 + 13) % {nodes} AS dst",
        "date_add(DATE'2020-01-01', CAST(id % 1000 AS int)) AS day",
        "(id % 1000) / 10.0D AS weight",
    )


def median_seconds(
    work: Callable[..., object], *, repeats: int, uncounted: int = 1, prepare: Callable[[], Any] | None = None
) -> float:
    """Median of some runs after others. `prepare` makes the argument of a run and is not measured."""
    found = []
    for _ in range(uncounted + repeats):
        arguments = () if prepare is None else (prepare(),)
        began = time.perf_counter()
        work(*arguments)
        found.append(time.perf_counter() - began)
    return statistics.median(found[uncounted:])
