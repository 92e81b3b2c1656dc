"""Arrow tables in requests and answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

STREAM = "application/vnd.apache.arrow.stream"

DIMENSION = 4
"""Of the column `vector`."""


def schema() -> Any:
    """The schema of the tables that the kit makes: `id`, `name`, `score`, `vector`."""
    return pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("name", pa.string()),
            pa.field("score", pa.float64()),
            pa.field("vector", pa.list_(pa.float32(), DIMENSION)),
        ]
    )


def rows(ids: Iterable[int], name: str | None = None) -> Any:
    """A table with one row for each id; `name` is `row <id>` unless given. Row n lies at (n, 0, 0, 0)."""
    wanted = list(ids)
    return pa.table(
        {
            "id": wanted,
            "name": [f"row {number}" if name is None else name for number in wanted],
            "score": [number / 2 for number in wanted],
            "vector": [[float(number), 0.0, 0.0, 0.0] for number in wanted],
        },
        schema=schema(),
    )


def texts(bodies: Iterable[str]) -> Any:
    """A table with one row for each text, for full text search: `id`, `body`."""
    wanted = list(bodies)
    return pa.table({"id": pa.array(range(1, len(wanted) + 1), pa.int64()), "body": pa.array(wanted, pa.string())})


def stream(table: Any) -> bytes:
    """The table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode(content: bytes) -> Any:
    """The table in an Arrow IPC file or stream. Raises `pyarrow.ArrowInvalid` if it is neither."""
    opened = pa.ipc.open_file if content.startswith(b"ARROW1") else pa.ipc.open_stream
    with opened(pa.BufferReader(content)) as reader:
        return reader.read_all()
