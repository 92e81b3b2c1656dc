"""The row of the collector: which catalog versions are kept, and which releases may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.errors import ReferenceNotFound
from lance_core.storage.local import LocalStore
from namespace_server.directory.adoption import adopt_root
from namespace_server.directory.manifest_table import schema
from namespace_server.directory.manifest_table.schema import COLLECTED, MANAGED_FLAG, WRITER_FLAGS_KEY, OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.collector_rows import NEVER_COLLECTED, CollectorEntry
from namespace_server.directory.model.entries import Changes, NamespaceEntry
from namespace_server.directory.model.errors import CatalogTooNew
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.flipping import flip
from tests.directory.reference import put
from tests.directory.tables import Ground


def catalog_of(root: Path, versions: int) -> ManifestTable:
    table = ManifestTable(LocalStore(root, durability="none"))
    for number in range(versions):
        flip(table, put([NamespaceEntry((f"n{number}",))]))
    return table


def test_versions_below_the_oldest_are_not_answered_although_their_files_are_there(tmp_path: Path) -> None:
    table = catalog_of(tmp_path, 4)
    assert table.at(2).version == 2  # in memory from now on
    flip(table, put([CollectorEntry(oldest=3)]))
    assert table.at(3).version == 3
    for reader in (table, ManifestTable(LocalStore(tmp_path, durability="none"))):
        reader.refresh()
        with pytest.raises(ReferenceNotFound, match="3 to 5"):
            reader.at(2)
        assert [entry.version for entry in reader.history(9)] == [5, 4, 3]


def test_a_process_that_did_not_see_the_horizon_flip_asks_storage(tmp_path: Path) -> None:
    table = catalog_of(tmp_path, 4)
    stale = ManifestTable(LocalStore(tmp_path, durability="none"))
    stale.refresh()
    flip(table, put([NamespaceEntry(("x",))]))
    flip(table, put([CollectorEntry(oldest=6)]))
    with pytest.raises(ReferenceNotFound, match="6 to 6"):
        stale.at(5)  # it is above what the process knows, so it looks


def test_a_catalog_flag_stays_set(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    ground.make_namespace("a")

    def nothing(_: CatalogSnapshot) -> Changes:
        return Changes()

    flags = {WRITER_FLAGS_KEY: str(MANAGED_FLAG | COLLECTED)}
    ground.catalog.committer.commit_changes(nothing, table_metadata=flags)
    adopt_root(ground.catalog, strict=True)
    disk = ground.again().catalog.snapshot().disk
    assert isinstance(disk, OnDisk)
    assert int(disk.frame.table_metadata[WRITER_FLAGS_KEY]) == MANAGED_FLAG | COLLECTED


def test_a_release_without_the_rules_of_collection_does_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog_of(tmp_path, 1)
    flip(table, put([CollectorEntry(oldest=1)]), table_metadata={WRITER_FLAGS_KEY: str(MANAGED_FLAG | COLLECTED)})
    monkeypatch.setattr(schema, "KNOWN_FLAGS", MANAGED_FLAG)  # as such a release is
    older = ManifestTable(LocalStore(tmp_path, durability="none"))
    assert older.refresh().version == 2
    with pytest.raises(CatalogTooNew, match="writer flags"):
        flip(older, put([NamespaceEntry(("b",))]))


def test_a_catalog_that_was_never_collected_keeps_everything(tmp_path: Path) -> None:
    assert catalog_of(tmp_path, 1).current.collector == NEVER_COLLECTED
