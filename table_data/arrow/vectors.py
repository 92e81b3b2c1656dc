"""Columns of lists of floats as columns of vectors: lists of a fixed size, which vector indices need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from table_data.arrow.fitting import fit
from table_data.errors import ColumnNotFound, InvalidCall

Vectors = Mapping[str, int] | Sequence[str] | Literal["infer"]
"""The dimensions of columns by name; names of columns whose lists have one length; `infer`: all such of floats."""
_KEPT: Final = frozenset({pa.float16(), pa.float32()})


def with_vectors(rows: pa.Table | pa.RecordBatchReader, vectors: Vectors) -> pa.Table | pa.RecordBatchReader:
    """The rows with these columns as vectors of 32 bits a value; of 16 where the values have 16.

    A stream stays one if dimensions are given, and is read into memory otherwise. Raises `InvalidCall` for another
    value of `vectors`, for a column of something else, and for a list of another length; `ColumnNotFound`.
    """
    if isinstance(vectors, Mapping):
        _check_columns(rows.schema, list(vectors))
        for name, dimension in vectors.items():
            if not isinstance(dimension, int) or dimension < 1:
                raise InvalidCall(f"vectors: column {name!r}: expected a dimension from 1 on, found {dimension!r}")
    else:
        rows = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
        vectors = _dimensions(rows, vectors)
    if isinstance(rows, pa.Table):
        return _cast(rows, vectors)
    return pa.RecordBatchReader.from_batches(_schema(rows.schema, vectors), _cast_all(rows, vectors))


def _dimensions(rows: pa.Table, vectors: object) -> dict[str, int]:
    """The dimensions of the named columns, or of all that have one."""
    if vectors == "infer":
        return _equal_lengths(rows)
    if not isinstance(vectors, (list, tuple)) or not all(isinstance(name, str) for name in vectors):
        raise InvalidCall(f"vectors {vectors!r}: expected dimensions by the names of columns, names, or 'infer'")
    _check_columns(rows.schema, vectors)
    found = _equal_lengths(rows.select(vectors), floats_only=False)
    for name in vectors:
        if name not in found:
            raise InvalidCall(f"vectors: column {name!r}: expected lists of one length from 1 on, found others or none")
    return found


def _check_columns(schema: pa.Schema, names: Sequence[str]) -> None:
    for name in names:
        if name not in schema.names:
            raise ColumnNotFound(f"vectors: column {name!r}: expected one of {schema.names}")
        kind = schema.field(name).type
        if not _holds_numbers(kind):
            raise InvalidCall(f"vectors: column {name!r}: expected lists of numbers, found {kind}")


def _cast_all(reader: pa.RecordBatchReader, dimensions: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield from _cast(pa.Table.from_batches([batch]), dimensions).to_batches()


def _cast(table: pa.Table, dimensions: Mapping[str, int]) -> pa.Table:
    for name, dimension in dimensions.items():
        lengths = pc.unique(pc.list_value_length(table.column(name)).drop_null()).to_pylist()
        if other := [length for length in lengths if length != dimension]:
            raise InvalidCall(f"vectors: column {name!r}: expected lists of {dimension}, found one of {other[0]}")
    return fit(table, _schema(table.schema, dimensions), checked=True)


def _schema(schema: pa.Schema, dimensions: Mapping[str, int]) -> pa.Schema:
    for name, dimension in dimensions.items():
        place = schema.get_field_index(name)
        field = schema.field(place)
        values = field.type.value_type if field.type.value_type in _KEPT else pa.float32()
        schema = schema.set(place, field.with_type(pa.list_(values, dimension)))
    return schema


def _equal_lengths(table: pa.Table, *, floats_only: bool = True) -> dict[str, int]:
    found = {}
    for field in table.schema:
        if not _holds_numbers(field.type) or (floats_only and not pa.types.is_floating(field.type.value_type)):
            continue
        lengths = pc.unique(pc.list_value_length(table.column(field.name)).drop_null()).to_pylist()
        if len(lengths) == 1 and lengths[0] > 0:
            found[field.name] = lengths[0]
    return found


def _holds_numbers(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(is_list and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)))
