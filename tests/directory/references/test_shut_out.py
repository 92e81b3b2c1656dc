"""A release that a newer one has shut out of changes writes nothing before it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from namespace_server.directory.manifest_table.schema import WRITER_FLAGS_KEY
from namespace_server.directory.model.errors import CatalogTooNew
from namespace_server.directory.references.changes import CHANGES
from tests.data.arrow import stream
from tests.directory.releases import make_newer
from tests.directory.tables import Ground

T = ["g", "t"]
REQUESTS: dict[str, dict[str, Any]] = {
    "create_table_tag": {"id": T, "tag": "new", "version": 1},
    "update_table_tag": {"id": T, "tag": "old", "version": 2},
    "delete_table_tag": {"id": T, "tag": "old"},
    "delete_table_branch": {"id": T, "name": "dev"},
    "clone_table": {"id": ["g", "clone"]},
    "alter_transaction": {"id": [*T, "1"], "actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]},
}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    for _ in range(2):
        ground.namespace.data.create_table({"id": T, "mode": "overwrite"}, stream(pa.table({"x": [1, 2, 3]})))
    ground.namespace.change("create_table_tag", {"id": T, "tag": "old", "version": 1})
    ground.call("create_table_branch", id=T, name="dev")
    make_newer(ground.root, WRITER_FLAGS_KEY, str(1 << 60))
    return ground.again()


def test_each_change_beside_the_flip_has_a_request() -> None:
    assert REQUESTS.keys() == CHANGES.keys()


@pytest.mark.parametrize("operation", REQUESTS)
@pytest.mark.parametrize("key", [None, "a key"])
def test_a_change_beside_the_flip(ground: Ground, operation: str, key: str | None) -> None:
    before = ground.tree()
    place = {"source_location": ground.location(T)} if operation == "clone_table" else {}
    with pytest.raises(CatalogTooNew):
        ground.namespace.change(operation, {**REQUESTS[operation], **place}, idempotency_key=key)
    assert ground.tree() == before


def test_a_new_table(ground: Ground) -> None:
    before = ground.tree()
    with pytest.raises(CatalogTooNew):
        ground.namespace.data.create_table({"id": ["g", "new"]}, stream(pa.table({"x": [1]})))
    assert ground.tree() == before
