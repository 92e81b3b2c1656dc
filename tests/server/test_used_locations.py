"""Over HTTP: the location of a removed table is not used again (N1, G15), before and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import orjson
import pytest

from namespace_client import Catalog
from namespace_client.wire import batch_request
from tests.server.servers import Answer, ServerProcess, path_of, send


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of this test's own, with the namespace `h`."""
    with ServerProcess(tmp_path / "root", log=tmp_path / "log") as running:
        assert running.call("POST", "/v1/namespace/h/create", {"id": ["h"]}).status == 200
        yield running


def _create(server: ServerProcess, table: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Create a table with one row; the body that the client sent."""
    sent: list[Any] = []

    def record(*arguments: Any) -> Any:
        sent.append(batch_request(*arguments))
        return sent[-1]

    with monkeypatch.context() as patch, Catalog.connect(server.url, namespace=["h"]) as catalog:
        patch.setattr("namespace_client.access.batch_request", record)
        with catalog.begin() as transaction:
            transaction.create(table, {"v": [1]})
    [request] = sent
    return orjson.dumps(request)


def _batch(server: ServerProcess, body: bytes) -> Answer:
    """A batch without an idempotency key."""
    return send(server.url, "POST", "/v1/table/batch-commit", body)


def _is_gone(server: ServerProcess, *table: str) -> bool:
    return server.call("POST", f"/v1/table/{path_of(*table)}/exists", {}).code == 4


def test_a_late_duplicate_of_a_create_does_not_bring_a_dropped_table_back(
    own: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = _create(own, "x", monkeypatch)
    with Catalog.connect(own.url, namespace=["h"]) as catalog, catalog.begin() as transaction:
        transaction.append("x", {"v": [2]})
    own.ask("drop", "h", "x")

    for restarted in (False, True):
        if restarted:
            own.restart()  # the tombstone is in the catalog, not in the server
        late = _batch(own, create)
        assert (late.status, late.code) == (400, 13)
        assert "was that of table h$x, which was dropped" in late.body["error"]
        assert _is_gone(own, "h", "x")


def test_the_location_of_a_dropped_table_cannot_be_declared(
    own: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    _create(own, "y", monkeypatch)
    location = own.ask("describe", "h", "y")["location"]
    own.ask("drop", "h", "y")

    again = _batch(own, orjson.dumps({"operations": [{"declare_table": {"id": ["h", "y"], "location": location}}]}))

    assert (again.status, again.code) == (400, 13)
    assert _is_gone(own, "h", "y")
    _create(own, "y", monkeypatch)  # the client chooses another location
    anew = own.ask("describe", "h", "y")["location"]
    assert anew != location
    assert lance.dataset(anew).to_table()["v"].to_pylist() == [1]
