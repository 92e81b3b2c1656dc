"""Commits under a lock given by the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lance_core
from lance_core.commit.handlers import CommitLock, ConditionalPut
from lance_core.commit.loop import commit_transaction
from lance_core.errors import AlreadyExists, CommitLockError, StorageError, StorageUnknown
from lance_core.format.naming import manifest_path
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from tests.commit.handlers.locks import VersionLocks
from tests.storage.faults import Fault, FaultStore
from tests.storage.limited import OverwritingStore
from tests.transaction.tables import Table, make_table

SLOT = manifest_path("t", 5)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return make_table(tmp_path, (0, 10), (10, 20))


def set_key(store: ObjectStore, key: str) -> int:
    message = encode_transaction(UpdateConfig(MapUpdate({key: "1"})), read_version=2)
    return commit_transaction(store, "t", message, max_retries=200).version


def test_the_lock_gets_the_version(table: Table) -> None:
    locks = VersionLocks()
    handler = CommitLock(locks)
    message = encode_transaction(UpdateConfig(MapUpdate({"k": "v"})), read_version=2)
    assert lance_core.commit_transaction(table.uri, message, commit_handler=handler).version == 3
    Dataset.open(table.uri, commit_handler=handler).tags.create("x", 3)
    assert locks.held == [3, 0]
    assert table.open().config() == {"k": "v"}
    assert table.open().tags.list()["x"]["version"] == 3


def race(table: Table, handler: CommitLock | ConditionalPut) -> list[int]:
    """Two writers, each of which looks before the other one writes, unless something keeps it from that."""
    looked = threading.Barrier(2)
    versions: list[int] = []

    def write(key: str) -> None:
        faults = FaultStore(OverwritingStore(table.store))

        def wait(verb: str, path: str) -> None:
            if verb in {"put", "put_if_absent"} and path == manifest_path("t", 3):
                try:
                    looked.wait(0.3)
                except threading.BrokenBarrierError:
                    return

        faults.before(wait)
        versions.append(set_key(handler.over(faults), key))

    threads = [threading.Thread(target=write, args=(key,)) for key in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(versions)


def test_the_lock_serialises_writers_of_a_store_without_exclusive_writes(table: Table) -> None:
    assert race(table, CommitLock(VersionLocks())) == [3, 4]
    assert table.open().config() == {"a": "1", "b": "1"}
    table.open().validate()


def test_without_the_lock_that_store_loses_a_commit(table: Table) -> None:
    assert race(table, ConditionalPut()) == [3, 3]
    assert len(table.open().config()) == 1


def test_nothing_is_written_without_the_lock(table: Table) -> None:
    @contextmanager
    def refuse(version: int) -> Iterator[None]:
        raise TimeoutError(f"{version} is locked")
        yield

    with pytest.raises(CommitLockError, match=r"the lock of version 3 failed: TimeoutError\('3 is locked'\)") as caught:
        set_key(CommitLock(refuse).over(table.store), "k")
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert table.open().version == 2


def test_an_object_that_is_not_a_lock_is_refused(table: Table) -> None:
    def broken(version: int) -> Iterator[None]:
        raise ConnectionError("no lock service")

    with pytest.raises(CommitLockError, match="no lock service"):
        set_key(CommitLock(broken).over(table.store), "k")  # type: ignore[arg-type]
    assert table.open().version == 2


@contextmanager
def _lost(version: int) -> Iterator[None]:
    yield
    raise TimeoutError(f"the lock of {version} was lost meanwhile")


def test_a_lock_whose_release_fails_gives_an_unknown_outcome() -> None:
    store = CommitLock(_lost).over(MemoryStore())
    with pytest.raises(StorageUnknown, match="written, but its lock could not be released"):
        store.put_if_absent(SLOT, b"x")


def test_an_unknown_outcome_of_a_lock_is_resolved_by_reading_the_slot(table: Table) -> None:
    assert set_key(CommitLock(_lost).over(table.store), "k") == 3
    assert table.open().config() == {"k": "1"}


@contextmanager
def _swallowing(version: int) -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001
        return


@contextmanager
def _rephrasing(version: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise RuntimeError("something went wrong") from error


@pytest.mark.parametrize("lock", [_swallowing, _rephrasing, _lost])
def test_a_taken_slot_is_reported_even_if_the_release_fails(lock: Callable[[int], object]) -> None:
    inner = MemoryStore()
    inner.put(SLOT, b"theirs")
    with pytest.raises(AlreadyExists, match="expected a vacant key"):
        CommitLock(lock).over(inner).put_if_absent(SLOT, b"ours")  # type: ignore[arg-type]
    assert inner.get(SLOT) == b"theirs"


def test_a_refused_write_releases_the_lock() -> None:
    inner = FaultStore(MemoryStore())
    store = CommitLock(VersionLocks()).over(inner)

    def refuse(verb: str, path: str) -> None:
        if verb == "put":
            raise StorageError(f"no permission for {path}")

    allow = inner.before(refuse)
    with pytest.raises(StorageError, match="no permission"):
        store.put_if_absent(SLOT, b"x")
    allow()
    store.put_if_absent(SLOT, b"x")


def test_an_unknown_outcome_is_retried_under_the_lock() -> None:
    """What is late then lands on its own bytes, and not on those of the next holder."""
    inner = FaultStore(MemoryStore())
    inner.fail(Fault.DELAYED)
    CommitLock(VersionLocks()).over(inner).put_if_absent(SLOT, b"ours")
    inner.deliver()
    assert inner.get(SLOT) == b"ours"
