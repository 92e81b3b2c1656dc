"""Rows that are computed or decoded, as a table if they are few."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

FEW: Final = 16 << 20
"""Bytes of rows that are made before pylance asks for them: otherwise its threads wait for Python."""


def table_or_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], most: int = FEW
) -> pa.Table | pa.RecordBatchReader:
    """The rows as a table if they have at most so many bytes.

    Otherwise they are a stream, in which those that were made already come first.
    """
    left = iter(batches)
    made, size = [], 0
    for batch in left:
        made.append(batch)
        size += batch.nbytes
        if size > most:
            return pa.RecordBatchReader.from_batches(schema, itertools.chain(made, left))
    return pa.Table.from_batches(made, schema)
