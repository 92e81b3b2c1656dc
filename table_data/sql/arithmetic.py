"""The additions, subtractions, multiplications and negations of an SQL expression.

Pylance lets integers wrap round in them: 127 + 1 is -128 in a column of int8. All its other arithmetic refuses what
does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from table_data.sql.tokens import BETWEEN_VALUES, Token, tokens_of

_ARITHMETIC: Final = frozenset("+-*")


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of an expression that is no arithmetic: a column, a call of a function, a division."""

    text: str


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer that stands in the expression."""

    value: int


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operation `+`, `-` or `*`. A negation is a subtraction without `left`."""

    operator: str
    left: Tree | None
    right: Tree


Tree = Operand | Integer | Arithmetic


@dataclass(frozen=True, slots=True)
class FoundArithmetic:
    """Arithmetic of an expression, no part of a larger one; `whole` if the expression is nothing else."""

    tree: Arithmetic
    whole: bool


def arithmetic_of(expression: str) -> list[FoundArithmetic]:
    """The arithmetic of an expression that was checked, also that within brackets and arguments."""
    if _ARITHMETIC.isdisjoint(expression):
        return []
    tokens = list(tokens_of(expression, "expression"))
    reader = _ArithmeticReader(expression, tokens)
    whole = reader.sum()
    rest = reader.place < len(tokens)
    if rest:
        reader.skip_to_end()
    is_whole = isinstance(whole, Arithmetic) and not rest
    return [*reader.found, *([FoundArithmetic(whole, whole=is_whole)] if isinstance(whole, Arithmetic) else [])]


def operands_of(tree: Tree) -> Iterator[str]:
    """The texts of the operands of a tree."""
    match tree:
        case Operand(text):
            yield text
        case Arithmetic(_, left, right):
            if left is not None:
                yield from operands_of(left)
            yield from operands_of(right)


class _ArithmeticReader:
    """Reads sums and products, and passes over everything else. Precedence is that of pylance's parser."""

    def __init__(self, expression: str, tokens: Sequence[Token]) -> None:
        self._expression = expression
        self._tokens = tokens
        self.place = 0
        self.found: list[FoundArithmetic] = []

    def skip_to_end(self, closing: str = "") -> None:
        """Read operands until a closing bracket, or to the end, and keep the arithmetic in them."""
        while (token := self._next()) is not None and token.text not in {")", "]"}:
            if _begins_operand(token):
                self._keep(self.sum())
            else:
                self.place += 1
        if closing:
            self.place += 1

    def sum(self) -> Tree:
        tree = self._product()
        while (token := self._next()) is not None and token.text in {"+", "-"}:
            self.place += 1
            tree = Arithmetic(token.text, tree, self._product())
        return tree

    def _product(self) -> Tree:
        start, tree = self.place, self._signed()
        while (token := self._next()) is not None and token.text in {"*", "/", "%", "||"}:
            self.place += 1
            right = self._signed()
            if token.text == "*":
                tree = Arithmetic("*", tree, right)
            else:
                self._keep(tree)
                self._keep(right)
                tree = Operand(self._text(start))
        return tree

    def _signed(self) -> Tree:
        token = self._next()
        if token is None or token.text not in {"+", "-"}:
            return self._primary()
        self.place += 1
        operand = self._signed()
        if token.text == "+":
            return operand
        return Integer(-operand.value) if isinstance(operand, Integer) else Arithmetic("-", None, operand)

    def _primary(self) -> Tree:
        start, token = self.place, self._next()
        if token is None or not _begins_operand(token):
            return Operand("NULL")  # pylance refuses the expression
        self.place += 1
        tree: Tree | None = None
        if token.text == "(":
            tree = self.sum()
            after = self._next()
            if after is None or after.text != ")":
                self._keep(tree)
                tree = None
            self.skip_to_end(")")
        elif token.text == "[":
            self.skip_to_end("]")
        elif token.kind == "number" and token.text.isdecimal():
            tree = Integer(int(token.text))
        before = self.place
        self._pass_suffixes()
        if self.place != before or tree is None:
            self._keep(tree)
            return Operand(self._text(start))
        return tree

    def _pass_suffixes(self) -> None:
        """Pass over arguments, subscripts, fields of structs and casts."""
        while (token := self._next()) is not None:
            if token.text in {"(", "["}:
                self.place += 1
                self.skip_to_end(token.text)
            elif token.text in {".", "::"}:
                self.place += 2
            elif token.kind in {"word", "name", "text", "number"} and token.lowered not in BETWEEN_VALUES:
                self.place += 1  # DATE '2020-01-01', INT UNSIGNED
            else:
                return

    def _keep(self, tree: Tree | None) -> None:
        if isinstance(tree, Arithmetic):
            self.found.append(FoundArithmetic(tree, whole=False))

    def _next(self) -> Token | None:
        return self._tokens[self.place] if self.place < len(self._tokens) else None

    def _text(self, start: int) -> str:
        """The expression from one token to the last that was read."""
        return self._expression[self._tokens[start].start : self._tokens[self.place - 1].end]


def _begins_operand(token: Token) -> bool:
    if token.kind in {"operator", "bracket"}:
        return token.text in {"(", "[", "-", "+"}
    return token.lowered not in BETWEEN_VALUES
