"""One real server for all tests of the kit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from namespace_tck import Session
from tests.server.servers import ServerProcess


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("tck")
    with ServerProcess(home / "root", log=home / "log") as running:
        yield running


@pytest.fixture(scope="module")
def session(server: ServerProcess) -> Iterator[Session]:
    with Session(server.url) as opened:
        yield opened
