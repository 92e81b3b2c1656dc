"""One table with indices, nulls, deletions, a branch and several versions: on our server, and below a stock adapter."""

from __future__ import annotations

import io
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import lance
import lance_namespace
import numpy as np
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter
from lance.query import MatchQuery

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.limits import DataLimits, RequestLimits
from namespace_server.serving import Server, ServingOptions

WORDS = ("apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel")
DIMENSION = 16
QUERY = [0.1 * n for n in range(DIMENSION)]
OTHER = [1.0 - 0.1 * n for n in range(DIMENSION)]
VECTOR = {"single_vector": QUERY}
ID = {"column_names": ["id"]}
TABLE = "/v1/table/w$t"
APPLE, FIG = MatchQuery("apple", "title"), MatchQuery("fig", "title")
MATCH_APPLE, MATCH_FIG = (
    {"match": {"terms": "apple", "column": "title"}},
    {"match": {"terms": "fig", "column": "title"}},
)


def rows(count: int, first: int, seed: int) -> pa.Table:
    """Rows with numbers from `first`; some values are null."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((2, count, DIMENSION)).astype("float32")

    def text() -> pa.Array:
        return pa.array([None if n % 31 == 5 else " ".join(random.choice(WORDS, 5)) for n in range(count)])

    def vector(which: int) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors[which].ravel()), DIMENSION)

    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "kind": pa.array([None if n % 13 == 0 else WORDS[n % 5] for n in range(count)]),
            "x": pa.array([None if n % 7 == 0 else n % 50 for n in range(count)], pa.int32()),
            "title": text(),
            "body": text(),
            "vector": vector(0),
            "other": vector(1),
            "nested": pa.array(
                [None if n % 11 == 0 else {"a": n, "b.c": str(n), "deep": {"d": n / 2}} for n in range(count)]
            ),
        }
    )


@dataclass(frozen=True)
class Queried:
    """A table, by its route on our server, as a dataset of pylance, and by its route on a stock adapter."""

    ours: httpx.Client
    stock: httpx.Client
    dataset: lance.LanceDataset
    location: Path
    namespace: DirectoryNamespace
    url: str

    def query(self, **request: Any) -> pa.Table:
        return answered(self.ours.post("/v1/table/w$t/query", json=complete(request)))

    def stock_query(self, **request: Any) -> pa.Table:
        return answered(self.stock.post("/v1/table/t/query", json=complete(request)))


def complete(request: dict[str, Any]) -> dict[str, Any]:
    """A request with the fields that the published model requires."""
    return {"vector": {}, "k": 10, **request}


def answered(response: httpx.Response) -> pa.Table:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/vnd.apache.arrow.file"
    return pa.ipc.open_file(response.content).read_all()


@contextmanager
def served(namespace: DirectoryNamespace, limits: DataLimits | None = None) -> Iterator[str]:
    """Our server over a catalog, while the block lasts; its URL."""
    bounds = RequestLimits(data=limits or DataLimits())
    server = Server(create_app(namespace, Authenticator({}), limits=bounds), ServingOptions(port=0))
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,))
    thread.start()
    try:
        assert started.wait(30)
        yield server.url
    finally:
        server.stop()
        thread.join()


@contextmanager
def queried(directory: Path) -> Iterator[Queried]:
    """The table and both servers, while the block lasts."""
    root, stock_root = directory / "ours", directory / "stock"
    root.mkdir()
    stock_root.mkdir()
    namespace = DirectoryNamespace(root=str(root), durability="none")
    with served(namespace) as url, httpx.Client(base_url=url, timeout=120) as ours:
        ours.post("/v1/namespace/w/create", json={}).raise_for_status()
        client = lance_namespace.connect("rest", {"uri": url})
        make_table(client, ["w", "t"])
        location = Path(ours.post("/v1/table/w$t/describe", json={}).json()["location"].removeprefix("file://"))
        shutil.copytree(location, stock_root / "t.lance")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (
            RestAdapter("dir", {"root": str(stock_root)}, port=port),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as stock,
        ):
            yield Queried(ours, stock, lance.dataset(str(location)), location, namespace, url)


def make_table(client: Any, table_id: list[str]) -> None:
    """Write the table through a namespace: rows, indices, more rows, deletions, and a branch with rows of its own."""
    dataset = lance.write_dataset(
        rows(2000, 0, 1), namespace_client=client, table_id=table_id, mode="create", max_rows_per_file=700
    )
    dataset.create_index("vector", "IVF_PQ", num_partitions=4, num_sub_vectors=4)
    dataset.create_index("other", "IVF_HNSW_SQ", num_partitions=1, m=8, ef_construction=40)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("kind", "BITMAP")
    dataset.create_scalar_index("title", "INVERTED", with_position=True)
    dataset.create_scalar_index("body", "INVERTED", with_position=False)
    dataset = lance.write_dataset(rows(200, 2000, 2), namespace_client=client, table_id=table_id, mode="append")
    dataset.delete("id % 17 = 3")


def stream(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def refusal(response: httpx.Response) -> tuple[int, int]:
    assert response.status_code >= 400
    return response.status_code, response.json()["code"]


def text(query: dict[str, Any]) -> dict[str, Any]:
    """A request for a structured full-text query."""
    return {"full_text_query": {"structured_query": {"query": query}}, "columns": ID}


def same_ranking(found: pa.Table, expected: pa.Table, score: str = "_score") -> None:
    """The same scores; rows of equal score may have changed places."""
    assert found.column_names == expected.column_names
    assert found[score].to_pylist() == pytest.approx(expected[score].to_pylist())
    if found.num_rows:
        last = found[score].to_pylist()[-1]  # others may have the last score too

        def better(rows: pa.Table) -> set[tuple[Any, ...]]:
            return {tuple(row.values()) for row in rows.to_pylist() if row[score] != pytest.approx(last)}

        assert better(found) == better(expected)
