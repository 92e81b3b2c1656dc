"""Dictionary columns, and fields in columns, whose indices are too narrow for the values that may be added.

Pylance writes each data file with one dictionary. With more values than the indices of its type count, the file is not
readable any more.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_INDEX = pa.int32()
"""The type of indices that are made wider."""


def has_dictionary(kind: pa.DataType) -> bool:
    """Whether a type is one of dictionaries, or has one in it."""
    return _holds(kind, pa.types.is_dictionary)


def has_narrow_dictionary(kind: pa.DataType) -> bool:
    """Whether a type has dictionaries in it whose indices have less than 32 bits."""
    return _holds(kind, _is_narrow)


def widened(schema: pa.Schema) -> pa.Schema:
    """The schema with indices of 32 bits where there are less. Values of dictionaries are no views."""
    return pa.schema([field.with_type(_wide(field.type)) for field in schema], metadata=schema.metadata)


def _holds(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    return wanted(kind) or any(_holds(kind.field(place).type, wanted) for place in range(kind.num_fields))


def _is_narrow(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind)) and kind.index_type.bit_width < _INDEX.bit_width


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type with texts and bytes in place of views of them, also in its fields."""
    return rebuilt(kind, _without_view)


def _wide(kind: pa.DataType) -> pa.DataType:
    return rebuilt(kind, _wide_dictionary) if has_dictionary(kind) else kind


def _wide_dictionary(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_dictionary(kind):
        return kind
    index = _INDEX if _is_narrow(kind) else kind.index_type
    return pa.dictionary(index, _without_view(kind.value_type), kind.ordered)


def rebuilt(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type whose parts without fields are changed."""
    if not kind.num_fields or pa.types.is_dictionary(kind):
        return change(kind)
    fields = [kind.field(place) for place in range(kind.num_fields)]
    fields = [field.with_type(rebuilt(field.type, change)) for field in fields]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        key, item = fields[0].type
        return pa.map_(key, item, kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(fields[0])
    if pa.types.is_large_list(kind):
        return pa.large_list(fields[0])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    return kind


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind
