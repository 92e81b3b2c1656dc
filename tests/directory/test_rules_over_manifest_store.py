"""The rules of the protocol once more: on a store without exclusive writes, with an external manifest store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from tests.directory import tables
from tests.directory.committing import test_protocol, test_restore
from tests.directory.committing.test_protocol import *  # noqa: F403
from tests.directory.committing.test_restore import *  # noqa: F403
from tests.directory.manifests import test_protocol_promotion
from tests.directory.manifests.test_protocol_promotion import *  # noqa: F403
from tests.directory.recovery import test_repair
from tests.directory.recovery.test_repair import *  # noqa: F403
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore
from tests.storage.limited import PlainStore
from tests.storage.manifests import MemoryManifestStore

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def manifests(monkeypatch: pytest.MonkeyPatch) -> dict[str, MemoryManifestStore]:
    """Every store that a test opens gets its put-if-absent from the manifest store of its root."""
    stores: dict[str, MemoryManifestStore] = {}

    def open_store(root: str | os.PathLike[str], durability: Literal["fsync", "none"] = "none") -> ObjectStore:
        handler = ExternalManifestHandler(stores.setdefault(os.fspath(root), MemoryManifestStore()))
        return handler.over(PlainStore(LocalStore(root, durability)))

    for module in (tables, test_protocol, test_protocol_promotion, test_repair, test_restore):
        monkeypatch.setattr(module, "LocalStore", open_store, raising=False)
    return stores


@pytest.fixture
def faults(tmp_path: Path) -> FaultStore:
    return FaultStore(tables.LocalStore(tmp_path / "root", "none"))


def test_the_catalog_and_its_tables_have_rows(ground: Ground, manifests: dict[str, MemoryManifestStore]) -> None:
    table = ground.make_table("g", "t")
    [store] = manifests.values()
    found = {(row.base_uri.rpartition("/")[2], row.version) for row in store.rows}
    assert found >= {("__manifest", 1), (ground.location(table), 1)}
