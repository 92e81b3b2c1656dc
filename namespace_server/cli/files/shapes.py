"""The shape of a column: what its values have in common, for the types of a new table. Pure.

A shape says only what all values are without a loss: where two shapes have nothing in common, texts of CSV stay texts,
and values of JSON are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import pyarrow as pa

Kind = Literal["none", "boolean", "integer", "number", "decimal", "date", "time", "moment", "text", "list", "object"]
EXACT_IN_DOUBLE: Final = 2**53
"""Whole numbers up to this one are exact in a double."""
_INT64: Final = (-(2**63), 2**63 - 1)
_UINT64: Final = (0, 2**64 - 1)
_WIDEST: Final = 76


class ShapeConflict(ValueError):
    """Values that no type holds without a loss. `path` is that of the field in the column, outermost first."""

    def __init__(self, one: str, other: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(one, other, path)
        self.one = one
        self.other = other
        self.path = path


class DigitsUnknown(Exception):
    """Numbers that need a decimal type, whose digits were not counted."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The common properties of the values of a column.

    Attributes:
        kind: What they are. `moment` is a date with a time.
        is_literal: Whether they are values of JSON, which say themselves what they are.
        least: The least whole number.
        most: The greatest one, or the length of the longest list.
        whole: Digits before the point of numbers; None where they were not counted.
        scale: Digits after the point, also of seconds.
        is_zoned: Whether times have a zone, which is UTC.
        is_word: Whether all numbers are words such as NaN, or all texts could be.
        item: The shape of the items of lists.
        fields: The shapes of the fields of objects.
    """

    kind: Kind = "none"
    is_literal: bool = False
    least: int = 0
    most: int = 0
    whole: int | None = None
    scale: int = 0
    is_zoned: bool = False
    is_word: bool = False
    item: Shape | None = None
    fields: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def type(self) -> pa.DataType:
        """The type of a column. One without a value is text. Raises `ShapeConflict` for numbers of too many digits."""
        match self.kind:
            case "boolean":
                return pa.bool_()
            case "integer":
                return _integer_type(self)
            case "number":
                return pa.string() if self.is_word and not self.is_literal else pa.float64()
            case "decimal":
                return _decimal_type(self)
            case "date":
                return pa.date32()
            case "time":
                return pa.time32("s") if self.scale == 0 else pa.time64("us" if self.scale <= 6 else "ns")
            case "moment":
                return pa.timestamp("us" if self.scale <= 6 else "ns", "UTC" if self.is_zoned else None)
            case "list":
                return pa.list_(pa.string() if self.item is None else self.item.type)
            case "object":
                return pa.struct([pa.field(name, each.type) for name, each in self.fields.items()])
        return pa.string()


NOTHING: Final = Shape()
TEXT: Final = Shape("text")


def joined(one: Shape, other: Shape) -> Shape:
    """The shape of the values of both. Raises `ShapeConflict` for values of JSON, `DigitsUnknown`."""
    if one.kind == "none":
        return other
    if other.kind == "none":
        return one
    if one.kind == other.kind:
        return _alike(one, other)
    kinds = {one.kind, other.kind}
    if kinds == {"integer", "number"}:
        return _numbers(*((one, other) if one.kind == "integer" else (other, one)))
    if kinds in ({"integer", "decimal"}, {"number", "decimal"}):
        return _decimals(one, other)
    if kinds <= {"text", "integer", "number"} and "text" in kinds:
        text, number = (one, other) if one.kind == "text" else (other, one)
        if text.is_word and text.is_literal and number.is_literal:
            return joined(number, Shape("number", is_literal=True, whole=0, is_word=True))
    if (one.is_literal and other.is_literal) or kinds & {"list", "object"}:
        raise ShapeConflict(one.kind, other.kind)
    return TEXT


def joined_fields(one: Mapping[str, Shape], other: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes of all fields of both. Raises as `joined` does, with the path of the field."""
    fields = dict(one)
    for name, shape in other.items():
        try:
            fields[name] = joined(fields.get(name, NOTHING), shape)
        except ShapeConflict as conflict:
            raise ShapeConflict(conflict.one, conflict.other, (name, *conflict.path)) from None
    return fields


def _alike(one: Shape, other: Shape) -> Shape:
    both = replace(
        one,
        is_literal=one.is_literal and other.is_literal,
        scale=max(one.scale, other.scale),
        whole=None if one.whole is None or other.whole is None else max(one.whole, other.whole),
        is_word=one.is_word and other.is_word,
    )
    match one.kind:
        case "integer":
            both = replace(both, least=min(one.least, other.least), most=max(one.most, other.most))
            return both if both.is_literal or both.type != pa.string() else TEXT
        case "moment" if one.is_zoned != other.is_zoned:
            return TEXT
        case "list":
            longest = max(one.most, other.most)
            return replace(both, most=longest, item=joined(one.item or NOTHING, other.item or NOTHING))
        case "object":
            return replace(both, fields=joined_fields(one.fields, other.fields))
    return both


def _numbers(integer: Shape, number: Shape) -> Shape:
    if max(abs(integer.least), abs(integer.most)) <= EXACT_IN_DOUBLE:
        return replace(number, is_literal=integer.is_literal and number.is_literal, is_word=False)
    if not (integer.is_literal and number.is_literal):
        return TEXT
    return _decimals(integer, number)


def _decimals(one: Shape, other: Shape) -> Shape:
    if not (one.is_literal and other.is_literal):
        return TEXT
    counted = [_counted(each) for each in (one, other)]
    if any(each.is_word for each in counted):
        raise ShapeConflict("numbers of more digits than a double has", "NaN or Infinity")
    wholes = [each.whole for each in counted]
    if None in wholes:
        raise DigitsUnknown
    whole = max(each for each in wholes if each is not None)
    return Shape("decimal", is_literal=True, whole=whole, scale=max(each.scale for each in counted))


def _counted(shape: Shape) -> Shape:
    if shape.kind != "integer":
        return shape
    return replace(shape, whole=len(str(max(abs(shape.least), abs(shape.most)))))


def _integer_type(shape: Shape) -> pa.DataType:
    for kind, (least, most) in ((pa.int64(), _INT64), (pa.uint64(), _UINT64)):
        if least <= shape.least and shape.most <= most:
            return kind
    return _decimal_type(_counted(shape)) if shape.is_literal else pa.string()


def _decimal_type(shape: Shape) -> pa.DataType:
    digits = (shape.whole or 0) + shape.scale
    if digits > _WIDEST:
        raise ShapeConflict(f"numbers of {digits} digits", f"at most {_WIDEST}")
    return pa.decimal128(38, shape.scale) if digits <= 38 else pa.decimal256(_WIDEST, shape.scale)
