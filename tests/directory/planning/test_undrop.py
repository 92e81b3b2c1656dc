"""Dropped tables and namespaces come back (rules G13 and G14)."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from namespace_server.directory.model.collector_rows import CollectorEntry
from namespace_server.directory.model.entries import PURGING, TableEntry, changes_of
from namespace_server.directory.model.errors import BatchUnknown
from tests.directory.breaking import is_flip
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T, U = ["g", "t"], ["g", "u"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    made.make_table(*T)
    made.write(T, rows(3, 6))
    return made


def described(ground: Ground, table_id: list[str]) -> dict[str, Any]:
    """All that the catalog and stock pylance tell of a table."""
    table = ground.catalog.snapshot().table(tuple(table_id))
    assert table is not None
    chains = ground.catalog.snapshot().chains(table.id)
    versions = {
        (branch, row.version): replace(row, table_id=())
        for branch in chains
        for row in ground.catalog.snapshot().versions(table.id, branch)
    }
    dataset = ground.open(table_id)
    return {
        "location": table.location,
        "properties": dict(table.properties),
        "versions": versions,
        "rows": sorted(map(str, dataset.to_table().to_pylist())),
        "tags": {name: tag["version"] for name, tag in dataset.tags.list().items()},
        "branches": sorted(dataset.branches.list()),
        "indices": sorted(index.name for index in dataset.describe_indices()),
        "first": ground.open(table_id, 1).count_rows(),
    }


def test_a_dropped_table_comes_back_with_all_that_it_had(ground: Ground) -> None:
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=T)
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("gold", 2)
    ground.batch({"set_table_properties": {"id": T, "properties": {"team": "a"}}})
    lance.dataset(namespace_client=ground.namespace, table_id=T).create_branch("dev")
    before = described(ground, T)
    ground.call("drop_table", id=T)
    with pytest.raises(TableNotFoundError):
        ground.read("describe_table", id=T)
    answer = ground.call("undrop_table", id=T)
    assert answer["id"] == T
    assert answer["location"].endswith(before["location"])
    for process in (ground, ground.again()):
        assert described(process, T) == before
    assert ground.catalog.snapshot().tombstone_at(before["location"]) is None
    ground.write(T, rows(6, 8))
    assert ground.ids(T) == list(range(8))


def test_under_another_name_when_its_own_is_taken(ground: Ground) -> None:
    before = described(ground, T)
    ground.call("drop_table", id=T)
    ground.make_table(*T, count=1)
    with pytest.raises(TableAlreadyExistsError):
        ground.call("undrop_table", id=T)
    ground.call("undrop_table", id=T, new_id=["g", "old"])
    assert described(ground, ["g", "old"]) == before
    assert ground.ids(T) == [0]
    ground.call("drop_table", id=T)
    with pytest.raises(NamespaceNotFoundError):
        ground.call("undrop_table", id=T, new_id=["nowhere", "t"])


def test_of_several_tables_of_a_name_the_last_or_the_one_that_is_named(ground: Ground) -> None:
    ground.call("drop_table", id=T)
    [first] = [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]
    ground.make_table(*T, count=1)
    ground.call("drop_table", id=T)
    ground.call("undrop_table", id=T, new_id=["g", "second"])
    assert ground.ids(["g", "second"]) == [0]
    ground.call("undrop_table", id=T, tombstone_id=first.batch_uuid)
    assert ground.ids(T) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TableNotFoundError, match="none of that name was dropped"):
        ground.call("undrop_table", id=T, new_id=["g", "third"])


def test_a_namespace_comes_back_with_all_that_it_held(ground: Ground) -> None:
    ground.call("create_namespace", id=["g", "inner"], properties={"k": "v"})
    ground.make_table("g", "inner", "x")
    ground.make_table(*U)
    ground.call("drop_table", id=U)  # by itself, before
    before = {table: described(ground, list(table)) for table in ground.catalog.snapshot().all_tables()}
    ground.call("drop_namespace", id=["g"], behavior="Cascade")
    ground.call("undrop_namespace", id=["g"])
    assert {table: described(ground, list(table)) for table in ground.catalog.snapshot().all_tables()} == before
    assert ground.read("describe_namespace", id=["g", "inner"])["properties"] == {"k": "v"}
    with pytest.raises(LanceNamespaceError):
        ground.call("undrop_namespace", id=["g"])
    with pytest.raises(NamespaceNotFoundError, match="none of that name was dropped with tables"):
        ground.call("undrop_namespace", id=["h"])


def test_a_namespace_comes_back_without_those_that_were_dropped_beside_it(ground: Ground) -> None:
    for path in (["o"], ["o", "a"], ["o", "b"]):
        ground.make_namespace(*path)
    for path in (["o", "a", "t"], ["o", "b", "u"]):
        ground.make_table(*path)
    ground.call("drop_namespace", id=["o"], behavior="Cascade")
    ground.make_namespace("o")
    ground.call("undrop_namespace", id=["o", "a"])
    assert list(ground.catalog.snapshot().child_namespaces(("o",))) == ["a"]
    assert ground.ids(["o", "a", "t"]) == [0, 1, 2]
    ground.call("undrop_namespace", id=["o", "b"])
    assert ground.ids(["o", "b", "u"]) == [0, 1, 2]


def test_one_table_of_a_cascade_comes_back(ground: Ground) -> None:
    ground.make_table(*U)
    ground.call("drop_namespace", id=["g"], behavior="Cascade")
    ground.make_namespace("h")
    ground.call("undrop_table", id=T, new_id=["h", "t"])
    assert ground.ids(["h", "t"]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TableNotFoundError):
        ground.call("undrop_table", id=T, new_id=["h", "again"])
    ground.call("undrop_table", id=U, new_id=["h", "u"])
    assert ground.ids(["h", "u"]) == [0, 1, 2]
    assert not [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]


def test_a_table_whose_files_are_being_removed_does_not_come_back(ground: Ground) -> None:
    ground.call("drop_table", id=T)

    def purge() -> None:
        dead = [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]
        ground.catalog.committer.commit_changes(lambda _: changes_of(replace(each, state=PURGING) for each in dead))

    store = FaultStore(LocalStore(ground.root, "none"))
    claimed: list[str] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("__manifest/data/") and not claimed:
            claimed.append(path)
            purge()

    store.before(meanwhile)
    with pytest.raises(TableNotFoundError, match="its files are being removed"):
        ground.again(store).call("undrop_table", id=T)
    assert claimed
    with pytest.raises(TableNotFoundError, match="none of that name was dropped"):
        ground.call("undrop_table", id=T)


def test_what_was_committed_since_another_return_is_not_lost(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undrop is held, while the table comes back, is written to, and is dropped again."""
    ground.call("drop_table", id=T)
    held = ground.again()
    verify, done = held.catalog.verifier.verify, []

    def then_use(*given: Any) -> Any:
        found = verify(*given)
        if not done:
            done.append(True)
            ground.call("undrop_table", id=T)
            ground.write(T, rows(6, 7))
            ground.call("drop_table", id=T)
        return found

    monkeypatch.setattr(held.catalog.verifier, "verify", then_use)
    with pytest.raises(TableNotFoundError, match="it came back already"):
        held.call("undrop_table", id=T)
    ground.call("undrop_table", id=T)
    assert ground.ids(T) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("what", ["table", "namespace"])
