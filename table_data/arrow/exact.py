"""Arrow arrays in the type of a column, where each value stays what it was.

Arrow's own casts also read texts as numbers, count booleans as numbers, and drop fields of structs without a word. Here
a type is cast to those of its own family, at any depth, and a value that the other type does not hold is refused. Only
floating-point numbers are rounded, to the precision of a column of such numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from table_data.errors import SchemaMismatch

_SHOWN: Final = 80
_Convert: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]
_IsKind: TypeAlias = Callable[[pa.DataType], bool]


class Misfit(Exception):
    """A type, or a value of an array, that the wanted type does not hold.

    Attributes:
        expected: What was wanted.
        found: What was there.
        path: Names of the fields from the column to the place, each with a dot before it.
        position: Place of the row in the array; None if it is about all of them.
    """

    def __init__(self, expected: object, found: object, *, position: int | None = None) -> None:
        super().__init__(expected, found)
        self.expected = str(expected)[:200]
        self.found = str(found)[:200]
        self.path = ""
        self.position = position

    def inside(self, field: str) -> Self:
        """The same, in a field of what is around it."""
        self.path = f".{field}{self.path}"
        return self

    def refusal(self, column: str, first_row: int = 0) -> SchemaMismatch:
        """The error of a column, whose array begins at a row. Rows are counted from 1."""
        row = "" if self.position is None else f", row {first_row + self.position + 1}"
        return SchemaMismatch(
            f"column {(column + self.path)[:80]!r}{row}: expected {self.expected}, found {self.found}"
        )


def is_same(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether two types are equal, with the names and the nullability of their fields, which Arrow leaves out."""
    if source != kind or source.num_fields != kind.num_fields:
        return False
    pairs = ((source.field(place), kind.field(place)) for place in range(kind.num_fields))
    return all(a.name == b.name and a.nullable == b.nullable and is_same(a.type, b.type) for a, b in pairs)


