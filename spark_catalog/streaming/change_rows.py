"""Changed rows, divided among tasks, and read there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from spark_catalog.streaming.changes import ChangedFragment, Selection, VersionChanges
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.reading import read_split
from spark_catalog.tables.scans import CREATED_AT, UPDATED_AT, Scan
from spark_catalog.tables.splits import MAX_BYTES, MAX_ROWS, MIN_ROWS, FragmentSize, Split, plan_splits
from spark_catalog.tables.types import cast_batch, spark_schema
from table_data.pylance_errors import explained

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
CHANGE_COLUMNS: Final = {CHANGE_TYPE: pa.string(), COMMIT_VERSION: pa.int64()}
"""Type of change (`insert`, `update`, or `upsert` if it cannot be told) and version of the table, of each row."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Changed rows of one version, a part of what one task reads. `table` is that version."""

    table: PinnedTable
    split: Split
    selection: Selection


def with_change_columns(schema: StructType) -> StructType:
    """A schema with the columns of a change, unless they are there."""
    missing = [name for name in CHANGE_COLUMNS if name not in schema.names]
    return StructType([*schema, *spark_schema(pa.schema([(name, CHANGE_COLUMNS[name]) for name in missing]))])


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
    for changed in changes:
        pinned = PinnedTable(table.uri, changed.version, table.storage_options)
        sizes = [FragmentSize(fragment.id, fragment.rows, fragment.bytes) for fragment in changed.fragments]
        for split in plan_splits(sizes, max_rows=MAX_ROWS, max_bytes=MAX_BYTES):
            if small and rows + split.rows > MIN_ROWS:
                tasks.append(tuple(small))
                small, rows = [], 0
            small.append(ChangedRows(pinned, split, changed.selection))
            rows += split.rows
    return [*tasks, tuple(small)] if small else tasks


def whole_version(table: PinnedTable) -> VersionChanges:
    """All rows of a version, as if it had inserted them."""
    fragments = [fragment.metadata for fragment in table.open().get_fragments()]
    return VersionChanges(
        table.version,
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


def read_changed(parts: Sequence[ChangedRows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read what a task reads.

    Args:
        parts: Changed rows of one task.
        schema: Schema of the batches. `_change_type` and `_commit_version` may be among the columns.

    Yields:
        Batches with exactly that schema.

    Raises:
        VersionGone: A version was cleaned up.
    """
    stored = [name for name in schema.names if name not in CHANGE_COLUMNS]
    for part in parts:
        decides = _DECIDES.get(part.selection)
        columns = dict.fromkeys((*stored, decides) if decides else stored)
        read = pa.schema([schema.field(name) if name in stored else pa.field(name, pa.int64()) for name in columns])
        with explained(f"{part.table.uri}: version {part.table.version}"):
            for batch in read_split(part.table, Scan(tuple(columns)), part.split, read):
                kept, types = _select(batch, part)
                if kept.num_rows:
                    yield _complete(kept, types, part.table.version, schema)


_DECIDES: Final[dict[Selection, str]] = {
    "by creation": CREATED_AT,
    "created": CREATED_AT,
    "rewritten": UPDATED_AT,
}
"""The column that tells the changed rows of a fragment, or their type of change."""


def _select(batch: pa.RecordBatch, part: ChangedRows) -> tuple[pa.RecordBatch, pa.Array]:
    version = part.table.version
    if part.selection in ("insert", "upsert"):
        return batch, pa.repeat(pa.scalar(part.selection), batch.num_rows)
    is_of_version = pc.equal(batch.column(_DECIDES[part.selection]), version)
    if part.selection == "by creation":
        return batch, pc.if_else(is_of_version, "insert", "update")
    kept = batch.filter(is_of_version)
    return kept, pa.repeat(pa.scalar("insert" if part.selection == "created" else "update"), kept.num_rows)


def _complete(batch: pa.RecordBatch, types: pa.Array, version: int, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name == CHANGE_TYPE:
            columns.append(types)
        elif field.name == COMMIT_VERSION:
            columns.append(pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows))
        else:
            columns.append(batch.column(field.name))
    return cast_batch(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)
