"""Rows that stock lancedb acknowledged in the write-ahead log of a table are part of a backup."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.mem_wal import CompactedSsTable
from lancedb._lancedb import LsmWriteSpec

from lance_core.errors import CorruptFile, NotFound
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectMeta
from namespace_server.directory.backup import BackupRun, verify
from namespace_server.directory.backup.logs import LogCompacted, capture
from namespace_server.directory.backup.records import encode_file, read_inventory, read_records, state_of
from tests.directory.backup.catalogs import back_up, restore
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore

TABLE = ["g", "logged"]
LOCATION = "logged.lance"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A catalog with a table of stock lancedb, three rows, and a log without an entry."""
    root = tmp_path / "root"
    ground = Ground(root)
    ground.make_namespace("g")
    table = lancedb.connect(root).create_table("logged", rows(0, 1, 2))
    table.set_unenforced_primary_key("id")
    table.set_lsm_write_spec(LsmWriteSpec.unsharded())
    ground.call("register_table", id=TABLE, location=LOCATION)
    ground.catalog.sweep()
    return ground.again()


def put(root: Path, *ids: int, close: bool = False) -> list[int]:
    """Write rows to the log, as another process; the ids that it sees then."""
    table = lancedb.connect(root).open_table("logged")
    for number in ids:
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(number))
    found = sorted(row["id"] for row in table.search().limit(1_000).to_list())
    if close:
        table.close_lsm_writers()  # the entries become a table of rows
    return found


def log(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in (root / LOCATION / "_mem_wal").rglob("*") if path.is_file()}


@pytest.mark.parametrize("close", [False, True], ids=["entries", "a table of rows"])
def test_rows_of_a_log_are_restored(ground: Ground, tmp_path: Path, close: bool) -> None:
    put(ground.root, 10, 11, close=close)
    back_up(ground, tmp_path / "backups")
    assert verify(LocalStore(tmp_path / "backups")).problems == ()
    restored = restore(tmp_path / "backups", tmp_path / "other")
    hints = {key for key in log(ground.root) if key.endswith("version_hint.json") and "/manifest/" in key}
    assert log(restored.root) == log(ground.root) - hints
    ground.root.rename(tmp_path / "away")
    assert put(restored.root, 12) == [0, 1, 2, 10, 11, 12]
    restored.batch(restored.transaction(TABLE, rows(20)))
    assert 20 in put(restored.root)


def test_each_backup_has_the_log_of_its_time(ground: Ground, tmp_path: Path) -> None:
    """No version comes with an entry; the log is there before its first one, and again when nothing is new."""
    done = []
    for ids in ((), (10,), (), (11,)):
        put(ground.root, *ids)
        done.append(back_up(ground, tmp_path / "backups"))
    states = [each.record.tables[0].state for each in done]
    assert states[1] == states[2]
    assert len(set(states)) == 3
    assert done[2].copied == 1  # the catalog, which has another version after each pin
    for number, (each, ids) in enumerate(zip(done, ([], [10], [10], [10, 11]), strict=True)):
        restored = restore(tmp_path / "backups", tmp_path / f"{number}", each.record.id)
        assert put(restored.root, 99) == [0, 1, 2, *ids, 99]


def test_an_earlier_release_did_not_look_for_a_log(ground: Ground, tmp_path: Path) -> None:
    """Its inventory is not taken for one of a table without a log, and it does not restore one that has it."""
    back_up(ground, tmp_path / "backups")
    store = LocalStore(tmp_path / "backups")
    [record] = read_records(store)
    [path] = (tmp_path / "backups/tables" / LOCATION).iterdir()
    assert b'"format":1' in path.read_bytes()
    inventory = read_inventory(store, LOCATION, record.tables[0].state)
    values = {"location": LOCATION, "versions": inventory.versions, "files": inventory.files, "references": {}}
    before = state_of(inventory.versions, {})
    (path.parent / f"{before}.json").write_bytes(encode_file({**values, "bases": {}, "outside": ()}))
    path.unlink()
    put(ground.root, 10)
    done = back_up(ground, tmp_path / "backups")
    restored = restore(tmp_path / "backups", tmp_path / "other", done.record.id)
    assert put(restored.root, 11) == [0, 1, 2, 10, 11]
    assert b'"format":2' in (path.parent / f"{done.record.tables[0].state}.json").read_bytes()


