"""The rows of the tables that lines work on."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

TEXTS: Final = ("puppy runs", "lazy cat", "puppy with cat", "nothing here", "fast dog", "cat nap")
DIMENSION: Final = 8
"""Of the vectors of `big`."""


def small(first: int = 0, count: int = 6) -> Any:
    """Rows with ids from `first` on: row n lies at (n, 0), has the price n / 2 and the text `TEXTS[n % 6]`."""
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([TEXTS[n % 6] for n in ids], pa.string()),
            "price": pa.array([n / 2 for n in ids], pa.float64()),
            "label": pa.array([["x", "y"] if n % 2 else ["z"] for n in ids], pa.list_(pa.string())),
            "meta": pa.array([{"userId": n * 10} for n in ids], pa.struct([("userId", pa.int64())])),
            "vector": pa.array([[float(n), 0.0] for n in ids], pa.list_(pa.float32(), 2)),
        }
    )


def big(count: int = 300) -> Any:
    """As `small`, with vectors of eight numbers, and enough rows to train any index."""
    vectors = [[float((n * (k + 3)) % 17) + 0.01 * n for k in range(DIMENSION)] for n in range(count)]
    return small(count=count).set_column(5, "vector", pa.array(vectors, pa.list_(pa.float32(), DIMENSION)))


def stream(table: Any) -> bytes:
    """The rows as clients send them: a stream whose buffers are compressed with LZ4."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        if table.num_rows:
            writer.write_table(table)
    return bytes(sink.getvalue())
