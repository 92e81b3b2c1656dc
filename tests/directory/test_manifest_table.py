"""The catalog's own dataset, flip by flip: what we write, read back by ourselves and by pylance."""

from __future__ import annotations

import uuid
from pathlib import Path

import lance
import pytest

from lance_core.storage.local import LocalStore
from namespace_server.directory.disk import OnDisk
from namespace_server.directory.manifest_table import Committed, ManifestTable
from namespace_server.directory.rows import (
    Changes,
    Row,
    encode_entry,
)
from namespace_server.directory.snapshot import CatalogSnapshot
from tests.directory.reference import ReferenceCatalog, assert_snapshot_is

SEED_STEPS = 250


def flip(table: ManifestTable, changes: Changes, **options: object) -> CatalogSnapshot:
    """Prepare, stage and commit on the newest snapshot."""
    prepared = table.prepare(table.refresh(), changes, attempt=str(uuid.uuid4()), **options)
    table.stage(prepared)
    outcome = table.commit(prepared)
    assert isinstance(outcome, Committed)
    return outcome.snapshot


def rows_on_disk(root: Path) -> list[Row]:
    dataset = lance.dataset(str(root / "__manifest"))
    dataset.validate()
    table = dataset.to_table()
    assert table["base_objects"].null_count == table.num_rows
    return [Row(*values) for values in zip(*(table[name].to_pylist() for name in Row._fields), strict=True)]


def assert_on_disk(root: Path, reference: ReferenceCatalog) -> None:
    rows = rows_on_disk(root)
    assert sorted(rows) == sorted(encode_entry(entry) for entry in reference.rows.values())


def small_fragments(snapshot: CatalogSnapshot) -> int:
    assert isinstance(snapshot.disk, OnDisk)
    return len(snapshot.disk.layout.fragments)


@pytest.mark.parametrize("seed", range(4))
def test_random_flips_read_back_by_everybody(seed: int, tmp_path: Path) -> None:
    """Invariants 4, 5 and 10: our snapshot, a follower's, a fresh reader's and pylance's are one catalog."""
    store = LocalStore(tmp_path, durability="none")
    table, follower = ManifestTable(store), ManifestTable(store)
    reference = ReferenceCatalog(seed)
    stepwise = follower.refresh()
    most = 0
    for step in range(1, SEED_STEPS):
        changes = reference.step(3 if step % 9 else 30)
        snapshot = flip(table, changes)
        assert snapshot.version == step
        most = max(most, small_fragments(snapshot))
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
