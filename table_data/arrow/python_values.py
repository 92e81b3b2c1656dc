"""Values of Python as Arrow arrays, in which each one is what it was.

`pyarrow.array` finds the types of values, and then they are cast like other Arrow data. With a type it would cut off
fractions, drop keys of dicts and times of days, and take times with a zone for others, without a word. Where it finds
the type it mixes some kinds of values: so their classes are looked at here.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from table_data.arrow.exact import Misfit, cast, is_list, lists_of, row_of, shown

_FAMILIES: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("bool", (bool, np.bool_)),
    ("timedelta", (dt.timedelta, np.timedelta64)),  # which numpy counts among its integers
    ("int", (int, np.integer)),
    ("float", (float, np.floating)),
    ("Decimal", (Decimal,)),
    ("str", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("datetime", (dt.datetime, np.datetime64)),
    ("date", (dt.date,)),
    ("time", (dt.time,)),
)
_MIXED: Final = (frozenset({"int", "float"}), frozenset({"int", "Decimal"}))
"""Kinds of values that may be in one column."""
_MISSING: Final = frozenset({"NaTType", "NAType", "MaskedConstant"})
"""Classes of the values of pandas and numpy that stand for none."""
_NANOSECONDS: Final = frozenset({"Timestamp", "Timedelta"})
"""Classes of pandas with nanoseconds, of which pyarrow takes microseconds where it finds the type."""
_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""What pyarrow raises for values that it does not take."""
_NUMPY_TIMES: Final = (np.datetime64, np.timedelta64)
_ARROW_UNITS: Final = {"W": "s", "D": "s", "h": "s", "m": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}
"""The unit of Arrow for the units of times of numpy that it holds."""


