"""A writer is suspended before it claims its slot, and a clean-up makes the number vacant (rule G7)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.commit.staged import stage_commit
from lance_core.errors import RetryableTransaction, TransactionUnknown
from lance_core.format.naming import manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from tests.staged_fragments import stage_fragments
from tests.storage.faults import FaultStore


def append(uri: str, value: int) -> pb.Transaction:
    transaction = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    transaction.append.fragments.extend(stage_fragments(pa.table({"v": [value]}), uri, mode="append"))
    return transaction


@pytest.fixture(params=[True, False], ids=["directory", "bucket"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> FaultStore:
    lance.write_dataset(pa.table({"v": [0]}), str(tmp_path / "t"))
    store = FaultStore(LocalStore(tmp_path, "none"))
    store.local = request.param
    return store


def hold(store: FaultStore, path: str, work: Callable[[], None]) -> None:
    def arrive(verb: str, key: str) -> None:
        if verb == "put_if_absent" and key == path:
            go_on()
            work()

    go_on = store.before(arrive)


def others(root: Path, *, tags: tuple[int, ...] = ()) -> None:
    """Three commits and stock pylance's clean-up of all that is superseded."""
    for value in (1, 2, 3):
        dataset = lance.write_dataset(pa.table({"v": [value]}), str(root / "t"), mode="append")
        if dataset.version in tags:
            dataset.tags.create(f"v{dataset.version}", dataset.version)
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


def values(root: Path) -> list[int]:
    return sorted(lance.dataset(str(root / "t")).to_table()["v"].to_pylist())


def test_a_commit_below_a_version_that_was_not_built_on_it_is_unknown(held: FaultStore, tmp_path: Path) -> None:
    hold(held, manifest_path("t", 2), lambda: others(tmp_path, tags=(3,)))

    with pytest.raises(TransactionUnknown, match="version 3 was not built on it"):
        commit_transaction(held, "t", append(str(tmp_path / "t"), 100))

    assert values(tmp_path) == [0, 1, 2, 3]


def test_a_head_kept_by_a_tag_does_not_confirm_a_commit(held: FaultStore, tmp_path: Path) -> None:
    lance.dataset(str(tmp_path / "t")).tags.create("one", 1)
    hold(held, manifest_path("t", 2), lambda: others(tmp_path))

    with pytest.raises(TransactionUnknown, match="the newest version is 4"):
        commit_transaction(held, "t", append(str(tmp_path / "t"), 100))


def test_a_commit_below_removed_versions_is_unknown(held: FaultStore, tmp_path: Path) -> None:
    hold(held, manifest_path("t", 2), lambda: others(tmp_path))

    with pytest.raises(TransactionUnknown, match="the newest version is 4"):
        commit_transaction(held, "t", append(str(tmp_path / "t"), 100))


def test_a_commit_that_another_version_was_built_on_is_confirmed(held: FaultStore, tmp_path: Path) -> None:
    def build_on(verb: str, key: str) -> None:
        if held.inner.find(manifest_path("t", 2)) is not None:
            go_on()
            lance.write_dataset(pa.table({"v": [1]}), str(tmp_path / "t"), mode="append")

    go_on = held.before(build_on)
    assert commit_transaction(held, "t", append(str(tmp_path / "t"), 100)).version == 2
    assert values(tmp_path) == [0, 1, 100]


def test_a_staged_version_that_is_published_below_the_newest_is_unknown(held: FaultStore, tmp_path: Path) -> None:
    staged = stage_commit(held, "t", append(str(tmp_path / "t"), 100))
    hold(held, staged.target, lambda: others(tmp_path, tags=(3,)))

    with pytest.raises(TransactionUnknown):
        staged.publish()

    assert values(tmp_path) == [0, 1, 2, 3]


def test_a_staged_version_whose_base_was_removed_before_is_not_written(held: FaultStore, tmp_path: Path) -> None:
    staged = stage_commit(held, "t", append(str(tmp_path / "t"), 100))
    others(tmp_path, tags=(3,))

    with pytest.raises(RetryableTransaction, match=r"version 1: it is another version than was read: .* found none"):
        staged.publish()
    assert held.inner.find(staged.target) is None

    assert values(tmp_path) == [0, 1, 2, 3]
