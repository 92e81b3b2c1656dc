"""Bounds of SQL expressions.

Pylance plans a long chain of arithmetic in a time that grows with the square of its length, and one of some thousands
overflows the stack of the process.
"""

from __future__ import annotations

import re
from typing import Final

from table_data.errors import InvalidCall

MAX_LENGTH: Final = 1 << 20
MAX_ARITHMETIC: Final = 200
MAX_OPERATORS: Final = 10_000

_LITERALS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`")
_ARITHMETIC = re.compile(r"[\w)\]?]\s*(?:[-+*/%&|^#~])")
_OPERATORS = re.compile(r"[=<>]+|\b(?:and|or|not|is|like|between|case|when)\b", re.IGNORECASE)


def check_expression(text: str, what: str) -> None:
    """Refuse an expression that pylance could not plan in a bounded time and stack. Raises `InvalidCall`."""
    if len(text) > MAX_LENGTH:
        raise InvalidCall(f"{what}: expected at most {MAX_LENGTH} characters, found {len(text)}")
    bare = _LITERALS.sub("?", text)
    for pattern, most, kind in (
        (_ARITHMETIC, MAX_ARITHMETIC, "arithmetic operators"),
        (_OPERATORS, MAX_OPERATORS, "operators"),
    ):
        found = sum(1 for _ in pattern.finditer(bare))
        if found > most:
            raise InvalidCall(f"{what}: expected at most {most} {kind}, found {found}")
