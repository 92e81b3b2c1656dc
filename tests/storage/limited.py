"""Stores without exclusive writes."""

from __future__ import annotations

from typing import NoReturn

from lance_core.errors import StorageError
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


class PlainStore(WrappedStore):
    """A store that refuses all exclusive writes, and has put, get, list and delete."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.content_e_tags = False
        self.unsynced = inner.unsynced

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        self._refuse("put_if_absent", path)

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        self._refuse("replace", path)

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        self._refuse("publish", target)

    def rename_if_absent(self, source: str, target: str, *, durable: bool = True) -> None:
        self._refuse("rename_if_absent", target)

    def _refuse(self, verb: str, path: str) -> NoReturn:
        raise StorageError(f"{self.uri}/{path}: this store has no {verb}")


class OverwritingStore(WrappedStore):
    """A store that ignores the condition of a conditional write, as some services do."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.content_e_tags = False
        self.unsynced = inner.unsynced

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        return self.put(path, data, durable=durable)

    def publish(self, staged: str, target: str, data: bytes, *, durable: bool = True) -> str | None:
        return self.put(target, data, durable=durable)
