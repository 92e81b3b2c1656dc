"""Which version of `__manifest` is the newest (G7, G8): what is believed, and what is proved."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from lance_core.errors import ReferenceNotFound, StorageError
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_name
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.manifest_table import snapshots as snapshots_module
from namespace_server.directory.manifest_table import table as table_module
from namespace_server.directory.manifest_table.flip import FlipClaimed, FlipCommitted, FlipSuperseded, FlipUnknown
from namespace_server.directory.manifest_table.newest_version import STRIDE, NewestVersion
from namespace_server.directory.manifest_table.snapshots import changes_to
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import NamespaceEntry, RecordEntry, changes_of
from namespace_server.directory.model.root_layout import HIGH_WATER_MARKS, NEWEST_VERSION_NOTE
from namespace_server.durations import elapsed_clock
from tests.directory.flipping import claim_and_prove, flip
from tests.directory.reference import put
from tests.directory.tables import Ground, rows
from tests.storage.faults import Fault, FaultStore


def name(version: int) -> str:
    return f"__manifest/_versions/{manifest_name(version)}"


def space(label: str) -> NamespaceEntry:
    return NamespaceEntry((label,))


def recorded(table: ManifestTable, label: str):
    """A flip that makes a namespace and keeps the record of it, as batches do."""
    attempt = str(uuid.uuid4())
    changes = put([space(label), RecordEntry(str(uuid.uuid4()), "closed", attempt=attempt)])
    return table.prepare(table.refresh(), changes, attempt=attempt)


def as_bucket(store: MemoryStore) -> ObjectStore:
    bucket = CountingStore(store)
    bucket.local = False
    return bucket


def as_directory(store: MemoryStore) -> ObjectStore:
    return store


KINDS = pytest.mark.parametrize("view", [as_bucket, as_directory])


@KINDS
@pytest.mark.parametrize("versions", [2, STRIDE - 1, STRIDE, 3 * STRIDE])
@pytest.mark.parametrize("left", ["the newest", "the one before too", "one in two"])
def test_a_slot_that_was_made_free_is_no_commit(view, versions: int, left: str) -> None:
    """A server is held at its flip; others commit any number of versions, of which a clean-up removes some."""
    inner = MemoryStore()
    table = ManifestTable(view(inner))
    flip(table, put([space("first")]))
    store = FaultStore(inner)
    store.local = view(inner).local
    held = ManifestTable(store)
    prepared = recorded(held, "held")
    held.stage(prepared)

    def work(verb: str, path: str) -> None:
        if verb != "put_if_absent":
            return
        go_on()
        for number in range(versions):
            flip(table, put([space(f"n{number}")]))
        newest = table.current.version
        kept = {newest} if left == "the newest" else {1, newest}
        kept |= {*range(newest, 2, -2)} if left == "one in two" else set()
        for version in range(1, newest):
            if version not in kept:
                inner.delete(name(version))

    go_on = store.before(work)
    outcome = claim_and_prove(held, prepared)

    assert isinstance(outcome, FlipSuperseded)
    assert outcome.newest.version == versions + 1
    assert inner.find(name(2)) is None or left == "one in two"
    again = recorded(held, "held")
    held.stage(again)
    assert isinstance(claim_and_prove(held, again), FlipCommitted)
    assert set(ManifestTable(inner).refresh().child_namespaces(())) == {
        "first",
        "held",
        *(f"n{number}" for number in range(versions)),
    }


@pytest.mark.parametrize("age", [0.0, 0.9, 1.1])
@pytest.mark.parametrize("view", [as_bucket, as_directory])
def test_promotion_may_go_beside_the_proof_only_within_a_second_of_a_listing(
    view, age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G7: by the time at which the slot was won. A process that is held at its flip waits for the proof."""
    inner = MemoryStore()
    flip(ManifestTable(inner), put([space("first")]))
    store = FaultStore(inner)
    store.local = view(inner).local
    table = ManifestTable(store)
    prepared = recorded(table, "mine")
    table.stage(prepared)
    listed_at = table.current.listed_at

    def hold(verb: str, path: str) -> None:
        if verb == "put_if_absent":
            monkeypatch.setattr(table_module, "elapsed_clock", lambda: listed_at + age)

    store.before(hold)
    claimed = table.claim(prepared)
    assert isinstance(claimed, FlipClaimed)
    assert claimed.never_taken == (age <= 1 and not store.local)
    assert isinstance(table.prove(claimed), FlipCommitted)


