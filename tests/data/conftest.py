"""Servers for the tests of operations on one table."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter

from namespace_server.workers import process_pool
from tests.data.pools import STARTER
from tests.data.queried import Queried, queried
from tests.data.two_servers import TwoServers, two_servers
from tests.running import running

_numbers = itertools.count()
ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})


@pytest.fixture(scope="session", autouse=True)
def _starter() -> Iterator[None]:
    yield
    asyncio.run(STARTER.close())


@pytest.fixture
def no_relief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool has no processes beyond its size, however long a job takes."""
    monkeypatch.setattr(process_pool, "RELIEF", 0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our server, with the namespace `w`."""
    with running(tmp_path_factory.mktemp("root")) as url:
        httpx.post(f"{url}/v1/namespace/w/create", json={}).raise_for_status()
        yield url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture
def table(url: str, request: pytest.FixtureRequest) -> str:
    """The route of a table of this test, with the rows of `ROWS`."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.nodeid.partition("::")[2])
    namespace = lance_namespace.connect("rest", {"uri": url})
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["w", name], mode="create")
    return f"/v1/table/w${name}"


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Pylance's own server over its own catalog, with the namespace `w`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    properties = {"root": str(tmp_path_factory.mktemp("stock")), "table_version_tracking_enabled": "true"}
    base = f"http://127.0.0.1:{port}"
    with RestAdapter("dir", properties, port=port), httpx.Client(base_url=base, timeout=60) as client:
        client.post("/v1/namespace/w/create", json={}).raise_for_status()
        yield client


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    """This server and the stock one."""
    with two_servers(tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("stock")) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A table name of its own for each test."""
    return f"t{next(_numbers)}"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queried]:
    """One table on our server and below a stock adapter, for queries."""
    with queried(tmp_path_factory.mktemp("queried")) as found:
        yield found
