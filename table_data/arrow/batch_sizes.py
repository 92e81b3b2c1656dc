"""How many rows a scan takes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import lance
import pyarrow as pa

from lance_core.data import FEW_ROWS, is_too_long, scanned

BATCH_BYTES: Final = 64 << 20
"""Bytes of a batch of a scan, about. A column of a batch must stay below 2 GiB, whatever its values are."""
_BATCH_BITS: Final = 8 * (4 << 20)
_DEFAULT: Final = 8192
_MOST: Final = 65_536


def table_of(dataset: lance.LanceDataset, **options: Any) -> pa.Table:
    """The rows of a scan, in chunks of less than 2 GiB; in those of few rows where that takes another scan."""
    options = {"batch_size_bytes": BATCH_BYTES, **options}
    return scanned(lambda most: dataset.to_table(**(options if most is None else {**options, "batch_size": most})))


def in_fewer_rows(
    batches: Iterable[pa.RecordBatch], again: Callable[[int], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The batches of a scan in order. From one on in which a column is too long, they have few rows.

    `again` gives the same scan from its begin, with so many rows in a batch.
    """
    done = 0
    try:
        for batch in batches:
            done += batch.num_rows
            yield batch
        return
    except Exception as error:
        if not is_too_long(error):
            raise
    for batch in again(FEW_ROWS):
        if batch.num_rows > done:
            yield batch.slice(done)
        done = max(done - batch.num_rows, 0)


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