def test_the_last_drop_is_told_by_the_catalog_and_by_no_clock(ground: Ground, what: str) -> None:
    """The servers of the first ones had clocks that were ahead."""
    drop: dict[str, Any] = {"id": T} if what == "table" else {"id": ["g"], "behavior": "Cascade"}
    for _ in range(4):
        ground.call(f"drop_{what}", **drop)
        if what == "namespace":
            ground.make_namespace("g")
        ground.make_table(*T)
    ahead = [replace(each, timestamp_ms=each.timestamp_ms + 86_400_000) for each in ground.catalog.snapshot().records()]
    ground.catalog.committer.commit_changes(lambda _: changes_of([each for each in ahead if each.state == "dropped"]))
    ground.call("drop_table", id=T)
    ground.make_table(*T, count=2)
    ground.call(f"drop_{what}", **drop)
    ground.call(f"undrop_{what}", id=drop["id"])
    assert ground.ids(T) == [0, 1]


def test_a_namespace_whose_files_are_being_removed_does_not_come_back(ground: Ground) -> None:
    ground.call("drop_namespace", id=["g"], behavior="Cascade")
    [tombstone] = [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]
    ground.catalog.committer.commit_changes(lambda _: changes_of([replace(tombstone, state=PURGING)]))
    with pytest.raises(NamespaceNotFoundError, match="or their files are gone"):
        ground.call("undrop_namespace", id=["g"])


def test_a_table_does_not_come_back_where_another_one_lives(ground: Ground) -> None:
    """A release that knows no tombstones has taken the location."""
    location = ground.location(T)
    ground.call("drop_table", id=T)
    ground.catalog.committer.commit_changes(lambda _: changes_of([TableEntry(tuple(U), location)]))
    with pytest.raises(InvalidInputError, match=r"belongs to table g\$u"):
        ground.call("undrop_table", id=T)


