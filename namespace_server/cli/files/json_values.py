"""The shapes of values of JSON, from which the types of new columns are found."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from namespace_server.cli.files.guesses import is_exact
from namespace_server.cli.files.shapes import NOTHING, Shape, joined, joined_fields
from table_data.values.json_columns import Literal

WORDS: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def shape_of(value: Any) -> Shape:
    """The shape of a value of JSON. Raises `ShapeConflict` for a list of different values."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return Shape("boolean", is_literal=True)
    if isinstance(value, Literal):
        return _number(value)
    if isinstance(value, str):
        return Shape("text", is_literal=True, is_word=value in WORDS)
    if isinstance(value, list):
        item = NOTHING
        for each in value:
            item = joined(item, shape_of(each))
        return Shape("list", is_literal=True, most=len(value), item=item)
    return Shape(
        "object", is_literal=True, fields=joined_fields({}, {name: shape_of(each) for name, each in value.items()})
    )


def _number(text: Literal) -> Shape:
    if text in WORDS:
        return Shape("number", is_literal=True, whole=0, is_word=True)
    if text.lstrip("-").isdigit() and text != "-0":
        return Shape("integer", is_literal=True, least=int(text), most=int(text))
    _, digits, exponent = Decimal(text).as_tuple()
    scale = max(-int(exponent), 0)
    whole = max(len(digits) + int(exponent), 0)
    kind = "number" if is_exact(text, float(text)) else "decimal"
    return Shape(kind, is_literal=True, whole=whole, scale=scale)  # type: ignore[arg-type]
