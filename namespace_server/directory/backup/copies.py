"""Copies of files between two stores, each read back and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lance_core.errors import CorruptFile, NotFound, StorageUnknown
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries

_WHOLE: Final = 16 << 20
"""Bytes of the largest file that passes through memory as a whole; larger ones are read in pieces of this size."""
_TRIES: Final = 3


def _nothing() -> None:
    """A call between two parts of a copy that does nothing."""


def check_hash(store: ObjectStore, key: str, expected: str, found: str) -> None:
    """Raise `CorruptFile` unless the SHA-256 of a file is the expected one."""
    if found != expected:
        raise CorruptFile(f"{store.object_uri(key)}: expected SHA-256 {expected}, found {found}")


def sizes_of(store: ObjectStore, keys: Sequence[str]) -> dict[str, int]:
    """Sizes of those of these keys that a store has. Raises `StorageError`."""

    def size(key: str) -> int | None:
        try:
            return store.head(key).size
        except NotFound:
            return None

    found = zip(keys, store.map(size, keys), strict=True)
    return {key: there for key, there in found if there is not None}


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies files of `origin` to `target`. Thread-safe.

    `tick` is called between two parts of a file. Stores of one kind and with the same credentials copy large files
    themselves.
    """

    origin: ObjectStore
    target: ObjectStore
    tick: Callable[[], None] = _nothing

    def copy(
        self, source: str, key: str, size: int, *, there: int | None, sha256: str | None = None
    ) -> tuple[str, int]:
        """Make `key` of the target the file `source`, of `size` bytes; return its SHA-256, and the bytes written.

        `there` is the size of what the target has: if that is the same, by its content too, nothing is written. With
        `sha256` the content must have that. The copy is durable after `sync`.

        Raises:
            NotFound: The file is not there.
            CorruptFile: The file is not as it was expected, or the copy is not as the file.
            StorageError, StorageUnknown: The call may be repeated.
        """
        if there == size:
            found = sha256 or self.hash(self.origin, source, size)
            if self.hash(self.target, key, size) == found:
                return found, 0
        found = self._write(source, key, size)
        check_hash(self.origin, source, sha256 or found, found)
        check_hash(self.target, key, found, self.hash(self.target, key, size))
        return found, size

    def _write(self, source: str, key: str, size: int) -> str:
        if size <= _WHOLE:
            data = self.origin.get(source)
            if len(data) != size:
                raise self._resized(self.origin, source, size, len(data))
            put_with_retries(self.target, key, data, durable=False)
            return hashlib.sha256(data).hexdigest()
        found = self.hash(self.origin, source, size)
        for attempt in range(_TRIES):
            try:
                self.target.copy(source, key, origin=self.origin, durable=False)
                break
            except StorageUnknown:
                if attempt + 1 == _TRIES:
                    raise
        return found

    def hash(self, store: ObjectStore, key: str, size: int) -> str:
        """The SHA-256 of a file of `size` bytes, read in parts. Raises `NotFound`; `CorruptFile` for another size."""
        digest, read = hashlib.sha256(), 0
        while read < size:
            self.tick()
            part = store.get_range(key, read, min(_WHOLE, size - read))
            if not part:
                raise self._resized(store, key, size, read)
            digest.update(part)
            read += len(part)
        return digest.hexdigest()

    @staticmethod
    def _resized(store: ObjectStore, key: str, size: int, found: int) -> CorruptFile:
        return CorruptFile(f"{store.object_uri(key)}: expected {size:,} bytes, found {found:,}")
