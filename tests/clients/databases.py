"""A database of lancedb on this server, with and without push-down, and one in a local directory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lance_namespace import CreateNamespaceRequest, connect

from tests.clients.outcomes import Blocking
from tests.running import running

PUSHED = {"local work": (), "push-down": ("QueryTable", "CreateTable")}
DIMENSION = 8


def rows(start: int = 0, stop: int = 64) -> pa.Table:
    """`id` from `start` up to `stop`, a number, a text of three words, and a vector."""
    words = ("apple", "fig", "grape", "lemon", "melon")
    numbers = range(start, stop)
    vectors = [[float((n * k) % 11) for k in range(1, DIMENSION + 1)] for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "x": [n / 4 for n in numbers],
            "s": [" ".join(words[(n + k) % 5] for k in (0, 1, 3)) for n in numbers],
            "vector": pa.array(vectors, pa.list_(pa.float32(), DIMENSION)),
        }
    )


@dataclass(frozen=True)
class Subject:
    """A connection, and a table of a test in it. Calls of asynchronous ones wait for their results."""

    db: Any
    name: str
    namespace: tuple[str, ...]

    @property
    def place(self) -> dict[str, list[str]]:
        """The argument that names the namespace of the table."""
        return {"namespace_path": list(self.namespace)}

    def create(self, suffix: str = "", data: Any = None, **given: Any) -> Any:
        """A new table beside the one of the test, with the rows of `rows()`."""
        return self.db.create_table(self.name + suffix, rows() if data is None else data, **self.place, **given)

    def open(self, suffix: str = "", **given: Any) -> Any:
        """A table beside the one of the test, opened anew."""
        return self.db.open_table(self.name + suffix, **self.place, **given)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Our server with the namespace `w`; its URL."""
    with running(root) as url:
        connect("rest", {"uri": url}).create_namespace(CreateNamespaceRequest(id=["w"]))
        yield url


def connections(url: str, directory: Path, pushed: tuple[str, ...]) -> tuple[Any, Any]:
    """A connection to the server, and one to a local catalog of lancedb's own."""
    options = {"namespace_client_pushdown_operations": list(pushed)}
    return (
        lancedb.connect_namespace("rest", {"uri": url}, **options),
        lancedb.connect_namespace("dir", {"root": str(directory)}),
    )


def async_connections(
    url: str, directory: Path, pushed: tuple[str, ...], loop: asyncio.AbstractEventLoop
) -> tuple[Any, Any]:
    """The same, asynchronous, with calls that wait."""
    options = {"namespace_client_pushdown_operations": list(pushed)}
    made = (
        lancedb.connect_namespace_async("rest", {"uri": url}, **options),
        lancedb.connect_namespace_async("dir", {"root": str(directory)}),
    )
    return Blocking(made[0], loop), Blocking(made[1], loop)
