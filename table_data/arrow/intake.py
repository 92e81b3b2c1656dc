"""Rows from outside on their way to Lance: what their source raises, and values that are none of their type.

Values from outside are validated in full: texts are UTF-8, indices of dictionaries and offsets of lists are in their
bounds, decimals have their precision. Lance itself looks at none of that before it reads the values again, and fails
then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa

from table_data.errors import ClientError, InvalidCall, WorkFailed

Refusals: TypeAlias = list[BaseException]
"""What ended a stream. Pylance, which reads the stream, raises its own error with a text."""
_SHOWN: Final = 200
_TRACE: Final = ". Detail: Python exception: "
"""What Arrow puts between the text of an error of Python and its trace."""
_T = TypeVar("_T")


@contextmanager
def refused_as_such() -> Iterator[Refusals]:
    """Raise what first ended a stream that is read in the block, in place of pylance's error for it."""
    refusals: Refusals = []
    try:
        yield refusals
    except Exception:
        if refusals:
            raise refusals[0] from refusals[0].__cause__
        raise


@contextmanager
def given_by_caller(what: str = "the source of the rows") -> Iterator[None]:
    """Raise what code of the caller, or a file of rows, raises in the block as `WorkFailed`, with that as its cause.

    Errors of this package stay what they are: the caller's code may use it.
    """
    try:
        yield
    except ClientError:
        raise
    except Exception as error:
        text = str(error).partition(_TRACE)[0][:_SHOWN]
        raise WorkFailed(
            f"{what} raised {type(error).__name__}{': ' if text else ''}{text}; nothing was changed"
        ) from error


def taken_from_caller(parts: Iterable[_T], refusals: Refusals) -> Iterator[_T]:
    """The parts of a stream. What ends it early is added to `refusals`, see `given_by_caller`."""
    left = iter(parts)
    while True:
        try:
            with given_by_caller():
                part = next(left, None)
        except BaseException as error:
            refusals.append(error)
            raise
        if part is None:
            return
        yield part


def validated(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """The same rows. Raises `InvalidCall` for the first column with values that are not of its type."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidCall(f"column {name[:80]!r}: expected values of {column.type}: {str(error)[:200]}") from None
    return rows
