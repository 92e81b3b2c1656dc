"""The commit loop: durability, lost answers, crashes and races."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.errors import (
    InvalidTransaction,
    ReferenceNotFound,
    RetryableTransaction,
    TransactionUnknown,
    UnsupportedFeature,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.transaction.operations import Append, MapUpdate, UpdateConfig, encode_transaction
from tests.storage.faults import Crashed, Fault, FaultStore, Write
from tests.transaction.tables import Table, delete_rows, make_table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


@pytest.fixture
def store(table: Table) -> FaultStore:
    return FaultStore(table.store)


def append(table: Table, start: int = 20, read_version: int = 2) -> pb.Transaction:
    return encode_transaction(Append(table.stage(rows(start, start + 2))), read_version=read_version)


def is_manifest(write: Write) -> bool:
    return "/_versions/" in write.path


def test_all_files_are_durable_before_the_manifest(table: Table, store: FaultStore) -> None:
    """S1: the data file that pylance wrote, the deletion files, the transaction file; then the slot."""
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    committed = commit_transaction(store, "t", encode_transaction(operation, read_version=2))
    transaction = committed.file.transaction
    assert transaction is not None
    message = transaction.delete.updated_fragments[0].deletion_file
    assert [write.path for write in store.writes] == [
        f"t/_transactions/3-{transaction.uuid}.txn",
        f"t/_deletions/0-3-{message.id}.bin",
        committed.path,
    ]
    assert {path for _, path in store.synced} == {write.path for write in store.writes[:2]}
    assert {writes for writes, _ in store.synced} == {2}


def test_files_of_other_writers_are_synced(table: Table, store: FaultStore) -> None:
    transaction = append(table)
    commit_transaction(store, "t", transaction)
    (file,) = transaction.append.fragments[0].files
    assert f"t/data/{file.path}" in {path for writes, path in store.synced if writes == 1}


def test_a_transaction_with_a_missing_file_is_refused(table: Table) -> None:
    transaction = append(table)
    transaction.append.fragments[0].files[0].path = "missing.lance"
    with pytest.raises(InvalidTransaction, match=r"names a file that does not exist: .*missing\.lance"):
        commit_transaction(LocalStore(table.root, "fsync"), "t", transaction)
    assert table.open().version == 2


def test_a_lost_answer_is_resolved_by_reading_the_slot(table: Table, store: FaultStore) -> None:
    store.fail(Fault.LOST_ANSWER, when=is_manifest)
    assert commit_transaction(store, "t", append(table)).version == 3
    assert table.ids() == list(range(22))


def test_unknown_outcomes_are_retried(table: Table, store: FaultStore) -> None:
    store.fail(Fault.LOST_REQUEST, times=2)
    assert commit_transaction(store, "t", append(table)).version == 3
    table.open().validate()
    assert table.ids() == list(range(22))
    assert len(list((table.path / "_transactions").iterdir())) == 3


def test_without_an_answer_the_outcome_is_unknown(
    table: Table, store: FaultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: never a conflict, and nothing is cleaned up; the delayed write may land and must find its files."""
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)
    store.fail(Fault.DELAYED, when=is_manifest, times=99)
    transaction = append(table)
    with pytest.raises(TransactionUnknown, match=f"transaction {transaction.uuid} at version 3"):
        commit_transaction(store, "t", transaction)
    assert table.open().version == 2
    store.deliver()
    table.open().validate()
    assert table.ids() == list(range(22))
    assert commit_transaction(table.store, "t", transaction).version == 3
    assert table.open().version == 3


def test_a_call_may_be_repeated(table: Table) -> None:
    transaction = append(table)
    first = commit_transaction(table.store, "t", transaction)
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    again = commit_transaction(table.store, "t", transaction)
    assert (again.version, again.path) == (first.version, first.path)
    assert again.file.identity == first.file.identity
    assert table.ids() == [*range(22), 30]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_crash_at_any_write_is_all_or_nothing(table: Table, fault: Fault, number: int) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    transaction = encode_transaction(operation, read_version=2)
    dying = FaultStore(table.store)
    dying.fail(fault, nth=number)
    with pytest.raises(Crashed):
        commit_transaction(dying, "t", transaction)
    done = number == 2 and fault is Fault.CRASH_AFTER
    assert table.open().version == (4 if done else 3)
    assert (4 in table.ids()) is not done
    lance.write_dataset(rows(20, 22), table.uri, mode="append").validate()
    commit_transaction(table.store, "t", transaction)
    table.open().validate()
    assert table.ids() == [i for i in range(22) if i not in (1, 4)]
    assert table.open().version == 5


def test_a_lost_race_is_retried_on_the_new_head(table: Table, store: FaultStore) -> None:
    races = [30, 40]

    def race(verb: str, _path: str) -> None:
        if verb == "put_if_absent" and races:
            lance.write_dataset(rows(races[-1], races.pop() + 1), table.uri, mode="append")

    store.before(race)
    committed = commit_transaction(store, "t", append(table))
    assert (committed.version, committed.rebased) == (5, True)
    table.open().validate()
    assert table.ids() == [*range(22), 30, 40]


