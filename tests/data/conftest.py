"""Servers for the tests of operations on one table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.data.two_servers import TwoServers, two_servers

_numbers = itertools.count()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    """This server and the stock one."""
    with two_servers(tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("stock")) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A table name of its own for each test."""
    return f"t{next(_numbers)}"
