"""Rows of JSON. Pyarrow parses what it gives back exactly; all other chunks are read value by value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from namespace_server.cli.files.chunks import Chunk
from namespace_server.cli.files.json_rows import holds_other_rows, parsed, parsed_rows, row_chunks
from namespace_server.cli.files.json_values import WORDS, shape_of
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.shapes import (
    NOTHING,
    DigitsUnknown,
    Shape,
    ShapeConflict,
    joined_fields,
)
from table_data.arrow.exact import is_text
from table_data.values.json_columns import ValueMisfit, check_keys, column_of
from table_data.values.misfits import CellMisfit
from table_data.values.texts import EXACT_WHOLE, is_bytes, typed

if TYPE_CHECKING:
    from namespace_server.cli.files.sources import RowSource

_PARTS: Final = 65_536
_LONG_NUMBER: Final = re.compile(rb"[0-9][0-9.]{15}")
_TINY_NUMBERS: Final = {
    pa.float32(): re.compile(rb"[0-9][eE]-0*[1-9][0-9]|\.0{20}"),
    pa.float64(): re.compile(rb"[0-9][eE]-0*[1-9][0-9]{2}|\.0{100}"),
}
"""Numbers that may be too small for a type, and would be zeros."""
_NEGATIVE_ZERO: Final = re.compile(rb"-0[^0-9.]")
"""A number whose sign an integer does not hold."""
_ESCAPED_KEY: Final = re.compile(rb'\\[^"\\]{0,255}"[ \t\r\n]*:')
"""The end of a key with an escape in its last 255 bytes."""
_FLOATS: Final = (pa.float32(), pa.float64())
_TEXT: Final = (
    *(pa.types.is_timestamp, pa.types.is_date, pa.types.is_time, pa.types.is_decimal, is_bytes),
    *(pa.types.is_large_string, pa.types.is_string_view),
)


class JsonRows:
    """The rows of a file of JSON. Each method reads the file from its begin. All raise `FileRefused`."""

    def __init__(self, source: RowSource) -> None:
        self._source = source

    def columns(self, known: Sequence[str]) -> tuple[str, ...]:
        """Those of the known names that are keys of any row."""
        missing = set(known)
        for chunk in self._chunks():
            spelt = {name for name in missing if any(form in chunk.data for form in _spellings(name))}
            if spelt or _ESCAPED_KEY.search(chunk.data):
                missing -= _keys(chunk)
            if not missing:
                break
        return tuple(name for name in known if name not in missing)

    def shapes(self, given: Collection[str] = (), *, as_text: bool = False) -> dict[str, Shape]:
        """The shape of each key but those of `given`; with `as_text` all values are texts."""
        try:
            return self._shapes(given, as_text, count_digits=as_text)
        except DigitsUnknown:
            return self._shapes(given, as_text, count_digits=True)

    def _shapes(self, given: Collection[str], as_text: bool, *, count_digits: bool) -> dict[str, Shape]:
        found: dict[str, Shape] = {}
        for chunk in self._chunks():
            table = None if count_digits else _parsed_by_arrow(chunk, None)
            shapes = None if table is None else _shapes_of(table, chunk)
            if shapes is not None:
                try:
                    found = joined_fields(found, {name: shape for name, shape in shapes.items() if name not in given})
                    continue
                except ShapeConflict:
                    pass  # the rows one by one say in which line
            for line, row in parsed_rows(chunk):
                try:
                    shapes = {name: shape_of(value) for name, value in row.items() if name not in given}
                    found = joined_fields(found, _texts(shapes) if as_text else shapes)
                except ShapeConflict as conflict:
                    where = f" column {'.'.join(conflict.path)}:" if conflict.path else ""
                    raise FileRefused(
                        f"line {line}:{where} expected values of one type, found {conflict.one} and {conflict.other}; "
                        "--schema says the type, --text makes all values texts"
                    ) from None
        return found

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of a schema. A row may lack some, which are null."""
        quick = _quick_schema(schema)
        for chunk in self._chunks():
            table = None if quick is None else _read_quickly(chunk, quick, schema)
            if table is None:
                table = _read_exactly(chunk, schema)
            for field in schema:
                _check_nulls(chunk, table, field)
            yield from table.to_batches(_PARTS)

    def _chunks(self) -> Iterator[Chunk]:
        with self._source.open() as stream:
            yield from row_chunks(stream)


