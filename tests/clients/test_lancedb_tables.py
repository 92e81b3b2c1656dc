"""Every method of lancedb's tables on this server, beside the same calls on a local table.

Both of lancedb's clients, synchronous and asynchronous; queries and creations are done by the client or by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import lancedb
import pytest
from lancedb.table import AsyncTable, LanceTable

from tests.clients.databases import PUSHED, Subject, async_connections, connections, served
from tests.clients.outcomes import differences
from tests.clients.table_calls import ASYNC, SYNC, Call, steps_of

_numbers = count()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_method_has_a_case() -> None:
    assert SYNC.keys() == _public(LanceTable)
    assert ASYNC.keys() == _public(AsyncTable)


@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
@pytest.mark.parametrize("name", SYNC)
def test_a_method_of_a_table(url: str, tmp_path: Path, name: str, pushed: tuple[str, ...]) -> None:
    db, _ = connections(url, tmp_path, pushed)
    table = f"t{next(_numbers)}"
    local = lancedb.connect(str(tmp_path))
    assert (
        differences(steps_of(SYNC, name, pushed), Call(Subject(db, table, ("w",))), Call(Subject(local, table, ())))
        == []
    )


@pytest.mark.combinations
@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
@pytest.mark.parametrize("name", ASYNC)
def test_a_method_of_an_asynchronous_table(
    url: str, tmp_path: Path, name: str, pushed: tuple[str, ...], loop: asyncio.AbstractEventLoop
) -> None:
    db, local = async_connections(url, tmp_path, pushed, loop)
    table = f"t{next(_numbers)}"
    assert (
        differences(steps_of(ASYNC, name, pushed), Call(Subject(db, table, ("w",))), Call(Subject(local, table, ())))
        == []
    )