def is_kept(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether all values of a type are those of another one. Arrow itself lets nulls be where a field has none."""
    return is_same(source, kind) and not _has_required(kind)


def _has_required(kind: pa.DataType) -> bool:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    if types.is_map(kind):  # whose keys are validated
        fields = [kind.key_field.with_nullable(True), kind.item_field]
    return any(not field.nullable or _has_required(field.type) for field in fields)


def has_nulls(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether values are null, also by a null among the values of a dictionary, which Arrow does not count."""
    return bool(column.null_count or (types.is_dictionary(column.type) and pc.any(column.is_null()).as_py()))


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array in a type. Fields of structs are matched by name; those that are not there are null.

    Raises `Misfit` for a type of another family, the first value that does not fit, a field that the type does not
    have, and a null where a field has none.
    """
    source = array.type
    if is_kept(source, kind):
        return array
    if types.is_null(source):
        return pa.nulls(len(array), kind)
    if isinstance(source, pa.BaseExtensionType):
        if isinstance(kind, pa.BaseExtensionType) or source.extension_name.startswith("pandas."):
            raise Misfit(kind, source)
        if source.extension_name == "arrow.bool8":
            return cast(array.storage.cast(pa.bool_()), kind)
        return cast(array.storage, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, cast(array, kind.storage_type))
    if types.is_run_end_encoded(source):
        return cast(pc.run_end_decode(array), kind)
    if types.is_float16(source):  # for which Arrow has few functions
        return cast(array.cast(pa.float32()), kind)
    for of_source, of_kind, convert in _CASTS:
        if of_source(source) and of_kind(kind):
            return convert(array, kind)
    raise Misfit(kind, source)


def shown(value: object) -> str:
    """A value in an error."""
    if isinstance(value, pa.Scalar):
        scalar: pa.Scalar = value
        try:
            value = scalar.as_py()
        except (ValueError, OverflowError):  # a time that Python does not have
            value = scalar.cast(pa.string()).as_py()
    text = repr(value) if isinstance(value, (str, bytes)) else " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def row_of(lengths: npt.NDArray[np.int64], item: int) -> int:
    """The list that an item is in, if all lists follow one another."""
    return int(np.searchsorted(np.cumsum(lengths), item, side="right"))


# -- values without parts


def _leaf(array: pa.Array, kind: pa.DataType, convert: _Convert) -> pa.Array:
    """The result of `convert`. Raises `Misfit` for the first value that it refuses."""
    try:
        return convert(array, kind)
    except pa.ArrowNotImplementedError:
        raise Misfit(kind, array.type) from None
    except pa.ArrowInvalid as error:

        def refuses(part: pa.Array) -> bool:
            try:
                convert(part, kind)
            except pa.ArrowInvalid:
                return True
            return False

        start = first_refused(array, refuses)
        if not refuses(array[start : start + 1]):
            raise Misfit(kind, f"{array.type}: {error}") from None
        raise Misfit(kind, shown(array[start]), position=start) from None


def first_refused(array: pa.Array, refuses: Callable[[pa.Array], bool]) -> int:
    """The place of the first value that is refused, of an array that is: by halves."""
    start, end = 0, len(array)
    while end - start > 1:
        middle = (start + end) // 2
        start, end = (start, middle) if refuses(array[start:middle]) else (middle, end)
    return start


def _plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return _leaf(array, kind, lambda part, _: part.cast(kind))


def _texts(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts or bytes. Of a part of an array Arrow takes the place in the whole for its length, so it is copied."""
    is_large = types.is_large_string(array.type) or types.is_large_binary(array.type)
    return _plain(pa.concat_arrays([array]) if is_large and array.offset else array, kind)


def _and_back(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values that are the same when they are cast back."""

    def convert(part: pa.Array, _: pa.DataType) -> pa.Array:
        found = _number(part, kind)
        return _require(pc.equal(_number(found, part.type), part), found)

    return _leaf(array, kind, convert)


def _number(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The nearest floating-point numbers, or what is exactly another number or date."""
    if types.is_float16(array.type) or types.is_float16(kind):
        array = array.cast(pa.float32(), safe=False)
    return array.cast(kind, safe=not types.is_floating(kind))


def _rounded(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floating-point numbers of another width. A finite number stays finite."""

    def convert(part: pa.Array, _: pa.DataType) -> pa.Array:
        found = part.cast(kind, safe=False)
        if kind.bit_width > part.type.bit_width:
            return found
        became_infinite = pc.and_(pc.is_inf(found), pc.is_finite(part))
        return _require(pc.invert(became_infinite), found)

    return _leaf(array, kind, convert)


def _require(holds: pa.Array, found: pa.Array) -> pa.Array:
    if pc.all(holds).as_py() is False:
        raise pa.ArrowInvalid("not the same value")
    return found


def _integer_to_decimal(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """By a decimal of all digits: Arrow refuses one of fewer digits than the type has, whatever the values are."""
    wide = pa.decimal256(20, 0) if types.is_decimal256(kind) else pa.decimal128(20, 0)
    return _leaf(array, kind, lambda part, _: part.cast(wide).cast(kind))


def _midnight(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type.tz is not None:
        raise Misfit(kind, array.type)
    return _and_back(array, kind)


def _timestamp(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times with and without a zone are not cast to each other: that would add or remove a zone."""
    source = array.type
    tz = getattr(source, "tz", None)
    if (tz is None) != (kind.tz is None):
        raise Misfit(kind, source)
    return _and_back(array, kind) if types.is_date(source) else _plain(array, kind)


def _fixed_bytes(array: pa.Array, kind: pa.DataType) -> pa.Array:
    def convert(part: pa.Array, _: pa.DataType) -> pa.Array:
        return _require(pc.equal(pc.binary_length(part), kind.byte_width), part.cast(kind))

    if types.is_binary_view(array.type):  # of which Arrow does not know the lengths
        array = array.cast(pa.large_binary())
    return _leaf(array, kind, convert)


# -- dictionaries


def _from_dictionary(array: pa.DictionaryArray, kind: pa.DataType) -> pa.Array:
    return cast(_decoded(array), kind)


def _to_dictionary(array: pa.Array, kind: pa.DataType) -> pa.Array:
    values = cast(array, kind.value_type)
    return _leaf(values, kind, lambda part, _: _with_indices(part.dictionary_encode(), kind))


def _between_dictionaries(array: pa.DictionaryArray, kind: pa.DataType) -> pa.Array:
    try:
        return _with_indices(array, kind)
    except (Misfit, pa.ArrowInvalid):  # by a value of the dictionary that no row has, or by one that the error names
        return _to_dictionary(_decoded(array), kind)


def _with_indices(array: pa.DictionaryArray, kind: pa.DataType) -> pa.Array:
    values = cast(array.dictionary, kind.value_type)
    return pa.DictionaryArray.from_arrays(array.indices.cast(kind.index_type), values, ordered=kind.ordered)


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    if types.is_string_view(values.type):  # of which Arrow cannot take some
        values = values.cast(pa.string())
    elif types.is_binary_view(values.type):
        values = values.cast(pa.binary())
    return values.take(array.indices)


# -- values with parts


def _list(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_fixed_size_list(kind) and not kind.list_size:  # at which Arrow divides by zero
        raise Misfit("lists of one value or more", array.type)
    lengths = _lengths(array)
    item = kind.value_field
    try:
        values = _field(array.flatten(), item)
    except Misfit as misfit:
        if misfit.position is not None:
            misfit.position = row_of(lengths, misfit.position)
        raise
    mask = array.is_null() if array.null_count else None
    if types.is_fixed_size_list(kind):
        return _fixed_lists(array, values, lengths, mask, kind)
    return lists_of(lengths, values, kind, mask)


def lists_of(lengths: npt.NDArray[np.int64], values: pa.Array, kind: pa.DataType, mask: pa.Array | None) -> pa.Array:
    """Lists of so many of the values each. Raises `Misfit` for more values than lists of the type have together."""
    large = types.is_large_list(kind)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if not large and offsets[-1] > np.iinfo(np.int32).max:
        raise Misfit(kind, f"{offsets[-1]} items at once: add them in parts")
    of = pa.LargeListArray if large else pa.ListArray
    return of.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), values, type=kind, mask=mask)


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """The lengths of the lists, 0 of those that are null."""
    lengths = pc.if_else(array.is_valid(), pc.list_value_length(array).cast(pa.int64()), 0)
    found: npt.NDArray[np.int64] = lengths.to_numpy(zero_copy_only=False)
    return found


def _fixed_lists(
    array: pa.Array, values: pa.Array, lengths: npt.NDArray[np.int64], mask: pa.Array | None, kind: pa.DataType
) -> pa.Array:
    valid = np.ones(len(array), bool) if mask is None else ~mask.to_numpy(zero_copy_only=False)
    other = np.flatnonzero((lengths != kind.list_size) & valid)
    if len(other):
        place = int(other[0])
        raise Misfit(kind, f"a list of {lengths[place]}", position=place)
    if mask is not None:  # a list that is null has values, too
        places = np.zeros((len(array), kind.list_size), np.int64)
        places[valid] = np.arange(len(values)).reshape(-1, kind.list_size)
        absent = np.repeat(~valid, kind.list_size)
        values = values.take(pa.array(places.ravel(), mask=absent))
    return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)


def _struct(array: pa.StructArray, kind: pa.DataType) -> pa.Array:
    names = [field.name for field in array.type]
    wanted = [field.name for field in kind]
    if surplus := [name for name in names if name not in wanted or names.count(name) > 1]:
        raise Misfit(f"one of the fields {wanted}, each once", array.type.field(surplus[0]).type).inside(surplus[0])
    given = dict(zip(names, array.flatten(), strict=True))
    parts = []
    for field in kind:
        found = given.get(field.name, pa.nulls(len(array)))
        try:
            parts.append(_field(found, field, None if not array.null_count else array.is_null()))
        except Misfit as misfit:
            raise misfit.inside(field.name) from None
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)


