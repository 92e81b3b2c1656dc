"""A catalog in a directory, tables made by stock pylance through it, and manifests staged but not published."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance_namespace import LanceNamespace

from lance_core.data import schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.namespace import DirectoryNamespace
from tests.staged_fragments import stage_fragments

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
QUIET = CatalogOptions(sweep_interval=timedelta(0))
"""Nothing happens in the background; tests call `catalog.sweep()`."""


def rows(start: int, stop: int) -> pa.Table:
    """`id` from `start` up to `stop`, `name` the same in words."""
    return pa.table({"id": range(start, stop), "name": [f"n{i}" for i in range(start, stop)]}, schema=SCHEMA)


class Ground:
    """A root directory with a catalog whose store may be wrapped."""

    def __init__(self, root: Path, store: ObjectStore | None = None, options: CatalogOptions = QUIET) -> None:
        self.root = root
        self.store = store or LocalStore(root, "none")
        self.namespace = DirectoryNamespace(catalog=StoredCatalog(self.store, options))

    @property
    def catalog(self) -> StoredCatalog:
        return self.namespace.catalog

    def again(self, store: ObjectStore | None = None) -> Ground:
        """Another process on the same root."""
        return Ground(self.root, store)

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """A write, answered or raised."""
        return self.namespace.write(operation, request).body

    def read(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.namespace.read(operation, request).body

    def batch(self, *operations: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """A batch commit, answered or raised."""
        return self.namespace.commit_batch({"operations": list(operations)}, idempotency_key=key)

    def make_namespace(self, *path: str) -> None:
        self.call("create_namespace", id=list(path))

    def make_table(self, *path: str, count: int = 3) -> list[str]:
        """A table with version 1, written by stock pylance through the catalog."""
        self.write(list(path), rows(0, count), "create")
        return list(path)

    def write(self, table_id: list[str], data: pa.Table, mode: str = "append") -> None:
        """A managed write of stock pylance, published by its own `version/create`."""
        lance.write_dataset(data, mode=mode, namespace_client=self.namespace, table_id=table_id)

    def stage(self, table_id: list[str], data: pa.Table, mode: str = "append") -> dict[str, Any]:
        """What stock pylance stages for a write: a `create_table_version` operation that is not sent."""
        capture = Capture(self.namespace)
        lance.write_dataset(data, mode=mode, namespace_client=capture, table_id=table_id)
        [request] = capture.captured
        return {"create_table_version": request}

    def transaction(self, table_id: list[str], data: pa.Table, read_version: int | None = None) -> dict[str, Any]:
        """A `commit_transaction` operation that appends, or creates when the table has no version."""
        location = self.location(table_id)
        head = self.head(table_id) if read_version is None else read_version
        uri = str(self.root / location)
        fragments = stage_fragments(data, uri, mode="append" if head else "create")
        message = pb.Transaction(read_version=head, uuid=str(uuid.uuid4()))
        if head:
            message.append.fragments.extend(fragments)
        else:
            message.overwrite.fragments.extend(fragments)
            message.overwrite.schema.extend(schema_fields(data.schema))
        return as_operation(table_id, message)

    def location(self, table_id: list[str]) -> str:
        table = self.catalog.snapshot().table(tuple(table_id))
        assert table is not None
        return table.location

    def head(self, table_id: list[str], branch: str | None = None) -> int:
        entry = self.catalog.snapshot().head(tuple(table_id), branch)
        return 0 if entry is None else entry.version

    def open(self, table_id: list[str], version: int | None = None) -> lance.LanceDataset:
        """By URI, as a client that knows nothing of the catalog."""
        return lance.dataset(str(self.root / self.location(table_id)), version=version)

    def ids(self, table_id: list[str]) -> list[int]:
        """The ids in a table, sorted, read by stock pylance by URI."""
        return sorted(self.open(table_id).to_table()["id"].to_pylist())

    def canonical(self, table_id: list[str]) -> list[int]:
        """The versions that stand under a canonical name."""
        names = (path.name for path in (self.root / self.location(table_id) / "_versions").glob("*.manifest"))
        return sorted(2**64 - 1 - int(name.removesuffix(".manifest")) for name in names)

    def unmanaged_append(self, table_id: list[str], data: pa.Table) -> None:
        """A commit around the catalog, by URI."""
        lance.write_dataset(data, str(self.root / self.location(table_id)), mode="append")

    def tree(self) -> dict[str, bytes]:
        """Every file below the root, except the rows and versions of `__manifest` and unused data."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


class Capture(LanceNamespace):
    """A namespace client that keeps `create_table_version` requests to itself."""

    def __init__(self, inner: DirectoryNamespace) -> None:
        self.inner = inner
        self.captured: list[dict[str, Any]] = []

    def namespace_id(self) -> str:
        return "capture"

    def describe_table(self, request: Any) -> Any:
        return self.inner.describe_table(request)

    def declare_table(self, request: Any) -> Any:
        return self.inner.declare_table(request)

    def list_table_versions(self, request: Any) -> Any:
        return self.inner.list_table_versions(request)

    def describe_table_version(self, request: Any) -> Any:
        return self.inner.describe_table_version(request)

    def create_table_version(self, request: Any) -> Any:
        plain = dict(request) if isinstance(request, Mapping) else request.to_dict()
        self.captured.append(plain)
        version = {
            key: plain[key] for key in ("version", "manifest_path", "manifest_size") if plain.get(key) is not None
        }
        return {"version": version}


def as_operation(table_id: list[str], message: pb.Transaction, branch: str | None = None) -> dict[str, Any]:
    """A `commit_transaction` operation."""
    encoded = base64.b64encode(message.SerializeToString()).decode()
    return {"commit_transaction": {"id": table_id, "branch": branch, "transaction": encoded}}
