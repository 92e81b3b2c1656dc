"""Rows as values of JSON and as texts, from which `load` makes the same values again in columns of the same types."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from table_data.values.texts import DIGITS, is_bytes

_WORDS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def json_column(array: pa.Array) -> list[Any]:
    """The values of a column as values of JSON.

    Times are texts in ISO 8601, bytes base64, decimals texts, durations seconds, maps lists of pairs, and numbers that
    JSON has not (NaN and infinite ones) their names.
    """
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return json_column(array.storage)
    if types.is_dictionary(kind):
        return json_column(array.dictionary_decode())
    if types.is_floating(kind):
        return [_number(value) for value in array.to_pylist()]
    if types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        columns = [json_column(array.field(place)) for place in range(kind.num_fields)]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
        objects: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
        return _with_nulls(array, objects)
    if types.is_map(kind):
        keys, items = (json_column(_reached(array, each)) for each in (array.keys, array.items))
        return _slices(array, [list(pair) for pair in zip(keys, items, strict=True)])
    if types.is_list(kind) or types.is_large_list(kind):
        return _slices(array, json_column(_reached(array, array.values)))
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        items = json_column(array.values.slice(array.offset * size, len(array) * size))
        return _with_nulls(array, [items[row * size : (row + 1) * size] for row in range(len(array))])
    if (text := text_column(array)) is not None:
        return list(text.to_pylist()) if not types.is_duration(kind) else [_seconds(each) for each in text.to_pylist()]
    return list(array.to_pylist())


def text_column(array: pa.Array) -> pa.Array | None:
    """The values of a column as texts, where they are texts in JSON and CSV; None for numbers, texts and booleans."""
    kind = array.type
    for is_kind, write in _TEXTS:
        if is_kind(kind):
            return write(array)
    return None


def _number(value: float | None) -> Any:
    if value is None or math.isfinite(value):
        return value
    return _WORDS.get(value, "NaN")


def _seconds(text: str | None) -> Any:
    """A number of seconds; a text where a double has not all digits."""
    if text is None:
        return None
    number = float(text)
    if Decimal(repr(number)) != Decimal(text):
        return text
    return number


def _reached(array: Any, values: pa.Array) -> pa.Array:
    """Of the values of lists those that are in one: a slice of some rows has those of all rows."""
    if not len(array):
        return values.slice(0, 0)
    first = array.offsets[0].as_py()
    return values.slice(first, array.offsets[-1].as_py() - first)


def _slices(array: Any, items: list[Any]) -> list[Any]:
    """The items of each list, of which `items` has those of `_reached`."""
    offsets = array.offsets.to_pylist()
    return _with_nulls(array, [items[start - offsets[0] : end - offsets[0]] for start, end in pairwise(offsets)])


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _bytes(array: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else base64.b64encode(value).decode() for value in array.to_pylist()], pa.string()
    )


def _moments(array: pa.Array) -> pa.Array:
    if array.type.tz is not None and not _are_usual(array):
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    texts = pc.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
    if array.type.tz is not None:
        texts = pc.replace_substring_regex(texts, r"([+-][0-9]{2})([0-9]{2})$", r"\1:\2")
        texts = pc.replace_substring_regex(texts, r"Z$", "+00:00")
    return _plain_seconds(texts)


def _are_usual(array: pa.Array) -> bool:
    """Whether all years have four digits: times of others are written in UTC, in which they are read again."""
    years = pc.min_max(pc.year(array.cast(pa.timestamp(array.type.unit, "UTC")))).as_py()
    return years["min"] is None or (years["min"] > 0 and years["max"] < 9999)


def _plain_seconds(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\.0+($|[^0-9])", r"\1")


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _durations(array: pa.Array) -> pa.Array:
    digits = DIGITS[array.type.unit]
    values = [
        None if value is None else format(Decimal(value).scaleb(-digits), "f")
        for value in array.cast(pa.int64()).to_pylist()
    ]
    texts = pa.array(values, pa.string())
    shorter = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1")
    return pc.replace_substring_regex(shorter, r"\.0+$", ".0")


_TEXTS: Final[tuple[tuple[Callable[[Any], bool], Callable[[pa.Array], pa.Array]], ...]] = (
    (pa.types.is_timestamp, _moments),
    (pa.types.is_date, lambda array: _plain(array.cast(pa.date32()))),
    (pa.types.is_time, lambda array: _plain_seconds(_plain(array))),
    (pa.types.is_duration, _durations),
    (pa.types.is_decimal, _plain),
    (is_bytes, _bytes),
)
