"""The rows that changed between two catalog versions, as a stream of Arrow, read version after version.

Memory holds the batches of one scan, and eight bytes for each row that one version changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from lance_core.errors import CorruptFile
from lance_core.format.naming import manifest_path
from lance_core.storage.opening import open_store
from table_data import staging
from table_data.arrow.batch_sizes import in_fewer_rows
from table_data.batch_operations import TableState
from table_data.change_feed.changes_by_id import changes_by_id, require_row_ids
from table_data.change_feed.columns import FeedColumns
from table_data.change_feed.policy import ChangePolicy
from table_data.change_feed.ranges import ChangeRange, NumberedVersion
from table_data.change_feed.selected_rows import (
    CHANGE_TYPE,
    CHANGED_ROW,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ROW_ID,
    TIMESTAMP,
    is_sparse,
    refuse_taken,
    repeated_time,
    repeated_version,
    rows_with_ids,
)
from table_data.change_feed.version_changes import ChangedFragment, VersionChanges, kind_of, of_fragments
from table_data.change_feed.versions import PublishedVersion, read_published
from table_data.errors import BaseVersionGone, InvalidCall, VersionGone
from table_data.requests.field_paths import dotted

CATALOG_VERSION: Final = "_catalog_version"
FEED_COLUMNS: Final = pa.schema(
    [
        pa.field(CHANGED_ROW, pa.int64(), nullable=False),
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
        pa.field(COMMIT_TIMESTAMP, TIMESTAMP, nullable=False),
        pa.field(CATALOG_VERSION, pa.int64(), nullable=False),
    ]
)
"""What a feed adds to the columns of the table."""
SINCE: Final = "lance.changes.since"
TO: Final = "lance.changes.to"
"""Keys in the metadata of the schema: the catalog versions between which the changes are."""

_ALL: Final = ChangePolicy("rows", "rows", "rows", has_images=True)
_BATCH_BYTES: Final = 16 << 20
_BATCH_ROWS: Final = 65_536
_READ_AHEAD: Final = 64 << 20


def changed_rows(
    table: TableState, span: ChangeRange, options: Mapping[str, str], columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """The changed rows, in order of the versions.

    The columns are those of `table`, whose version is the last one, or `columns` of it, then those of `FEED_COLUMNS`.
    At a version that did not have one yet, or with another type, its values are null; the version that adds it with
    values updates all rows. Columns of blobs come as bytes. The metadata of the schema has `SINCE` and `TO`.

    Raises:
        InvalidCall: The table has no stable row ids, or no such column, or the changes of a version cannot be
            determined. Also while rows are read.
        VersionGone: A version was removed, or another one took its place. Also while rows are read.
        CorruptFile: A manifest is damaged.
    """
    return _Feed(table, span, options, columns).reader()


class _Feed:
    """One stream of changed rows."""

    def __init__(
        self, table: TableState, span: ChangeRange, options: Mapping[str, str], columns: Sequence[str] | None
    ) -> None:
        self._name = dotted(table.id) if table.branch is None else f"{dotted(table.id)} (branch {table.branch})"
        self._table = table
        self._span = span
        self._options = options
        self._store = open_store(table.root, options)
        if table.version is None:
            raise InvalidCall(f"{self._name} has no version yet: create it")
        try:
            last = self._read(NumberedVersion(table.version, span.to, table.identity))
        except VersionGone as error:
            raise BaseVersionGone(str(error)) from error
        require_row_ids(self._name, last)
        stored = last.schema.names
        unknown = [name for name in columns or () if name not in stored]
        if unknown or len({*(columns or ())}) != len(columns or ()):
            raise InvalidCall(f"{self._name}: expected columns among {stored}, found {list(columns or ())}")
        refuse_taken(f"{self._name}: changes", stored if columns is None else columns, FEED_COLUMNS.names)
        self._columns = FeedColumns(last, columns, cache(self._is_overwritten_after))
        names = [column.name for column in self._columns.columns]
        dataset = staging.open_version(table.root, last.file, options)
        shown = dataset.scanner(columns=names or [ROW_ID], blob_handling="all_binary").projected_schema
        self._stored = pa.schema([shown.field(name).with_nullable(True) for name in names])
        self._schema = pa.schema([*self._stored, *FEED_COLUMNS], metadata=_metadata(last.schema, span))

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        before = None if self._span.known is None else self._read(self._span.known)
        for numbered in self._span.versions:
            after = self._read(numbered)
            label = f"{self._name}: version {numbered.version}"
            for changed in self._changes(label, after, before):
                side = before if before is not None and changed.read_at.version == before.version else after
                yield from self._rows(side, changed, numbered.catalog_version)
            before = after

    def _changes(self, label: str, after: PublishedVersion, before: PublishedVersion | None) -> list[VersionChanges]:
        require_row_ids(self._name, after)
        if before is None:
            return [of_fragments(after.manifest, after.manifest.fragments, "insert")]
        return changes_by_id(label, after, before, _ALL, self._columns)

    def _rows(self, side: PublishedVersion, changed: VersionChanges, catalog_version: int) -> Iterator[pa.RecordBatch]:
        dataset = staging.open_version(self._table.root, side.file, self._options)
        sources = self._columns.sources(side)
        for fragment in changed.fragments:
            for batch in self._of_fragment(dataset, fragment, [name for name in sources if name is not None]):
                if batch.num_rows:
                    yield self._complete(batch, sources, changed, catalog_version)

    def _of_fragment(self, dataset: Any, fragment: ChangedFragment, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        def read(columns: Sequence[str], where: str | None) -> Iterator[pa.RecordBatch]:
            def scan(most: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
                scanner = dataset.scanner(
                    columns=list(columns),
                    filter=where,
                    fragments=[dataset.get_fragment(fragment.id)],
                    batch_size=most,
                    batch_size_bytes=_BATCH_BYTES,
                    io_buffer_size=_READ_AHEAD,
                    blob_handling="all_binary",
                )
                batches: Iterator[pa.RecordBatch] = scanner.to_batches()
                return batches

            return in_fewer_rows(scan(), scan)

        if fragment.ids is None:
            return read((*names, ROW_ID), None)
        if is_sparse(fragment):
            return rows_with_ids(fragment.ids, (*names, ROW_ID), read, sparse=True)
        return rows_with_ids(fragment.ids, names, read, sparse=False)

    def _complete(
        self, batch: pa.RecordBatch, sources: Sequence[str | None], changed: VersionChanges, catalog_version: int
    ) -> pa.RecordBatch:
        rows = batch.num_rows
        columns = [
            pa.nulls(rows, field.type) if source is None else _as(batch.column(source), field.type)
            for source, field in zip(sources, self._stored, strict=True)
        ]
        columns += [
            batch.column(ROW_ID).view(pa.int64()),
            pa.repeat(pa.scalar(changed.selection), rows),
            repeated_version(changed.version, rows),
            repeated_time(changed.timestamp, rows),
            repeated_version(catalog_version, rows),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _read(self, numbered: NumberedVersion) -> PublishedVersion:
        """A version. Raises `VersionGone` if its manifest is that of another one, `CorruptFile` if it is damaged."""
        found = read_published(self._name, self._table.root, numbered.version, self._options, self._store)
        known, sha256 = numbered.identity, found.file.identity.sha256
        if known is None or known.sha256 == sha256:
            return found
        reason = f"its manifest has SHA-256 {sha256}, expected {known.sha256}"
        if found.file.timestamp_ms != known.committed_ms:
            raise VersionGone(f"{self._name}: version {numbered.version} was replaced by another one: {reason}")
        key = manifest_path("", numbered.version)
        raise CorruptFile(f"{self._name}: {key}: {reason}", key=key, reason=reason)

    def _is_overwritten_after(self, version: int) -> bool:
        later = (each for each in self._span.versions if each.version > version)
        return any(kind_of(self._read(each).transaction) == "overwrite" for each in later)


def _metadata(schema: pa.Schema, span: ChangeRange) -> dict[str | bytes, str | bytes]:
    return {**(schema.metadata or {}), SINCE: str(span.since), TO: str(span.to)}


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)
