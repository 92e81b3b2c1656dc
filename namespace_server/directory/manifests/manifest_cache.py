"""Cache of the manifests of table heads, by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from lance_core.errors import CorruptFile, LanceCoreError, NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.manifests.quarantine import Quarantine
from namespace_server.directory.manifests.sized_cache import SizedCache
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.observability.observation import CacheState, HitCount

CacheKey = tuple[str, str | None, int, str]
"""Location, branch, version and SHA-256: the place of a manifest and its content."""


_MESSAGES: Final = 12 << 10
_COPIES: Final = 3
"""The bytes of the file, its messages, and once they are needed the fragments in them; measured."""


def cache_key(entry: VersionEntry) -> CacheKey:
    """The key of a row's manifest."""
    return (entry.location, entry.branch, entry.version, entry.sha256)


class ManifestCache:
    """Parsed manifests by location, branch, version and hash, least recently used first out.

    `limit` is in bytes of memory. A cached manifest is what its key says, so the cache decides nothing.
    """

    def __init__(self, reader: ManifestReader, limit: int = 128 << 20) -> None:
        self._reader = reader
        self._kept: SizedCache[CacheKey, ManifestFile] = SizedCache(limit, lambda file: _memory(file.size))
        self._uses = HitCount()

    def get(self, entry: VersionEntry) -> ManifestFile | None:
        """The manifest of a row, if it is cached."""
        return self._kept.get(cache_key(entry))

    def put(self, entry: VersionEntry, file: ManifestFile) -> None:
        """Cache the manifest of a row."""
        self._kept.put(cache_key(entry), file)

    def load(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row, cached or read. Raises `NotFound`, `StorageError`, `CorruptFile`."""
        file = self.get(entry)
        self._uses.add(hit=file is not None)
        if file is None:
            file = self.read(entry)
            self.put(entry, file)
        return file

    def load_head(self, entry: VersionEntry) -> ManifestFile:
        """As `load`, of the head of a chain: that is never gone (M5), so `CorruptFile` is raised if it is missing."""
        try:
            return self.load(entry)
        except NotFound as error:
            reason = f"expected the manifest of version {entry.version}, the newest, found none"
            raise CorruptFile(f"{entry.canonical_path}: {reason}", key=entry.canonical_path, reason=reason) from error

    def read(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row, read and not cached. Raises as `load` does."""
        return parse_manifest_file(self._reader.read(entry), expected_version=entry.version, lazily=True)

    def reads(self, entries: Iterable[VersionEntry]) -> Iterator[Callable[[], None]]:
        """A call for each manifest that is not cached, which reads it, as far as all fit into half of the cache.

        What cannot be read is left out: where it is needed, `load` says why.
        """
        room = self._kept.limit // 2
        for entry in entries:
            room -= _memory(entry.size)
            if room < 0:
                return
            if self.get(entry) is None:
                yield partial(self._try_to_load, entry)

    @property
    def quarantine(self) -> Quarantine:
        """The manifests of no row that had names in the same chains."""
        return self._reader.quarantine

    def _try_to_load(self, entry: VersionEntry) -> None:
        with suppress(LanceCoreError):
            self.load(entry)

    @property
    def state(self) -> CacheState:
        """How often `load` found a manifest here and how often it read one; the bytes that count against the limit."""
        return self._uses.state(self._kept.size)


def _memory(size: int) -> int:
    """About what a manifest of so many bytes takes in memory: protobuf allocates pages for each of its messages."""
    return _MESSAGES + _COPIES * size
