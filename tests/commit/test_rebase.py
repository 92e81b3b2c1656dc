"""Concurrent deletes and updates of different rows of one fragment, by both engines in both orders."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from pyroaring import BitMap

from lance_core.commit.loop import commit_transaction
from lance_core.commit.prepare import History, prepare_commit
from lance_core.errors import IncompatibleTransaction, InvalidTransaction, RetryableTransaction
from lance_core.format.deletion import encode_deletion_file
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.table_files import TableFiles
from lance_core.transaction.operations import Append, Delete, Operation, encode_transaction
from lance_core.transaction.rebase import rebase_deletions
from tests.transaction.tables import Table, delete_rows, make_table, merge_rows, rows


@pytest.fixture(params=[False, True], ids=["plain", "stable row ids"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """Ids 0 to 19 in two fragments, id 0 deleted already: version 3."""
    made = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=request.param)
    made.open().delete("id = 0")
    return made


def commit(table: Table, operation: Operation, read_version: int) -> ManifestFile:
    transaction = encode_transaction(operation, read_version=read_version, properties={"by": "us"})
    return commit_transaction(table.store, "t", transaction).file


def check(table: Table, ids: list[int]) -> None:
    table.open().validate()
    assert table.ids() == ids


def test_our_delete_after_a_delete_of_pylance(table: Table) -> None:
    operation = delete_rows(table.open(), "id in (2, 12)")
    table.open().delete("id = 1")
    file = commit(table, operation, 3)
    check(table, [i for i in range(20) if i not in (0, 1, 2, 12)])
    assert file.transaction is not None
    assert file.transaction.read_version == 4
    assert file.manifest.transaction_file.startswith("4-")
    deletions = [fragment.deletion_file for fragment in file.manifest.fragments]
    assert [(entry.read_version, entry.num_deleted_rows) for entry in deletions] == [(4, 3), (3, 1)]
    assert list(file.transaction.delete.updated_fragments) == list(file.manifest.fragments)
    assert (table.path / "_transactions" / file.manifest.transaction_file).read_bytes() == (
        file.transaction.SerializeToString(deterministic=True)
    )


def test_a_delete_of_pylance_after_our_delete(table: Table) -> None:
    stale = table.open()
    commit(table, delete_rows(table.open(), "id = 1"), 3)
    stale.delete("id = 2")
    check(table, list(range(3, 20)))


def test_our_update_after_a_delete_of_pylance(table: Table) -> None:
    operation = merge_rows(table.open(), rows(3, 5))
    table.open().delete("id in (1, 2)")
    commit(table, operation, 3)
    check(table, list(range(3, 20)))


def test_an_update_of_pylance_after_our_delete(table: Table) -> None:
    stale = table.open()
    commit(table, delete_rows(table.open(), "id = 1"), 3)
    stale.update({"x": "70"}, where="id = 2")
    check(table, list(range(2, 20)))
    assert table.open().to_table(filter="x = 70", columns=["id"]).column(0).to_pylist() == [2]


def test_our_delete_after_two_deletes_and_an_append_of_pylance(table: Table) -> None:
    operation = delete_rows(table.open(), "id in (4, 14)")
    table.open().delete("id = 1")
    table.open().update({"x": "70"}, where="id in (2, 12)")
    lance.write_dataset(rows(20, 22), table.uri, mode="append")
    commit(table, operation, 3)
    check(table, [i for i in range(22) if i not in (0, 1, 4, 14)])


def test_a_delete_without_a_concurrent_delete_keeps_its_read_version(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 12")
    table.open().delete("id = 1")
    file = commit(table, operation, 3)
    assert file.transaction is not None
    assert file.transaction.read_version == 3
    assert file.manifest.fragments[1].deletion_file == operation.updated[0].deletion_file
    check(table, [i for i in range(2, 20) if i != 12])


def test_an_append_keeps_its_read_version(table: Table) -> None:
    operation = Append(table.stage(rows(20, 22)))
    table.open().delete("id = 1")
    file = commit(table, operation, 3)
    assert file.transaction is not None
    assert file.transaction.read_version == 3
    check(table, list(range(2, 22)))


def test_merged_deletions_of_all_rows_remove_the_fragment(table: Table) -> None:
    operation = delete_rows(table.open(), "id in (5, 6, 7, 8, 9)")
    table.open().delete("id in (1, 2, 3, 4)")
    file = commit(table, operation, 3)
    assert file.transaction is not None
    assert [fragment.id for fragment in file.manifest.fragments] == [1]
    assert list(file.transaction.delete.deleted_fragment_ids) == [0]
    check(table, list(range(10, 20)))


def test_a_delete_conflicts_with_a_delete_of_the_same_rows(table: Table) -> None:
    operation = delete_rows(table.open(), "id in (4, 5)")
    table.open().delete("id in (1, 5)")
    with pytest.raises(RetryableTransaction, match="conflict with version 4: it changed row 5 of fragment 0 as well"):
        commit(table, operation, 3)
    check(table, [i for i in range(2, 20) if i != 5])


def test_rows_deleted_before_the_read_version_do_not_conflict(table: Table) -> None:
    """Both deletion files hold row 0, which neither of the two deleted."""
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 5")
    commit(table, operation, 3)
    check(table, [i for i in range(1, 20) if i not in (4, 5)])


def test_large_deletions_become_bitmaps(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 20_000))
    operation = delete_rows(table.open(), "id < 4000")
    table.open().delete("id >= 10000")
    file = commit(table, operation, 1)
    assert file.manifest.fragments[0].deletion_file.file_type == pb.DeletionFile.BITMAP
    check(table, list(range(4000, 10_000)))


def test_deletion_files_of_the_parent_are_merged_on_a_branch(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().delete("id = 0")
    table.open().create_branch("dev")
    branch = table.branch("dev")
    read_version = branch.open().version
    operation = delete_rows(branch.open(), "id = 1")
    branch.open().delete("id = 2")
    transaction = encode_transaction(operation, read_version=read_version)
    file = commit_transaction(table.store, "t", transaction, branch="dev").file
    assert not file.manifest.fragments[0].deletion_file.HasField("base_id")
    branch.open().validate()
    assert branch.ids() == list(range(3, 10))
    assert table.ids() == list(range(1, 10))


def test_a_version_that_was_cleaned_up_cannot_be_judged(table: Table) -> None:
    """Rule P8: every version committed since the read version must be readable."""
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    table.open().delete("id = 2")
    next((table.path / "_versions").glob("18446744073709551611.manifest")).unlink()
    with pytest.raises(
        RetryableTransaction, match="version 4: it was committed concurrently, and can no longer be read"
    ):
        commit(table, operation, 3)


def test_without_the_read_version_the_changed_rows_are_unknown(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    next((table.path / "_versions").glob("18446744073709551612.manifest")).unlink()
    with pytest.raises(RetryableTransaction, match="the changed rows are unknown"):
        commit(table, operation, 3)
    check(table, list(range(2, 20)))


def test_the_read_version_may_be_given(table: Table) -> None:
    """A catalog has it at hand where its canonical name has not been given yet."""
    operation = delete_rows(table.open(), "id = 4")
    read = table.head()
    table.open().delete("id = 1")
    next((table.path / "_versions").glob("18446744073709551612.manifest")).unlink()
    head = table.head()
    transaction = encode_transaction(operation, read_version=3)
    history = History(head, [head], {3: read}.__getitem__)
    prepared = prepare_commit(transaction, history, TableFiles(table.store, "t"), now_ns=1)
    assert prepared.rebased
    assert prepared.parent == head.identity
    assert prepared.file.manifest.fragments[0].deletion_file.num_deleted_rows == 3
    assert [key.split("/")[1] for key, _ in prepared.files] == ["_transactions", "_deletions"]


def test_a_transaction_without_its_deletion_file_is_invalid(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open().delete("id = 1")
    message = operation.updated[0].deletion_file
    (table.path / "_deletions" / f"0-{message.read_version}-{message.id}.arrow").unlink()
    with pytest.raises(InvalidTransaction, match="deletion file of fragment 0"):
        commit(table, operation, 3)


def test_a_removal_of_a_fragment_conflicts_with_a_delete_in_it(table: Table) -> None:
    operation = delete_rows(table.open(), "id < 10")
    assert operation.removed_ids == (0,)
    table.open().delete("id = 1")
    with pytest.raises(RetryableTransaction, match="it changed rows of fragment 0, which this transaction removes"):
        commit(table, operation, 3)


def test_a_delete_after_a_restore_is_incompatible(table: Table) -> None:
    operation = delete_rows(table.open(), "id = 4")
    table.open(1).restore()
    with pytest.raises(IncompatibleTransaction, match="it replaced the table"):
        commit(table, operation, 3)


def test_a_rebased_update_is_based_on_the_fragment_of_the_head() -> None:
    """Whatever else happened to the fragment stays: only the deletion file is ours."""
    head = pb.Manifest(version=7)
    current = head.fragments.add(id=0, physical_rows=4)
    current.files.add(path="kept.lance", fields=[0])
    message, _ = encode_deletion_file(BitMap([1]), read_version=3)
    updated = pb.DataFragment(id=0, physical_rows=4, deletion_file=message)
    updated.files.add(path="kept.lance", fields=[0])
    updated.files.add(path="of a dropped column.lance", fields=[1])
    rebased = rebase_deletions(Delete((updated,)), head, {}, {})
    assert rebased.files == ()
    assert [file.path for file in rebased.operation.updated[0].files] == ["kept.lance"]
    assert rebased.operation.updated[0].deletion_file == message
    merged = rebase_deletions(Delete((updated,)), head, {0: BitMap([1])}, {0: BitMap([2])})
    (file,) = merged.files
    assert merged.operation.updated == (file.fragment,)
    deletions = file.fragment.deletion_file
    assert deletions.id != message.id
    assert (deletions.read_version, deletions.num_deleted_rows) == (7, 2)