@pytest.mark.parametrize("followed", [False, True], ids=["not followed", "followed"])
def test_a_slot_that_is_made_free_within_a_second(followed: bool) -> None:
    """After a newer version was seen nothing is taken for granted, and so nothing is promoted beside the proof."""
    inner = MemoryStore()
    other, table = ManifestTable(inner), ManifestTable(as_bucket(inner))
    flip(other, put([space("first")]))
    prepared = recorded(table, "mine")
    table.stage(prepared)
    for number in range(2):
        flip(other, put([space(f"n{number}")]))
    if followed:
        table.refresh_by_listing()
    inner.delete(name(2))

    claimed = table.claim(prepared)
    assert isinstance(claimed, FlipClaimed)
    assert claimed.never_taken != followed

    assert isinstance(table.prove(claimed), FlipSuperseded)
    assert inner.find(name(2)) is None
    assert "mine" not in table.refresh().child_namespaces(())


def test_a_refresh_for_a_flip_lists_a_bucket_after_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = MemoryStore()
    flip(ManifestTable(inner), put([space("first")]))
    for view, age, verbs in (
        (as_bucket, 0.4, ["get"]),
        (as_bucket, 0.6, ["list"]),
        (as_directory, 0.6, ["get", "head"]),
    ):
        store = CountingStore(inner)
        store.local = view(inner).local
        table = ManifestTable(store)
        listed_at = table.refresh().listed_at
        with monkeypatch.context() as patch:
            patch.setattr(snapshots_module, "elapsed_clock", lambda at=listed_at + age: at)
            with store.measure() as cost:
                assert table.refresh_for_flip().version == 1
        assert cost.by_verb == Counter(verbs)
        assert (table.current.listed_at > listed_at) == (verbs == ["list"])


@KINDS
def test_a_flip_that_is_already_built_on_is_a_commit(view) -> None:
    inner = MemoryStore()
    store = FaultStore(inner)
    store.local = view(inner).local
    table, other = ManifestTable(store), ManifestTable(view(inner))
    flip(table, put([space("first")]))
    prepared = recorded(table, "mine")
    table.stage(prepared)

    def build_on(verb: str, path: str) -> None:
        if inner.find(name(2)) is not None:
            go_on()
            flip(other, put([space("theirs")]))
            inner.delete(name(1))

    go_on = store.before(build_on)
    outcome = claim_and_prove(table, prepared)

    assert isinstance(outcome, FlipCommitted)
    assert outcome.snapshot.version == 2
    assert set(table.refresh().child_namespaces(())) == {"first", "mine", "theirs"}


def test_after_a_lost_answer_other_bytes_in_the_slot_do_not_prove_the_flip_lost() -> None:
    """G9: ours was committed, built on and removed, and another process wrote the number again."""
    inner = MemoryStore()
    store = FaultStore(inner)
    table, other = ManifestTable(store), ManifestTable(inner)
    flip(table, put([space("first")]))
    prepared = recorded(table, "mine")
    table.stage(prepared)
    store.fail(Fault.LOST_ANSWER, when=lambda write: write.path == name(2))

    def overtake(verb: str, path: str) -> None:
        if verb == "get" and path == name(2):
            go_on()
            flip(other, put([space("theirs")]))
            inner.delete(name(2))
            inner.put(name(2), b"of a process that died")

    go_on = store.before(overtake)
    outcome = claim_and_prove(table, prepared)

    assert isinstance(outcome, FlipCommitted)
    assert all(inner.find(path) is not None for path, _ in prepared.files)
    assert set(table.current.child_namespaces(())) == {"first", "mine", "theirs"}


def test_a_flip_that_cannot_be_proved_is_unknown() -> None:
    store = FaultStore(MemoryStore())
    table = ManifestTable(store)
    flip(table, put([space("first")]))
    prepared = recorded(table, "mine")
    table.stage(prepared)

    def refuse(verb: str, path: str) -> None:
        if store.inner.find(name(2)) is not None:
            raise StorageError("not now")

    go_on = store.before(refuse)
    assert isinstance(claim_and_prove(table, prepared), FlipUnknown)
    go_on()
    assert isinstance(claim_and_prove(table, prepared), FlipCommitted)


@KINDS
@pytest.mark.parametrize("removed", [(1, 2, 3), (2, 3)], ids=["the base too", "a tag keeps the base"])
def test_a_version_written_to_a_freed_slot_is_not_followed(view, removed: tuple[int, ...]) -> None:
    """G8: version 2 was removed and written again by a process that died before it saw that."""
    inner = MemoryStore()
    table, idle = ManifestTable(view(inner)), ManifestTable(view(inner))
    flip(table, put([space("first")]))
    idle.refresh()
    stale = recorded(idle, "phantom")
    idle.stage(stale)
    for number in range(3):
        flip(table, put([space(f"n{number}")]))
    for version in removed:
        inner.delete(name(version))
    inner.put(name(2), stale.manifest)

    assert idle.refresh().version == 4
    assert "phantom" not in idle.current.child_namespaces(())
    with pytest.raises(ReferenceNotFound):
        idle.at(2)


