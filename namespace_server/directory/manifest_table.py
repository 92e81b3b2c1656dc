"""The catalog's own dataset: read as snapshots, changed by flips."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from lance_core.commit.slot import Lost as SlotLost
from lance_core.commit.slot import Won, claim_slot
from lance_core.errors import CorruptFile, ReferenceNotFound, StorageError, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path, parse_manifest_name, versions_directory
from lance_core.storage.port import ObjectStore
from namespace_server.directory.disk import OnDisk, one_batch, read_batches
from namespace_server.directory.errors import CatalogDamaged, CatalogTooNew
from namespace_server.directory.flips import Flip, prepare_flip
from namespace_server.directory.following import NO_FILE, Follower
from namespace_server.directory.fragments import Fragment
from namespace_server.directory.loading import limit_arenas
from namespace_server.directory.rows import Changes
from namespace_server.directory.snapshot import CatalogSnapshot

MANIFEST_TABLE: Final = "__manifest"
LISTING_INTERVAL: Final = 900.0
"""Seconds that a snapshot may be led on by probing alone. A quarter of the shortest retention (G3, F6)."""

_KEPT_SNAPSHOTS: Final = 16
_STEPS_BEFORE_LISTING: Final = 4
_LOCAL_STEPS_BEFORE_LISTING: Final = 64
"""Local steps cost as little as a directory entry, of which a listing reads all."""
_HISTORY_PAGE: Final = 64


@dataclass(frozen=True, slots=True)
class Committed:
    """The flip is in the catalog; `snapshot` is the catalog after it."""

    snapshot: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class Lost:
    """Another flip has that version: this one is not in the catalog and never will be. `winner` is its manifest."""

    winner: bytes


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """The flip may be in the catalog, or may still come to be. Committing the same flip again may tell (F1)."""

    reason: str


FlipOutcome = Committed | Lost | UnknownOutcome


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A catalog version, and the (batch uuid, message) of each batch that it committed."""

    version: int
    timestamp_ms: int
    batches: tuple[tuple[str, str | None], ...]


