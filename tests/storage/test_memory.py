"""Memory: the contract."""

import pytest

from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from tests.storage.contract import StoreContract, racers

__all__ = ["racers"]


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore("test")

    @pytest.fixture
    def other(self, store: ObjectStore) -> ObjectStore:
        return store
