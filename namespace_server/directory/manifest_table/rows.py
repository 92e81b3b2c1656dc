"""Rows of `__manifest` in memory and in row files.

A few rows are tuples: Arrow takes several times as long to filter, join and encode them. More rows, and those that
another writer may have put, are Arrow batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

import pyarrow as pa

from lance_core.data import encode_rows, schema_fields
from lance_core.format import string_file
from namespace_server.directory.manifest_table.row_codec import Row

_PRIMARY_KEY: Final = {"lance-schema:unenforced-primary-key:position": "0"}
_BASE_OBJECTS: Final = pa.list_(pa.field("object_id", pa.string()))

SCHEMA: Final = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", _BASE_OBJECTS),
    ]
)
"""The columns as every implementation of the directory format has them."""

ROW_SCHEMA: Final = pa.schema([pa.field(field.name, field.type, field.nullable) for field in SCHEMA])
"""The same for row files, whose fields carry no metadata."""

Rows: TypeAlias = tuple[Row, ...] | pa.RecordBatch
"""Rows of our own, or of any writer with its base objects."""

FEW_ROWS: Final = string_file.MOST_ROWS
"""As many rows are kept as tuples."""
COMPRESSED_ROWS: Final = 4_096
"""Row files are compressed from this many rows on; for fewer it takes more time than it saves."""

_COMPRESSED: Final = {"lance-encoding:compression": "zstd"}


def count_rows(rows: Rows) -> int:
    """The number of rows."""
    return len(rows) if isinstance(rows, tuple) else int(rows.num_rows)


def batch_of(rows: Rows) -> pa.RecordBatch:
    """Rows as they go into a row file."""
    if not isinstance(rows, tuple):
        return rows
    ids, types, locations, metadata = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [pa.array(values, pa.string()) for values in (ids, types, locations, metadata)]
    return pa.RecordBatch.from_arrays([*columns, pa.nulls(len(rows), _BASE_OBJECTS)], schema=ROW_SCHEMA)


def few_rows(batch: pa.RecordBatch) -> Rows:
    """The same rows, as tuples if they are few and have no base objects."""
    if (
        batch.num_rows > FEW_ROWS
        or batch.schema.names != ROW_SCHEMA.names
        or batch.column(4).null_count < batch.num_rows
    ):
        return batch
    columns = [column.to_pylist() for column in batch.columns[:4]]
    return tuple(Row(*values) for values in zip(*columns, strict=True))


def join_rows(parts: Sequence[Rows]) -> Rows:
    """All rows in order."""
    parts = [part for part in parts if count_rows(part)]
    few = [part for part in parts if isinstance(part, tuple)]
    if len(few) == len(parts) and sum(map(len, few)) <= FEW_ROWS:
        return tuple(row for part in few for row in part)
    batches = [batch_of(part) for part in parts]
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]


def encode_row_file(rows: Rows, version: str) -> bytes:
    """The bytes of a row file in a version of the data file format. At least one row."""
    if isinstance(rows, tuple) and version == string_file.VERSION:
        columns = [*zip(*rows, strict=True), None]
        if string_file.fits(columns, len(rows)):
            return string_file.encode_strings(columns, len(rows), _fields())
    batch = batch_of(rows)
    table = pa.Table.from_batches([batch])
    if batch.num_rows >= COMPRESSED_ROWS:
        table = table.cast(pa.schema([field.with_metadata(_COMPRESSED) for field in table.schema]))
    return encode_rows(table, version=version)


@cache
def _fields() -> tuple[bytes, ...]:
    return string_file.describe_fields(schema_fields(ROW_SCHEMA))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table in one piece."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