class ManifestTable:
    """The dataset at key `path` of `store`. Thread-safe.

    `now` gives nanoseconds since the epoch. A snapshot is believed to be led to the newest version by probing for
    `listing_interval` seconds after it was seen to be the newest by listing; then it is listed again (F6).
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        path: str = MANIFEST_TABLE,
        now: Callable[[], int] = time.time_ns,
        listing_interval: float = LISTING_INTERVAL,
    ) -> None:
        limit_arenas()
        self._store = store
        self._path = path
        self._now = now
        self._listing_interval = listing_interval
        self._follower = Follower(store, path)
        self._lock = threading.Lock()
        self._current: CatalogSnapshot | None = None
        self._recent: OrderedDict[int, CatalogSnapshot] = OrderedDict()
        self._next: tuple[CatalogSnapshot | None, str] = (None, "")

    @property
    def current(self) -> CatalogSnapshot:
        """The newest snapshot that this process knows, without asking storage unless there is none yet."""
        return self._current or self.refresh()

    def refresh(self, *, by_listing: bool = False) -> CatalogSnapshot:
        """The newest snapshot. One request when nothing changed: the next version is read, and is not there.

        Raises `StorageError` when that cannot be told, `CatalogDamaged` or `CatalogTooNew` for a newer version that
        cannot be used. It is read anew by the next call, so that a file that was put back is found.
        """
        snapshot = self._current
        if by_listing or snapshot is None or time.monotonic() - snapshot.listed_at > self._listing_interval:
            snapshot = self._refresh_by_listing()
        for _ in range(_LOCAL_STEPS_BEFORE_LISTING if self._store.local else _STEPS_BEFORE_LISTING):
            data = self._store.find(self._next_key(snapshot))
            if data is None:
                return self._newer(snapshot)
            if not snapshot.version:
                break
            snapshot = self._advance(snapshot.version + 1, data, _scheme_of(snapshot), snapshot.listed_at)
        self._refresh_by_listing()
        return self.refresh()

    def at(self, version: int) -> CatalogSnapshot:
        """The snapshot of a catalog version. Raises `ReferenceNotFound` for one that is not, or no longer, there.

        Raises `CatalogDamaged` and `CatalogTooNew` as `refresh` does.
        """
        with self._lock:
            kept = self._recent.get(version)
            if kept is not None:
                self._recent.move_to_end(version)
                return kept
        newest = self.current
        if version > newest.version:
            newest = self.refresh()
        if version == newest.version:
            return newest
        data = self._read(version, _scheme_of(newest)) if 0 < version < newest.version else None
        if data is None:
            raise ReferenceNotFound(
                f"catalog version {version}: expected one of the kept versions up to {newest.version}"
            )
        file = self._parse(version, _scheme_of(newest), data)
        try:
            snapshot = self._follow(newest, file, _scheme_of(newest), newest.listed_at)
        except CatalogDamaged as error:
            if error.found != NO_FILE:
                raise
            raise ReferenceNotFound(f"catalog version {version} is no longer kept: {error.key} is gone") from error
        with self._lock:
            self._remember(snapshot)
        return snapshot

    def history(self, limit: int, before: int | None = None) -> list[HistoryEntry]:
        """Up to `limit` kept versions, newest first, only those below `before` if it is given."""
        newest = self.current
        top = newest.version if before is None else min(newest.version, before - 1)
        found: list[HistoryEntry] = []
        while len(found) < limit and top > 0:
            bottom = max(top - min(limit - len(found), _HISTORY_PAGE), 0)
            versions = range(top, bottom, -1)
            for data, version in zip(self._store.map(partial(self._read_of, newest), versions), versions, strict=True):
                if data is None:
                    return found
                file = self._parse(version, _scheme_of(newest), data)
                batches = read_batches(file.transaction)
                found.append(HistoryEntry(version, file.timestamp_ns // 1_000_000, batches))
            top = bottom
        return found

    def prepare(
        self,
        snapshot: CatalogSnapshot,
        changes: Changes,
        *,
        attempt: str,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> Flip:
        """Build the flip that makes `changes` on `snapshot`, which must be no overlay. Writes nothing.

        `attempt` is a fresh uuid (F2). Raises `CatalogTooNew` for a root that this release must not write. See
        `prepare_flip` for the rest.
        """
        try:
            return prepare_flip(
                self._path,
                snapshot,
                changes,
                attempt=attempt,
                now_ns=self._now(),
                read=self._read_fragment,
                table_metadata=table_metadata,
                strict=strict,
            )
        except UnsupportedFeature as error:
            raise CatalogTooNew(f"the catalog cannot be changed by this release: {error}") from error

    def stage(self, flip: Flip) -> None:
        """Write what the flip makes reachable, durably, in one parallel step (S1). It may be repeated."""
        writes = [partial(self._store.put, path, data, durable=False) for path, data in flip.files]
        if len(writes) == 1:
            writes[0]()
        elif writes:
            self._store.gather(writes)
        if writes:
            self._store.sync([path for path, _ in flip.files])

    def commit(self, flip: Flip) -> FlipOutcome:
        """Put the manifest of a staged flip, if its version is vacant: the commit point.

        Only an occupied slot is an answer (F1). Raises `StorageError` when the store refused the write before any
        answer was lost: nothing was written, and nothing will be.
        """
        outcome = claim_slot(self._store, flip.path, flip.manifest)
        if isinstance(outcome, Won):
            snapshot = flip.snapshot()
            with self._lock:
                self._remember(snapshot)
                if self._current is None or self._current.version < snapshot.version:
                    self._current = snapshot
            return Committed(snapshot)
        if isinstance(outcome, SlotLost):
            return Lost(outcome.data)
        return UnknownOutcome(outcome.reason)

    def discard(self, flip: Flip) -> None:
        """Remove what a flip staged that is known to be lost, as far as the store lets us (G4)."""
        for path, _ in flip.files:
            try:
                self._store.delete(path)
            except StorageError:
                return

    def _refresh_by_listing(self) -> CatalogSnapshot:
        listed_at = time.monotonic()
        newest = self._list_newest()
        if newest is None:
            with self._lock:
                if self._current is None or not self._current.version:
                    self._current = CatalogSnapshot(listed_at=listed_at)
                return self._current
        version, scheme = newest
        with self._lock:
            known = self._current
            if known is not None and known.version >= version:
                self._current = _confirmed(known, listed_at)
                return self._current
        data = self._read(version, scheme)
        if data is None:
            key = manifest_path(self._path, version, scheme)
            raise CatalogDamaged(key, f"version {version} of the catalog, as listed", NO_FILE)
        return self._advance(version, data, scheme, listed_at)

    def _list_newest(self) -> tuple[int, NamingScheme] | None:
        """The newest version by listing. In a directory of V2 names that is the first key."""
        newest: tuple[int, NamingScheme] | None = None
        for meta in self._store.list(versions_directory(self._path)):
            found = parse_manifest_name(meta.path.rpartition("/")[2])
            if found is None:
                continue
            if found[1] is NamingScheme.V2:
                return found
            if newest is None or found[0] > newest[0]:
                newest = found
        return newest

    def _advance(self, version: int, data: bytes, scheme: NamingScheme, listed_at: float) -> CatalogSnapshot:
        file = self._parse(version, scheme, data)
        with self._lock:
            base = self._current
            if base is not None and base.version >= version:
                return base
            snapshot = self._follow(base, file, scheme, listed_at)
            self._current = snapshot
            self._remember(snapshot)
            return snapshot

    def _follow(
        self, base: CatalogSnapshot | None, file: ManifestFile, scheme: NamingScheme, listed_at: float
    ) -> CatalogSnapshot:
        try:
            return self._follower.follow(base or CatalogSnapshot(), file, scheme, listed_at)
        except UnsupportedFeature as error:
            raise CatalogTooNew(f"the catalog cannot be read by this release: {error}") from error

    def _parse(self, version: int, scheme: NamingScheme, data: bytes) -> ManifestFile:
        try:
            return parse_manifest_file(data, expected_version=version)
        except CorruptFile as error:
            key = manifest_path(self._path, version, scheme)
            raise CatalogDamaged(key, f"version {version} of the catalog", f"{len(data)} bytes: {error}") from error

    def _newer(self, snapshot: CatalogSnapshot) -> CatalogSnapshot:
        current = self._current
        return snapshot if current is None or current.version < snapshot.version else current

    def _remember(self, snapshot: CatalogSnapshot) -> None:
        self._recent[snapshot.version] = snapshot
        self._recent.move_to_end(snapshot.version)
        while len(self._recent) > _KEPT_SNAPSHOTS:
            self._recent.popitem(last=False)

    def _next_key(self, snapshot: CatalogSnapshot) -> str:
        """Where the version after a snapshot is looked for; every read does, so it is not spelt out each time."""
        seen, key = self._next
        if seen is not snapshot:
            key = manifest_path(self._path, snapshot.version + 1, _scheme_of(snapshot))
            self._next = snapshot, key
        return key

    def _read(self, version: int, scheme: NamingScheme) -> bytes | None:
        return self._store.find(manifest_path(self._path, version, scheme))

    def _read_of(self, newest: CatalogSnapshot, version: int) -> bytes | None:
        return self._read(version, _scheme_of(newest))

    def _read_fragment(self, fragment: Fragment) -> pa.RecordBatch:
        return one_batch(self._follower.read(fragment.message))


def _scheme_of(snapshot: CatalogSnapshot) -> NamingScheme:
    return snapshot.disk.scheme if isinstance(snapshot.disk, OnDisk) else NamingScheme.V2


def _confirmed(snapshot: CatalogSnapshot, listed_at: float) -> CatalogSnapshot:
    return CatalogSnapshot(
        snapshot.version, snapshot.timestamp_ms, snapshot.managed, listed_at, snapshot.state, snapshot.disk
    )
