"""Transactions of committed versions, for judging others against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import Final

from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.errors import LanceCoreError
from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.sized_cache import SizedCache
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.observability.observation import CacheState, HitCount

_OVERHEAD: Final = 384
"""Bytes that an entry takes beside its transaction; measured."""


class KnownTransaction:
    """A version of which only the transaction is in memory: a `ConcurrentVersion`."""

    def __init__(self, entry: VersionEntry, data: bytes, load: Callable[[VersionEntry], ManifestFile]) -> None:
        self._entry = entry
        self._data = data
        self._load = load

    @property
    def version(self) -> int:
        """The version number of the row."""
        return self._entry.version

    @property
    def transaction_uuid(self) -> str:
        """The uuid of the transaction."""
        return self.transaction.uuid

    @cached_property
    def transaction(self) -> pb.Transaction:
        """The transaction."""
        return pb.Transaction.FromString(self._data)

    @cached_property
    def outline(self) -> AnyManifest:
        """The manifest, from the cache or read. Raises `NotFound`, `StorageError`, `CorruptFile`."""
        return self._load(self._entry).outline


class CommittedTransactions:
    """Transactions by the hash of the manifest that has them, least recently used first out. Thread-safe.

    A transaction is judged against every version since the one that it read. Manifests of all those versions would take
    ten times the memory, and be read again and again where they do not fit. `limit` is in bytes of memory.
    """

    def __init__(self, manifests: ManifestCache, limit: int = 16 << 20) -> None:
        self._manifests = manifests
        self._kept: SizedCache[bytes, bytes] = SizedCache(limit, lambda data: _OVERHEAD + len(data))
        self._uses = HitCount()

    def version(self, entry: VersionEntry) -> ConcurrentVersion:
        """The version of a row, as judging another against it needs. Raises `NotFound`, `StorageError`, `CorruptFile`.

        A version whose manifest has no transaction, or whose row names no hash, is not kept here.
        """
        data = self._kept.get(_key(entry))
        self._uses.add(hit=data is not None)
        if data is not None:
            return KnownTransaction(entry, data, self._manifests.load)
        file = self._manifests.get(entry) or self._manifests.read(entry)
        self.keep(entry, file)
        return file

    def keep(self, entry: VersionEntry, file: ManifestFile) -> None:
        """Keep the transaction of a row's manifest."""
        if file.transaction is not None and entry.sha256:
            self._kept.put(_key(entry), file.transaction.SerializeToString())

    def reads(self, entries: Iterable[VersionEntry]) -> Iterator[Callable[[], None]]:
        """A call for each transaction that is not in memory, which reads it; unreadable ones are left out."""
        for entry in entries:
            if self._kept.get(_key(entry)) is None and self._manifests.get(entry) is None:
                yield partial(self._try_to_read, entry)

    @property
    def state(self) -> CacheState:
        """How often `version` found a transaction here, and how often not; the bytes that count against the limit."""
        return self._uses.state(self._kept.size)

    def _try_to_read(self, entry: VersionEntry) -> None:
        with suppress(LanceCoreError):
            self.version(entry)


def _key(entry: VersionEntry) -> bytes:
    return bytes.fromhex(entry.sha256)
