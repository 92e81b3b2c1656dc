"""The check that every SQL text passes before pylance has it.

Pylance reads an expression as the end of a statement, and ignores what it does not understand of that: a closing
bracket, a second expression behind a comma or a semicolon, an alias, LIMIT and all that follows. It takes a name in
double quotes, as SQL writes it, for a text. A deletion `where "status" <> 'old'` deletes every row then. Here the first
is refused by pylance's own parser, since the text stands in brackets, and the second by its quotes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final, Self

import pyarrow as pa

from table_data.errors import InvalidCall
from table_data.sql.bounds import MAX_LENGTH, MAX_TOKENS, check_bounds
from table_data.sql.tokens import BETWEEN_VALUES, Token, tokens_of

_CLAUSES: Final = frozenset({"filter", "format", "ignore", "order", "over", "respect", "within"})
"""Words that begin a clause of a function call, behind a value. Pylance reads these clauses and leaves them out."""
SameNames = Mapping[str, tuple[str, ...]]
"""Names of columns that differ in case only, by the name in lower case."""


class SqlExpression(str):
    """One SQL expression that was checked, in brackets.

    Attributes:
        bypasses_indices: Whether a filter must be evaluated on the rows: by a BITMAP index pylance does not find the
            rows with NULL of `NOT (x IS TRUE)`.
    """

    __slots__ = ("bypasses_indices",)
    bypasses_indices: bool

    def __new__(cls, text: str, *, bypasses_indices: bool = False) -> Self:
        """An expression that is known to be one."""
        made = super().__new__(cls, text)
        made.bypasses_indices = bypasses_indices
        return made


def sql_expression(text: str, what: str, same_names: SameNames | None = None) -> SqlExpression:
    """Check one SQL expression.

    Args:
        text: The expression. One that was checked before is returned as it is.
        what: What it is, which errors begin with.
        same_names: Names that an expression must not leave to pylance to choose from; see `same_names_of`.

    Raises:
        InvalidCall: It is empty, too deep or too long, not one expression, has text in double quotes, or an unquoted
            name that could be one of several columns.
    """
    if isinstance(text, SqlExpression):
        return text
    if len(text) > MAX_LENGTH:
        raise InvalidCall(f"{what}: expected at most {MAX_LENGTH} characters, found {len(text)}")
    tokens = list(islice(tokens_of(text, what), MAX_TOKENS + 1))
    if len(tokens) > MAX_TOKENS:
        raise InvalidCall(f"{what}: expected at most {MAX_TOKENS} words, operators and values, found more")
    if not tokens:
        raise InvalidCall(f"{what}: expected an SQL expression, found {text[:80]!r}")
    check_bounds(tokens, what)
    _check_clauses(tokens, what)
    if same_names:
        _check_names(tokens, same_names, what)
    truth_test = any(
        value.lowered in {"true", "false"} and before.lowered in {"is", "not"} for before, value in pairwise(tokens)
    )
    return SqlExpression(f"({text}\n)" if "--" in text else f"({text})", bypasses_indices=truth_test)


def same_names_of(schema: pa.Schema) -> SameNames:
    """The names of columns, and of fields of structs, that differ from another one beside them in case only."""
    found: dict[str, set[str]] = {}
    for names in _siblings(list(schema)):
        by_lower: defaultdict[str, set[str]] = defaultdict(set)
        for name in names:
            by_lower[name.lower()].add(name)
        for lowered, alike in by_lower.items():
            if len(alike) > 1:
                found.setdefault(lowered, set()).update(alike)
    return {lowered: tuple(sorted(alike)) for lowered, alike in found.items()}


def column_expression(name: str) -> SqlExpression:
    """The SQL expression for a column."""
    return SqlExpression("`{}`".format(name.replace("`", "``")))


def _check_clauses(tokens: Sequence[Token], what: str) -> None:
    """Refuse `abs(DISTINCT x)`, `abs(x ORDER BY y)`, `abs(x) OVER ()` and their like."""
    before: Token | None = None
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        word = token.lowered
        is_clause = (word in _CLAUSES and before is not None and _ends_value(before)) or (
            word in {"all", "distinct"}
            and (before is not None and before.text == "(")
            and (after is not None and (after.kind != "operator" and after.text not in {")", "]"}))
        )
        if is_clause:
            raise InvalidCall(f"{what}: expected an expression without {word.upper()}, at character {token.start}")
        before = token


def _ends_value(token: Token) -> bool:
    if token.kind in {"operator", "bracket"}:
        return token.text in {")", "]"}
    return token.lowered not in BETWEEN_VALUES


def _check_names(tokens: Sequence[Token], same_names: SameNames, what: str) -> None:
    """An unquoted name is exactly that of a column, or of one column in another case."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        alike = same_names.get(token.lowered, ())
        if alike and token.text not in alike and (after is None or after.text != "("):
            raise InvalidCall(f"{what}: expected one of the columns {', '.join(alike)[:200]}, found {token.text}")


def _siblings(fields: Sequence[pa.Field]) -> Iterator[list[str]]:
    yield [field.name for field in fields]
    for field in fields:
        kind = field.type
        while pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _siblings(list(kind))
