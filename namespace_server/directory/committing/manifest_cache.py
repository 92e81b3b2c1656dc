"""Manifests of table heads: a cache by identity, and what planning may ask while it runs."""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable

from lance_core.commit.prepare import PreparedCommit, TableFiles, prepare_commit
from lance_core.errors import InvalidTransaction, NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.model.entries import TableEntry, VersionEntry, place_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Basis, PlannedVersion

_CacheKey = tuple[str, str | None, int, str]


class ManifestCache:
    """Parsed manifests by location, branch, version and hash, least recently used first out.

    `limit` is in bytes of manifest files. What is in it never changes, so it decides nothing.
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._files: OrderedDict[_CacheKey, ManifestFile] = OrderedDict()

    def get(self, entry: VersionEntry) -> ManifestFile | None:
        """The manifest of a row, if it is kept."""
        key = (*place_of(entry), entry.sha256)
        with self._lock:
            file = self._files.get(key)
            if file is not None:
                self._files.move_to_end(key)
            return file

    def put(self, entry: VersionEntry, file: ManifestFile) -> None:
        """Keep the manifest of a row."""
        key = (*place_of(entry), entry.sha256)
        with self._lock:
            if key in self._files:
                return
            self._files[key] = file
            self._size += file.size
            while self._size > self._limit and len(self._files) > 1:
                _, dropped = self._files.popitem(last=False)
                self._size -= dropped.size

    def load(self, entry: VersionEntry, read: Callable[[VersionEntry], bytes]) -> ManifestFile:
        """The manifest of a row, kept or read. Raises what `read` raises, and `CorruptFile`."""
        file = self.get(entry)
        if file is None:
            file = parse_manifest_file(read(entry), expected_version=entry.version, lazily=True)
            self.put(entry, file)
        return file

    def keep(self, planned: Iterable[PlannedVersion]) -> None:
        """Keep manifests that have just become heads."""
        for version in planned:
            self.put(version.entry, version.file)


class PlanningWorld:
    """What one attempt at a group may ask: it reads, and builds; it writes nothing."""

    def __init__(
        self, store: ObjectStore, manifests: ManifestCache, promoter: Promoter, snapshot: CatalogSnapshot
    ) -> None:
        self.attempt = str(uuid.uuid4())
        self.now_ms = time.time_ns() // 1_000_000
        self._store = store
        self._manifests = manifests
        self._promoter = promoter
        self._snapshot = snapshot
        self._planned: dict[_CacheKey, ManifestFile] = {}

    def learn(self, planned: PlannedVersion) -> None:
        """Remember a manifest that is planned, for what is planned on top of it."""
        self._planned[(*place_of(planned.entry), planned.entry.sha256)] = planned.file

    def manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row: of this group, from the cache, or read from storage (M4). Raises `NotFound`."""
        planned = self._planned.get((*place_of(entry), entry.sha256))
        return planned or self._manifests.load(entry, self._promoter.read)

    def prepare(
        self,
        transaction: pb.Transaction,
        table: TableEntry,
        branch: str | None,
        basis: Basis,
        *,
        stable_row_ids: bool = False,
    ) -> PreparedCommit:
        """Build the next manifest on the head, anew at every attempt (P2). Raises the engine's conflicts."""
        read = basis.read if basis.concurrent else None
        files = TableFiles(self._store, branch_base(table.location, branch))
        if basis.cloned is not None:
            _check_origin(files, transaction.clone, basis.cloned)
        return prepare_commit(
            transaction,
            None if basis.head is None else self.manifest(basis.head),
            [self.manifest(entry) for entry in basis.concurrent],
            files,
            now_ns=time.time_ns(),
            branch=branch,
            read=None if read is None else self.manifest(read),
            stable_row_ids=stable_row_ids,
            load=lambda version: self._load(table, branch, version, basis),
            cloned=None if basis.cloned is None else self.manifest(basis.cloned),
        )

    def _load(self, table: TableEntry, branch: str | None, version: int, basis: Basis) -> ManifestFile:
        """One version of a chain, for a Restore: only the catalog says what a number means."""
        known = (basis.head, *basis.concurrent, self._snapshot.version_entry(table.id, branch, version))
        entry = next((found for found in known if found is not None and found.version == version), None)
        if entry is None:
            raise NotFound(f"version {version} of {table.location}: expected a row in the catalog")
        return self.manifest(entry)

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is known to be the row's."""
        return self._promoter.is_promoted(entry, self._snapshot) and self.is_committed(entry)

    def awaits_promotion(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is not known to be the row's."""
        return not self._promoter.is_promoted(entry, self._snapshot) and self.is_committed(entry)

    def is_committed(self, entry: VersionEntry) -> bool:
        """Whether the row is in the catalog already, not only in the overlay of this group."""
        return self._snapshot.version_entry(entry.table_id, entry.branch, entry.version) is not None


def _check_origin(files: TableFiles, clone: pb.Transaction.Clone, cloned: VersionEntry) -> None:
    """Readers look for what a branch inherits below the path that its Clone names (P4)."""
    if files.key_of(clone.ref_path) != cloned.base:
        raise InvalidTransaction(
            f"clone of version {clone.ref_version} of {clone.ref_path!r}: expected the root of its parent, "
            f"{files.store.object_uri(cloned.base)}"
        )
