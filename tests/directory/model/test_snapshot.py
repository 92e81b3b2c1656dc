"""A snapshot answers as a plain dictionary of rows would, and changes cheaply and without side effects."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from namespace_server.directory.model.entries import (
    Changes,
    NamespaceEntry,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    place_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state_editor import apply_changes
from tests.directory.reference import ReferenceCatalog, assert_snapshot_is, put, same

TABLE = TableEntry(("a", "t"), "1_a$t")


def version(number: int, branch: str | None = None, table: TableEntry = TABLE) -> VersionEntry:
    return VersionEntry(table.id, branch, number, table.location, 10, "", "", number)


def stored(snapshot: CatalogSnapshot, changes: Changes, serials: itertools.count[int]) -> CatalogSnapshot:
    """The snapshot after a flip that gave the rows put the next addresses."""
    addresses = {object_id: next(serials) for object_id in changes.puts}
    return CatalogSnapshot(snapshot.version + 1, state=apply_changes(snapshot.state, changes, addresses))


@pytest.mark.parametrize("seed", range(6))
def test_a_snapshot_answers_like_a_dictionary_of_rows(seed: int) -> None:
    reference = ReferenceCatalog(seed)
    snapshot = CatalogSnapshot()
    serials = itertools.count()
    for step in range(120):
        changes = reference.step(5)
        # Overlays answer as what they become (P7): only the addresses are missing.
        snapshot = stored(snapshot, changes, serials) if step % 3 else snapshot.apply(changes)
        if step % 10 == 9:
            assert_snapshot_is(snapshot, reference)


def test_many_newer_versions_are_packed_and_still_found() -> None:
    reference = ReferenceCatalog(1)
    table = TableEntry(("t",), "1_t")
    snapshot = CatalogSnapshot()
    serials = itertools.count()
    first = put([table])
    reference.apply(first)
    snapshot = stored(snapshot, first, serials)
    for number in range(1, 1500):
        step = put([reference.version(table, None, number)])
        reference.apply(step)
        snapshot = stored(snapshot, step, serials)
        if number % 97 == 0:
            gone = Changes({}, frozenset({f"t${number - 50}", f"t${number // 2}"}))
            reference.apply(gone)
            snapshot = stored(snapshot, gone, serials)
    chain = snapshot.state.tables[("t",)].chains[0]
    assert len(chain.newer) < 1400
    assert_snapshot_is(snapshot, reference)
    addresses = [chain.serial(number) for number in chain.numbers()]
    assert len(set(addresses)) == len(addresses) == len(chain)


def test_apply_leaves_the_snapshot_as_it_was() -> None:
    base = CatalogSnapshot(3).apply(put([NamespaceEntry(("a",)), TABLE, version(1)]))
    after = base.apply(put([version(2), NamespaceEntry(("b",))]).then(Changes({}, frozenset({"a$t$1"}))))
    assert (base.version, after.version, after.overlay) == (3, 3, True)
    assert base.head(TABLE.id) == version(1)
    assert after.head(TABLE.id) == version(2)
    assert (base.child_namespaces(()), after.child_namespaces(())) == (("a",), ("a", "b"))
    assert after.version_entry(TABLE.id, None, 1) is None


def test_the_root_always_exists_and_names_are_sorted_as_bytes() -> None:
    names = ["b", "é", "Z", "a", "\U0001f600", "\uffee"]
    snapshot = CatalogSnapshot().apply(put([NamespaceEntry((name,)) for name in names]))
    assert snapshot.namespace(()) == NamespaceEntry(())
    assert list(snapshot.child_namespaces(())) == sorted(names, key=str.encode)
    assert snapshot.head(("b",)) is None
    assert list(snapshot.versions(("b",))) == []


def test_tables_under_a_parent_that_is_no_namespace_are_listed_too() -> None:
    tables = [TableEntry(path, "$".join(path)) for path in [("x", "y", "t"), ("t",), ("t", "u"), ("a",), ("z",)]]
    snapshot = CatalogSnapshot().apply(put(tables))
    assert list(snapshot.all_tables()) == [("a",), ("t",), ("t", "u"), ("x", "y", "t"), ("z",)]
    assert snapshot.child_tables(("x", "y")) == ("t",)
    whole = snapshot.apply(put([NamespaceEntry(("x",)), NamespaceEntry(("x", "y"))]))
    assert list(whole.all_tables()) == list(snapshot.all_tables())
    assert whole.state.detached == {("t",)}
    assert (
        CatalogSnapshot()
        .apply(put([TableEntry(("t", "u"), "l")]))
        .apply(Changes({}, frozenset({"t$u"})))
        .state.detached
        == frozenset()
    )


def test_a_version_belongs_to_a_table_only_in_its_location() -> None:
    """N1: rows of the table that had this name before do not answer for the new one."""
    unmanaged = VersionEntry(TABLE.id, None, 2, "0_a$t", 10, "", "", 0)
    snapshot = CatalogSnapshot(state=apply_changes(CatalogSnapshot().state, put([TABLE, unmanaged]), {"a$t$2": 7}))
    assert snapshot.head(TABLE.id) is None
    assert (snapshot.location(TABLE.id), snapshot.location(("a", "u"))) == (TABLE.location, None)
    assert snapshot.state.serials("a$t$2") == (7,)
    replaced = apply_changes(snapshot.state, put([version(2)]), {"a$t$2": 9})
    assert replaced.serials("a$t$2") == (9,)


def test_versions_that_a_removed_table_leaves_behind_keep_their_addresses() -> None:
    """A unmanaged drop removes the table row only: the next flip that uses such an object id must find the old row."""
    state = apply_changes(CatalogSnapshot().state, put([TABLE, version(1)]), {"a$t": 0, "a$t$1": 1})
    moved = apply_changes(state, put([TableEntry(TABLE.id, "2_a$t")]), {"a$t": 2})
    for after in (apply_changes(state, Changes({}, frozenset({"a$t"}))), moved):
        snapshot = CatalogSnapshot(state=after)
        assert list(snapshot.versions(TABLE.id)) == []
        assert after.serials("a$t$1") == (1,)
    assert CatalogSnapshot(state=moved).table_at("1_a$t") is None


def test_an_object_id_names_one_row_whatever_its_type() -> None:
    state = apply_changes(CatalogSnapshot().state, put([TABLE, version(1)]), {"a$t": 0, "a$t$1": 1})
    state = apply_changes(state, put([TableEntry(("a", "t", "1"), "l")]), {"a$t$1": 2})
    snapshot = CatalogSnapshot(state=state)
    assert state.serials("a$t$1") == (2,)
    assert snapshot.head(TABLE.id) is None
    state = apply_changes(state, put([NamespaceEntry(("a", "t", "1"))]), {"a$t$1": 3})
    assert (state.serials("a$t$1"), CatalogSnapshot(state=state).table(("a", "t", "1"))) == ((3,), None)
    state = apply_changes(state, put([TableEntry(("a", "t", "1"), "l")]), {"a$t$1": 4})
    assert (state.serials("a$t$1"), CatalogSnapshot(state=state).namespace(("a", "t", "1"))) == ((4,), None)


def test_branch_and_table_of_one_spelling_are_told_apart() -> None:
    odd = TableEntry(("a", "t", "dev"), "2_a$t$dev")
    both = put([TABLE, odd, version(5, "dev"), version(6, None, odd), version(7, "dev/x")])
    snapshot = CatalogSnapshot().apply(both)
    assert snapshot.head(TABLE.id, "dev") == version(5, "dev")
    assert snapshot.head(odd.id) == version(6, None, odd)
    assert snapshot.branches(TABLE.id) == ("dev", "dev/x")
    after = snapshot.apply(Changes({}, frozenset({"a$t$dev$5", "a$t$dev%2Fx$7"})))
    assert (after.branches(TABLE.id), after.head(odd.id)) == ((), version(6, None, odd))


def test_records_are_found_by_uuid_key_and_request() -> None:
    record = RecordEntry("u1", "open", "h", "k", timestamp_ms=5)
    later = RecordEntry("u2", "open", "h", None, timestamp_ms=4)
    snapshot = CatalogSnapshot().apply(put([record])).apply(put([later]))
    assert (snapshot.record("u1"), snapshot.record_by_key("k")) == (record, record)
    assert snapshot.record_by_request("h") == later
    assert snapshot.open_records() == (later, record)
    closed = snapshot.apply(put([RecordEntry("u1", "closed", "h", "k", timestamp_ms=5)]))
    assert closed.open_records() == (later,)
    assert closed.record_by_request("h") == later
    gone = closed.apply(Changes({}, frozenset({"$transactions$u1"})))
    assert (gone.record("u1"), gone.record_by_key("k"), gone.record_by_request("h")) == (None, None, later)


def test_a_staged_path_is_found_by_its_place_until_the_record_is_closed() -> None:
    parties = tuple(Participant(TABLE.id, None, number, TABLE.location, f"staged/{number}") for number in (5, 6))
    first, second = RecordEntry("u1", "open", participants=parties), RecordEntry("u2", "open", participants=parties[1:])
    place = place_of(parties[1])
    snapshot = CatalogSnapshot().apply(put([first])).apply(put([second]))
    assert (snapshot.open_path(place_of(parties[0])), snapshot.open_path(place)) == ("staged/5", "staged/6")
    first_closed = snapshot.apply(put([replace(first, state="closed")]))
    assert (first_closed.open_path(place_of(parties[0])), first_closed.open_path(place)) == (None, "staged/6")
    both_closed = first_closed.apply(Changes({}, frozenset({"$transactions$u2"})))
    assert both_closed.open_path(place) is None


def test_an_entry_of_a_packed_chain_equals_the_entry_that_was_put() -> None:
    reference = ReferenceCatalog(5)
    entries = [reference.version(TABLE, "dev", number) for number in range(1, 400)]
    plain = [entry for entry in entries if not entry.metadata]
    state = apply_changes(
        CatalogSnapshot().state,
        put([TABLE, *plain]),
        {"a$t": 0} | {entry.object_id: at + 1 for at, entry in enumerate(plain)},
    )
    assert not state.tables[TABLE.id].chains[0].newer
    for found, expected in zip(CatalogSnapshot(state=state).versions(TABLE.id, "dev"), plain, strict=True):
        assert same(found, expected)
        assert found.identity == expected.identity
        assert found.canonical_path == expected.canonical_path