def parsed_cells(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of cells that hold JSON, in a type of lists or structs. Raises `CellMisfit`."""
    values = []
    for position, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parsed(text, 1))
        except FileRefused:
            raise CellMisfit(position, f"JSON for {kind}", text) from None
    try:
        return column_of(values, kind, range(len(values)), "")
    except ValueMisfit as misfit:
        raise CellMisfit(misfit.row, f"JSON for {kind}", texts[misfit.row].as_py()) from None


def _parsed_by_arrow(chunk: Chunk, schema: pa.Schema | None) -> pa.Table | None:
    if holds_other_rows(chunk.data):  # which ends the process in pyarrow, or is a row of nulls there
        return None
    behaviour = "infer" if schema is None else "error"
    try:
        return arrow_json.read_json(
            pa.BufferReader(chunk.data),
            arrow_json.ReadOptions(block_size=len(chunk.data) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=behaviour),
        )
    except (pa.ArrowException, ValueError):
        return None


def _keys(chunk: Chunk) -> set[str]:
    table = _parsed_by_arrow(chunk, None)
    if table is not None:
        return set(table.schema.names)
    return {name for _, row in parsed_rows(chunk) for name in row}


def _spellings(name: str) -> set[bytes]:
    return {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode()}


def _quick_schema(schema: pa.Schema) -> pa.Schema | None:
    types = [_quick_type(field.type) for field in schema]
    if None in types:
        return None
    return pa.schema([pa.field(field.name, kind) for field, kind in zip(schema, types, strict=True)])


def _quick_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which pyarrow reads the values of a type exactly, or says that it does not; None if there is none."""
    types = pa.types
    if types.is_boolean(kind) or types.is_integer(kind) or kind in _FLOATS or types.is_string(kind):
        return kind
    if any(is_kind(kind) for is_kind in _TEXT) or (types.is_dictionary(kind) and is_text(kind.value_type)):
        return pa.string()
    if types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        children = [_quick_type(field.type) for field in fields]
        if None in children or not fields:
            return None
        return pa.struct([pa.field(field.name, child) for field, child in zip(fields, children, strict=True)])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = _quick_type(kind.value_type)
        return None if item is None else pa.list_(item)
    return None


def _read_quickly(chunk: Chunk, quick: pa.Schema, schema: pa.Schema) -> pa.Table | None:
    """The rows of a chunk, None if they are not read exactly so."""
    table = _parsed_by_arrow(chunk, quick)
    if table is None:
        return None
    try:
        is_tiny = cache(lambda kind: _TINY_NUMBERS[kind].search(chunk.data) is not None)
        columns = [_finished(table.column(field.name).combine_chunks(), field.type, is_tiny) for field in schema]
    except (CellMisfit, pa.ArrowException, ValueError):
        return None
    return pa.Table.from_arrays(columns, schema=schema)


def _finished(found: pa.Array, kind: pa.DataType, is_tiny: Callable[[pa.DataType], bool]) -> pa.Array:
    """The values that pyarrow read, in the type of the column. Raises `ValueError` where it may not be exact.

    `is_tiny`: whether zeros can be numbers that are too small for a type.
    """
    types = pa.types
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    if kind in _FLOATS:
        if pc.any(pc.greater_equal(pc.abs(found), float(EXACT_WHOLE[kind]))).as_py():
            raise ValueError("whole numbers beyond those that are exact")
        if pc.any(pc.equal(found, 0)).as_py() and is_tiny(kind):
            raise ValueError("numbers that may be too small")
        return found
    if types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        children = [_finished(found.field(place), field.type, is_tiny) for place, field in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=found.is_null())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        values = _finished(found.values, kind.value_type, is_tiny)
        lists = pa.ListArray.from_arrays(found.offsets, values, mask=found.is_null())
        return lists.cast(kind)
    return found if found.type == kind else typed(found, kind)


def _read_exactly(chunk: Chunk, schema: pa.Schema) -> pa.Table:
    rows = list(parsed_rows(chunk))
    numbers = range(len(rows))
    try:
        names = set(schema.names)
        for number, (_, row) in enumerate(rows):
            if not row.keys() <= names:
                check_keys(row, schema.names, number)
        columns = [
            column_of([row.get(field.name) for _, row in rows], field.type, numbers, field.name) for field in schema
        ]
    except ValueMisfit as misfit:
        raise FileRefused(f"line {rows[misfit.row][0]}: {misfit}") from None
    return pa.Table.from_arrays(columns, schema=schema)


def _check_nulls(chunk: Chunk, table: pa.Table, field: pa.Field) -> None:
    column = table.column(field.name)
    if field.nullable or not column.null_count:
        return
    position = column.combine_chunks().is_null().index(True).as_py()
    line = next(line for number, (line, _) in enumerate(parsed_rows(chunk)) if number == position)
    raise FileRefused(f"line {line}: column {field.name}: expected a value, found null")


def _shapes_of(table: pa.Table, chunk: Chunk) -> dict[str, Shape] | None:
    """The shapes of values that pyarrow read without given types; None if numbers may have lost digits or signs."""
    kinds = {kind for field in table.schema for kind in _leaf_types(field.type)}
    patterns = (_LONG_NUMBER, _TINY_NUMBERS[pa.float64()]) if pa.float64() in kinds else ()
    if any(pattern.search(chunk.data) for pattern in patterns):
        return None
    if pa.int64() in kinds and _NEGATIVE_ZERO.search(chunk.data):
        return None
    return {name: _array_shape(column) for name, column in zip(table.schema.names, table.columns, strict=True)}


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    if not kind.num_fields:
        yield kind
    for place in range(kind.num_fields):
        yield from _leaf_types(kind.field(place).type)


def _array_shape(array: Any) -> Shape:
    """The shape of what pyarrow read. It takes some texts for times: JSON has none, a text is a text."""
    kind, types = array.type, pa.types
    if types.is_null(kind) or array.null_count == len(array):
        return NOTHING
    if types.is_boolean(kind):
        return Shape("boolean", is_literal=True)
    if types.is_integer(kind):
        bounds = pc.min_max(array).as_py()
        return Shape("integer", is_literal=True, least=bounds["min"], most=bounds["max"])
    if types.is_floating(kind):
        return Shape("number", is_literal=True, is_word=not pc.any(pc.is_finite(array)).as_py())
    if types.is_list(kind):
        longest = pc.max(pc.list_value_length(array)).as_py()
        return Shape("list", is_literal=True, most=longest, item=_array_shape(pc.list_flatten(array)))
    if types.is_struct(kind):
        fields = {
            kind.field(place).name: _array_shape(pc.struct_field(array, [place])) for place in range(kind.num_fields)
        }
        return Shape("object", is_literal=True, fields=fields)
    is_word = is_text(kind) and pc.all(pc.is_in(array.drop_null(), pa.array(sorted(WORDS)))).as_py()
    return Shape("text", is_literal=True, is_word=bool(is_word))


def _texts(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {name: _as_text(shape) for name, shape in shapes.items()}


def _as_text(shape: Shape) -> Shape:
    if shape.kind == "none":
        return shape
    if shape.kind == "list":
        return replace(shape, item=_as_text(shape.item or NOTHING))
    if shape.kind == "object":
        return replace(shape, fields=_texts(shape.fields))
    return Shape("text", is_literal=True)
