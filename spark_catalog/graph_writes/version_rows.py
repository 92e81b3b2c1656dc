"""Rows of one version of a table, published or staged, for checks and merges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from lance.fragment import FragmentMetadata
from pyspark.sql import DataFrame, SparkSession

from lance_core.data import arrow_schema
from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import ManifestFile, serialized_manifest
from lance_core.transaction.operations import Operation
from spark_catalog.read import read_pinned
from spark_catalog.tables import types
from spark_catalog.tables.frames import parallelism, sized_numbers
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.planned import plan_scan
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.scans import ROW_ADDRESS, Scan
from spark_catalog.tasks.staging import StageTarget
from table_data.arrow.batch_sizes import BATCH_BYTES, in_fewer_rows
from table_data.composition import take_step
from table_data.descriptions import append_operation, overwrite_operation

_BATCH_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class VersionRows:
    """The rows of a version, or of some of its fragments.

    Attributes:
        table: The version.
        schema: Its Arrow schema.
        count: Number of rows, from the manifest.
        only: Ids of the fragments, None for all.
    """

    table: PinnedTable
    schema: pa.Schema
    count: int
    only: frozenset[int] | None = None

    def bytes(self, columns: Sequence[str]) -> int:
        """Estimated bytes of some columns in memory, as Arrow data."""
        empty = types.row_width(pa.schema([]))
        return self.count * (types.row_width(pa.schema([self.schema.field(name) for name in columns])) - empty)

    def is_plain(self, columns: Sequence[str]) -> bool:
        """Whether Arrow can compare values of these columns as Spark does."""
        return all(_is_plain(self.schema.field(name).type) for name in columns)

    def frame(self, spark: SparkSession, columns: Sequence[str], predicate: str | None = None) -> DataFrame:
        """The rows as a DataFrame whose size Spark knows. `columns` may name metadata columns."""
        return read_pinned(spark, self.table, columns=columns, filter=predicate, only=self.only)

    def map_in_tasks(
        self,
        spark: SparkSession,
        columns: Sequence[str],
        task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: str,
    ) -> DataFrame:
        """The results of `task` for the rows of each split. Spark does not see the rows."""
        planned = plan_scan(self.table, Scan(tuple(columns)), tasks=parallelism(spark), only=self.only)
        stored = types.arrow_schema(planned.schema)

        def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from task(read_split(planned.table, planned.scan, planned.splits[number], stored))

        return sized_numbers(spark, len(planned.splits), 1).mapInArrow(work, schema)

    def batches(
        self, columns: Sequence[str], predicate: str | None = None, *, addresses: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows, read by this process; with `addresses` their `_rowaddr` is the last column."""
        dataset = self.table.opened()
        fragments = None if self.only is None else [dataset.get_fragment(number) for number in sorted(self.only)]

        def scan(most: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
            return iter(
                dataset.scanner(
                    columns=list(columns),
                    filter=predicate,
                    fragments=fragments,
                    with_row_address=addresses,
                    batch_size=most,
                    batch_size_bytes=BATCH_BYTES,
                ).to_batches()
            )

        if fragments != []:
            yield from in_fewer_rows(scan(), scan)

    def read(self, columns: Sequence[str], predicate: str | None = None, *, addresses: bool = False) -> pa.Table:
        """All batches as one table."""
        fields = [self.schema.field(name) for name in columns]
        schema = pa.schema([*fields, *([pa.field(ROW_ADDRESS, pa.uint64())] if addresses else [])])
        batches = self.batches(columns, predicate, addresses=addresses)
        return pa.Table.from_batches([batch.select(schema.names).cast(schema) for batch in batches], schema)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def published_rows(uri: str, file: ManifestFile, options: Mapping[str, str]) -> VersionRows:
    """All rows of a published version."""
    return _rows(PinnedTable.published(uri, file, options), file, None)


def staged_rows(
    uri: str, file: ManifestFile, options: Mapping[str, str], only: frozenset[int] | None = None
) -> VersionRows:
    """The rows of a version that is not published, or of some of its fragments."""
    return _rows(PinnedTable(uri, file.version, options, manifest=serialized_manifest(file)), file, only)


def published_or_staged(table: PinnedTable, file: ManifestFile) -> VersionRows:
    """All rows of a version whose place is known."""
    return _rows(table, file, None)


def added_rows(target: StageTarget, fragments: Sequence[FragmentMetadata], head: ManifestFile | None) -> VersionRows:
    """Rows that are staged to be added to the head, or to be the first version of a table."""
    if head is not None and not fragments:
        return staged_rows(target.uri, head, target.storage_options, frozenset())
    operation: Operation = append_operation(fragments) if head else overwrite_operation(target.schema, fragments)
    version = head.version if head is not None else 0
    step = take_step("stage", operation, read_version=version, before=lambda: head, now_ns=time.time_ns())
    added = fragment_ids(step.after) - fragment_ids(head)
    return staged_rows(target.uri, step.after, target.storage_options, added)


def fragment_ids(file: ManifestFile | None) -> frozenset[int]:
    """The ids of the fragments of a version; none for no version."""
    return frozenset() if file is None else frozenset(int(fragment.id) for fragment in file.manifest.fragments)


def _rows(table: PinnedTable, file: ManifestFile, only: frozenset[int] | None) -> VersionRows:
    count = sum(live_row_count(fragment) for fragment in file.manifest.fragments if only is None or fragment.id in only)
    return VersionRows(table, arrow_schema(file.manifest.fields), count, only)
