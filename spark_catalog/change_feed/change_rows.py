"""Changed rows, divided among tasks, and read there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from spark_catalog.tables.pinned import PinnedTable, committed_ms
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.scans import CREATED_AT, METADATA_COLUMNS, ROW_ID, UPDATED_AT, Scan
from spark_catalog.tables.splits import MAX_BYTES, MAX_ROWS, MIN_ROWS, FragmentSize, Piece, Split, plan_splits
from spark_catalog.tables.types import cast_batch, spark_schema
from table_data.change_feed.selected_rows import (
    CHANGE_TYPE,
    CHANGED_ROW,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    is_sparse,
    refuse_taken,
    repeated_time,
    repeated_version,
    rows_with_ids,
)
from table_data.change_feed.version_changes import ChangedFragment, ReadAt, RowIds, Selection, VersionChanges
from table_data.pylance_errors import explained

CHANGE_COLUMNS: Final = {CHANGE_TYPE: pa.string(), COMMIT_VERSION: pa.int64()}
"""Type of change (`insert`, `update`, `delete`, or `upsert` if it is not known) and version of the table, of each
row."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Changed rows of one version, a part of what one task reads.

    Attributes:
        table: The version that the rows are read at.
        split: Where they are.
        selection: Which rows of the split, and their type of change.
        version: Number of the version that changed them.
        timestamp: When it was committed, in milliseconds since the epoch.
        ids: Ids of the rows; None for all rows of the split.
        is_sparse: Whether these are so few of the fragment that they are looked up.
    """

    table: PinnedTable
    split: Split
    selection: Selection
    version: int
    timestamp: int
    ids: RowIds | None = None
    is_sparse: bool = False


def with_change_columns(schema: StructType) -> StructType:
    """A schema with the columns of a change. Raises `InvalidCall` if it has columns of these names."""
    refuse_taken("option rows", schema.names, CHANGE_COLUMNS)
    return StructType([*schema, *spark_schema(pa.schema(list(CHANGE_COLUMNS.items())))])


def divide(table: PinnedTable, changes: Iterable[VersionChanges]) -> list[tuple[ChangedRows, ...]]:
    """Divide changed rows among tasks: large fragments are split, small versions joined.

    Args:
        table: The table, at any version.
        changes: What versions changed, in order.

    Returns:
        What each task reads, in order.
    """
    tasks: list[tuple[ChangedRows, ...]] = []
    small: list[ChangedRows] = []
    rows = 0
    for part in (part for changed in changes for part in _parts(table, changed)):
        if small and rows + part.split.rows > MIN_ROWS:
            tasks.append(tuple(small))
            small, rows = [], 0
        small.append(part)
        rows += part.split.rows
    return [*tasks, tuple(small)] if small else tasks


def _parts(table: PinnedTable, changed: VersionChanges) -> Iterator[ChangedRows]:
    pinned = PinnedTable(table.uri, changed.read_at.version, table.storage_options, changed.read_at.committed_ms)
    whole = [FragmentSize(found.id, found.rows, found.bytes) for found in changed.fragments if found.ids is None]
    for split in plan_splits(whole, max_rows=MAX_ROWS, max_bytes=MAX_BYTES):
        yield ChangedRows(pinned, split, changed.selection, changed.version, changed.timestamp)
    for found in changed.fragments:
        if found.ids is not None:
            split = Split((Piece(found.id),), found.rows, found.bytes)
            yield ChangedRows(
                pinned, split, changed.selection, changed.version, changed.timestamp, found.ids, is_sparse(found)
            )


def whole_version(table: PinnedTable) -> VersionChanges:
    """All rows of a version, as if it had inserted them. Their timestamp is 0."""
    dataset = table.open()
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    return VersionChanges(
        table.version,
        ReadAt(table.version, committed_ms(dataset)),
        0,
        tuple(
            ChangedFragment(
                fragment.id,
                fragment.physical_rows - fragment.num_deletions,
                sum(file.file_size_bytes or 0 for file in fragment.files),
            )
            for fragment in fragments
        ),
        "insert",
    )


def read_changed(
    parts: Sequence[ChangedRows], schema: pa.Schema, added: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Read what a task reads.

    Args:
        parts: Changed rows of one task.
        schema: Schema of the batches.
        added: Columns of the schema that are not stored: `_change_type`, `_commit_version`, `_commit_timestamp` and
            `_row_id` may be among them.

    Yields:
        Batches with exactly that schema.

    Raises:
        VersionGone: A version was cleaned up.
    """
    read = [ROW_ID if name == CHANGED_ROW and name in added else name for name in schema.names]
    stored = [name for name in read if name not in added]
    for part in parts:
        with explained(f"{part.table.uri}: version {part.table.version}"):
            for batch in _batches(part, stored, schema):
                kept, types = _select(batch, part)
                if kept.num_rows:
                    yield _complete(kept, types, part, schema, read, added)


def _batches(part: ChangedRows, stored: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a part, and perhaps others of its fragments if the selection leaves them out."""
    decides = _DECIDES.get(part.selection)
    if part.ids is None or not stored:
        yield from _read(part, (*stored, decides) if decides else stored, schema)
        return
    yield from rows_with_ids(
        part.ids, stored, lambda names, where: _read(part, names, schema, where), sparse=part.is_sparse
    )


def _read(
    part: ChangedRows, names: Sequence[str], schema: pa.Schema, where: str | None = None
) -> Iterator[pa.RecordBatch]:
    columns = tuple(dict.fromkeys(names))
    read = pa.schema(
        [pa.field(name, pa.int64()) if name in METADATA_COLUMNS else schema.field(name) for name in columns]
    )
    return read_split(part.table, Scan(columns, where), part.split, read)


_DECIDES: Final[dict[Selection, str]] = {
    "by creation": CREATED_AT,
    "created": CREATED_AT,
    "rewritten": UPDATED_AT,
}
"""The column that marks the changed rows of a fragment, or has their type of change."""


def _select(batch: pa.RecordBatch, part: ChangedRows) -> tuple[pa.RecordBatch, pa.Array]:
    decides = _DECIDES.get(part.selection)
    if decides is None:
        return batch, pa.repeat(pa.scalar(part.selection), batch.num_rows)
    is_of_version = pc.equal(batch.column(decides), part.version)
    if part.selection == "by creation":
        return batch, pc.if_else(is_of_version, "insert", "update")
    kept = batch.filter(is_of_version)
    return kept, pa.repeat(pa.scalar("insert" if part.selection == "created" else "update"), kept.num_rows)


def _complete(
    batch: pa.RecordBatch,
    types: pa.Array,
    part: ChangedRows,
    schema: pa.Schema,
    names: Sequence[str],
    added: Collection[str],
) -> pa.RecordBatch:
    of_change = {
        CHANGE_TYPE: types,
        COMMIT_VERSION: repeated_version(part.version, batch.num_rows),
        COMMIT_TIMESTAMP: repeated_time(part.timestamp, batch.num_rows),
    }
    columns = [of_change[name] if name in added else batch.column(name) for name in names]
    return cast_batch(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)
