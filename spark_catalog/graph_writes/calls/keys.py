"""Rows whose keys are among those of a DataFrame: found by a join in Spark, named by their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from spark_catalog.graph_writes.calls.deletes import collect_addresses
from spark_catalog.read import read_pinned
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.scans import ROW_ADDRESS


def rows_with_keys(spark: SparkSession, table: PinnedTable, keys: DataFrame, on: Mapping[str, str]) -> BitMap64:
    """Addresses of the rows of a version whose columns equal those of some row of `keys`. Nulls equal nothing.

    Args:
        spark: Session that runs the tasks.
        table: The version.
        keys: Rows to look for, in any number and order.
        on: Columns of `keys` by columns of the table.
    """
    stored = read_pinned(spark, table, columns=(*on, ROW_ADDRESS)).alias("target")
    same = reduce(
        Column.__and__, (F.col(f"target.`{ours}`") == F.col(f"source.`{theirs}`") for ours, theirs in on.items())
    )
    found = stored.join(keys.alias("source"), same, "left_semi")
    (addresses,), _ = collect_addresses(found, [ROW_ADDRESS])
    return addresses


def keys_at(spark: SparkSession, table: PinnedTable, addresses: BitMap64, columns: Sequence[str]) -> DataFrame:
    """Columns of the rows at these addresses."""
    rows = read_pinned(spark, table, columns=(*columns, ROW_ADDRESS))
    wanted = np.array(addresses.to_array(), np.uint64)

    def pick(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = np.isin(batch.column(ROW_ADDRESS).to_numpy().view(np.uint64), wanted)
            yield batch.filter(pa.array(found)).drop_columns([ROW_ADDRESS])

    return rows.mapInArrow(pick, rows.select(*columns).schema)
