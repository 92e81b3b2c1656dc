"""What is no value, or no type."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_SHOWN: Final = 60


class TypeRefused(ValueError):
    """A text that names no type, or no columns."""


class CellMisfit(Exception):
    """A text that is no value of a type.

    Attributes:
        position: The place of the text in its array.
        expected: The type, in words.
        found: The text or value.
    """

    def __init__(self, position: int, expected: str, found: object) -> None:
        super().__init__(f"expected {expected}, found {shown_value(found)}")
        self.position = position
        self.expected = expected
        self.found = found


def shown_value(value: object) -> str:
    """A value of a file as errors show it: its first characters."""
    if value is None:
        return "null"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}…"


def shown_type(kind: pa.DataType) -> str:
    """A type as errors show it, with the form of its texts where that is not plain."""
    types = pa.types
    if types.is_timestamp(kind):
        return f"{kind} (a time with{'out' if kind.tz is None else ''} a zone)"
    if types.is_date(kind):
        return f"{kind} (YYYY-MM-DD)"
    if types.is_duration(kind):
        return f"{kind} (seconds)"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return f"{kind} (base64)"
    return str(kind)
