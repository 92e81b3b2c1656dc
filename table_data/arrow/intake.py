"""Values that are none of their type, which do not get to Lance: it could not read them again.

Values from outside are validated in full: texts are UTF-8, indices of dictionaries and offsets of lists are
in their bounds, decimals have their precision. Lance itself looks at none of that before it reads the values again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

from table_data.errors import InvalidCall

Refusals: TypeAlias = list[InvalidCall]
"""What was refused in a stream. Pylance, which reads the stream, raises its own error with a text."""


@contextmanager
def refused_as_such() -> Iterator[Refusals]:
    """Raise the first refusal of a stream that is read in the block, in place of pylance's error for it."""
    refusals: Refusals = []
    try:
        yield refusals
    except Exception:
        if refusals:
            raise refusals[0] from None
        raise


def validated(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """The same rows. Raises `InvalidCall` for the first column with values that are not of its type."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidCall(f"column {name[:80]!r}: expected values of {column.type}: {str(error)[:200]}") from None
    return rows
