"""Arithmetic in SQL expressions: no integer wraps round, and no decimal has more digits than its type.

Pylance computes an expression; of its integer arithmetic the operands are computed beside it. With them pyarrow does
the same operations, in the types that pylance does them in, and refuses a result that does not fit. Decimals that
pylance computed are looked at themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import lance
import pyarrow as pa
import pyarrow.compute as pc

from table_data.errors import InvalidCall
from table_data.sql.arithmetic import Arithmetic, Integer, Operand, Tree, arithmetic_of, operands_of
from table_data.sql.expressions import SqlExpression, column_expression
from table_data.sql.tokens import tokens_of

_KERNELS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_EXACT: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}
_Value: TypeAlias = pa.Array | pa.Scalar


def check_results(dataset: lance.LanceDataset, expressions: Mapping[str, SqlExpression]) -> None:
    """Compute arithmetic of expressions over all rows. Raises `InvalidCall` for what does not fit."""
    check = OverflowCheck(expressions, dataset.schema)
    types = dataset.scanner(columns=dict(expressions), with_row_address=True).projected_schema
    decimals = {name for name in expressions if pa.types.is_decimal(types.field(name).type)}
    if wanted := check.checked | decimals:
        columns = {name: expressions[name] for name in wanted} | check.columns
        for batch in dataset.scanner(columns=columns, with_row_address=True).to_batches():
            check.check(batch)


class OverflowCheck:
    """Checks of the arithmetic in some expressions, by column."""

    def __init__(self, expressions: Mapping[str, SqlExpression], schema: pa.Schema) -> None:
        self._found = [(name, found) for name, text in expressions.items() for found in arithmetic_of(text)]
        self._computed = {name for name, text in expressions.items() if text != column_expression(name)}
        texts = dict.fromkeys(text for _, found in self._found for text in operands_of(found.tree))
        taken = {*schema.names, *expressions}
        self._names = {
            text: _unused(f"__operand_{number}", taken)
            for number, text in enumerate(texts)
            if _may_be_integer(text, schema)
        }

    @property
    def checked(self) -> set[str]:
        """The columns with arithmetic."""
        return {column for column, _ in self._found}

    @property
    def columns(self) -> dict[str, SqlExpression]:
        """The expressions that have to be computed beside the others, by unused names."""
        # Pylance gives an integer the type of the column beside it, unless anything is around the two. The name of a
        # column alone is not put into a function, whose arguments it does not find by names in another case.
        return {
            name: SqlExpression(f"({text})" if _is_name(text) else f"coalesce({text})")
            for text, name in self._names.items()
        }

    def check(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Check rows; returned are those without the columns that were computed for it.

        Raises `InvalidCall` for a result that does not fit, with its operands.
        """
        for column, found in self._found:
            whole = batch.schema.field(column).type if found.whole else None
            # A value that is cast to another type was not computed in that one.
            is_own = whole is not None and pa.types.is_integer(whole)
            self._value(column, found.tree, batch, whole if is_own else None)
        for column in self._computed.intersection(batch.schema.names):
            if pa.types.is_decimal(batch.schema.field(column).type):
                _check_digits(column, batch.column(column))
        return batch.drop_columns(list(self._names.values())) if self._names else batch

    def _value(self, column: str, tree: Tree, batch: pa.RecordBatch, kind: pa.DataType | None = None) -> _Value | None:
        """The value of arithmetic in integers; None if it is none. `kind` is its type if that is known."""
        match tree:
            case Integer(value):
                return _literal(value)
            case Operand(text):
                operand = batch.column(self._names[text]) if text in self._names else None
                return operand if operand is not None and pa.types.is_integer(operand.type) else None
        left = pa.scalar(0, pa.int64()) if tree.left is None else self._value(column, tree.left, batch)
        right = self._value(column, tree.right, batch)
        if left is None or right is None:
            return None
        if kind is None:
            kind = right.type if tree.left is None else common_type(left.type, right.type)
        if kind is None or not pa.types.is_integer(kind):
            return None
        try:
            return _KERNELS[tree.operator](left.cast(kind), right.cast(kind))
        except pa.ArrowInvalid as error:
            raise InvalidCall(_message(column, tree, left, right, kind)) from error


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which pylance does arithmetic with integers of two types; None if it is no type of integers."""
    if left == right:
        return left
    by_width = sorted((left, right), key=lambda kind: int(kind.bit_width))
    if pa.types.is_signed_integer(left) == pa.types.is_signed_integer(right):
        return by_width[1]
    unsigned, signed = sorted((left, right), key=pa.types.is_signed_integer)
    if unsigned.bit_width < signed.bit_width:
        return signed
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(unsigned.bit_width)


def _message(column: str, tree: Arithmetic, left: _Value, right: _Value, kind: pa.DataType) -> str:
    """What the first result is that does not fit."""
    least, most = _range(kind)
    length = max(len(value) if isinstance(value, pa.Array) else 1 for value in (left, right))
    for one, other in zip(_listed(left, length), _listed(right, length), strict=True):
        if one is None or other is None:
            continue
        found = _EXACT[tree.operator](one, other)
        if not all(least <= value <= most for value in (one, other, found)):
            operation = f"-({other})" if tree.left is None else f"{one} {tree.operator} {other}"
            return f"column {column!r}: expected a result from {least} to {most} ({kind}), found {operation} = {found}"
    return f"column {column!r}: expected results from {least} to {most} ({kind}), found others"


def _range(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, (1 << bits) - 1)


def _listed(value: _Value, length: int) -> list[int | None]:
    listed: list[int | None] = value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * length
    return listed


def _literal(value: int) -> pa.Scalar | None:
    """An integer of an expression. One beyond 64 bits, and the least of all, are floating-point numbers to pylance."""
    if -(1 << 63) < value < 1 << 63:
        return pa.scalar(value, pa.int64())
    return pa.scalar(value, pa.uint64()) if 0 < value < 1 << 64 else None


def _may_be_integer(text: str, schema: pa.Schema) -> bool:
    """Whether an operand may be one, for all that is known without computing it."""
    name = text[1:-1].replace("``", "`") if text.startswith("`") else text
    if name in schema.names:
        return bool(pa.types.is_integer(schema.field(name).type))
    return not text.startswith("'") and not text.replace(".", "", 1).isdecimal()


def _is_name(text: str) -> bool:
    """Whether an operand is the name of a column, or of a field in one."""
    return all(token.kind in {"word", "name"} or token.text == "." for token in tokens_of(text, "operand"))


def _check_digits(column: str, values: pa.Array) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidCall(f"column {column!r}: expected results that {values.type} holds: {error}") from error


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
