"""One server for all tests that do not need their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.server.servers import ServerProcess
from tests.server.stock import Stock


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server. Tests keep to a namespace of their own and leave it running."""
    home = tmp_path_factory.mktemp("server")
    with ServerProcess(home / "root", log=home / "log") as running:
        yield running


@pytest.fixture
def stock(server: ServerProcess) -> Stock:
    return Stock(server.url, server.root)


@pytest.fixture
def ns(stock: Stock) -> str:
    """A namespace that no other test uses."""
    [name] = stock.make_namespace(f"t{secrets.token_hex(4)}")
    return name
