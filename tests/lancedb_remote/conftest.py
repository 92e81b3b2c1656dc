"""One server for all tests of lancedb's remote client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lancedb_remote.remote import Shop
from tests.running import running


@pytest.fixture(scope="session")
def remote_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("remote")) as url:
        yield url


@pytest.fixture(scope="session")
def shop(remote_url: str, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(remote_url, tmp_path_factory.mktemp("local"))
