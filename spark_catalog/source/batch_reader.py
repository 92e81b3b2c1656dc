"""Reader of the data source: splits on the driver, rows in tasks.

It does not implement `pushFilters`. Spark 4.3 keeps the reader of the last query with pushed filters for all queries of
a DataFrame: `frame.where("id > 5").count()` and then `frame.count()` count the same rows, and two sides of a self-join
read with one filter. The option `filter` is part of the DataFrame and has no such trap.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_catalog.options import ReadOptions
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.planned import plan_scan
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.splits import Split
from spark_catalog.tables.types import arrow_schema, spark_schema
from table_data.errors import InvalidCall


class LancePartition(InputPartition):  # type: ignore[misc] # the base class has no types
    """A split, and the version that it is of."""

    def __init__(self, split: Split, table: PinnedTable) -> None:
        super().__init__(None)
        self.split = split
        self.table = table


class LanceReader(DataSourceReader):  # type: ignore[misc] # the base class has no types
    """Reads one version of a table. Made when a DataFrame is executed first, for the version that `load()` resolved.

    Raises `InvalidCall` for an explicit schema that contradicts the options.

    Args:
        table: The table and its version.
        options: Options of the read.
        schema: Columns that Spark reads, with their types.
    """

    def __init__(self, table: PinnedTable, options: ReadOptions, schema: StructType) -> None:
        options.check_schema(schema.names)
        self._table = table
        self._options = options
        self._schema = schema
        self._scan = options.scan(schema.names)
        self._arrow = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """Divide the scan into splits, from the manifest alone.

        Raises `InvalidCall` for a schema, a filter or a search that does not fit the table.
        """
        options = self._options
        planned = plan_scan(self._table, self._scan, max_rows=options.split_rows, max_bytes=options.split_bytes)
        _check_types(self._schema, planned.schema)
        splits = planned.splits or (Split((), 0, 0),)
        return [LancePartition(split, planned.table) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split."""
        assert isinstance(partition, LancePartition)
        return read_split(partition.table, self._scan, partition.split, self._arrow)


def _check_types(wanted: StructType, found: StructType) -> None:
    for field, stored in zip(wanted, found, strict=True):
        if field.dataType.simpleString() != stored.dataType.simpleString():
            raise InvalidCall(
                f"column {field.name}: expected {stored.dataType.simpleString()}, as it is stored, found "
                f"{field.dataType.simpleString()}"
            )


def read_schema(table: PinnedTable, options: ReadOptions) -> StructType:
    """The schema of a read that names none. Raises `InvalidCall` for a column that there is not."""
    from spark_catalog.tables.planned import stored_schema

    names = options.columns
    stored = table.open().schema
    if names is None:
        scores = ("_distance",) if options.nearest else ("_score",) if options.text else ()
        names = (*stored.names, *scores)
    scan = options.scan(dict.fromkeys((*names, *options.extra_columns)))
    return spark_schema(stored_schema(table, stored, scan))
