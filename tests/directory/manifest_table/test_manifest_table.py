"""The catalog's own dataset, flip by flip: what we write, read back by ourselves and by pylance."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from namespace_server.directory.manifest_table.incremental_refresh import IncrementalRefresh
from namespace_server.directory.manifest_table.schema import OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import NamespaceEntry, TableEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.flipping import assert_on_disk, flip
from tests.directory.reference import ReferenceCatalog, assert_snapshot_is, put

STEPS = 250


def fragments_of(snapshot: CatalogSnapshot) -> int:
    assert isinstance(snapshot.disk, OnDisk)
    return len(snapshot.disk.layout.fragments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_flips_read_back_by_all_readers(seed: int, tmp_path: Path) -> None:
    """Invariants 4, 5 and 10: our snapshot, a follower's, a fresh reader's and pylance's are one catalog."""
    store = LocalStore(tmp_path, durability="none")
    table, follower = ManifestTable(store), ManifestTable(store)
    reference = ReferenceCatalog(seed)
    stepwise = follower.refresh()
    most = 0
    for step in range(1, STEPS):
        snapshot = flip(table, reference.step(3 if step % 9 else 30))
        assert snapshot.version == step
        most = max(most, fragments_of(snapshot))
        if step % 3 == 0:
            stepwise = follower.refresh()
            assert stepwise.version == step
        if step % 50 == 9:
            assert_snapshot_is(snapshot, reference)
            assert_snapshot_is(follower.refresh(), reference)
            assert_snapshot_is(ManifestTable(store).refresh(), reference)
            assert_on_disk(tmp_path, reference)
    assert most < 32
    assert_snapshot_is(table.current, reference)
    assert_on_disk(tmp_path, reference)


def test_servers_that_take_turns_write_one_catalog(tmp_path: Path) -> None:
    """Addresses that a follower worked out are good enough to delete and merge by."""
    store = LocalStore(tmp_path, durability="none")
    tables = [ManifestTable(store) for _ in range(3)]
    reference = ReferenceCatalog(11)
    for step in range(150):
        if step % 40 == 39:
            tables[step % 3] = ManifestTable(store)
        flip(tables[step % 3], reference.step(3 if step % 7 else 40))
        if step % 30 == 29:
            assert_on_disk(tmp_path, reference)
            for table in tables:
                assert_snapshot_is(table.refresh(), reference)


def test_a_follower_takes_small_flips_from_the_manifest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes stand in the transaction: no row file is read."""
    store = LocalStore(tmp_path, durability="none")
    table, follower = ManifestTable(store), ManifestTable(store)
    reference = ReferenceCatalog(3)
    flip(table, reference.step())
    follower.refresh()
    read = IncrementalRefresh.read
    taken = 0
    for _ in range(120):
        changes = reference.step(2)
        small = len(changes.puts) < 30
        taken += small
        monkeypatch.setattr(IncrementalRefresh, "read", None if small else read)
        flip(table, changes)
        follower.refresh()
    assert taken > 100
    assert_snapshot_is(follower.current, reference)


@pytest.mark.slow
def test_a_large_flip_is_followed_from_its_fragments(tmp_path: Path) -> None:
    """More than 32 KiB of changes are left out of the transaction, which only ever was a short cut."""
    store = LocalStore(tmp_path, durability="none")
    table, follower = ManifestTable(store), ManifestTable(store)
    tables = [TableEntry((f"t{number:04d}",), f"{number:08x}_t{number:04d}") for number in range(2000)]
    flip(table, put(tables[:5]))
    follower.refresh()
    flip(table, put(tables))
    assert list(follower.refresh().all_tables()) == [entry.id for entry in tables]
    flip(follower, changes_of([NamespaceEntry(("n",))], [entry.object_id for entry in tables[1:]]))
    reference = ReferenceCatalog()
    reference.apply(put([tables[0], NamespaceEntry(("n",))]))
    assert_snapshot_is(table.refresh(), reference)
    assert_on_disk(tmp_path, reference)


@pytest.mark.slow
def test_many_flips_of_all_sizes_keep_the_fragments_few(tmp_path: Path) -> None:
    """Without a background job: fan-in 8, in tiers, inside the flips themselves."""
    store = LocalStore(tmp_path, durability="none")
    table = ManifestTable(store)
    reference = ReferenceCatalog(2)
    owner = TableEntry(("t",), "1_t")
    first = put([owner])
    reference.apply(first)
    flip(table, first)
    most, number = 0, 1
    for step in range(700):
        count = 400 if step % 90 == 50 else 1 + step % 60 if step % 5 == 0 else 2
        changes = put([reference.version(owner, None, number + at) for at in range(count)])
        number += count
        reference.apply(changes)
        most = max(most, fragments_of(flip(table, changes)))
    assert most < 32
    assert_on_disk(tmp_path, reference)
    assert [entry.version for entry in ManifestTable(store).refresh().versions(("t",))] == list(range(1, number))
