"""A table of a graph write before and after it, as DataFrames for the checks."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_catalog.checks import Columns, TableView
from spark_catalog.read import read_data_files, read_pinned
from spark_catalog.table_write import TableWrite
from spark_catalog.tables.pinned import PinnedTable
from table_data.batch_operations import TableState


def view_table(
    spark: SparkSession, name: str, state: TableState | None, write: TableWrite | None, options: Mapping[str, str]
) -> TableView:
    """The view of a table with its stored version (`state`) and its staged rows (`write`), if there are any."""

    def stored(columns: Columns, predicate: str | None = None) -> DataFrame | None:
        if state is None or state.version is None:
            return None
        return read_pinned(spark, PinnedTable(state.uri, state.version, options), columns=columns, filter=predicate)

    def staged(columns: Columns) -> DataFrame | None:
        files = write.new_files if write is not None else ()
        if write is None or not files:
            return None
        return read_data_files(spark, write.target.uri, files, columns, options)

    def kept(columns: Columns) -> DataFrame | None:
        if write is None or write.change == "append":
            return stored(columns)
        if write.change == "overwrite":
            return None
        if write.change == "delete":
            return stored(columns, f"({write.predicate}) IS NOT TRUE")
        replaced, rows = staged(write.on), stored(tuple(dict.fromkeys((*columns, *write.on))))
        if replaced is None or rows is None:
            return rows
        return rows.join(replaced, list(write.on), "left_anti").select(*columns)

    return TableView(name, write.change if write is not None else None, stored, kept, staged)
