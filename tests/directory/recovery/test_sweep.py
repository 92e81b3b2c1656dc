"""What a sweep cannot do for one item keeps nothing else undone (G22)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import lance
import pytest

from lance_core.errors import StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.storage.local import LocalStore
from lance_core.transaction.lineage import lineage_break
from namespace_server.directory.committing.group_planner import PendingBatch
from namespace_server.directory.manifest_table.peers import LATELY, Peer
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.recovery import recommits, unmanaged_manifests
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

PERSON, KNOWS = ["g", "person"], ["g", "knows"]


@pytest.fixture
def two(ground: Ground) -> Ground:
    for table in (PERSON, KNOWS):
        ground.make_table(*table)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


def other(ground: Ground) -> tuple[Ground, FaultStore]:
    store = FaultStore(LocalStore(ground.root, "none"))
    return ground.again(store), store


def refuse(store: FaultStore, matches: Callable[[str, str], bool]) -> Callable[[], None]:
    def fail(verb: str, path: str) -> None:
        if matches(verb, path):
            raise StorageError(f"{path}: not to be had")

    return store.before(fail)


def test_a_staged_name_that_cannot_be_removed_keeps_its_own_record_open_only(two: Ground) -> None:
    two.batch(two.transaction(PERSON, rows(3, 4)))
    two.batch(two.transaction(KNOWS, rows(3, 4)))
    first, _ = two.catalog.snapshot().open_records()
    sweeper, store = other(two)
    staged = first.participants[0].staged_path
    heal = refuse(store, lambda verb, path: verb == "delete" and path == staged)

    sweeper.catalog.sweep()
    sweeper.catalog.flush_record_housekeeping()

    assert [record.batch_uuid for record in sweeper.catalog.snapshot().open_records()] == [first.batch_uuid]
    heal()
    sweeper.catalog.sweep()
    sweeper.catalog.flush_record_housekeeping()
    check_quiet(two.root)


def take_name(ground: Ground, table: list[str], value: int) -> None:
    """A batch's version that is not promoted, and a stock commit under its name."""
    store = FaultStore(LocalStore(ground.root, "none"))
    refuse(store, lambda verb, _path: verb == "publish")
    ground.again(store).batch(ground.transaction(table, rows(value, value + 1)))
    ground.unmanaged_append(table, rows(value + 1, value + 2))


def test_a_quarantined_file_that_cannot_be_read_keeps_no_other_one_waiting(two: Ground) -> None:
    take_name(two, PERSON, 10)
    take_name(two, KNOWS, 20)
    sweeper, store = other(two)
    location = two.location(PERSON)
    heal = refuse(store, lambda verb, path: verb == "get" and path.startswith("_staging/foreign") and location in path)

    sweeper.catalog.sweep()
    sweeper.catalog.sweep()

    assert two.ids(KNOWS) == [0, 1, 2, 20, 21]
    assert two.ids(PERSON) == [0, 1, 2, 10]
    heal()
    sweeper.catalog.sweep()
    sweeper.catalog.sweep()
    sweeper.catalog.flush_record_housekeeping()
    assert two.ids(PERSON) == [0, 1, 2, 10, 11]
    check_quiet(two.root)


def chain_in_quarantine(ground: Ground, table: list[str], length: int) -> list[int]:
    """A taken name, and stock commits built on each other from it on. The ids that the table has in the end."""
    take_name(ground, table, 10)
    for value in range(12, 10 + length):
        ground.unmanaged_append(table, rows(value, value + 1))
    return [0, 1, 2, 10, *range(11, 10 + length)]


