"""Reader of the data source: filters and splits on the driver, rows in tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from spark_catalog.source.filters import lance_filter
from spark_catalog.source.options import ReadOptions
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.planned import plan_scan
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.splits import Split
from spark_catalog.tables.types import arrow_schema, spark_schema
from table_data.errors import InvalidCall


class LancePartition(InputPartition):  # type: ignore[misc] # the base class has no types
    """A split, and the digest of the content of the table."""

    def __init__(self, split: Split, content: str) -> None:
        super().__init__(None)
        self.split = split
        self.content = content


class LanceReader(DataSourceReader):  # type: ignore[misc] # the base class has no types
    """Reads one version of a table. Made anew for each execution of a plan, always for the same version.

    Args:
        table: The table and its version.
        options: Options of the read.
        schema: Columns that Spark reads, with their types.
    """

    def __init__(self, table: PinnedTable, options: ReadOptions, schema: StructType) -> None:
        self._table = table
        self._options = options
        self._schema = schema
        self._scan = options.scan(schema.names)
        self._arrow = arrow_schema(schema)
        self.pushFilters: Any = _FilterPushdown(self._push)

    def partitions(self) -> list[InputPartition]:
        """Divide the scan into splits, from the manifest alone.

        Raises `InvalidCall` for a schema, a filter or a search that does not fit the table.
        """
        options = self._options
        planned = plan_scan(self._table, self._scan, max_rows=options.split_rows, max_bytes=options.split_bytes)
        _check_types(self._schema, planned.schema)
        splits = planned.splits or (Split((), 0, 0),)
        return [LancePartition(split, planned.table.content) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split."""
        assert isinstance(partition, LancePartition)
        table = replace(self._table, content=partition.content)
        return read_split(table, self._scan, partition.split, self._arrow)

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that Lance applies as Spark does, and return the others.

        With a limit or a search all filters are left to Spark, since they apply to its result.
        """
        if self._scan.limit is not None or self._scan.is_search:
            return filters
        stored = self._table.open().schema
        pushed = [(given, lance_filter(given, stored)) for given in filters]
        taken = [text for _, text in pushed if text is not None]
        if taken:
            conditions = [f"({text})" for text in (self._scan.filter, *taken) if text is not None]
            self._scan = replace(self._scan, filter=" AND ".join(conditions))
        return [given for given, text in pushed if text is None]


class _FilterPushdown:
    """`pushFilters` of a reader that also works in a session without filter push-down.

    Spark refuses a reader that overrides the method where `spark.sql.python.filterPushdown.enabled` is false, which is
    its default. It recognises the method of the base class by its function. There filters are applied by Spark.
    """

    def __init__(self, push: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._push(filters)


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
