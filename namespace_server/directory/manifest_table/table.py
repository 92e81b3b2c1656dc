"""The catalog's own dataset: read as snapshots, changed by flips."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import CorruptFile, LanceCoreError, ReferenceNotFound, StorageError, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.flip import Flip, prepare_flip
from namespace_server.directory.manifest_table.fragments import Fragment
from namespace_server.directory.manifest_table.incremental_refresh import NO_FILE, IncrementalRefresh
from namespace_server.directory.manifest_table.newest_version import NewestVersion, elapsed_clock
from namespace_server.directory.manifest_table.schema import BASE_PROPERTY, OnDisk, one_batch, read_batches
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import CatalogDamaged, CatalogTooNew
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

LISTING_INTERVAL: Final = 60.0
"""Seconds that a snapshot may be led on by probing alone, by a clock that counts suspension (G8)."""

_KEPT_SNAPSHOTS: Final = 16
_RECORDS_TELL: Final = 60.0
"""Seconds for which the newest version certainly holds the records of a flip that was committed; they are kept for
twice as long at least."""
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
class Displaced:
    """The flip was written to a slot that a clean-up had made free, below the newest version (G7).

    It is in no history of the catalog, and what it staged stays (G9). `newest` is the catalog as it is.
    """

    newest: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """The flip may be in the catalog, or may still come to be. Committing the same flip again may tell (F1)."""

    reason: str


FlipOutcome = Committed | Lost | Displaced | UnknownOutcome


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A catalog version, and the (batch uuid, message) of each batch that it committed."""

    version: int
    timestamp_ms: int
    batches: tuple[tuple[str, str | None], ...]


