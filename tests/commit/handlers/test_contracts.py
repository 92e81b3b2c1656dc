"""Stores with a commit handler fulfil the contract of a store."""

from pathlib import Path

import pytest

from lance_core.commit.handlers import (
    CommitHandler,
    CommitLock,
    ConditionalPut,
    ExternalManifestHandler,
    ManifestStore,
    RenameIfAbsent,
)
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from tests.commit.handlers.locks import VersionLocks
from tests.commit.handlers.manifest_contract import ManifestContract
from tests.storage.contract import StoreContract, racers
from tests.storage.limited import OverwritingStore, PlainStore
from tests.storage.manifests import FaultyManifestStore, MemoryManifestStore

__all__ = ["racers"]


class HandledStoreContract(StoreContract):
    """Two processes on one store, each with the handler."""

    @pytest.fixture
    def handler(self) -> CommitHandler:
        raise NotImplementedError

    @pytest.fixture
    def bare(self) -> ObjectStore:
        return PlainStore(MemoryStore())

    @pytest.fixture
    def store(self, handler: CommitHandler, bare: ObjectStore) -> ObjectStore:
        return handler.over(bare)

    @pytest.fixture
    def other(self, handler: CommitHandler, bare: ObjectStore) -> ObjectStore:
        return handler.over(bare)


class TestExternalManifestsOverNothingExclusive(HandledStoreContract):
    @pytest.fixture
    def handler(self) -> CommitHandler:
        return ExternalManifestHandler(MemoryManifestStore())


class TestExternalManifestsOverAnIgnoredCondition(HandledStoreContract):
    @pytest.fixture
    def handler(self) -> CommitHandler:
        return ExternalManifestHandler(MemoryManifestStore())

    @pytest.fixture
    def bare(self, tmp_path: Path) -> ObjectStore:
        return OverwritingStore(LocalStore(tmp_path, "none"))


class TestLock(HandledStoreContract):
    @pytest.fixture
    def handler(self) -> CommitHandler:
        return CommitLock(VersionLocks())


class TestRename(HandledStoreContract):
    @pytest.fixture
    def handler(self) -> CommitHandler:
        return RenameIfAbsent()

    @pytest.fixture
    def bare(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")


class TestMemoryManifests(ManifestContract):
    @pytest.fixture
    def manifests(self) -> ManifestStore:
        return MemoryManifestStore()


class TestFaultyManifests(ManifestContract):
    """Without faults it is a manifest store like any other."""

    @pytest.fixture
    def manifests(self) -> ManifestStore:
        return FaultyManifestStore(MemoryManifestStore())


def test_a_conditional_put_is_the_store_s_own() -> None:
    store = MemoryStore()
    assert ConditionalPut().over(store) is store
