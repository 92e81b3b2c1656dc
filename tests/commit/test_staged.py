"""Staged commits: stage, inspect, publish or discard."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.commit.staged import StagedCommit, StagedState, stage_commit
from lance_core.data import schema_fields
from lance_core.errors import InvalidTransaction, RetryableTransaction, TransactionUnknown
from lance_core.storage.port import ObjectStore
from lance_core.transaction.operations import Append, Operation, Overwrite, encode_transaction
from tests.storage.faults import Fault, FaultStore
from tests.transaction.tables import SCHEMA, Table, delete_rows, make_table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


def stage(table: Table, operation: Operation, read_version: int = 2, store: ObjectStore | None = None) -> StagedCommit:
    return stage_commit(store or table.store, "t", encode_transaction(operation, read_version=read_version))


def files(table: Table) -> set[str]:
    return {meta.path for meta in table.store.list("")}


def test_a_staged_version_can_be_read_and_does_not_change_the_head(table: Table) -> None:
    staged = stage(table, delete_rows(table.open(), "id in (1, 11)"))
    assert staged.version == 3
    assert staged.path.startswith("_staging/")
    dataset = staged.open()
    assert dataset.version == 3
    assert dataset.count_rows() == 18
    assert dataset.to_table(filter="id < 3", columns=["id"]).column(0).to_pylist() == [0, 2]
    assert table.open().version == 2
    assert table.ids() == list(range(20))


def test_publishing_gives_a_version_its_canonical_name(table: Table) -> None:
    staged = stage(table, Append(table.stage(rows(20, 22))))
    committed = staged.publish()
    assert committed.version == 3
    assert committed.file == staged.file
    assert committed.path == staged.target
    assert staged.state is StagedState.PUBLISHED
    assert not any(path.startswith("_staging") for path in files(table))
    dataset = table.open()
    dataset.validate()
    assert type(dataset.read_transaction(3).operation).__name__ == "Append"
    assert table.ids() == list(range(22))
    lance.write_dataset(rows(22, 23), dataset, mode="append").validate()


def test_publishing_is_idempotent(table: Table) -> None:
    staged = stage(table, Append(table.stage(rows(20, 22))))
    first = staged.publish()
    again = staged.publish()
    assert (again.version, again.path) == (first.version, first.path)
    assert table.open().version == 3


def test_discarding_removes_all_but_the_data_files(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    before = files(table)
    staged = stage(table, operation)
    assert staged.rebased
    assert len(files(table) - before) == 2  # the manifest and the merged deletion file
    staged.discard()
    assert files(table) == before
    with pytest.raises(InvalidTransaction, match="and discarded"):
        staged.publish()
    assert table.open().version == 3


def test_a_published_version_cannot_be_discarded(table: Table) -> None:
    staged = stage(table, Append(table.stage(rows(20, 22))))
    staged.publish()
    with pytest.raises(InvalidTransaction, match="is published"):
        staged.discard()
    assert table.ids() == list(range(22))


def test_a_version_must_be_staged_again_if_the_head_moved(table: Table) -> None:
    operation = Append(table.stage(rows(20, 22)))
    staged = stage(table, operation)
    lance.write_dataset(rows(30, 31), table.uri, mode="append")
    with pytest.raises(
        RetryableTransaction, match="a newer version was committed since version 3 was staged on 2"
    ) as caught:
        staged.publish()
    assert caught.value.version == 3
    staged.discard()
    assert table.open().version == 3
    again = stage(table, operation)
    assert again.rebased
    assert again.publish().version == 4
    assert table.ids() == [*range(22), 30]


def test_staging_rebases_over_concurrent_commits(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    staged = stage(table, operation)
    assert staged.open().count_rows() == 18
    with pytest.raises(RetryableTransaction, match="row 4 of fragment 0 as well"):
        stage(table, delete_rows(table.open(2), "id = 4"), staged.publish().version - 2)


def test_two_staged_versions_are_independent_until_one_is_published(table: Table) -> None:
    one = stage(table, Append(table.stage(rows(20, 22))))
    two = stage(table, Append(table.stage(rows(30, 32))))
    assert one.path != two.path
    assert (one.open().count_rows(), two.open().count_rows()) == (22, 22)
    two.publish()
    with pytest.raises(RetryableTransaction):
        one.publish()
    assert table.ids() == [*range(20), 30, 31]


def test_the_cleanup_of_pylance_keeps_staged_versions(table: Table) -> None:
    table.store.put("other/x", b"")  # the store holds more than this table
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    staged = stage(table, operation)
    inside = stage_commit(
        type(table.store)(table.path, "none"), "", encode_transaction(Append(table.stage(rows(20, 22))), read_version=3)
    )
    stats = table.open().cleanup_old_versions(older_than=timedelta(0))
    assert stats.old_versions == 2
    assert inside.path.startswith("_staging/")
    assert staged.open().count_rows() == 18
    assert inside.open().count_rows() == 21
    assert staged.publish().version == 4
    table.open().validate()


def test_the_first_version_of_a_table(tmp_path: Path) -> None:
    table = Table(tmp_path)
    operation = Overwrite(table.stage(rows(0, 3), "create"), tuple(schema_fields(SCHEMA)))
    staged = stage(table, operation, 0)
    assert staged.open().count_rows() == 3
    with pytest.raises(ValueError, match="not found"):
        table.open()
    staged.publish()
    table.open().validate()
    assert table.ids() == [0, 1, 2]


def test_a_branch(table: Table) -> None:
    table.open().create_branch("dev")
    branch = table.branch("dev")
    transaction = encode_transaction(Append(branch.stage(rows(20, 22))), read_version=branch.open().version)
    staged = stage_commit(table.store, "t", transaction, branch="dev")
    assert staged.open().count_rows() == 22
    assert staged.publish().path.startswith("t/tree/dev/_versions/")
    assert branch.ids() == list(range(22))
    assert table.ids() == list(range(20))


def test_a_committed_transaction_cannot_be_staged(table: Table) -> None:
    transaction = encode_transaction(Append(table.stage(rows(20, 22))), read_version=2)
    commit_transaction(table.store, "t", transaction)
    with pytest.raises(InvalidTransaction, match="is committed already, as version 3"):
        stage_commit(table.store, "t", transaction)


def test_a_lost_answer_while_publishing_is_resolved(table: Table) -> None:
    store = FaultStore(table.store)
    staged = stage(table, Append(table.stage(rows(20, 22))), store=store)
    store.fail(Fault.LOST_ANSWER, when=lambda write: write.path == staged.target)
    assert staged.publish().version == 3
    assert table.ids() == list(range(22))


def test_after_an_unknown_outcome_only_publishing_may_be_repeated(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)
    store = FaultStore(table.store)
    staged = stage(table, Append(table.stage(rows(20, 22))), store=store)
    store.fail(Fault.DELAYED, when=lambda write: write.path == staged.target, times=99)
    with pytest.raises(TransactionUnknown, match="staged version 3"):
        staged.publish()
    with pytest.raises(InvalidTransaction, match="is unknown"):
        staged.discard()
    assert staged.path in files(table)
    store.deliver()
    assert table.open().version == 3
    assert staged.publish().version == 3
    assert staged.path not in files(table)
