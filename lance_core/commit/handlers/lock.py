"""Claims a name under a lock given by the caller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from lance_core.commit.handlers.handler import CommitHandler, ExclusiveStore
from lance_core.commit.handlers.slots import slot_number
from lance_core.errors import AlreadyExists, CommitLockError, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries

Lock = Callable[[int], AbstractContextManager[Any]]
"""Called with the version to be committed. The context manager must hold an exclusive lock of that version."""


class CommitLock(CommitHandler):
    """Checks that a name is vacant and writes it, both while `lock(version)` is held.

    As in stock Lance, `lock` gets only the version number; for a name that is not a manifest (a tag, a branch) it gets
    0. It must exclude every other writer of the table while it is held. A lock that expires must last longer than a
    write with all retries.

    A lock that cannot be acquired raises `CommitLockError`: nothing was written. A lock whose release fails after the
    write may have been lost before, which is `StorageUnknown`; the slot is then read (rule F1).
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def over(self, store: ObjectStore) -> ObjectStore:
        """`store`, whose exclusive writes are made under the lock."""
        return _LockedStore(store, self._lock)


class _LockedStore(ExclusiveStore):
    def __init__(self, inner: ObjectStore, lock: Lock) -> None:
        super().__init__(inner)
        self._lock = lock

    def put_if_absent(self, path: str, data: bytes, *, durable: bool = True) -> str | None:
        def write() -> str | None:
            try:
                self.inner.head(path)
            except NotFound:
                return put_with_retries(self.inner, path, data, durable=durable)
            raise AlreadyExists(f"{self.uri}/{path}: expected a vacant key")

        return self._hold(path, write)

    def replace(self, path: str, data: bytes, *, if_match: str) -> str | None:
        def write() -> str | None:
            found = self.inner.head(path).e_tag
            if found != if_match:
                raise PreconditionFailed(f"{self.uri}/{path}: expected e_tag {if_match}, found {found}")
            return put_with_retries(self.inner, path, data)

        return self._hold(path, write)

    def _hold(self, path: str, write: Callable[[], str | None]) -> str | None:
        """Make a write under the lock. An error of the write is raised even if the release fails or suppresses it."""
        version = slot_number(path)
        refusal: StorageError | None = None
        written = False
        answer: str | None = None
        try:
            with self._lock(version):
                try:
                    answer = write()
                    written = True
                except StorageError as error:
                    refusal = error
                    raise
        except Exception as error:
            if error is refusal:
                raise
            if refusal is not None:
                raise refusal from error
            if written:
                raise StorageUnknown(
                    f"{self.uri}/{path}: written, but its lock could not be released: {error!r}"
                ) from error
            raise CommitLockError(f"{self.uri}/{path}: the lock of version {version} failed: {error!r}") from error
        if refusal is not None:  # suppressed by the lock's context manager
            raise refusal
        return answer
