"""Local files: the contract, and what only a file system has."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_core.errors import AlreadyExists, NotFound, OutcomeUnknown, StorageError
from lance_core.storage import durability, local
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from tests.storage.contract import StoreContract, keys, racers

__all__ = ["racers"]


class TestFsync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        store = LocalStore(tmp_path / "not" / "yet", "fsync")
        yield store
        store.close()

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "not" / "yet", "fsync")

    def test_sync_of_a_missing_object_is_not_found(self, store: ObjectStore) -> None:
        store.put("a/b", b"x")
        for path in ("a/c", "c/d", "a"):
            with pytest.raises(NotFound):
                store.sync(["a/b", path])


class TestNoFsync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(f"{tmp_path}/", "none")
