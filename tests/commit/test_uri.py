"""`commit_transaction` by URI, with a transaction as a message or as bytes."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

import lance_core
from lance_core.errors import (
    IncompatibleTransaction,
    InvalidTransaction,
    ReferenceNotFound,
    RetryableTransaction,
    TransactionUnknown,
)
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Append, MapUpdate, Restore, UpdateConfig, encode_transaction
from tests.storage.faults import Fault, FaultStore
from tests.transaction.tables import Table, delete_rows, make_table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


def test_a_message_is_committed_on_the_head_and_rebased(table: Table) -> None:
    deletion = encode_transaction(delete_rows(table.open(), "id = 3"), read_version=2)
    append = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    first = lance_core.commit_transaction(table.uri, append)
    assert (first.version, first.rebased) == (3, False)
    table.open().delete("id = 4")
    second = lance_core.commit_transaction(table.path, deletion.SerializeToString())
    assert (second.version, second.rebased) == (5, True)
    table.open().validate()
    assert table.ids() == [i for i in range(22) if i not in (3, 4)]


def test_the_same_transaction_returns_the_same_version(table: Table) -> None:
    message = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
    assert lance_core.commit_transaction(f"file://{table.path}", message).version == 3
    table.open().update_config({"k": "w"})
    assert lance_core.commit_transaction(table.uri, message.SerializeToString()).version == 3
    assert table.open().config() == {"k": "w"}


def test_a_conflict_has_a_version_and_a_reason(table: Table) -> None:
    deletion = encode_transaction(delete_rows(table.open(), "id = 3"), read_version=2)
    table.open().update_config({"k": "v"})
    table.open().delete("id = 3")
    with pytest.raises(RetryableTransaction, match="row 3 of fragment 0") as retryable:
        lance_core.commit_transaction(table.uri, deletion)
    assert retryable.value.version == 4
    lance_core.commit_transaction(table.uri, encode_transaction(Restore(1), read_version=4))
    with pytest.raises(IncompatibleTransaction, match="replaced the table") as incompatible:
        lance_core.commit_transaction(table.uri, encode_transaction(Append(table.stage(rows(0, 1))), read_version=4))
    assert incompatible.value.version == 5


def test_a_branch(table: Table) -> None:
    table.open().create_branch("dev")
    message = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
    assert lance_core.commit_transaction(table.uri, message, branch="dev").version == 3
    assert lance.dataset(table.uri).version == 2
    assert table.branch("dev").open().config() == {"k": "v"}
    with pytest.raises(ReferenceNotFound):
        lance_core.commit_transaction(table.uri, message, branch="other")


def test_bytes_that_are_not_a_transaction_are_refused(table: Table) -> None:
    with pytest.raises(InvalidTransaction, match="3 bytes are not a transaction"):
        lance_core.commit_transaction(table.uri, b"\xff\xff\xff")
    with pytest.raises(ReferenceNotFound):
        lance_core.commit_transaction(
            table.root / "nowhere", encode_transaction(UpdateConfig(), read_version=1).SerializeToString()
        )


def test_the_outcome_may_be_unknown(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the decisive write is lost, and so is every one after it."""
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)
    store = FaultStore(LocalStore(table.path, "none"))
    store.fail(Fault.LOST_REQUEST, when=lambda write: "_versions/" in write.path, times=100)
    monkeypatch.setattr("lance_core.commit.uri.open_store", lambda *_: store)
    with pytest.raises(TransactionUnknown, match="at version 3"):
        lance_core.commit_transaction(
            table.uri, encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
        )
    assert table.open().version == 2
