"""Values of texts: each is the value that its text writes, exactly, or is refused. Pure, and a column at a time.

Numbers may have spaces around them, a sign, zeros in front and an exponent; into integers goes what is whole. Fractions
are rounded to the nearest number where the type is a floating-point one, as everywhere; whole numbers are not. Times
are ISO 8601, with a zone for types with a zone and without one for others. Bytes are base64, durations are seconds.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table_data.arrow import exact
from table_data.arrow.exact import first_refused, is_text
from table_data.values.misfits import CellMisfit, shown_type

_Read: TypeAlias = Callable[[pa.Array, Any], pa.Array]
_FAILURES: Final = (pa.ArrowException, ValueError, OverflowError)
_TRUE: Final = ("true", "t", "yes", "y", "1")
_FALSE: Final = ("false", "f", "no", "n", "0")
_BOOLEANS: Final = pa.array([*_TRUE, *_FALSE])
_WIDE: Final = pa.decimal256(76, 38)
"""Numbers whose text is not the plain one pass through this type."""
_WHOLE: Final = r"^\s*[+-]?[0-9]+\s*$"
_INFINITE: Final = r"(?i)^\s*[+-]?inf(inity)?\s*$"
_NOT_ZERO: Final = r"^[^eE]*[1-9]"
_TIME: Final = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$"
_FAR_DATE: Final = r"^-?[0-9]{4,6}-[0-9]{2}-[0-9]{2}$"
_FAR_TIME: Final = r"^-?[0-9]{4,6}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}%s)?%s$"
DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Digits of a second by the unit of a time."""
EXACT_WHOLE: Final = {pa.float16(): 2**11, pa.float32(): 2**24, pa.float64(): 2**53}
"""Whole numbers up to these are exact in a floating-point type."""


