"""Rows as the bodies of requests, and tables as clients read them."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import lance
import lance_namespace
import pyarrow as pa

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_id(route: str) -> list[str]:
    return route.rpartition("/")[2].split("$")


def read(url: str, route: str, version: int | None = None) -> pa.Table:
    """The rows of a table, as stock pylance reads them."""
    namespace = lance_namespace.connect("rest", {"uri": url})
    return lance.dataset(namespace_client=namespace, table_id=table_id(route), version=version).to_table()


def location(http: httpx.Client, route: str) -> Path:
    described = http.post(f"{route}/describe", json={}).json()
    return Path(described["location"].removeprefix("file://"))


def files(directory: Path) -> set[str]:
    """The data files and deletion files below a table."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)) for path in found if path.suffix in {".lance", ".arrow", ".bin", ".blob"}}