def array_of(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """The values as an array, of a type if one is given. Raises `Misfit` for what is of no type, or of another one."""
    classes = set(map(type, values))
    if any(each.__name__ in _MISSING for each in classes):
        values = [None if type(value).__name__ in _MISSING else value for value in values]
        classes = {each for each in classes if each.__name__ not in _MISSING}
    classes.discard(type(None))
    if np.ndarray in classes:
        values = [each[()] if isinstance(each, np.ndarray) and not each.ndim else each for each in values]
        classes = set(map(type, values)) - {type(None)}
    if kind is None:
        kind = _nested_type(values)
    if kind is None:
        return _found(values, classes)
    if isinstance(kind, pa.BaseExtensionType) and types.is_nested(kind.storage_type):
        return pa.ExtensionArray.from_storage(kind, array_of(values, kind.storage_type))
    if types.is_struct(kind):
        return _structs(values, kind)
    if types.is_map(kind):
        return _maps(values, kind)
    if is_list(kind):
        return _lists(values, kind)
    return cast(_found(values, classes), kind)


def of_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """An array of numpy with one dimension. Raises `Misfit` for objects and other types that Arrow does not have."""
    given = values.dtype
    if not given.isnative:
        values = values.astype(given.newbyteorder("="))
    try:
        return pa.array(_in_arrow_units(values) if given.kind in "mM" else values)
    except _ERRORS:
        raise Misfit("values of Arrow", f"an array of {given}") from None


def _in_arrow_units(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Times in a unit of Arrow. Raises `ValueError` for years and months, for what is finer, and for an overflow."""
    unit, count = np.datetime_data(values.dtype)
    if values.dtype.kind == "M" and (unit, count) == ("D", 1):
        return values  # dates
    if unit not in _ARROW_UNITS:
        raise ValueError(unit)
    found = values.astype(f"{values.dtype.kind}8[{_ARROW_UNITS[unit]}]")
    if not ((found.astype(values.dtype) == values) | np.isnat(values)).all():
        raise ValueError("overflow")
    return found


def _nested_type(values: Sequence[Any]) -> pa.DataType | None:
    """The type of dicts, or of lists, of values; None for values without parts."""
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, (Mapping, list, tuple, np.ndarray)):
        return None
    try:
        return pa.infer_type(values)
    except _ERRORS as error:
        raise _misfit(values, pa.infer_type, error) from None


def _found(values: Sequence[Any], classes: Collection[type]) -> pa.Array:
    """Values without parts, of these classes and null, in the type that pyarrow finds for them."""
    _check_families(values, classes)
    if any(issubclass(each, _NUMPY_TIMES) for each in classes):
        return _numpy_times(values)
    if len(classes) > 1 and any(issubclass(each, np.number) for each in classes):
        # Of these beside others pyarrow takes large ones for negative ones.
        values = [value.item() if isinstance(value, np.number) else value for value in values]
    kind = None
    try:
        kind = _with_nanoseconds(values, classes)
        found = pa.array(values, kind)
    except _ERRORS as error:
        if isinstance(error, OverflowError) and all(_family(each) == "int" for each in classes):
            return _integers(values)
        raise _misfit(values, lambda part: pa.array(part, kind), error) from None
    if types.is_nested(found.type):
        raise Misfit("values, lists or dicts", next(each.__name__ for each in classes))
    return found


def _misfit(values: Sequence[Any], convert: Callable[[Sequence[Any]], object], error: Exception) -> Misfit:
    """What is raised for values that cannot be converted: it names the first one that cannot, with those before it."""

    def refuses(count: int) -> bool:
        try:
            convert(values[:count])
        except _ERRORS:
            return True
        return False

    place = bisect(range(1, len(values) + 1), 0, key=refuses)
    return Misfit("values of one type of Arrow", f"{shown(values[place])}: {error}", position=place)


def _check_families(values: Sequence[Any], classes: Iterable[type]) -> None:
    families = {each: _family(each) for each in classes}
    found = frozenset(families.values())
    if len(found) > 1 and found not in _MIXED:
        given = [None if value is None else families[type(value)] for value in values]
        first = next(family for family in given if family is not None)
        others = [family for family in found - {first} if frozenset({first, family}) not in _MIXED]
        other = (others or sorted(found - {first}))[0]
        place = given.index(other)
        raise Misfit(f"values of one type, as {first}", f"{other} {shown(values[place])}", position=place)
    if found & {"datetime", "time"}:
        _check_zones(values)


def _family(kind: type) -> str:
    return next((name for name, members in _FAMILIES if issubclass(kind, members)), kind.__name__)


def _check_zones(values: Sequence[Any]) -> None:
    zoned = [None if value is None else getattr(value, "tzinfo", None) is not None for value in values]
    first = next(zone for zone in zoned if zone is not None)
    if (not first) in zoned:
        place = zoned.index(not first)
        raise Misfit(f"times that all have {'a' if first else 'no'} zone", shown(values[place]), position=place)
    if first and isinstance(values[zoned.index(True)], dt.time):
        place = zoned.index(True)
        raise Misfit("times of a day without a zone", shown(values[place]), position=place)


def _with_nanoseconds(values: Sequence[Any], classes: Iterable[type]) -> pa.DataType | None:
    """The type of times of pandas that have nanoseconds; None leaves it to pyarrow."""
    if not any(each.__name__ in _NANOSECONDS for each in classes):
        return None
    if not any(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values):
        return None
    found = pa.infer_type(values)
    return pa.duration("ns") if types.is_duration(found) else pa.timestamp("ns", found.tz)


def _numpy_times(values: Sequence[Any]) -> pa.Array:
    """Times of numpy, all of one unit: pyarrow takes the unit of one of them for all."""
    values = [None if isinstance(value, _NUMPY_TIMES) and np.isnat(value) else value for value in values]
    kinds = [None if value is None else str(getattr(value, "dtype", type(value).__name__)) for value in values]
    first = next((kind for kind in kinds if kind is not None), None)
    for place, kind in enumerate(kinds):
        if kind not in {None, first}:
            raise Misfit(f"values of one type, as {first}", f"{kind} {shown(values[place])}", position=place)
    time = next((value for value in values if value is not None), None)
    if not isinstance(time, _NUMPY_TIMES):
        return _found(values, {type(value) for value in values if value is not None})
    missing = np.array("NaT", time.dtype)[()]
    return of_numpy(np.array([missing if value is None else value for value in values], time.dtype))


def _integers(values: Sequence[Any]) -> pa.Array:
    """Integers beyond 64 bits as decimals."""
    try:
        return pa.array([None if value is None else Decimal(int(value)) for value in values])
    except _ERRORS as error:
        raise Misfit("integers that a decimal holds", error) from None


# -- values with parts


def _structs(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    _require(values, Mapping, "dicts")
    names = {field.name for field in kind}
    for place, value in enumerate(values):
        if value is not None and not value.keys() <= names:
            unknown = next(name for name in value if name not in names)
            raise Misfit(f"one of the fields {[field.name for field in kind]}", f"key {unknown!r}", position=place)
    if not names:  # from which Arrow does not see how many there are
        return pa.array(values, kind)
    parts = []
    for field in kind:
        try:
            parts.append(array_of([None if each is None else each.get(field.name) for each in values], field.type))
        except Misfit as misfit:
            raise misfit.inside(field.name) from None
    found = pa.struct([field.with_nullable(True) for field in kind])
    return cast(pa.StructArray.from_arrays(parts, fields=list(found), mask=_nulls(values)), kind)


def _lists(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    values = [list(each) if isinstance(each, np.ndarray) and each.ndim > 1 else each for each in values]
    _require(values, (list, tuple, np.ndarray), "lists")
    lengths = np.fromiter((0 if each is None else len(each) for each in values), np.int64, len(values))
    filled = [each for each in values if each is not None]
    try:
        if _are_alike(filled):
            items = of_numpy(np.concatenate(filled))
        else:
            items = array_of(list(chain.from_iterable(filled)), kind.value_type)
    except Misfit as misfit:
        raise _of_row(misfit, lengths) from None
    lists = lists_of(lengths, items, pa.large_list(items.type), _nulls(values))
    return cast(lists, kind)


def _are_alike(values: Sequence[Any]) -> bool:
    """Whether values are arrays of numpy of one type, which numpy can join: it makes others of mixed numbers.

    Of arrays with a mask it would leave out the mask.
    """
    first = values[0].dtype if values and isinstance(values[0], np.ndarray) else None
    if first is None or first.kind == "O":
        return False
    return all(type(each) is np.ndarray and each.dtype == first for each in values)


def _maps(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    pairs = [list(each.items()) if isinstance(each, Mapping) else each for each in values]
    _require(pairs, (list, tuple), "dicts, or lists of pairs")
    lengths = np.fromiter((0 if each is None else len(each) for each in pairs), np.int64, len(pairs))
    filled = [pair for each in pairs if each is not None for pair in each]
    try:
        _require(filled, (list, tuple), "pairs")
        keys = array_of([key for key, _ in filled], kind.key_type)
        items = array_of([item for _, item in filled], kind.item_type)
        if keys.null_count:
            raise Misfit("keys that are not null", "null", position=[key for key, _ in filled].index(None))
    except Misfit as misfit:
        raise _of_row(misfit, lengths) from None
    except ValueError:
        raise Misfit("pairs of a key and a value", "others") from None
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    return cast(pa.MapArray.from_arrays(offsets, keys, items, mask=_nulls(values)), kind)


def _require(values: Sequence[Any], wanted: type | tuple[type, ...], what: str) -> None:
    for place, value in enumerate(values):
        if value is not None and not isinstance(value, wanted):
            raise Misfit(what, f"{type(value).__name__} {shown(value)}", position=place)


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls) if any(nulls) else None


def _of_row(misfit: Misfit, lengths: npt.NDArray[np.int64]) -> Misfit:
    if misfit.position is not None:
        misfit.position = row_of(lengths, misfit.position)
    return misfit
