"""The snapshots of `__manifest`: the newest one, and earlier ones while their version is kept."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any, Final

import pyarrow as pa

from lance_core.errors import CorruptFile, ReferenceNotFound, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.fragments import Fragment
from namespace_server.directory.manifest_table.incremental_refresh import NO_FILE, IncrementalRefresh
from namespace_server.directory.manifest_table.newest_version import NewestVersion
from namespace_server.directory.manifest_table.peers import PEER_PROPERTY, Peers
from namespace_server.directory.manifest_table.rows import one_batch
from namespace_server.directory.manifest_table.schema import BASE_PROPERTY, IDENTITY_KEY, OnDisk, read_inline, too_new
from namespace_server.directory.manifest_table.unlisted_tables import first_snapshot
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.root_layout import kept_version_key
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.durations import elapsed_clock

logger = logging.getLogger(__name__)

_KEPT_SNAPSHOTS: Final = 16
_READ_AHEAD: Final = 64
_ROOT_INTERVAL: Final = 1.0
"""Seconds for which the tables of a bucket without a catalog are believed; a directory is listed at each look."""
_STEPS_BEFORE_LISTING: Final = 4
_LOCAL_STEPS_BEFORE_LISTING: Final = 64
"""A local step costs one directory entry; a listing reads all entries."""


class Snapshots:
    """Reads versions of the dataset at key `path` of `store` as snapshots. Writes nothing. Thread-safe.

    The newest snapshot is brought up to date by probing for `listing_interval` seconds after it was proved to be the
    newest; then that is proved again (F6, G8).
    """

    def __init__(self, store: ObjectStore, path: str, listing_interval: float) -> None:
        self._store = store
        self._path = path
        self._newest = NewestVersion(store, path)
        self._listing_interval = listing_interval
        self.peers = Peers()
        self._incremental_refresh = IncrementalRefresh(store, path)
        self._lock = threading.Lock()
        self._current: CatalogSnapshot | None = None
        self._recent: OrderedDict[int, CatalogSnapshot] = OrderedDict()
        self._next: tuple[CatalogSnapshot | None, str] = (None, "")

    @property
    def known(self) -> CatalogSnapshot | None:
        """The newest snapshot that this process knows, if there is one. Never reads storage."""
        return self._current

    @property
    def current(self) -> CatalogSnapshot:
        """The newest snapshot that this process knows; storage is read only if there is none yet."""
        return self._current or self.refresh()

    def refresh(self, proved_within: float | None = None) -> CatalogSnapshot:
        """The newest snapshot. One request when nothing changed: the next version is read, and is not there.

        It was proved to be the newest within the last `listing_interval` seconds, or else it is now. On a bucket that
        is one request as well, and `proved_within` may be less. A root without a catalog is listed: it may have tables.

        A later version is followed only from one that is still there and the same: where versions were removed, the
        versions behind them are found by listing (G8). In a directory the presence of that file is also checked before
        a vacant name is believed; on a bucket a vacant name is believed for `listing_interval` seconds.

        Raises:
            StorageError: the newest version cannot be determined.
            CatalogDamaged, CatalogTooNew: a newer version cannot be used. The next call reads it again, and so finds a
                file that was restored.
        """
        snapshot = self._current
        if snapshot is None:
            return self.refresh_by_listing()
        asked_at = elapsed_clock()
        age = asked_at - snapshot.listed_at
        if not snapshot.version and (self._store.local or age > _ROOT_INTERVAL):
            return self.refresh_by_listing()
        if proved_within is not None and age > proved_within and not self._store.local:
            return self.refresh_by_listing()
        if age > self._listing_interval:
            return self._prove_again(snapshot, asked_at)
        following = self._store.find(self._next_key(snapshot))
        if following is not None:
            return self._step_forward(snapshot, following)
        return self._newer(snapshot) if self._still_there(snapshot) else self.refresh_by_listing()

    def nothing_above(self, base: CatalogSnapshot) -> float:
        """When a listing that this process knows began and showed no version above `base`; see `elapsed_clock`."""
        known = self._current
        return known.listed_at if known is not None and known.version <= base.version else -inf

    def follow(self, snapshot: CatalogSnapshot, following: bytes) -> CatalogSnapshot:
        """The newest snapshot, from the bytes of the version after `snapshot`, which were just read. As `refresh`."""
        return self._step_forward(snapshot, following) if snapshot is self._current else self.refresh()

    def refresh_by_listing(self) -> CatalogSnapshot:
        """The newest snapshot, found by listing. Raises as `refresh` does."""
        listed_at = elapsed_clock()
        newest = self._newest.find()
        while True:
            try:
                return self._lead_to(newest, listed_at)
            except CatalogDamaged as error:
                # While a clean-up runs, the version that was listed as the newest may be superseded and removed by now.
                listed_at, seen, newest = elapsed_clock(), newest, self._newest.find()
                if error.found != NO_FILE or newest == seen:
                    raise

    def accept(self, snapshot: CatalogSnapshot) -> None:
        """Take the snapshot that a flip of this process has made."""
        with self._lock:
            self._remember(snapshot)
            if self._current is None or self._current.version < snapshot.version:
                self._current = snapshot

    def at(self, version: int) -> CatalogSnapshot:
        """The snapshot of a catalog version. Raises `ReferenceNotFound` for one that is not kept (any more).

        Raises `CatalogDamaged` and `CatalogTooNew` as `refresh` does.
        """
        return self._with_newest(self._at, version)

    def kept(self, version: int) -> CatalogSnapshot:
        """As `at`; a version below the oldest kept one is read from its copy, if there is one (G6)."""
        return self._with_newest(self._kept, version)

    def _with_newest(self, read: Callable[[int, CatalogSnapshot], CatalogSnapshot], version: int) -> CatalogSnapshot:
        """Read a version with the newest snapshot that this process knows, or else with the newest one.

        A version that the known one keeps may be below the oldest by now, and have a copy. One that is below it already
        and has none is gone: no need of it can begin (G10).
        """
        known = self.current
        try:
            return read(version, known)
        except ReferenceNotFound:
            if version < known.collector.oldest:
                raise
            newest = self.refresh()
            if newest is known:
                raise
        return read(version, newest)

    def _at(self, version: int, newest: CatalogSnapshot) -> CatalogSnapshot:
        with self._lock:
            kept = self._recent.get(version)
            if kept is not None:
                self._recent.move_to_end(version)
        if kept is not None and (kept is newest or self._is_there(newest, version)):
            return kept
        if version == newest.version:
            return newest
        if version < newest.collector.oldest and newest.is_pinned(version):
            return self._kept(version, newest)
        is_kept = newest.collector.oldest <= version < newest.version
        file = self._read_kept(newest, version) if is_kept else None
        if file is None:
            raise ReferenceNotFound(
                f"catalog version {version}: expected one of the kept versions, {newest.collector.oldest} to "
                f"{newest.version}"
            )
        try:
            snapshot = self._follow(newest, file, _scheme_of(newest), newest.listed_at)
        except CatalogDamaged as error:
            if error.found != NO_FILE:
                raise
            raise ReferenceNotFound(
                f"catalog version {version} is no longer kept: {error.damaged} was removed"
            ) from error
        with self._lock:
            self._remember(snapshot)
        return snapshot

    def _kept(self, version: int, newest: CatalogSnapshot) -> CatalogSnapshot:
        if version >= newest.collector.oldest:
            return self._at(version, newest)
        data = self._store.find(kept_version_key(version))
        if data is None:
            raise ReferenceNotFound(f"catalog version {version} is no longer kept, and there is no copy of it")
        scheme = _scheme_of(newest)
        return self._follow(newest, self._parse(version, scheme, data), scheme, newest.listed_at)

    def _is_there(self, newest: CatalogSnapshot, version: int) -> bool:
        """Whether an earlier version is still kept."""
        return version >= newest.collector.oldest and self._newest.is_there(version, _scheme_of(newest))

    def read_manifest(self, version: int) -> ManifestFile | None:
        """The manifest of a version, named as those of the newest one; None if it is not there."""
        scheme = _scheme_of(self.current)
        data = self._read(version, scheme)
        return None if data is None else self._parse(version, scheme, data)

    def steps(self, first: int, last: int) -> Iterator[tuple[CatalogSnapshot, Changes | None]]:
        """Each version from `first` to the one before `last`, with the row changes that lead to the next one.

        The changes are None where the next version does not state them. One request for each version. Raises
        `ReferenceNotFound` for a version that is not there (any more), and as `refresh` does.
        """
        snapshot = self.at(first)
        scheme = _scheme_of(snapshot)
        for begin in range(first + 1, last + 1, _READ_AHEAD):
            numbers = range(begin, min(begin + _READ_AHEAD, last + 1))
            for number, file in zip(numbers, self._store.map(self.read_manifest, numbers), strict=True):
                if file is None:
                    raise ReferenceNotFound(f"catalog version {number}: expected one of the kept versions, to {last}")
                yield snapshot, changes_to(file, snapshot)
                snapshot = self._follow(snapshot, file, scheme, snapshot.listed_at)

    def read_fragment(self, fragment: Fragment) -> pa.RecordBatch:
        """All physical rows of a fragment. Raises `CatalogDamaged`."""
        return one_batch(self._incremental_refresh.read(fragment.message))

    def _prove_again(self, snapshot: CatalogSnapshot, asked_at: float) -> CatalogSnapshot:
        if not self._newest.is_newest(snapshot.version, _scheme_of(snapshot)):
            return self.refresh_by_listing()
        with self._lock:
            if self._current is snapshot:
                self._current = snapshot.proved(asked_at)
            return self._current or snapshot

    def _step_forward(self, snapshot: CatalogSnapshot, following: bytes) -> CatalogSnapshot:
        """The newest snapshot, from the bytes of the version that follows `snapshot`; by listing after many steps."""
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
                return self._newer(snapshot) if proved else self.refresh_by_listing()
            following = after
        return self.refresh_by_listing()

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

    def _read_kept(self, newest: CatalogSnapshot, version: int) -> ManifestFile | None:
        """The manifest of an earlier version; None if it is not there, or its commit cannot be proved.

        The next version names the attempt that made it. A version that is not named so may have been written where a
        clean-up had removed another one, by a process that died before it noticed (G7).
        """
        data, after = self._store.map(partial(self._read_of, newest), (version, version + 1))
        if data is None or after is None:
            return None
        file = self._parse(version, _scheme_of(newest), data)
        following = self._parse(version + 1, _scheme_of(newest), after).transaction
        made_to = None if following is None else following.transaction_properties.get(BASE_PROPERTY)
        return file if made_to in {None, file.transaction_uuid} else None

    def _lead_to(self, newest: tuple[int, NamingScheme] | None, listed_at: float) -> CatalogSnapshot:
        """The snapshot of the version that a listing showed to be the newest."""
        if newest is None:
            with self._lock:
                known = self._current
                if known is not None and known.version:
                    # Some version is always there: the root was removed, or its volume is not mounted any more.
                    key = manifest_path(self._path, known.version, _scheme_of(known))
                    raise CatalogDamaged(key, f"version {known.version} of the catalog or a later one", NO_FILE)
            first = first_snapshot(self._store, self._newest, listed_at)
            if first is None:
                return self.refresh_by_listing()
            with self._lock:
                if self._current is None or not self._current.version:
                    self._current = first
                return self._current
        version, scheme = newest
        with self._lock:
            known = self._current
            if known is not None and known.version >= version:
                suspect = known.version > version and known.listed_at < listed_at  # else it was made since the listing
                self._current = confirmed = known.proved(listed_at)
            else:
                # A version followed before may have been written where a clean-up had removed another one (G8).
                confirmed = None
                self._recent.clear()
        if confirmed is not None:
            # Another thread may have followed a version that was committed after the listing.
            if suspect and not self._newest.is_there(confirmed.version, _scheme_of(confirmed)):
                logger.error("catalog version %d was removed; the newest on storage is %d", confirmed.version, version)
            return confirmed
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
        # Only what appears while this process watches: the newest version of a copied root is a flip on the original.
        if base is not None and file.transaction is not None:
            made = file.transaction.transaction_properties.get(PEER_PROPERTY, "")
            self.peers.saw_flip(made, file.outline.table_metadata.get(IDENTITY_KEY, ""))
        return snapshot

    def _follow(
        self, base: CatalogSnapshot | None, file: ManifestFile, scheme: NamingScheme, listed_at: float
    ) -> CatalogSnapshot:
        try:
            return self._incremental_refresh.follow(base or CatalogSnapshot(), file, scheme, listed_at)
        except UnsupportedFeature as error:
            raise too_new("read", file.manifest, error) from error

    def _parse(self, version: int, scheme: NamingScheme, data: bytes) -> ManifestFile:
        try:
            return parse_manifest_file(data, expected_version=version)
        except CorruptFile as error:
            key = manifest_path(self._path, version, scheme)
            raise CatalogDamaged(key, f"version {version} of the catalog", f"{len(data)} bytes: {error}") from error

    def _still_there(self, snapshot: CatalogSnapshot) -> bool:
        """Whether the file of the newest known version is there; true without a look on a bucket (G8)."""
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
        """The key of the version after a snapshot. Every read asks for it, so it is cached."""
        seen, key = self._next
        if seen is not snapshot:
            key = manifest_path(self._path, snapshot.version + 1, _scheme_of(snapshot))
            self._next = snapshot, key
        return key

    def _read(self, version: int, scheme: NamingScheme) -> bytes | None:
        return self._store.find(manifest_path(self._path, version, scheme))

    def _read_of(self, newest: CatalogSnapshot, version: int) -> bytes | None:
        return self._read(version, _scheme_of(newest))


def changes_to(file: ManifestFile, base: CatalogSnapshot) -> Changes | None:
    """The row changes that a version says were made to `base`; None if it says none, or of another base."""
    inline = read_inline(file.transaction)
    if inline is None or file.transaction is None or not isinstance(base.disk, OnDisk):
        return None
    made_to = file.transaction.transaction_properties.get(BASE_PROPERTY)
    return inline[1] if made_to == base.disk.attempt else None


def _scheme_of(snapshot: CatalogSnapshot) -> NamingScheme:
    return snapshot.disk.scheme if isinstance(snapshot.disk, OnDisk) else NamingScheme.V2


def _is_manifest_of(snapshot: CatalogSnapshot, data: bytes) -> bool:
    """Whether these bytes are the manifest that a snapshot was made from."""
    try:
        attempt = parse_manifest_file(data, lazily=True).transaction_uuid
    except CorruptFile:
        return False
    return isinstance(snapshot.disk, OnDisk) and attempt == snapshot.disk.attempt