def test_a_flip_whose_records_may_have_expired_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was committed and seen, its record closed and removed, before the process that wrote it goes on."""
    inner = MemoryStore()
    store = FaultStore(inner)
    table, other = ManifestTable(store), ManifestTable(inner)
    flip(table, put([space("first")]))
    prepared = recorded(table, "mine")
    table.stage(prepared)
    [uid] = [entry.batch_uuid for entry in prepared.changes.puts.values() if isinstance(entry, RecordEntry)]
    now = elapsed_clock()

    def a_while(verb: str, path: str) -> None:
        if inner.find(name(2)) is not None:
            go_on()
            flip(other, changes_of([], [f"$transactions${uid}"]))
            monkeypatch.setattr("namespace_server.directory.manifest_table.table.elapsed_clock", lambda: now + 61)

    go_on = store.before(a_while)
    assert isinstance(claim_and_prove(table, prepared), FlipUnknown)
    assert inner.find(name(2)) is not None


def test_a_clean_up_that_overtakes_a_listing_is_no_damage() -> None:
    inner = MemoryStore()
    store = FaultStore(inner)
    table = ManifestTable(inner)
    for label in "abc":
        flip(table, put([space(label)]))

    def overtake(verb: str, path: str) -> None:
        if verb == "get" and path == name(3):
            go_on()
            flip(table, put([space("d")]))
            inner.delete(name(3))

    go_on = store.before(overtake)
    assert ManifestTable(store).refresh().version == 4


def test_changes_are_taken_inline_only_by_the_version_that_they_were_made_to() -> None:
    """A server that believes in a version that never was finds its way back by comparing rows."""
    inner = MemoryStore()
    table, misled = ManifestTable(inner), ManifestTable(inner)
    flip(table, put([space("first"), space("second")]))
    misled.refresh()
    phantom = misled.prepare(misled.current, put([space("phantom")]), attempt=str(uuid.uuid4()))
    flip(table, put([space("real")]))
    real = inner.get(name(2))
    misled.stage(phantom)
    inner.put(name(2), phantom.manifest)
    assert set(misled.refresh().child_namespaces(())) == {"first", "second", "phantom"}
    flip(table, put([space("after")]))

    assert set(misled.refresh().child_namespaces(())) == {"first", "second", "real", "after"}
    with pytest.raises(ReferenceNotFound):
        ManifestTable(inner).at(2)
    inner.put(name(2), real)
    assert set(ManifestTable(inner).at(2).child_namespaces(())) == {"first", "second", "real"}


def test_a_directory_is_seen_to_have_been_cleaned_up_at_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, "none")
    table, idle = ManifestTable(store), ManifestTable(store)
    flip(table, put([space("first")]))
    idle.refresh()
    for number in range(3):
        flip(table, put([space(f"n{number}")]))
    for version in (1, 2, 3):
        store.delete(name(version))

    assert idle.refresh().version == 4


def test_a_bucket_is_listed_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts suspension."""
    inner = MemoryStore()
    table, idle = ManifestTable(as_bucket(inner)), ManifestTable(as_bucket(inner))
    flip(table, put([space("first")]))
    now = idle.refresh().listed_at
    for number in range(3):
        flip(table, put([space(f"n{number}")]))
    for version in (1, 2, 3):
        inner.delete(name(version))

    monkeypatch.setattr("namespace_server.directory.manifest_table.snapshots.elapsed_clock", lambda: now + 59)
    assert idle.refresh().version == 1
    monkeypatch.setattr("namespace_server.directory.manifest_table.snapshots.elapsed_clock", lambda: now + 61)
    assert idle.refresh().version == 4


