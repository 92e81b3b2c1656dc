"""A transaction is committed on the version that it was computed on, not on another one of the same number."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.commit.staged import StagedState
from lance_core.commit.uri import commit_transaction
from lance_core.compaction import CompactionOptions
from lance_core.errors import ReferenceNotFound, RetryableTransaction, TransactionUnknown
from lance_core.format.naming import manifest_path
from lance_core.storage.local import LocalStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Delete, MapUpdate, Operation, UpdateConfig, encode_transaction
from tests.compaction import committing
from tests.storage.faults import Fault, FaultStore

REMOVES_A_FRAGMENT = Delete((), (1,), "a >= 10")
SETS_A_KEY = UpdateConfig(MapUpdate({"k": "v"}))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with two rows on main, and the branch `b` with two more."""
    path = tmp_path / "t"
    lance.write_dataset(pa.table({"a": [1, 2]}), path)
    make_branch(path, [10, 11])
    return path


def make_branch(table: Path, values: Sequence[int]) -> None:
    lance.dataset(table).create_branch("b").insert(pa.table({"a": values}))


def replace_branch(table: Path) -> None:
    """The same branch name, with as many versions and fragments, and other rows."""
    Dataset.open(table).branches.delete("b")
    make_branch(table, [20, 21, 22])


def opened(table: Path) -> Dataset:
    return Dataset.open(table, ("b", None))


def rows(table: Path) -> list[int]:
    dataset = opened(table).to_pylance()
    dataset.validate()
    return sorted(dataset.to_table()["a"].to_pylist())


@pytest.mark.parametrize("operation", [REMOVES_A_FRAGMENT, SETS_A_KEY])
def test_a_handle_commits_on_its_own_version(table: Path, operation: Operation) -> None:
    handle = opened(table)
    transaction = encode_transaction(operation, read_version=handle.version)
    replace_branch(table)
    with pytest.raises(RetryableTransaction, match="version 2: it is another version than was read"):
        handle.commit(transaction)
    with pytest.raises(RetryableTransaction, match="another version than was read"):
        handle.stage(transaction)
    assert rows(table) == [1, 2, 20, 21, 22]
    assert opened(table).version == 2


def test_a_handle_below_the_head_commits_on_its_own_version(table: Path) -> None:
    handle = opened(table)
    replace_branch(table)
    lance.dataset(f"{table}/tree/b").insert(pa.table({"a": [23]}))
    with pytest.raises(RetryableTransaction, match="another version than was read"):
        handle.commit(encode_transaction(SETS_A_KEY, read_version=2))
    assert opened(table).version == 3


def test_a_version_that_was_cleaned_up_cannot_be_compared(table: Path) -> None:
    handle = opened(table)
    branch = lance.dataset(f"{table}/tree/b")
    branch.insert(pa.table({"a": [12]}))
    (table / "tree" / "b" / manifest_path("", 2)).unlink()
    with pytest.raises(RetryableTransaction, match="version 2: it was read, and can no longer be compared"):
        handle.commit(encode_transaction(SETS_A_KEY, read_version=2))


def test_a_handle_below_the_head_of_its_branch_is_rebased(table: Path) -> None:
    handle = opened(table)
    lance.dataset(f"{table}/tree/b").insert(pa.table({"a": [12]}))
    assert handle.commit(encode_transaction(REMOVES_A_FRAGMENT, read_version=2)).version == 4
    assert rows(table) == [1, 2, 12]


def test_a_hash_may_be_given_with_a_uri(table: Path) -> None:
    known = opened(table).file.identity.sha256
    first = encode_transaction(SETS_A_KEY, read_version=2)
    assert commit_transaction(table, first, branch="b", manifest_sha256=known).version == 3
    assert commit_transaction(table, first, branch="b", manifest_sha256=known).version == 3, "it is committed already"
    second = encode_transaction(SETS_A_KEY, read_version=3)
    with pytest.raises(RetryableTransaction, match=f"expected the manifest with SHA-256 {known}, found"):
        commit_transaction(table, second, branch="b", manifest_sha256=known)


@pytest.mark.parametrize("operation", [REMOVES_A_FRAGMENT, SETS_A_KEY])
def test_a_staged_version_is_published_on_the_version_it_is_built_on(table: Path, operation: Operation) -> None:
    staged = opened(table).stage(encode_transaction(operation, read_version=2))
    replace_branch(table)
    with pytest.raises(RetryableTransaction, match="another version than was read"):
        staged.publish()
    assert staged.state is StagedState.STAGED
    staged.discard()
    assert rows(table) == [1, 2, 20, 21, 22]
    assert opened(table).version == 2


def test_a_staged_version_is_not_published_where_there_is_no_branch(table: Path) -> None:
    staged = opened(table).stage(encode_transaction(SETS_A_KEY, read_version=2))
    Dataset.open(table).branches.delete("b")
    with pytest.raises(RetryableTransaction, match="found none"):
        staged.publish()
    assert not (table / "tree" / "b").exists()


def test_publishing_after_an_unknown_outcome(table: Path) -> None:
    """It may be published: the version that it is built on may have been cleaned up, and never says no."""
    store = FaultStore(LocalStore(table.parent, "none"))
    staged = Dataset.open(store, ("b", None), location="t").stage(encode_transaction(SETS_A_KEY, read_version=2))
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path == staged.target, times=1000)
    with pytest.raises(TransactionUnknown):
        staged.publish()
    assert staged.state is StagedState.UNKNOWN
    replace_branch(table)
    with pytest.raises(TransactionUnknown, match="another version than was read"):
        staged.publish()
    assert rows(table) == [1, 2, 20, 21, 22]


def test_a_compaction_is_committed_on_what_it_compacted(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = committing.prepare_compaction

    def prepared_late(*args: object, **options: object) -> object:
        found = prepare(*args, **options)  # type: ignore[arg-type]
        replace_branch(table)
        return found

    monkeypatch.setattr(committing, "prepare_compaction", prepared_late)
    with pytest.raises(RetryableTransaction, match="another version than was read"):
        committing.compact_table(LocalStore(table.parent, "none"), "t", CompactionOptions(), branch="b")
    assert rows(table) == [1, 2, 20, 21, 22]


def test_a_handle_is_opened_in_pylance_at_its_own_version(table: Path) -> None:
    handle = opened(table)
    assert handle.to_pylance().count_rows() == 4
    shutil.rmtree(table)
    lance.write_dataset(pa.table({"a": [1, 2]}), table)
    make_branch(table, [20])
    with pytest.raises(ReferenceNotFound, match="version 2 was replaced by another one"):
        handle.to_pylance()
