"""A clean-up that crashes or loses answers at any write: listed versions stay complete, and the next run continues."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lance_core.errors import StorageUnknown
from tests.cleanup.tables import NOW, assert_whole, clean, contents, files, grow
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.transaction.tables import Table


class Rewindable:
    """A table that can be as it was, in its place: base paths are absolute."""

    def __init__(self, root: Path, *, branch: bool = True) -> None:
        self.table = grow(root / "live", branch=branch)
        self.before = contents(self.table)
        self._saved = root / "saved"
        shutil.copytree(self.table.root, self._saved)

    def rewind(self) -> Table:
        shutil.rmtree(self.table.root)
        shutil.copytree(self._saved, self.table.root)
        return self.table


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ANSWER, Fault.LOST_REQUEST])
def test_a_fault_at_any_write_leaves_every_listed_version_complete(tmp_path: Path, fault: Fault) -> None:
    scene = Rewindable(tmp_path)
    undisturbed = FaultStore(scene.table.store)
    clean(scene.table, store=undisturbed, grace=NOW)
    left = files(scene.table)
    assert len(undisturbed.writes) > 12
    for nth in range(len(undisturbed.writes)):
        table = scene.rewind()
        store = FaultStore(table.store)
        store.fail(fault, nth=nth)
        with pytest.raises((Crashed, StorageUnknown)):
            clean(table, store=store, grace=NOW)
        assert_whole(table, scene.before)
        clean(table, grace=NOW)
        assert_whole(table, scene.before)
        assert {name for name in files(table) if not name.endswith("/clock")} == left, nth


def test_manifests_are_removed_before_files_and_oldest_first(tmp_path: Path) -> None:
    table = grow(tmp_path)
    store = FaultStore(table.store)
    report = clean(table, store=store)
    deleted = [(write.number, write.path) for write in store.writes if "_staging" not in write.path]
    manifests = [path for _, path in deleted if "/_versions/" in path]
    assert manifests == [garbage.path for garbage in report.versions]
    assert [path for _, path in deleted] == [*manifests, *(garbage.path for garbage in report.files)]


def test_removed_manifests_are_synced_before_files_are_removed(tmp_path: Path) -> None:
    """After a power failure a manifest may be back whose removal was not synced: its files must be there then."""
    table = grow(tmp_path)
    store = FaultStore(table.store)
    report = clean(table, store=store)
    removals = {write.path: write.number for write in store.writes if write.verb == "delete"}
    last_manifest = max(removals[garbage.path] for garbage in report.versions)
    first_file = min(removals[garbage.path] for garbage in report.files)
    synced = [number for number, path in store.synced if "/_versions/" in path]
    assert any(last_manifest < number <= first_file for number in synced)
