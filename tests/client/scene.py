"""A namespace with tables that stock pylance validates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from lance.namespace import RestNamespace

from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from namespace_client import Catalog, MultiTableTransaction

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])


def rows(*ids: int, v: float | None = None) -> pa.Table:
    """Rows with these ids. `v` is the id if no value is given."""
    return pa.table({"id": list(ids), "v": [float(n) if v is None else v for n in ids]}, schema=SCHEMA)


@dataclass(frozen=True)
class Scene:
    catalog: Catalog
    namespace: str
    target: Any

    def make(self, name: str = "t", *ids: int) -> None:
        """Create a table with these rows, ten rows in a fragment."""
        with self.catalog.begin() as tx:
            tx.create(name, rows(*ids[:10]) if ids else None, schema=SCHEMA)
        for start in range(10, len(ids), 10):
            with self.catalog.begin() as tx:
                tx.append(name, rows(*ids[start : start + 10]))

    def uri(self, name: str = "t") -> str:
        state = self.catalog.access.table((self.namespace, name))
        assert state is not None
        return state.uri

    def open(self, name: str = "t", **options: Any) -> lance.LanceDataset:
        """Open the table with stock pylance and validate it."""
        dataset = lance.dataset(self.uri(name), **options)
        dataset.validate()
        return dataset

    def ids(self, name: str = "t") -> list[int]:
        return sorted(self.open(name).to_table(columns=["id"]).column(0).to_pylist())

    def values(self, name: str = "t") -> dict[int, float]:
        table = self.open(name).to_table()
        assert len(set(table.column("id").to_pylist())) == table.num_rows, "an id stands twice"
        return dict(zip(table.column("id").to_pylist(), table.column("v").to_pylist(), strict=True))

    def version(self, name: str = "t") -> int | None:
        state = self.catalog.access.table((self.namespace, name))
        assert state is not None
        return state.version

    def catalog_version(self) -> int:
        return self.catalog.access.state().version

    def stock(self) -> Any:
        """A namespace of a stock client for the same catalog."""
        if isinstance(self.target, str) and self.target.startswith("http"):
            return RestNamespace(uri=self.target)
        return self.catalog._owned or self.target

    def committed(self, name: str = "t", version: int | None = None) -> pb.Transaction:
        """The transaction that made a version."""
        found = Dataset.open(self.uri(name), version).transaction
        assert found is not None
        return found

    def operation(self, name: str = "t", version: int | None = None) -> str | None:
        return self.committed(name, version).WhichOneof("operation")


def seen(tx: MultiTableTransaction, name: str = "t") -> list[int]:
    """The ids that a transaction sees."""
    return sorted(tx.table(name).to_table(columns=["id"]).column(0).to_pylist())