def test_the_proof_in_a_directory_needs_a_bounded_number_of_looks(tmp_path: Path) -> None:
    """A listing costs as much as there are versions, 4 ms for 10,000; only the marks are listed."""
    store = FaultStore(LocalStore(tmp_path, "none"))
    counting = CountingStore(store)
    table = ManifestTable(counting)
    costs = []
    listed: set[str] = set()

    def see(verb: str, path: str) -> None:
        if verb == "list":
            listed.add(path)

    table.refresh()
    first = recorded(table, "first")  # the first flip of a root looks for what lies there
    table.stage(first)
    assert isinstance(claim_and_prove(table, first), FlipCommitted)
    store.before(see)
    for number in range(5 * STRIDE):
        prepared = recorded(table, f"n{number}")
        table.stage(prepared)
        with counting.measure() as cost:
            assert isinstance(claim_and_prove(table, prepared), FlipCommitted)
        costs.append(cost.requests)
    assert listed == {HIGH_WATER_MARKS}
    assert max(costs[-STRIDE:]) == max(costs[STRIDE : 2 * STRIDE]) <= STRIDE + 3
    assert len(list(store.list(HIGH_WATER_MARKS))) <= STRIDE


def test_the_marks_never_go_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, "none")
    ahead, behind = (NewestVersion(store, "__manifest") for _ in range(2))
    for version in range(1, 20 * STRIDE):
        ahead.mark(version)
        behind.mark(max(version - 5 * STRIDE, 1))
        marks = [int(meta.path.rpartition("/")[2]) for meta in store.list(HIGH_WATER_MARKS)]
        assert max(marks, default=0) == version // STRIDE
    assert not NewestVersion(store, "__manifest").is_newest(STRIDE, NamingScheme.V2)


def test_a_pinned_version_that_a_clean_up_removed_is_not_answered_from_memory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, "none")
    table = ManifestTable(store)
    for label in "abc":
        flip(table, put([space(label)]))
    assert table.at(2).version == 2
    store.delete(name(2))
    for each in (table, ManifestTable(store)):
        with pytest.raises(ReferenceNotFound):
            each.at(2)