def _field(array: pa.Array, field: pa.Field, absent: pa.Array | None = None) -> pa.Array:
    """Values in the type of a field. Those that are `absent`, in structs that are null, are null too."""
    found = cast(array, field.type)
    if not field.nullable and has_nulls(found):
        missing = found.is_null() if absent is None else pc.and_not(found.is_null(), absent)
        place = pc.index(missing, pa.scalar(value=True)).as_py()
        if place >= 0:
            raise Misfit(f"{field.type} that is not null", "null", position=place)
    return found


def _map(array: pa.Array, kind: pa.DataType) -> pa.Array:
    whole = pa.concat_arrays([array])
    try:
        keys = cast(whole.keys, kind.key_type)
        items = _field(whole.items, kind.item_field)
    except Misfit as misfit:
        if misfit.position is not None:
            offsets = whole.offsets.to_numpy()
            misfit.position = int(np.searchsorted(offsets[1:], misfit.position, side="right"))
        raise
    mask = whole.is_null() if whole.null_count else None
    return pa.MapArray.from_arrays(whole.offsets, keys, items, type=kind, mask=mask)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes of any length."""
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists. Maps are none."""
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


_CASTS: Final[tuple[tuple[_IsKind, _IsKind, _Convert], ...]] = (
    (types.is_dictionary, types.is_dictionary, _between_dictionaries),
    (types.is_dictionary, lambda _: True, _from_dictionary),
    (lambda _: True, types.is_dictionary, _to_dictionary),
    (types.is_integer, types.is_integer, _plain),
    (types.is_integer, types.is_floating, _and_back),
    (types.is_integer, types.is_decimal, _integer_to_decimal),
    (types.is_floating, types.is_integer, _plain),
    (types.is_floating, types.is_floating, _rounded),
    (types.is_floating, types.is_decimal, _and_back),
    (types.is_decimal, types.is_integer, _plain),
    (types.is_decimal, types.is_floating, _and_back),
    (types.is_decimal, types.is_decimal, _plain),
    (is_text, is_text, _texts),
    (is_bytes, is_bytes, _texts),
    (types.is_fixed_size_binary, is_bytes, _plain),
    (lambda kind: is_bytes(kind) or types.is_fixed_size_binary(kind), types.is_fixed_size_binary, _fixed_bytes),
    (types.is_date, types.is_date, _and_back),
    (types.is_date, types.is_timestamp, _timestamp),
    (types.is_timestamp, types.is_date, _midnight),
    (types.is_timestamp, types.is_timestamp, _timestamp),
    (types.is_time, types.is_time, _plain),
    (types.is_duration, types.is_duration, _plain),
    (types.is_struct, types.is_struct, _struct),
    (types.is_map, types.is_map, _map),
    (is_list, lambda kind: is_list(kind) and not types.is_list_view(kind), _list),
)
