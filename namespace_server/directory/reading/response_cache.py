"""Response cache; never authoritative: a reader has found the newest catalog version on storage before."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from operator import is_
from typing import Final, NamedTuple

from namespace_server.answer import Answer
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import CacheState, HitCount

CACHE_BYTES: Final = 64 << 20
MAX_KEY_BYTES: Final = 4 << 10
_ENTRY_BYTES: Final = 1024
"""Bytes of an entry beside its key and its JSON: the objects of the answer, measured generously."""


class CachedResponse(NamedTuple):
    """An answer in the cache.

    `vacant` is a storage key: where a file stands under it, the entry is invalid (rule P5: versions above the head that
    other writers committed are adopted before an answer names the head). If the answer depends on nothing but the
    `facts` of one `subject`, it holds in every snapshot with the same facts.
    """

    answer: Answer
    vacant: str | None = None
    subject: ObjectId | None = None
    facts: tuple[object, ...] = ()

    def valid_in(self, snapshot: CatalogSnapshot) -> CachedResponse | None:
        """The same entry for another snapshot; None where it is invalid: the answer may be another one."""
        if self.subject is None or not all(map(is_, self.facts, snapshot.facts(self.subject))):
            return None
        return self._replace(answer=self.answer.at(snapshot.version))


class ResponseCache:
    """Answers by cache key, each of the snapshot that it was last given from. Thread-safe.

    Holds only answers that depend on nothing but a snapshot (see `ReadContext`). `limit` bounds the memory of all
    entries in bytes, keys included; when it is reached, the cache is cleared. Keys longer than `MAX_KEY_BYTES` are not
    cached.
    """

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: dict[Hashable, CachedResponse] = {}
        self._size = 0
        self._uses = HitCount()

    def note(self, *, hit: bool) -> None:
        """Count an answer that was given from the cache, or one that could have been and was not."""
        self._uses.add(hit=hit)

    def find(self, snapshot: CatalogSnapshot, key: Hashable) -> CachedResponse | None:
        """The entry under a key, if it holds in this snapshot."""
        found = self._entries.get(key)
        if found is None or found.answer.catalog_version == snapshot.version:
            return found
        carried = found.valid_in(snapshot)
        if carried is not None:
            self.keep(key, carried)
        return carried

    def keep(self, key: Hashable, entry: CachedResponse) -> None:
        """Cache an answer, unless it is too long or there is one from a newer snapshot."""
        key_bytes = _key_bytes(key)
        size = len(entry.answer.json) + key_bytes + _ENTRY_BYTES
        if key_bytes > MAX_KEY_BYTES or size > self._limit // 4:
            return
        with self._lock:
            before = self._entries.get(key)
            if before is not None:
                if before.answer.catalog_version > entry.answer.catalog_version:
                    return
                self._size -= len(before.answer.json) + key_bytes + _ENTRY_BYTES
            if self._size + size > self._limit:
                self._entries = {}
                self._size = 0
            self._entries[key] = entry
            self._size += size

    @property
    def size(self) -> int:
        """The bytes that count against the limit."""
        return self._size

    @property
    def state(self) -> CacheState:
        """The answers that were noted, and the size."""
        return self._uses.state(self._size)


def _key_bytes(key: Hashable) -> int:
    parts = key if isinstance(key, tuple) else (key,)
    try:
        return sum(map(len, parts))
    except TypeError:  # numbers, for instance: an entry has room for those
        return sum(len(part) for part in parts if isinstance(part, str | bytes))