def typed(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of texts (strings) in a type that is not nested. Nulls stay. Raises `CellMisfit` ."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, typed(texts, kind.storage_type))
    read = _reader(kind)

    def refuses(part: pa.Array) -> bool:
        try:
            read(part, kind)
        except _FAILURES:
            return True
        return False

    try:
        return read(texts, kind)
    except _FAILURES:
        position = first_refused(texts, refuses)
        raise CellMisfit(position, shown_type(kind), texts[position].as_py()) from None


def _reader(kind: pa.DataType) -> _Read:
    for is_kind, read in _READERS:
        if is_kind(kind):
            return read
    raise ValueError(f"expected a type with a text for each value, found {kind}")


def _plainly(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return texts.cast(kind)


def _nulls(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if texts.null_count < len(texts):
        raise ValueError("a value in a column of nulls")
    return pa.nulls(len(texts), kind)


def _booleans(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    places = pc.index_in(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), _BOOLEANS)
    if places.null_count > texts.null_count:
        raise ValueError("no boolean")
    return pc.less(places, len(_TRUE)).cast(kind)


def _integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if any(pc.any(pc.match_substring(texts, mark)).as_py() for mark in ("x", "X")):
        raise ValueError("hexadecimal")
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        wide = _wide(texts)
        if kind != pa.uint64():
            return wide.cast(kind)
        # Arrow casts no decimal to whole numbers beyond those of 64 bits with a sign.
        values = wide.to_pylist()
        whole = [None if value is None else int(value) for value in values]
        if whole != values:
            raise ValueError("a fraction") from None
        return pa.array(whole, kind)


def _wide(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(texts).cast(_WIDE)


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return _wide(texts).cast(kind)


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    trimmed = texts
    try:
        found = texts.cast(kind)
    except pa.ArrowInvalid:
        trimmed = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^\+", "")
        found = trimmed.cast(kind)
    wide = found.cast(pa.float64())
    suspect = pc.or_(pc.is_inf(wide), pc.equal(wide, 0))
    if pc.any(suspect).as_py():
        odd = trimmed.filter(suspect)
        became = wide.filter(suspect)
        is_lost = pc.if_else(
            pc.is_inf(became),
            pc.invert(pc.match_substring_regex(odd, _INFINITE)),
            pc.match_substring_regex(odd, _NOT_ZERO),
        )
        if pc.any(is_lost).as_py():
            raise ValueError("beyond the range of the type")
    odd = pc.and_(pc.is_nan(wide), pc.greater(pc.binary_length(trimmed), 4))
    if pc.any(odd).as_py() and pc.any(pc.match_substring(trimmed.filter(odd), "(")).as_py():
        raise ValueError("a word of its own")
    large = pc.and_(pc.greater_equal(pc.abs(wide), float(EXACT_WHOLE[kind])), pc.is_finite(wide))
    if pc.any(large).as_py():
        _check_whole(trimmed.filter(large), found.filter(large))
    return found


def _check_whole(texts: pa.Array, found: pa.Array) -> None:
    """Raise `ValueError` for a whole number that is neither the one found, nor the shortest text of it."""
    whole = pc.match_substring_regex(texts, _WHOLE)
    texts, found = texts.filter(whole), found.filter(whole)
    shortest = found.cast(pa.string())
    other = pc.not_equal(texts, shortest)
    for text, value, short in zip(
        texts.filter(other).to_pylist(),
        found.filter(other).to_pylist(),
        shortest.filter(other).to_pylist(),
        strict=True,
    ):
        if int(text) not in {int(value), int(Decimal(short))}:
            raise ValueError("a whole number that is not exact")


def _dates(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        days = texts.cast(pa.date32())
    except pa.ArrowInvalid:
        days = _far(texts, _FAR_DATE, "D").cast(pa.int32()).cast(pa.date32())
    return days.cast(kind)


def _timestamps(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    for shape in (pc.utf8_trim_whitespace, _short_fractions):
        try:
            shaped = shape(texts)
            return _within_range(shaped, shaped.cast(kind))
        except pa.ArrowInvalid:
            continue
    # Years that have not four digits, which this project writes in UTC.
    short = pc.replace_substring_regex(_short_fractions(texts), r"\+00:?00$", "Z")
    digits = DIGITS[kind.unit]
    fraction = rf"(\.[0-9]{{1,{digits}}})?" if digits else ""
    far = _FAR_TIME % (fraction, "" if kind.tz is None else "Z")
    is_far = pc.match_substring_regex(short, far).fill_null(False)
    nothing = pa.scalar(None, pa.string())
    near = pc.if_else(is_far, nothing, short)
    near = _within_range(near, near.cast(kind))
    plain = pc.replace_substring(pc.replace_substring(short, " ", "T"), "Z", "")
    return pc.coalesce(near, _far(pc.if_else(is_far, plain, nothing), "", kind.unit).cast(kind))


def _within_range(texts: pa.Array, found: pa.Array) -> pa.Array:
    """Times of texts whose years have four digits. Arrow counts on from the other end where nanoseconds do not reach.

    Raises `ValueError`.
    """
    if found.type.unit == "ns":
        years = pc.utf8_slice_codeunits(texts, 0, 4).cast(pa.int64())
        if pc.any(pc.greater(pc.abs(pc.subtract(pc.year(found), years)), 1)).as_py():  # a zone may change the year
            raise ValueError("beyond the range of nanoseconds")
    return found


def _short_fractions(texts: pa.Array) -> pa.Array:
    """Texts of times without spaces around them and zeros at the end of fractions."""
    trimmed = pc.utf8_trim_whitespace(texts)
    shorter = pc.replace_substring_regex(trimmed, r"(\.[0-9]*[1-9])0+($|[^0-9])", r"\1\2")
    return pc.replace_substring_regex(shorter, r"\.0+($|[^0-9])", r"\1")


def _far(texts: pa.Array, pattern: str, unit: str) -> pa.Array:
    """Dates and times, also those of years that have not four digits, in units since 1970."""
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        raise ValueError("no date")
    plain = texts.fill_null("1970-01-01").to_numpy(zero_copy_only=False)
    values = plain.astype(f"datetime64[{unit}]")
    years = [int(text[: text.index("-", 1)]) for text in plain]
    if (values.astype("datetime64[Y]").astype(np.int64) + 1970 != years).any():
        raise ValueError("beyond the range of the unit")
    return pa.array(values.astype(np.int64), mask=texts.is_null().to_numpy(zero_copy_only=False))


def _times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    shorter = _short_fractions(texts)
    if pc.all(pc.match_substring_regex(shorter, _TIME)).as_py() is False:
        raise ValueError("no time of a day")
    moments = pc.binary_join_element_wise("1970-01-01T", shorter, "")
    return moments.cast(pa.timestamp(kind.unit)).cast(kind)


def _durations(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    digits = DIGITS[kind.unit]
    seconds = _decimals(texts, pa.decimal256(38, digits))
    return (
        pc.multiply(seconds, pa.scalar(Decimal(10**digits), pa.decimal256(digits + 1, 0))).cast(pa.int64()).cast(kind)
    )


def _bytes(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in texts.to_pylist()]
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    return pa.array(values, kind)


def _dictionaries(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    encoded = _reader(kind.value_type)(texts, kind.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(kind.index_type), encoded.dictionary, ordered=kind.ordered
    )


def takes_numbers(kind: pa.DataType) -> bool:
    """Whether a number of JSON is a value of a type."""
    types = pa.types
    if types.is_dictionary(kind):
        return takes_numbers(kind.value_type)
    return any(
        is_kind(kind) for is_kind in (is_text, types.is_integer, types.is_floating, types.is_decimal, types.is_duration)
    )


def is_bytes(kind: pa.DataType) -> bool:
    """Whether the values of a type are bytes, also of one length."""
    return exact.is_bytes(kind) or bool(pa.types.is_fixed_size_binary(kind))


_READERS: Final[tuple[tuple[Callable[[Any], bool], _Read], ...]] = (
    (is_text, _plainly),
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date, _dates),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (is_bytes, _bytes),
    (pa.types.is_dictionary, _dictionaries),
    (pa.types.is_null, _nulls),
)
