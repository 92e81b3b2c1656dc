"""Bounds of SQL expressions, for queries and changes alike.

Pylance's parser tries some constructs twice at each level, so that the time to refuse a deep one doubles with each
level; and it plans and evaluates an expression by recursion, which takes the stack of the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from table_data.errors import InvalidCall
from table_data.sql.tokens import Token

MAX_LENGTH: Final = 16 << 20
"""Characters."""
MAX_TOKENS: Final = 100_000
"""Words, operators, brackets and values, without those in lists of values."""
MAX_DEPTH: Final = 24
"""Levels of brackets."""
MAX_RETRIED_DEPTH: Final = 8
"""Words of `_RETRIED` and square brackets around one another."""
MAX_HEIGHT: Final = 200
"""Operators that are applied to each other's results. AND and OR are not among them."""
MAX_LOGICAL: Final = 10_000
"""ANDs and ORs."""

_RETRIED: Final = frozenset(
    {
        *("array", "box", "case", "cast", "ceil", "circle", "convert", "exists", "extract", "floor", "interval"),
        *("lambda", "line", "lseg", "map", "match", "not", "overlay", "path", "point", "polygon", "position", "prior"),
        *("safe_cast", "struct", "substr", "substring", "trim", "try_cast", "try_convert", "current_date"),
        *("current_time", "current_timestamp", "localtime", "localtimestamp"),
    }
)
"""What the parser reads as a construct of its own first, and then as the name of a function."""
_PREFIXES: Final = frozenset({"case", "interval", "not", "prior"})
"""Those of them that need no brackets."""
_OPERATORS: Final = frozenset(
    {"between", "collate", "glob", "ilike", "in", "is", "like", "not", "regexp", "rlike", "similar", "xor"}
)


class _Level:
    """The operators of one level of brackets."""

    __slots__ = ("below", "betweens", "highest", "operators", "prefixes", "retried")

    def __init__(self) -> None:
        self.prefixes = 0
        self.retried = 0
        self.operators = 0
        self.below = 0
        self.highest = 0
        self.betweens = 0

    def finish_operand(self) -> None:
        """End an operand of AND, OR or a comma."""
        self.highest = max(self.highest, self.operators + self.below)
        self.operators = self.below = self.prefixes = self.retried = 0

    def separate(self, text: str) -> None:
        """Take a comma, an AND or an OR; the AND of a BETWEEN ends no operand."""
        if text == "and" and self.betweens:
            self.betweens -= 1
        else:
            self.finish_operand()

    def take(self, kind: str, text: str) -> None:
        """Take a token of an operand."""
        if kind == "operator" or text in _OPERATORS:
            self.operators += text != "."
            self.betweens += text == "between"
        if text in _PREFIXES:
            self.prefixes += 1
        elif text in _RETRIED:
            self.retried += 1


def check_bounds(tokens: Sequence[Token], what: str) -> None:
    """Refuse an expression that pylance could not plan in a bounded time and stack, or whose brackets do not match.

    Raises `InvalidCall`.
    """
    levels = [_Level()]
    brackets: list[str] = []
    logical = 0
    for token in tokens:
        level, text = levels[-1], token.lowered or token.text
        if token.kind == "bracket" and text in "([":
            brackets.append(text)
            level.operators += text == "["
            level.retried += text == "["
            _check_depth(levels, what)
            levels.append(_Level())
        elif token.kind == "bracket":
            if not brackets or brackets.pop() + text not in {"()", "[]"}:
                raise InvalidCall(f"{what}: expected brackets in pairs, found {text!r} at character {token.start}")
            _close(levels)
        elif text == "," or (token.kind == "word" and text in {"and", "or"}):
            logical += text != ","
            level.separate(text)
        else:
            level.take(token.kind, text)
        if levels[-1].operators + levels[-1].below > MAX_HEIGHT:
            raise InvalidCall(f"{what}: expected at most {MAX_HEIGHT} operators within one another, found more")
    if brackets:
        raise InvalidCall(f"{what}: expected brackets in pairs, found {brackets[-1]!r} without its end")
    if logical > MAX_LOGICAL:
        raise InvalidCall(f"{what}: expected at most {MAX_LOGICAL} times AND and OR, found {logical}")


def _close(levels: list[_Level]) -> None:
    closed = levels.pop()
    closed.finish_operand()
    levels[-1].below = max(levels[-1].below, closed.highest + 1)
    levels[-1].retried = 0


def _check_depth(levels: Sequence[_Level], what: str) -> None:
    if len(levels) > MAX_DEPTH:
        raise InvalidCall(f"{what}: expected at most {MAX_DEPTH} levels of brackets, found more")
    if sum(level.prefixes + level.retried for level in levels) > MAX_RETRIED_DEPTH:
        words = "CAST, NOT, [] and their like"
        raise InvalidCall(f"{what}: expected at most {MAX_RETRIED_DEPTH} times {words} around one another, found more")