class ManifestTable:
    """The dataset at key `path` of `store`. Thread-safe.

    `now` gives nanoseconds since the epoch. A snapshot is believed to be led to the newest version by probing for
    `listing_interval` seconds after it was proved to be the newest; then that is proved again (F6, G8).
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        path: str = MANIFEST_TABLE,
        now: Callable[[], int] = time.time_ns,
        listing_interval: float = LISTING_INTERVAL,
    ) -> None:
        self._store = store
        self._path = path
        self._now = now
        self._listing_interval = listing_interval
        self._incremental_refresh = IncrementalRefresh(store, path)
        self._newest = NewestVersion(store, path)
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

        The next version is followed only from one that is still there and the same: where versions were removed, what
        stands behind them is found by listing (G8). In a directory that is looked at too before a vacant name is
        believed; elsewhere that is believed for `listing_interval` seconds.

        Raises `StorageError` when that cannot be told, `CatalogDamaged` or `CatalogTooNew` for a newer version that
        cannot be used. It is read anew by the next call, so that a file that was put back is found.
        """
        snapshot = self._current
        if by_listing or snapshot is None:
            return self._refresh_by_listing()
        asked_at = elapsed_clock()
        if asked_at - snapshot.listed_at > self._listing_interval:
            if not self._newest.is_newest(snapshot.version, _scheme_of(snapshot)):
                return self._refresh_by_listing()
            with self._lock:
                if self._current is snapshot:
                    self._current = _confirmed(snapshot, asked_at)
                return self._current or snapshot
        following = self._store.find(self._next_key(snapshot))
        if following is None:
            return self._newer(snapshot) if self._still_there(snapshot) else self._refresh_by_listing()
        for _ in range(_LOCAL_STEPS_BEFORE_LISTING if self._store.local else _STEPS_BEFORE_LISTING):
            if not snapshot.version:
                break
            base, after, newest = self._look_around(snapshot)
            if base is None or not _is_manifest_of(snapshot, base):
                break
            try:
                snapshot = self._advance(snapshot.version + 1, following, _scheme_of(snapshot), snapshot.listed_at)
            except CatalogDamaged:  # a newer one may be whole
                break
            if after is None:
                proved = snapshot.version == newest or (
                    newest is None and self._newest.is_newest(snapshot.version, _scheme_of(snapshot))
                )
                return self._newer(snapshot) if proved else self._refresh_by_listing()
            following = after
        return self._refresh_by_listing()

    def _look_around(self, snapshot: CatalogSnapshot) -> tuple[bytes | None, bytes | None, int | None]:
        """In one round trip, before the next version is followed: the snapshot's own file, the next but one, and on a
        bucket the number of the newest version, which in a directory is proved afterwards.
        """
        version, scheme = snapshot.version, _scheme_of(snapshot)
        looks: list[Callable[[], Any]] = [partial(self._read, number, scheme) for number in (version, version + 2)]
        if self._store.local:
            base, after = self._store.gather(looks)
            return base, after, None
        base, after, listed = self._store.gather([*looks, self._newest.find])
        return base, after, 0 if listed is None else listed[0]

    def at(self, version: int) -> CatalogSnapshot:
        """The snapshot of a catalog version. Raises `ReferenceNotFound` for one that is not, or no longer, there.

        Raises `CatalogDamaged` and `CatalogTooNew` as `refresh` does.
        """
        newest = self.current
        with self._lock:
            kept = self._recent.get(version)
            if kept is not None:
                self._recent.move_to_end(version)
        if kept is not None and (kept is newest or self._newest.is_there(version, _scheme_of(newest))):
            return kept
        if version > newest.version:
            newest = self.refresh()
        if version == newest.version:
            return newest
        file = self._read_kept(newest, version) if 0 < version < newest.version else None
        if file is None:
            raise ReferenceNotFound(
                f"catalog version {version}: expected one of the kept versions up to {newest.version}"
            )
        try:
            snapshot = self._follow(newest, file, _scheme_of(newest), newest.listed_at)
        except CatalogDamaged as error:
            if error.found != NO_FILE:
                raise
            raise ReferenceNotFound(f"catalog version {version} is no longer kept: {error.key} is gone") from error
        with self._lock:
            self._remember(snapshot)
        return snapshot

    def _read_kept(self, newest: CatalogSnapshot, version: int) -> ManifestFile | None:
        """The manifest of an earlier version; None if it, or what proves that it was committed, is not there.

        The next version names the attempt that made it. Without that it may be one that was written where a clean-up
        had removed another one, by a process that died before it saw that (G7).
        """
        data, after = self._store.map(partial(self._read_of, newest), (version, version + 1))
        if data is None or after is None:
            return None
        file = self._parse(version, _scheme_of(newest), data)
        following = self._parse(version + 1, _scheme_of(newest), after).transaction
        made_to = None if following is None else following.transaction_properties.get(BASE_PROPERTY)
        return file if made_to in {None, file.transaction_uuid} else None

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
        self._newest.mark(flip.version)
        writes = [partial(self._store.put, path, data, durable=False) for path, data in flip.files]
        if len(writes) == 1:
            writes[0]()
        elif writes:
            self._store.gather(writes)
        if writes:
            self._store.sync([path for path, _ in flip.files])

    def commit(self, flip: Flip) -> FlipOutcome:
        """Put the manifest of a staged flip, if its version is vacant: the commit point.

        Only an occupied slot is an answer (F1), and a slot that was won is a commit only if its version is the newest
        afterwards, or the newest one holds the flip's records: it may have been vacant because a clean-up removed what
        stood there (G7). Raises `StorageError` when the store refused the write before any answer was lost: nothing
        was written, and nothing will be.
        """
        began = elapsed_clock()
        outcome = claim_slot(self._store, flip.path, flip.manifest)
        if isinstance(outcome, SlotUnknown):
            return UnknownOutcome(outcome.reason)
        if isinstance(outcome, SlotLost):
            # After a lost answer ours may have stood there, been built on, and been removed since (G9).
            return self._trace(flip, began, won=False) if outcome.doubted else Lost(outcome.data)
        asked_at = elapsed_clock()
        try:
            proved = self._newest.is_newest(flip.version, flip.disk.scheme)
        except StorageError as error:
            return UnknownOutcome(f"{flip.path} is written, but cannot be proved to be the newest version: {error}")
        return self._committed(flip, asked_at) if proved else self._trace(flip, began, won=True)

    def _trace(self, flip: Flip, began: float, *, won: bool) -> FlipOutcome:
        """What became of a flip whose version is, or may be, below the newest: that one tells."""
        try:
            newest = self._refresh_by_listing()
        except LanceCoreError as error:
            return UnknownOutcome(f"{flip.path} may be written, but the newest version cannot be read: {error}")
        if (won and newest.version == flip.version) or flip.is_part_of(newest):
            return self._committed(flip, newest.listed_at)
        if newest.version < flip.version:
            return UnknownOutcome(f"{flip.path} is written, but the newest version that is listed is {newest.version}")
        if elapsed_clock() - began > _RECORDS_TELL:
            return UnknownOutcome(f"{flip.path} was written long ago: records that would tell its outcome may be gone")
        if won:
            logger.error(
                "catalog version %d was removed and written again below version %d, the newest: the changes are "
                "planned again on that",
                flip.version,
                newest.version,
            )
            self._withdraw(flip)
        return Displaced(newest)

    def _withdraw(self, flip: Flip) -> None:
        """Remove a version that is in no history, so that none is read that never was.

        Certain only of a flip whose own records the newest version lacks. By name: where a version once stood and was
        superseded, none that counts is ever written again. The files that it names stay (G9).
        """
        if not flip.has_records:
            return
        try:
            self._store.delete(flip.path)
        except StorageError as error:
            logger.error("%s is no version of the catalog and cannot be removed: %s", flip.path, error)

    def _committed(self, flip: Flip, proved_at: float) -> Committed:
        snapshot = flip.snapshot(proved_at)
        with self._lock:
            self._remember(snapshot)
            if self._current is None or self._current.version < snapshot.version:
                self._current = snapshot
        return Committed(snapshot)

    def discard(self, flip: Flip) -> None:
        """Remove what a flip staged that is known to be lost, as far as the store lets us (G4)."""
        for path, _ in flip.files:
            try:
                self._store.delete(path)
            except StorageError:
                return

    def _refresh_by_listing(self) -> CatalogSnapshot:
        listed_at = elapsed_clock()
        newest = self._newest.find()
        while True:
            try:
                return self._lead_to(newest, listed_at)
            except CatalogDamaged as error:
                # While a clean-up runs, what was the newest version may be superseded and gone by now.
                listed_at, seen, newest = elapsed_clock(), newest, self._newest.find()
                if error.found != NO_FILE or newest == seen:
                    raise

    def _lead_to(self, newest: tuple[int, NamingScheme] | None, listed_at: float) -> CatalogSnapshot:
        """The snapshot of what a listing showed to be the newest version."""
        if newest is None:
            with self._lock:
                if self._current is None or not self._current.version:
                    self._current = CatalogSnapshot(listed_at=listed_at)
                return self._current
        version, scheme = newest
        with self._lock:
            known = self._current
            if known is not None and known.version >= version:
                if known.version > version:
                    logger.error("catalog version %d was removed; the newest on storage is %d", known.version, version)
                self._current = _confirmed(known, listed_at)
                return self._current
            # What was followed before may have been written where a clean-up had removed another version (G8).
            self._recent.clear()
        data = self._read(version, scheme)
        if data is None:
            key = manifest_path(self._path, version, scheme)
            raise CatalogDamaged(key, f"version {version} of the catalog, as listed", NO_FILE)
        return self._advance(version, data, scheme, listed_at)

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
            return self._incremental_refresh.follow(base or CatalogSnapshot(), file, scheme, listed_at)
        except UnsupportedFeature as error:
            raise CatalogTooNew(f"the catalog cannot be read by this release: {error}") from error

    def _parse(self, version: int, scheme: NamingScheme, data: bytes) -> ManifestFile:
        try:
            return parse_manifest_file(data, expected_version=version)
        except CorruptFile as error:
            key = manifest_path(self._path, version, scheme)
            raise CatalogDamaged(key, f"version {version} of the catalog", f"{len(data)} bytes: {error}") from error

    def _still_there(self, snapshot: CatalogSnapshot) -> bool:
        """Whether the file of a version that is believed to be the newest is there; not asked of a bucket (G8)."""
        return (
            not (self._store.local and snapshot.version)
            or self._current is not snapshot
            or self._newest.is_there(snapshot.version, _scheme_of(snapshot))
        )

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
        return one_batch(self._incremental_refresh.read(fragment.message))


def _scheme_of(snapshot: CatalogSnapshot) -> NamingScheme:
    return snapshot.disk.scheme if isinstance(snapshot.disk, OnDisk) else NamingScheme.V2


def _is_manifest_of(snapshot: CatalogSnapshot, data: bytes) -> bool:
    """Whether these are the bytes that a snapshot was made from."""
    try:
        attempt = parse_manifest_file(data, lazily=True).transaction_uuid
    except CorruptFile:
        return False
    return isinstance(snapshot.disk, OnDisk) and attempt == snapshot.disk.attempt


def _confirmed(snapshot: CatalogSnapshot, listed_at: float) -> CatalogSnapshot:
    return CatalogSnapshot(
        snapshot.version, snapshot.timestamp_ms, snapshot.managed, listed_at, snapshot.state, snapshot.disk
    )
