"""A catalog that commands are about: behind a server, and opened by the command itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from namespace_client import Catalog
from tests.cli.commands import parsed, printed, refused
from tests.server.servers import ServerProcess


@dataclass(frozen=True)
class Shop:
    """A catalog, the options that name it, and a namespace of the test's own."""

    options: tuple[str, str]
    namespace: str
    home: Path

    def __call__(self, *arguments: str) -> str:
        """What a command prints."""
        return printed(*arguments, *self.options)

    def parsed(self, *arguments: str) -> Any:
        """The JSON that it prints."""
        return parsed(*arguments, *self.options)

    def refused(self, *arguments: str, status: int = 2) -> str:
        """Why it is refused."""
        return refused(*arguments, *self.options, status=status)

    def name(self, table: str) -> str:
        return f"{self.namespace}.{table}"

    def catalog(self) -> Catalog:
        return Catalog.connect(self.options[1], namespace=self.namespace)

    def make(self, table: str, rows: Any) -> str:
        """A table with rows; its name."""
        with self.catalog() as catalog:
            catalog.create(table, rows)
        return self.name(table)

    def version(self) -> int:
        with self.catalog() as catalog:
            return catalog.access.state().version


@pytest.fixture(scope="session")
def shop_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("server")
    process = ServerProcess(home / "catalog", log=home / "server.log")
    yield process
    process.stop()


@pytest.fixture(scope="session")
def shop_root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("roots") / "catalog")


@pytest.fixture(params=["url", "root"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    if request.param == "url":
        options = ("--url", request.getfixturevalue("shop_server").url)
    else:
        options = ("--root", request.getfixturevalue("shop_root"))
    namespace = f"s{secrets.token_hex(4)}"
    with Catalog.connect(options[1]) as catalog:
        catalog.create_namespace(namespace)
    return Shop(options, namespace, tmp_path)


@pytest.fixture
def people() -> pa.Table:
    return pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["ann", "bob", "eve"]})