def test_two_processes_bring_one_table_back_once(ground: Ground) -> None:
    ground.call("drop_table", id=T)
    answers: list[object] = []

    def undrop(name: str) -> None:
        try:
            answers.append(ground.again().call("undrop_table", id=T, new_id=["g", name]))
        except LanceNamespaceError as error:
            answers.append(error)

    threads = [threading.Thread(target=undrop, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, dict) for answer in answers) == 1
    assert len(ground.catalog.snapshot().child_tables(("g",))) == 1


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ANSWER])
def test_at_each_write_it_comes_back_as_a_whole_or_not_at_all(ground: Ground, fault: Fault) -> None:
    before = described(ground, T)
    for number in range(20):
        ground.call("drop_table", id=T)
        store = FaultStore(LocalStore(ground.root, "none"))
        store.fail(fault, nth=number)
        try:
            ground.again(store).call("undrop_table", id=T)
        except (Crashed, ServiceUnavailableError, BatchUnknown):
            pass
        else:
            if store.writes and not any(write.number == number for write in store.writes):
                break
        if ground.catalog.snapshot().table(tuple(T)) is None:
            ground.call("undrop_table", id=T)
        assert described(ground.again(), T) == before
    assert 2 <= number < 19


@pytest.mark.parametrize("change", ["rows", "properties"])
def test_what_was_acknowledged_before_the_drop_comes_back(ground: Ground, change: str) -> None:
    """A change and a drop meet in one group: the drop waits for the flip of the change."""
    ground.make_table(*U)
    set_properties = {"set_table_properties": {"id": T, "properties": {"team": "a"}}}
    operation = ground.transaction(T, rows(6, 9)) if change == "rows" else set_properties
    first = ground.namespace.prepare("batch_commit_tables", {"operations": [operation]}).batch
    drop = ground.namespace.prepare("drop_namespace", {"id": ["g"], "behavior": "Cascade"}).batch
    ground.catalog.commit_batches([first, drop])
    ground.call("undrop_namespace", id=["g"])
    found = described(ground, T)
    assert (ground.ids(T), found["properties"]) == (
        (list(range(9)), {}) if change == "rows" else (list(range(6)), {"team": "a"})
    )


@pytest.mark.parametrize(
    ("call", "object_id", "error"),
    [("undrop_table", T, TableNotFoundError), ("undrop_namespace", ["g"], NamespaceNotFoundError)],
)
def test_of_two_undrops_the_second_finds_nothing(
    ground: Ground, call: str, object_id: list[str], error: type[LanceNamespaceError]
) -> None:
    """Whether they meet in one group, or the second comes later."""
    if call == "undrop_table":
        ground.call("drop_table", id=T)
    else:
        ground.call("drop_namespace", id=["g"], behavior="Cascade")
    batches = [ground.namespace.prepare(call, {"id": object_id}).batch for _ in range(2)]
    first, second = ground.catalog.commit_batches(batches)
    assert not isinstance(first.verdict, Exception)
    assert type(second.verdict) is error, second.verdict
    with pytest.raises(error, match="cannot come back"):
        ground.call(call, id=object_id)
    assert ground.ids(T) == [0, 1, 2, 3, 4, 5]


def test_a_batch_may_bring_back_a_table_and_deregister_it(ground: Ground) -> None:
    """Its rows are in no catalog version before the batch, and have their canonical names all the same (P6)."""
    ground.call("drop_table", id=T)
    location = ground.batch({"undrop_table": {"id": T}}, {"deregister_table": {"id": T}})["results"][1]
    with pytest.raises(TableNotFoundError):
        ground.read("describe_table", id=T)
    ground.call("register_table", id=T, location=location["deregister_table"]["location"].rsplit("/", 1)[1])
    assert ground.ids(T) == [0, 1, 2, 3, 4, 5]


def test_a_table_that_a_batch_makes_and_drops_was_never_there(ground: Ground) -> None:
    ground.call("rename_table", id=T, new_table_name="moved")
    with pytest.raises(TableNotFoundError, match="none of that name was dropped"):
        ground.call("undrop_table", id=T)
    assert ground.ids(["g", "moved"]) == [0, 1, 2, 3, 4, 5]


