"""Rows from outside, on their way to Lance: what Lance could not read again does not get there.

Each writer passes here. Values are validated in full: texts are UTF-8, indices of dictionaries and offsets of lists are
in their bounds, decimals have their precision. Lance itself looks at none of that before it reads the values again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

from table_data.arrow.dictionaries import has_dictionary, widened
from table_data.arrow.memory import readable_by_lance
from table_data.errors import InvalidCall

_Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
Refusals: TypeAlias = list[InvalidCall]
"""What was refused in a stream. Pylance, which reads the stream, raises its own error with a text."""


@contextmanager
def refused_as_such() -> Iterator[Refusals]:
    """Raise the first refusal of a stream that is read in the block, in place of what pylance makes of it."""
    refusals: Refusals = []
    try:
        yield refusals
    except Exception:
        if refusals:
            raise refusals[0] from None
        raise


def validated(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """The same rows. Raises `InvalidCall` for the first column with values that are not of its type."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidCall(f"column {name[:80]!r}: expected values of {column.type}: {str(error)[:200]}") from None
    return rows


def for_lance(
    rows: _Rows,
    refusals: Refusals,
    *,
    like: pa.Schema | None = None,
    checked: bool = False,
) -> _Rows:
    """Rows as Lance takes them and gives them back; a stream stays one.

    They are `validated` unless they are `checked`, and lie in memory as Lance reads it. Indices of dictionaries have 32
    bits, or as many as in the table `like` which the rows are for. Other types stay as they are. Refusals of a stream
    are added to `refusals`, see `refused_as_such`; those of a table are raised.
    """
    schema = _target(rows.schema, like)

    def fitting(part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        columns = (part if checked else validated(part)).columns
        cast = [_cast(column, field) for column, field in zip(columns, schema, strict=True)]
        return type(part).from_arrays([readable_by_lance(column) for column in cast], schema=schema)

    def batches(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in stream:
                yield fitting(batch)
        except InvalidCall as refusal:
            refusals.append(refusal)
            raise

    if isinstance(rows, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, batches(rows))
    return fitting(rows)


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InvalidCall(f"column {field.name[:80]!r}: expected {field.type}: {str(error)[:200]}") from None


def _target(schema: pa.Schema, like: pa.Schema | None) -> pa.Schema:
    """The schema with the indices of dictionaries that a table has; with wide ones where it has none."""
    wide = widened(schema)
    if like is None or not any(has_dictionary(field.type) for field in wide):
        return wide
    given = {field.name: (field.type, stored.type) for field, stored in zip(widened(like), like, strict=True)}
    fields = []
    for field in wide:
        kind, stored = given.get(field.name, (None, None))
        fields.append(field.with_type(stored) if kind == field.type else field)
    return pa.schema(fields, schema.metadata)
