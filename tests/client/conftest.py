"""Fixtures: a real server over HTTP, and a catalog in this process. Most tests run with both."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from namespace_client import Catalog
from namespace_server.directory.namespace import DirectoryNamespace
from tests.client.scene import Scene
from tests.server.servers import ServerProcess

BACKENDS = ("http", "in process")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server process on a new root."""
    home = tmp_path_factory.mktemp("server")
    process = ServerProcess(home / "catalog", log=home / "server.log")
    yield process
    process.stop()


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryNamespace]:
    """A catalog in this process on a new root."""
    root = tmp_path_factory.mktemp("directory") / "catalog"
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    yield namespace
    namespace.close()


@pytest.fixture(params=BACKENDS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A connection over each backend, and a new namespace."""
    found = request.getfixturevalue("server" if request.param == "http" else "directory")
    target = found.url if request.param == "http" else found
    name = f"t{secrets.token_hex(4)}"
    with Catalog.connect(target, namespace=[name]) as catalog:
        catalog.ensure_namespace()
        yield Scene(catalog, name, target)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Scene]:
    """A catalog in this process, for tests that do not depend on the backend."""
    with Catalog.connect(str(tmp_path / "catalog"), namespace=["ml"]) as catalog:
        catalog.ensure_namespace()
        yield Scene(catalog, "ml", str(tmp_path / "catalog"))