def test_after_a_collection_it_comes_back_from_a_copy(ground: Ground) -> None:
    before = described(ground, T)
    ground.call("drop_table", id=T)
    for number in range(110):
        ground.make_namespace(f"n{number}")
    let_pass(ground)
    collect(ground, {"gc.dropped.window": "30d"})
    assert ground.catalog.snapshot().collector != CollectorEntry()
    ground.again().call("undrop_table", id=T)
    assert described(ground, T) == before


def test_after_its_window_it_does_not_come_back(ground: Ground) -> None:
    ground.call("drop_table", id=T)
    let_pass(ground)
    collect(ground)
    with pytest.raises(TableNotFoundError, match="its files were removed"):
        ground.call("undrop_table", id=T)


def test_a_version_that_was_not_promoted_before_the_drop_comes_back(ground: Ground) -> None:
    """Its record stays open until it is promoted: a collection keeps the staged manifest, which has no other copy."""
    ground.catalog.sweep()
    store = FaultStore(LocalStore(ground.root, "none"))
    versions = f"{ground.location(T)}/_versions/"
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.startswith(versions), times=9)
    other = ground.again(store)
    other.batch(ground.transaction(T, rows(6, 9)))
    other.call("drop_table", id=T)
    ground.catalog.sweep()
    let_pass(ground)
    collect(ground, {"gc.dropped.window": "30d"})
    ground.call("undrop_table", id=T)
    ground.catalog.sweep()
    assert ground.ids(T) == list(range(9))


def test_a_version_whose_name_another_writer_took_before_the_drop_comes_back(ground: Ground) -> None:
    ground.catalog.sweep()
    location = ground.location(T)
    store = FaultStore(LocalStore(ground.root, "none"))
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.startswith(f"{location}/_versions/"), times=9)
    other = ground.again(store)
    other.batch(ground.transaction(T, rows(6, 9)))
    other.call("drop_table", id=T)
    lance.write_dataset(rows(100, 101), str(ground.root / location), mode="append")
    ground.catalog.sweep()
    ground.make_namespace("h")
    assert [record.state for record in ground.catalog.snapshot().open_records()] == ["open"]
    let_pass(ground)
    collect(ground, {"gc.dropped.window": "30d"})
    ground.call("undrop_table", id=T)
    ground.catalog.sweep()
    assert ground.ids(T) == list(range(9))


def test_versions_of_a_dropped_table_are_durable_before_their_record_is_closed(ground: Ground) -> None:
    canonical = f"{ground.location(T)}/_versions/{manifest_name(3)}"
    ground.batch(ground.transaction(T, rows(6, 9)))
    ground.call("drop_table", id=T)
    store = FaultStore(LocalStore(ground.root, "fsync"))
    other = ground.again(store)
    other.catalog.sweep()
    other.make_namespace("h")
    assert not other.catalog.snapshot().open_records()
    flip = next(write for write in store.writes if is_flip(write))
    assert canonical in {path for number, path in store.synced if number <= flip.number}


def test_the_record_of_a_dropped_table_is_closed_once_its_versions_are_promoted(ground: Ground) -> None:
    ground.batch(ground.transaction(T, rows(6, 9)))
    ground.call("drop_table", id=T)
    ground.again().catalog.sweep()
    ground.make_namespace("h")
    last = ground.again()
    last.catalog.sweep()
    last.make_namespace("i")
    assert not list(last.catalog.snapshot().open_records())
    ground.call("undrop_table", id=T)
    assert ground.ids(T) == list(range(9))


def test_a_repeated_request_is_answered_again(ground: Ground) -> None:
    ground.call("drop_table", id=T)
    first = ground.namespace.write("undrop_table", {"id": T}, idempotency_key="k")
    ground.call("drop_table", id=T)
    again = ground.again().namespace.write("undrop_table", {"id": T}, idempotency_key="k")
    assert again.body == first.body
    assert ground.catalog.snapshot().table(tuple(T)) is None


def test_a_batch_does_not_drop_what_it_brings_back(ground: Ground) -> None:
    """No catalog version would have it, so it could not come back once more."""
    ground.call("drop_table", id=T)
    both = [ground.namespace.prepare(name, {"id": T}).batch for name in ("undrop_table", "drop_table")]
    batch = replace(both[0], operations=(*both[0].operations, *both[1].operations))
    [pending] = ground.catalog.commit_batches([batch])
    assert "drop a table that it brings back" in str(pending.verdict)
    ground.call("undrop_table", id=T)
    assert ground.ids(T) == list(range(6))


def test_a_name_is_checked(ground: Ground) -> None:
    ground.call("drop_table", id=T)
    with pytest.raises(InvalidInputError):
        ground.call("undrop_table", id=T, new_id=["g", "a$b"])