def test_every_attempt_records_its_own_row_versions(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), stable_row_ids=True)
    store = FaultStore(table.store)
    races = [30]

    def race(verb: str, _path: str) -> None:
        if verb == "put_if_absent" and races:
            lance.write_dataset(rows(races[-1], races.pop() + 2), table.uri, mode="append")

    store.before(race)
    commit_transaction(store, "t", append(table, read_version=1))
    columns = ["id", "_rowid", "_row_created_at_version"]
    found = {
        row["id"]: (row["_rowid"], row["_row_created_at_version"])
        for row in table.open().to_table(columns=columns).to_pylist()
    }
    assert (found[30], found[31], found[20], found[21]) == ((10, 2), (11, 2), (12, 3), (13, 3))


def test_a_conflict_that_appears_during_the_race(table: Table, store: FaultStore) -> None:
    store.before(lambda verb, _path: table.open().delete("id = 4") if verb == "put_if_absent" else None)
    transaction = encode_transaction(delete_rows(table.open(), "id = 4"), read_version=2)
    with pytest.raises(RetryableTransaction, match="conflict with version 3: it changed row 4 of fragment 0 as well"):
        commit_transaction(store, "t", transaction)


def test_retries_are_limited(table: Table, store: FaultStore) -> None:
    def race(verb: str, _path: str) -> None:
        if verb == "put_if_absent":
            lance.write_dataset(rows(30, 31), table.uri, mode="append")

    store.before(race)
    with pytest.raises(RetryableTransaction, match="another writer committed first, 3 times") as caught:
        commit_transaction(store, "t", append(table), max_retries=2)
    assert caught.value.version == 5
    assert table.open().version == 5


def test_an_uncontended_commit_needs_few_requests(table: Table) -> None:
    """List, read the head, write the transaction file, claim the slot, see that nothing newer is there (G7)."""
    counting = CountingStore(table.store)
    counting.local = False  # as a bucket
    commit_transaction(counting, "t", append(table))
    assert counting.cost.by_verb == {"list": 2, "get": 1, "put": 1, "put_if_absent": 1}
    assert counting.cost.round_trips == 5


def test_timestamps_increase_despite_a_slow_clock(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 5)
    before = table.head()
    committed = commit_transaction(table.store, "t", append(table))
    assert committed.file.timestamp_ns == before.timestamp_ns + 1


REFUSED: dict[str, tuple[Callable[[pb.Transaction], object], type[Exception], str]] = {
    "a version to come": (lambda t: setattr(t, "read_version", 9), InvalidTransaction, "expected at most the head, 2"),
    "no uuid": (lambda t: setattr(t, "uuid", ""), InvalidTransaction, "transaction uuid ''"),
    "a uuid that is a path": (lambda t: setattr(t, "uuid", "../../x"), InvalidTransaction, "transaction uuid"),
    "no operation": (lambda t: t.ClearField("append"), InvalidTransaction, "has no known operation"),
    "another operation": (lambda t: t.data_overlay.SetInParent(), UnsupportedFeature, "operation data_overlay"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_transaction_changes_nothing(table: Table, name: str) -> None:
    edit, error, message = REFUSED[name]
    transaction = append(table)
    edit(transaction)
    before = sorted(meta.path for meta in table.store.list(""))
    with pytest.raises(error, match=message):
        commit_transaction(table.store, "t", transaction)
    assert sorted(meta.path for meta in table.store.list("")) == before


def test_a_missing_table_or_branch_is_reported(table: Table) -> None:
    transaction = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
    with pytest.raises(ReferenceNotFound):
        commit_transaction(table.store, "nowhere", transaction)
    transaction.read_version = 0
    with pytest.raises(ReferenceNotFound, match="branch dev"):
        commit_transaction(table.store, "t", transaction, branch="dev")
    with pytest.raises(InvalidTransaction, match="update_config as the first version"):
        commit_transaction(table.store, "nowhere", transaction)


def test_a_transaction_file_replaces_a_missing_inline_transaction(table: Table) -> None:
    """Older writers leave the inline transaction where only they look, or leave it out."""
    from lance_core.format.manifest import encode_manifest_file

    stale = append(table, read_version=2)
    table.open().delete("id = 4")
    path = next(iter(sorted((table.path / "_versions").glob("*.manifest"))))
    file = table.head()
    path.write_bytes(encode_manifest_file(file.manifest, None, file.indices))
    assert commit_transaction(table.store, "t", stale).version == 4
    table.open().validate()


def test_blobs_beside_their_data_file_are_synced(tmp_path: Path) -> None:
    """Their names stand in no manifest and no transaction."""
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    batch = pa.table({"id": [1], "b": lance.blob_array([b"y" * 5_000_000])}, schema=schema)
    table = Table(tmp_path)
    lance.write_dataset(batch, table.uri, data_storage_version="2.2")
    store = FaultStore(table.store)
    fragments = table.stage(batch)
    commit_transaction(store, "t", encode_transaction(Append(fragments), read_version=1))
    written = {str(path.relative_to(tmp_path)) for path in table.path.rglob("*.blob")}
    synced = {path for _, path in store.synced}
    stem = fragments[0].files[0].path.removesuffix(".lance")
    assert {path for path in written if stem in path} <= synced
    assert len(written) == 2
    table.open().validate()
