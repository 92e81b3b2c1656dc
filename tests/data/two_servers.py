"""The same table behind this server and behind the stock one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import lance
import lance_namespace
import pyarrow as pa
from lance.namespace import RestAdapter

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.serving import Server, ServingOptions


@dataclass(frozen=True, slots=True)
class TwoServers:
    """Ours and the stock one, each with a client."""

    url: str
    ours: httpx.Client
    stock: httpx.Client
    namespace: DirectoryNamespace

    def make(self, name: str, *tables: pa.Table, **options: Any) -> TwoTables:
        """A table with a fragment of each of the Arrow tables, in both."""
        client = lance_namespace.connect("rest", {"uri": self.url})
        stock = lance_namespace.connect("rest", {"uri": str(self.stock.base_url)})
        for place, table in enumerate(tables):
            mode = "append" if place else "create"
            lance.write_dataset(table, namespace_client=client, table_id=["w", name], mode=mode, **options)
            lance.write_dataset(table, namespace_client=stock, table_id=[name], mode=mode, **options)
        location = self.stock.post(f"/v1/table/{name}/describe", json={}).json()["location"]
        return TwoTables(self, name, client, location)


@dataclass(frozen=True, slots=True)
class TwoTables:
    """One table in both."""

    servers: TwoServers
    name: str
    client: lance_namespace.LanceNamespace
    stock_location: str

    @property
    def id(self) -> list[str]:
        """The id of ours."""
        return ["w", self.name]

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Call ours."""
        return self.servers.ours.post(f"/v1/table/w${self.name}/{path}", json=body or {}, **options)

    def post_stock(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Call the stock one."""
        return self.servers.stock.post(f"/v1/table/{self.name}/{path}", json=body or {}, **options)

    def both(self, path: str, body: Any = None) -> tuple[Any, Any]:
        """The JSON of both answers, which must be successes."""
        answers = self.post(path, body), self.post_stock(path, body)
        for answer in answers:
            assert answer.status_code == 200, answer.text
        return answers[0].json(), answers[1].json()

    def refused(self, path: str, body: Any = None) -> tuple[int, int, str]:
        """Status, code and text of the error of ours. It shows no path and no place in a source."""
        answer = self.post(path, body)
        error = answer.json()
        assert not any(word in error["error"] for word in (".rs", "/home", "/tmp", ".lance", "Location")), error
        return answer.status_code, error["code"], error["error"]

    def open(self, version: int | None = None) -> lance.LanceDataset:
        """Ours as stock pylance sees it, validated."""
        dataset = lance.dataset(namespace_client=self.client, table_id=self.id, version=version)
        dataset.validate()
        return dataset

    def open_stock(self) -> lance.LanceDataset:
        """The other one."""
        return lance.dataset(self.stock_location)

    def each(self) -> Iterator[lance.LanceDataset]:
        """Both, ours through the catalog."""
        yield self.open()
        yield self.open_stock()

    def append(self, table: pa.Table) -> None:
        """Append rows to both, by stock pylance."""
        lance.write_dataset(table, namespace_client=self.client, table_id=self.id, mode="append")
        lance.write_dataset(table, self.open_stock().uri, mode="append")


def without(answer: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """An answer without fields that differ by nature."""
    return {name: value for name, value in answer.items() if name not in names}


@contextmanager
def two_servers(root: Path, stock_root: Path) -> Iterator[TwoServers]:
    """Both servers, running."""
    namespace = DirectoryNamespace(root=str(root), durability="none")
    server = Server(create_app(namespace, Authenticator({})), ServingOptions(port=0))
    started = Event()
    thread = Thread(target=server.run, args=(started.set,))
    thread.start()
    assert started.wait(30)
    try:
        with (
            RestAdapter("dir", {"root": str(stock_root)}, port=0) as adapter,
            httpx.Client(base_url=server.url, timeout=60) as ours,
            httpx.Client(base_url=f"http://127.0.0.1:{adapter.port}", timeout=60) as stock,
        ):
            ours.post("/v1/namespace/w/create", json={}).raise_for_status()
            yield TwoServers(server.url, ours, stock, namespace)
    finally:
        server.stop()
        thread.join()
