"""Values of JSON in the types of columns, one row after another: exact for every type, and it finds what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from table_data.arrow.exact import is_text
from table_data.values.misfits import CellMisfit, shown_type, shown_value
from table_data.values.texts import takes_numbers, typed


class Literal(str):
    """A number or boolean as it is written."""

    __slots__ = ()


class ValueMisfit(Exception):
    """A value of JSON that is none of a type. `row` is that of the value among the rows, `path` that of its field."""

    def __init__(self, row: int, path: str, reason: str) -> None:
        super().__init__(f"column {path}: {reason}" if path else reason)
        self.row = row


def column_of(values: Sequence[Any], kind: pa.DataType, rows: Sequence[int], path: str) -> pa.Array:
    """An array of values of JSON, which are those of `rows`. Raises `ValueMisfit`."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, column_of(values, kind.storage_type, rows, path))
    if types.is_struct(kind):
        return _structs(values, kind, rows, path)
    if types.is_map(kind):
        return _maps(values, kind, rows, path)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(values, kind, rows, path)
    return _leaves(values, kind, rows, path)


def _leaves(values: Sequence[Any], kind: pa.DataType, rows: Sequence[int], path: str) -> pa.Array:
    of_values = kind.value_type if pa.types.is_dictionary(kind) else kind
    takes_booleans = pa.types.is_boolean(of_values) or is_text(of_values)
    is_number = takes_numbers(kind)
    texts: list[str | None] = []
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, bool):
            if not takes_booleans:
                raise ValueMisfit(row, path, f"expected {shown_type(kind)}, found {str(value).lower()}")
            texts.append("true" if value else "false")
        elif value is None or isinstance(value, str):
            if not is_number and isinstance(value, Literal):
                raise ValueMisfit(row, path, f"expected {shown_type(kind)}, found {value}")
            texts.append(value)
        else:
            raise ValueMisfit(row, path, f"expected {shown_type(kind)}, found {_container(value)}")
    try:
        return typed(pa.array(texts, pa.large_string() if kind == pa.large_string() else pa.string()), kind)
    except CellMisfit as misfit:
        raise ValueMisfit(rows[misfit.position], path, str(misfit)) from None
    except UnicodeEncodeError:
        row = next(row for row, text in zip(rows, texts, strict=True) if text and not _is_unicode(text))
        raise ValueMisfit(row, path, "expected Unicode, found half of a surrogate pair") from None


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _container(value: object) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _structs(values: Sequence[Any], kind: pa.DataType, rows: Sequence[int], path: str) -> pa.Array:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    names = {field.name for field in fields}
    for row, value in zip(rows, values, strict=True):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ValueMisfit(row, path, f"expected an object, found {_shown(value)}")
        if not value.keys() <= names:
            check_keys(value, [field.name for field in fields], row, path)
    children = [
        column_of(
            [None if value is None else value.get(field.name) for value in values],
            field.type,
            rows,
            f"{path}.{field.name}",
        )
        for field in fields
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def check_keys(value: dict[str, Any], names: Sequence[str], row: int, path: str = "") -> None:
    """Raise `ValueMisfit` for a key that is not among the names."""
    if unknown := [name for name in value if name not in names]:
        raise ValueMisfit(row, path, f"expected fields among {', '.join(names)}, found {unknown[0]}")


def _lists(values: Sequence[Any], kind: pa.DataType, rows: Sequence[int], path: str) -> pa.Array:
    length = kind.list_size if pa.types.is_fixed_size_list(kind) else None
    offsets, items, item_rows = [0], [], []
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            if not isinstance(value, list):
                raise ValueMisfit(row, path, f"expected a list, found {_shown(value)}")
            if length is not None and len(value) != length:
                raise ValueMisfit(row, path, f"expected a list of {length}, found one of {len(value)}")
            items += value
            item_rows += [row] * len(value)
        elif length is not None:
            items += [None] * length
            item_rows += [row] * length
        offsets.append(len(items))
    children = column_of(items, kind.value_type, item_rows, path)
    mask = pa.array([value is None for value in values], pa.bool_())
    if length is not None:
        return pa.FixedSizeListArray.from_arrays(children, type=kind, mask=mask)
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    width = pa.int64() if pa.types.is_large_list(kind) else pa.int32()
    return made.from_arrays(pa.array(offsets, width), children, type=kind, mask=mask)


def _maps(values: Sequence[Any], kind: pa.DataType, rows: Sequence[int], path: str) -> pa.Array:
    """Maps are lists of pairs; with texts as keys also objects."""
    offsets, keys, items, item_rows = [0], [], [], []
    for row, value in zip(rows, values, strict=True):
        pairs: Any = value or []
        if isinstance(value, dict) and is_text(kind.key_type):
            pairs = list(value.items())
        if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueMisfit(row, path, f"expected a list of pairs, found {_shown(value)}")
        for key, item in pairs:
            if key is None:
                raise ValueMisfit(row, path, "expected a key in each pair, found null")
            keys.append(key)
            items.append(item)
            item_rows.append(row)
        offsets.append(len(keys))
    key_array = column_of(keys, kind.key_type, item_rows, f"{path}.key")
    item_array = column_of(items, kind.item_type, item_rows, f"{path}.value")
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), key_array, item_array, type=kind, mask=mask)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return _container(value)
    return str(value) if isinstance(value, Literal) else shown_value(value)
