"""Guesses the type of a column from its texts: only a type that gives the same texts back. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from namespace_server.cli.files.shapes import EXACT_IN_DOUBLE, NOTHING, TEXT, Shape
from table_data.values.misfits import CellMisfit
from table_data.values.texts import typed

_BOOLEANS: Final = pa.array(["true", "false", "True", "False", "TRUE", "FALSE"])
_NUMBER: Final = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^(nan|NaN|-?(inf|Infinity))$"
_WHOLE: Final = r"^-?[0-9]+$"
_DATE_LENGTH: Final = 10
_TIME: Final = r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?$"
_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?Z?$"
_BEGIN: Final = 32
"""Values that are looked at first: a cast that fails takes ten times as long as one that does not."""
_SURE_DIGITS: Final = 15
"""A decimal number of so many digits is the one nearest to its double."""


def guessed(texts: pa.Array | pa.ChunkedArray) -> Shape:
    """The shape of texts, nulls aside. What is not text comes back from its type as it was written, or as its equal."""
    values = texts.drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if len(values) == 0:
        return NOTHING
    first = values[0].as_py()
    if not first or first != first.strip():
        return TEXT
    begin = values.slice(0, _BEGIN)
    for guess in (_integers, _numbers, _booleans, _dates, _times, _moments):
        if guess(begin, first) is not None and (found := guess(values, first)) is not None:
            return found
    return TEXT


def _integers(texts: pa.Array, _: str) -> Shape | None:
    for kind in (pa.int64(), pa.uint64()):
        try:
            numbers = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        if not pc.all(pc.equal(numbers.cast(pa.string()), texts)).as_py():
            return None
        bounds = pc.min_max(numbers).as_py()
        return Shape("integer", least=bounds["min"], most=bounds["max"])
    return None


def _numbers(texts: pa.Array, _: str) -> Shape | None:
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    other = pc.not_equal(numbers.cast(pa.string()), texts)
    if pc.any(other).as_py():
        rest = texts.filter(other)
        if not pc.all(pc.match_substring_regex(rest, _NUMBER)).as_py() or not _are_exact(rest, numbers.filter(other)):
            return None
    beyond = texts.filter(pc.and_(pc.is_finite(numbers), pc.greater(pc.abs(numbers), EXACT_IN_DOUBLE)))
    if pc.any(pc.match_substring_regex(beyond, _WHOLE)).as_py():
        return None
    return Shape("number", is_word=not pc.any(pc.is_finite(numbers)).as_py())


def _are_exact(texts: pa.Array, numbers: pa.Array) -> bool:
    """Whether each number is the one that its text writes; words such as NaN are."""
    usual = pc.and_(pc.is_finite(numbers), pc.greater(pc.abs(numbers), 1e-290))
    sure = pc.and_(usual, pc.less_equal(pc.utf8_length(texts), _SURE_DIGITS))
    if pc.all(sure).as_py():
        return True
    rest = pc.invert(sure)
    pairs = zip(texts.filter(rest).to_pylist(), numbers.filter(rest).to_pylist(), strict=True)
    return all(is_exact(text, number) for text, number in pairs)


def is_exact(text: str, number: float) -> bool:
    """Whether a double's shortest text is the number that a text writes. Words such as NaN are."""
    if not text[-1].isdigit() and text[-1] != ".":
        return True
    return abs(number) != float("inf") and Decimal(text) == Decimal(repr(number))


def _booleans(texts: pa.Array, first: str) -> Shape | None:
    if first.lower() not in {"true", "false"} or not pc.all(pc.is_in(texts, _BOOLEANS)).as_py():
        return None
    return Shape("boolean")


def _dates(texts: pa.Array, first: str) -> Shape | None:
    if len(first) != _DATE_LENGTH:
        return None
    try:
        texts.cast(pa.date32())  # which takes YYYY-MM-DD alone
    except pa.ArrowInvalid:
        return None
    return Shape("date")


def _times(texts: pa.Array, first: str) -> Shape | None:
    if first[2:3] != ":" or not _all_are(texts, _TIME, pa.time64("ns")):
        return None
    return Shape("time", scale=_fraction(texts))


def _moments(texts: pa.Array, first: str) -> Shape | None:
    if len(first) < 16:
        return None
    scale = _fraction(texts)
    zoned = pc.ends_with(texts, "Z")
    is_zoned = pc.any(zoned).as_py()
    if is_zoned and not pc.all(zoned).as_py():
        return None
    unit = "us" if scale <= 6 else "ns"
    return (
        Shape("moment", scale=scale, is_zoned=is_zoned)
        if _all_are(texts, _MOMENT, pa.timestamp(unit, "UTC" if is_zoned else None))
        else None
    )


def _all_are(texts: pa.Array, pattern: str, kind: pa.DataType) -> bool:
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        return False
    try:
        typed(texts, kind)
    except CellMisfit:
        return False
    return True


def _fraction(texts: pa.Array) -> int:
    """The most digits that seconds have after the point."""
    longest = pc.max(pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?|Z$", ""))).as_py()
    return int(longest)