def test_a_damaged_log_is_named(ground: Ground, tmp_path: Path) -> None:
    put(ground.root, 10)
    back_up(ground, tmp_path / "backups")
    victim = max((tmp_path / "backups/logs").iterdir(), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1])
    [problem] = verify(LocalStore(tmp_path / "backups")).problems
    assert problem.key == f"logs/{victim.name}"
    with pytest.raises(CorruptFile):
        restore(tmp_path / "backups", tmp_path / "other")


def compact(ground: Ground) -> None:
    """What compacts a log: its rows go into the table, then out of the log."""
    dataset = lance.dataset(str(ground.root / LOCATION))
    [place] = (ground.root / LOCATION / "_mem_wal").glob("*/*_gen_1")
    found = lance.dataset(str(place)).to_table().select(["id", "name"])
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.mark_sstables_as_compacted([CompactedSsTable(place.parent.name, 1)]).execute(found)
    shutil.rmtree(place)


@pytest.mark.parametrize("is_adopted", [False, True])
def test_rows_that_leave_the_log_during_a_backup(ground: Ground, tmp_path: Path, is_adopted: bool) -> None:
    """They are in a later version, also if that was committed by path: the backup is made of that version."""
    put(ground.root, 10, 11, close=True)
    faults = FaultStore(LocalStore(ground.root, "none"))
    earlier, compacted = ground.catalog.snapshot().version, list[str]()

    def before(_verb: str, path: str) -> None:
        if path.startswith(LOCATION) and not compacted:
            compacted.append(path)
            compact(ground)
            if is_adopted:
                ground.again().read("list_table_versions", id=TABLE)

    faults.before(before)
    BackupRun(Ground(ground.root, faults).catalog, LocalStore(tmp_path / "backups", "none")).make()
    assert compacted
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert restored.ids(TABLE) == [0, 1, 2, 10, 11]
    assert put(restored.root, 12) == [0, 1, 2, 10, 11, 12]
    with pytest.raises(LogCompacted, match="has rows of the write-ahead log that version 3 has not"):
        back_up(ground.again(), tmp_path / "earlier", earlier)


class Listings(MemoryStore):
    """A store whose listings have these names, one after the other, and then the last ones again."""

    def __init__(self, *listings: Iterable[str]) -> None:
        super().__init__()
        self._listings = [list(each) for each in listings]

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        names = self._listings.pop(0) if len(self._listings) > 1 else self._listings[0]
        return iter([ObjectMeta(name, 1, None, datetime.now(UTC)) for name in sorted(names)])


def entry(number: int) -> str:
    return f"t/_mem_wal/s/wal/{f'{number:064b}'[::-1]}.arrow"


M1, M2, G2 = (f"t/_mem_wal/s/{name}" for name in ("manifest/1", "manifest/2", "2_gen_2/f"))
HINT = "t/_mem_wal/s/manifest/version_hint.json"
FIRST = [M1, entry(1), entry(2)]


@pytest.mark.parametrize(
    ("listings", "expected"),
    [
        ([FIRST], FIRST),
        ([[*FIRST, HINT]], FIRST),
        ([FIRST, [*FIRST, entry(3)]], FIRST),
        ([[M1, entry(2)], FIRST], FIRST),
        ([[M1, entry(2)], [*FIRST, entry(4)]], FIRST),
        ([[M1], FIRST], [M1]),
        ([FIRST, [*FIRST, M2, G2]], [*FIRST, M2, G2]),
        ([[*FIRST, M2], [*FIRST, M2, G2]], [*FIRST, M2, G2]),
        ([FIRST, [M1, entry(2)]], [M1, entry(2)]),
        ([[]], []),
    ],
)
def test_what_belongs_together(listings: list[list[str]], expected: list[str]) -> None:
    """No entry without those before it, no manifest without what it names, whatever comes between two listings."""
    assert sorted(capture(Listings(*listings), "t", dict)) == sorted(expected)


def test_a_log_that_does_not_rest() -> None:
    """A file of it goes before it is copied: all is listed again."""
    tries = []

    def use(_files: Mapping[str, int]) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise NotFound("gone")

    capture(Listings(FIRST), "t", use)
    assert len(tries) == 3
    with pytest.raises(CorruptFile, match="t/_mem_wal: expected a log that rests"):
        capture(Listings(*([*FIRST, f"t/_mem_wal/s/manifest/{number}"] for number in range(60))), "t", dict)
