"""How many rows a scan takes at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

BATCH_BYTES: Final = 64 << 20
"""Bytes of a batch of a scan, about. A column of a batch must stay below 2 GiB, whatever its values are."""
_BATCH_BITS: Final = 8 * (4 << 20)
_DEFAULT: Final = 8192
_MOST: Final = 65_536


def batch_rows(schema: pa.Schema, expressions: Iterable[str] | None) -> int | None:
    """Rows of a batch for a scan of the columns that these expressions may name; None leaves it to pylance.

    Narrow columns are scanned faster in batches of more rows than pylance takes, in at most 4 MiB. The columns of
    which that is certain have values of one width. Without expressions all columns are scanned.
    """
    text = None if expressions is None else " ".join(expressions).lower()
    bits = 0
    for field in schema:
        if text is None or field.name.lower() in text:
            width = _width(field.type)
            if width is None:
                return None
            bits += width
    rows = min(_BATCH_BITS // max(bits, 1), _MOST)
    return rows if rows > _DEFAULT else None


def _width(kind: pa.DataType) -> int | None:
    """The bits of a value; None if they are different or not known."""
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return int(kind.bit_width)
    return None