def test_a_long_chain_is_committed_again_in_parts(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, parts = chain_in_quarantine(two, PERSON, 14), list[int]()
    monkeypatch.setattr(unmanaged_manifests, "_AT_ONCE", 4)

    def decide(batches: Sequence[Batch]) -> list[PendingBatch]:
        parts.append(len(batches))
        return decided(batches)

    sweeper, _ = other(two)
    decided = sweeper.catalog.committer.decide
    monkeypatch.setattr(sweeper.catalog.committer, "decide", decide)
    sweeper.catalog.sweep()

    assert parts == [4, 4, 4, 1]
    assert two.ids(PERSON) == expected


def test_the_files_of_a_long_chain_are_compared_once(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file and with the row below, whatever stands above. Files of other releases may be on each row."""
    chain_in_quarantine(two, PERSON, 14)
    sweeper, _ = other(two)
    stopped = threading.Event()
    stopped.set()
    sweeper.catalog.recovery.run(stopped)  # the files are moved, and wait
    for value in range(30, 46):
        two.batch(two.transaction(PERSON, rows(value, value + 1)))
    for place in list((two.root / "_staging" / "foreign").iterdir()):
        place.rename(place.with_name(place.name.partition(".")[0]))
    compared = list[tuple[int, int]]()

    def counted(head: ManifestFile, proposed: ManifestFile) -> str | None:
        compared.append((head.version, proposed.version))
        return lineage_break(head, proposed)

    monkeypatch.setattr(recommits, "lineage_break", counted)
    sweeper.catalog.sweep()

    assert sorted(two.ids(PERSON)) == [0, 1, 2, *range(10, 24), *range(30, 46)]
    assert len(compared) <= 4 * 13, sorted(compared)


def test_rows_without_a_hash_are_not_taken_for_each_other(two: Ground) -> None:
    """Rows of other writers have none."""
    chain_in_quarantine(two, PERSON, 2)
    sweeper, _ = other(two)
    stopped = threading.Event()
    stopped.set()
    sweeper.catalog.recovery.run(stopped)
    [item] = sweeper.catalog.unmanaged_manifests._quarantine.files()
    snapshot = sweeper.catalog.snapshot()
    first, second = (snapshot.version_entry(tuple(PERSON), None, number) for number in (1, 2))
    assert first is not None
    assert second is not None

    kept = sweeper.catalog.unmanaged_manifests._recommits
    for row, built in ((first, True), (second, False), (first, True)):
        assert kept._is_built_on_row(item, row) is built
        assert kept._is_built_on_row(item, replace(row, sha256="")) is built


def test_a_sweep_ends_once_it_is_to_stop(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = chain_in_quarantine(two, PERSON, 14)
    monkeypatch.setattr(unmanaged_manifests, "_AT_ONCE", 4)
    stopping = threading.Event()

    def decide(batches: Sequence[Batch]) -> list[PendingBatch]:
        stopping.set()
        return decided(batches)

    sweeper, _ = other(two)
    decided = sweeper.catalog.committer.decide
    monkeypatch.setattr(sweeper.catalog.committer, "decide", decide)
    sweeper.catalog.recovery.run(stopping)
    assert two.ids(PERSON) == expected[:8]
    sweeper.catalog.recovery.run(stopping)  # the last one
    assert two.ids(PERSON) == expected[:8]

    other(two)[0].catalog.sweep()
    assert two.ids(PERSON) == expected


def test_a_branch_that_cannot_be_completed_keeps_no_other_step_from_being_done(two: Ground) -> None:
    lance.dataset(namespace_client=two.namespace, table_id=PERSON).create_branch("dev")
    take_name(two, KNOWS, 20)
    sweeper, store = other(two)
    refuse(store, lambda _verb, path: "/_refs/branches" in path)

    sweeper.catalog.sweep()
    sweeper.catalog.sweep()

    assert two.ids(KNOWS) == [0, 1, 2, 20, 21]


def test_a_promotion_that_cannot_be_looked_behind_is_one_all_the_same(two: Ground) -> None:
    writer, store = other(two)
    operation = two.transaction(PERSON, rows(3, 4))
    promoted: list[str] = []
    store.before(lambda verb, path: promoted.append(path) if verb == "publish" else None)
    refuse(store, lambda verb, path: bool(promoted) and verb == "get")

    writer.batch(operation)

    assert two.ids(PERSON) == [0, 1, 2, 3]


def test_records_of_servers_that_commit_are_left_to_them_for_a_while(
    two: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.batch(two.transaction(PERSON, rows(3, 4)))
    sweeper, store = other(two)
    own = sweeper.transaction(KNOWS, rows(3, 4))
    sweeper.batch(own)
    removed: list[str] = []
    store.before(lambda verb, path: removed.append(path) if verb == "delete" and "_staging/" in path else None)
    now = [1000.0]
    monkeypatch.setattr("namespace_server.directory.recovery.background.time.monotonic", lambda: now[0])
    peers = sweeper.catalog.table.peers
    monkeypatch.setattr(peers, "_clock", lambda: now[0])

    peers.saw(Peer("i", "http://other"))
    sweeper.catalog.sweep()
    theirs, mine = two.catalog.snapshot().open_records()
    assert removed == [mine.participants[0].staged_path]
    now[0] += 9
    peers.saw(Peer("i", "http://other"))
    sweeper.catalog.sweep()
    assert len(removed) == 1
    now[0] += 1
    sweeper.catalog.sweep()
    assert removed[1:] == [theirs.participants[0].staged_path]


def test_records_of_servers_that_are_not_seen_any_more_are_finished_at_once(
    two: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.batch(two.transaction(PERSON, rows(3, 4)))
    sweeper, store = other(two)
    peers = sweeper.catalog.table.peers
    now = [1000.0]
    monkeypatch.setattr(peers, "_clock", lambda: now[0])
    peers.saw(Peer("i", "http://other"))
    now[0] += LATELY
    removed: list[str] = []
    store.before(lambda verb, path: removed.append(path) if verb == "delete" and "_staging/" in path else None)
    sweeper.catalog.sweep()
    assert len(removed) == 1