def test_the_loss_of_the_newest_version_is_told_at_the_next_start(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.make_table("g", "t")
    ground.catalog.sweep()
    newest = ground.catalog.snapshot().version
    (ground.root / name(newest)).unlink()

    with caplog.at_level(logging.ERROR):
        ground.again().catalog.sweep()
        assert f"version {newest} was committed" in caplog.text
        caplog.clear()
        again = ground.again()
        while again.catalog.snapshot().version <= newest:
            again.make_namespace(f"n{again.catalog.snapshot().version}")
        again.catalog.sweep()
        ground.again().catalog.sweep()
        assert "went back" not in caplog.text


def test_a_server_that_starts_beside_one_that_commits_reports_no_loss(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one commits and writes the note after the first look at the catalog, and before that at the note."""
    ground.catalog.sweep()
    store = FaultStore(LocalStore(ground.root, "none"))

    def commit(_verb: str, path: str) -> None:
        if path == NEWEST_VERSION_NOTE:
            go_on()
            ground.make_namespace("late")
            ground.catalog.sweep()

    go_on = store.before(commit)
    with caplog.at_level(logging.ERROR):
        ground.again(store).catalog.sweep()
    assert ground.catalog.snapshot().namespace(("late",)) is not None
    assert not caplog.records


def test_a_version_that_was_followed_after_a_listing_was_not_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread lists; another thread of the process follows a version that was committed since."""
    store = LocalStore(tmp_path, "none")
    table, other = ManifestTable(store), ManifestTable(store)
    flip(other, put([space("a")]))
    table.refresh()
    find = NewestVersion.find

    def then_follow(newest: NewestVersion) -> object:
        found = find(newest)
        monkeypatch.undo()
        flip(other, put([space("b")]))
        table.refresh()
        return found

    monkeypatch.setattr(NewestVersion, "find", then_follow)
    with caplog.at_level(logging.ERROR):
        assert table.refresh_by_listing().version == 2
    assert not caplog.records


def test_a_running_server_says_that_its_newest_version_was_removed(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.make_table("g", "t")
    newest = ground.catalog.snapshot().version
    (ground.root / name(newest)).unlink()

    with caplog.at_level(logging.ERROR):
        assert ground.head(["g", "t"]) == 1
    assert f"catalog version {newest} was removed" in caplog.text


def test_stock_clean_up_of_the_catalog_costs_neither_server_a_commit(ground: Ground) -> None:
    """With pylance itself (G8): two servers, one of which looked before the clean-up."""
    other = ground.again()
    other.catalog.snapshot()
    for number in range(10):
        ground.make_namespace(f"a{number}")
    lance.dataset(str(ground.root / "__manifest")).cleanup_old_versions(older_than=timedelta(0))
    other.make_namespace("from_b")
    ground.make_namespace("from_a")
    ground.make_table("g", "t")
    other.batch(other.transaction(["g", "t"], rows(3, 4)))

    fresh = ground.again().catalog.snapshot()
    expected = {"from_a", "from_b", "g", *(f"a{number}" for number in range(10))}
    assert set(fresh.child_namespaces(())) == expected
    assert ground.ids(["g", "t"]) == [0, 1, 2, 3]


@KINDS
def test_a_catalog_that_nobody_has_written_can_be_written_after_a_long_wait(view) -> None:
    table = ManifestTable(view(MemoryStore()), listing_interval=-1.0)

    for _ in range(3):
        assert table.refresh().version == 0

    flip(table, put([space("first")]))
    assert table.refresh().version == 1


def test_a_version_that_is_committed_beside_a_listing_is_not_called_removed(
    ground: Ground, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.make_table("g", "t")
    listed = NewestVersion.find

    def list_and_be_overtaken(newest: NewestVersion) -> tuple[int, NamingScheme] | None:
        found = listed(newest)
        monkeypatch.undo()
        ground.make_table("g", "u")
        return found

    monkeypatch.setattr(NewestVersion, "find", list_and_be_overtaken)
    with caplog.at_level(logging.ERROR):
        ground.catalog.table.refresh_by_listing()
    assert "was removed" not in caplog.text
    assert ground.head(["g", "u"]) == 1


def test_a_version_is_not_proved_without_the_one_before_it(ground: Ground) -> None:
    """Another writer that leaves no marks may have made newer ones, and a clean-up removed all but the newest."""
    ground.make_namespace("a")
    newest, version = NewestVersion(ground.store, "__manifest"), ground.catalog.snapshot().version
    assert newest.is_newest(version, NamingScheme.V2)
    (ground.root / "__manifest/_versions" / manifest_name(version - 1)).unlink()
    assert not newest.is_newest(version, NamingScheme.V2)


def test_some_marks_are_kept_and_each_is_durable(tmp_path: Path) -> None:
    store = FaultStore(LocalStore(tmp_path, "none"))
    for number in range(1, 9):
        NewestVersion(store, "__manifest").mark(number * STRIDE)
    assert sorted(map(int, store.names(HIGH_WATER_MARKS))) == [4, 5, 6, 7, 8]
    assert [path for _, path in store.synced] == [f"{HIGH_WATER_MARKS}/{number}" for number in range(1, 9)]


def test_the_changes_of_a_version_are_those_to_the_version_that_it_was_made_from(ground: Ground) -> None:
    for name in ("a", "b"):
        ground.make_namespace(name)
    table = ground.catalog.table
    version = table.refresh().version
    [changes] = [changes for _, changes in table.steps(version - 1, version)]
    assert changes is not None
    data = ground.store.get(f"__manifest/_versions/{manifest_name(version)}")
    file = parse_manifest_file(data, expected_version=version)
    assert changes_to(file, table.at(version - 1)) == changes
    assert changes_to(file, table.at(version - 2)) is None


def test_steps_end_at_a_version_that_is_removed_meanwhile() -> None:
    store = MemoryStore()
    table = ManifestTable(store)
    for label in "abcd":
        flip(table, put([space(label)]))
    assert [snapshot.version for snapshot, _ in table.steps(1, 4)] == [1, 2, 3]
    store.delete(name(3))
    seen = []
    with pytest.raises(ReferenceNotFound, match="catalog version 3: expected one of the kept versions, to 4"):
        seen += [snapshot.version for snapshot, _ in table.steps(1, 4)]


def test_a_snapshot_is_not_replaced_by_an_earlier_one_that_is_proved_meanwhile(monkeypatch) -> None:
    """Another thread of the process has flipped since this one has listed."""
    store = MemoryStore()
    flip(ManifestTable(store), put([space("first")]))
    table = ManifestTable(store, listing_interval=-1.0)
    first, listed = table.refresh(), NewestVersion.is_newest

    def flipped_meanwhile(newest: NewestVersion, version: int, scheme: NamingScheme) -> bool:
        answer = listed(newest, version, scheme)
        monkeypatch.undo()
        flip(table, put([space("second")]))
        return answer

    monkeypatch.setattr(NewestVersion, "is_newest", flipped_meanwhile)
    found = table.refresh()
    assert (first.version, found.version, table.known.version) == (1, 2, 2)


def test_a_snapshot_that_is_proved_to_be_the_newest_is_so_for_a_while() -> None:
    store = CountingStore(MemoryStore())
    store.local = False
    flip(ManifestTable(store), put([space("first")]))
    table = ManifestTable(store, listing_interval=-1.0)
    table.refresh()
    before = table.known.listed_at
    assert table.refresh() is table.known
    assert table.known.listed_at > before
