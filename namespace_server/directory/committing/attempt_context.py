"""The planning context of one attempt at a group: reads manifests, builds new ones, promotes committed ones."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence

from lance_namespace.errors import ServiceUnavailableError

from lance_core.commit.prepare import FirstVersion, History, PreparedCommit, TableFiles, prepare_commit
from lance_core.errors import InvalidTransaction, NotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from namespace_server.directory.committing.manifest_cache import CacheKey, ManifestCache, cache_key
from namespace_server.directory.committing.manifest_reader import is_whole
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.operations import Batch, chains_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.planning_context import Basis, MustFollowGroup, PlannedVersion

logger = logging.getLogger(__name__)


class AttemptContext:
    """The `PlanningContext` of one attempt at a group, on `snapshot`. Of storage only `promote` writes."""

    def __init__(
        self, store: ObjectStore, manifests: ManifestCache, promoter: Promoter, snapshot: CatalogSnapshot
    ) -> None:
        self.attempt = str(uuid.uuid4())
        self.now_ms = time.time_ns() // 1_000_000
        self._store = store
        self._manifests = manifests
        self._promoter = promoter
        self._snapshot = snapshot
        self._planned: dict[CacheKey, ManifestFile] = {}

    def remember_manifest(self, planned: PlannedVersion) -> None:
        """See `PlanningContext.remember_manifest`."""
        self._planned[cache_key(planned.entry)] = planned.file

    def manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row: of this group, from the cache, or read from storage (M4). Raises `NotFound`."""
        planned = self._planned.get(cache_key(entry))
        return planned or self._manifests.load(entry)

    def has_files(self, base: str, file: ManifestFile, below: ManifestFile | None) -> bool:
        """See `PlanningContext.has_files`."""
        if is_whole(self._store, base, file, below):
            return True
        logger.error("version %d at %s is not adopted: files that it names are missing", file.version, base)
        return False

    def root_path(self, entry: VersionEntry) -> str:
        """See `PlanningContext.root_path`."""
        return root_path(self._store, entry.base)

    def prepare(
        self,
        transaction: pb.Transaction,
        table: TableEntry,
        branch: str | None,
        basis: Basis,
        *,
        stable_row_ids: bool = False,
        data_storage_version: str | None = None,
    ) -> PreparedCommit:
        """Build the next manifest on the head, anew at every attempt (P2). Raises the engine's conflicts."""
        read = basis.read if basis.concurrent else None
        files = TableFiles(self._store, branch_base(table.location, branch))
        if basis.cloned is not None:
            _check_origin(files, transaction.clone, basis.cloned)
        return prepare_commit(
            transaction,
            History(
                None if basis.head is None else self.manifest(basis.head),
                [self.manifest(entry) for entry in basis.concurrent],
                None if read is None else self.manifest(read),
                lambda version: self._load(table, branch, version, basis),
            ),
            files,
            now_ns=time.time_ns(),
            first=FirstVersion(
                branch,
                stable_row_ids,
                data_storage_version,
                None if basis.cloned is None else self.manifest(basis.cloned),
            ),
        )

    def _load(self, table: TableEntry, branch: str | None, version: int, basis: Basis) -> ManifestFile:
        """One version of a chain, for a Restore; by its row, because the catalog decides what a number means."""
        known = (basis.head, *basis.concurrent, self._snapshot.version_entry(table.id, branch, version))
        entry = next((found for found in known if found is not None and found.version == version), None)
        if entry is None:
            raise NotFound(f"version {version} of {table.location}: expected a row in the catalog")
        return self.manifest(entry)

    def promote(self, entries: Sequence[VersionEntry], batch: Batch) -> None:
        """See `PlanningContext.promote`."""
        if not all(self._is_committed(entry) for entry in entries):
            raise MustFollowGroup
        heads = [head for chain in chains_of(batch.operations) if (head := self._snapshot.head(*chain)) is not None]
        self._promoter.promote([*entries, *heads], self._snapshot)
        if not all(self.is_promoted(entry) for entry in entries):
            raise ServiceUnavailableError(
                f"batch {batch.uuid}: versions that it builds on or removes cannot be promoted now; repeat it"
            )

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is known to be the row's."""
        return self._promoter.is_promoted(entry, self._snapshot) and self._is_committed(entry)

    def awaits_promotion(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is not known to be the row's."""
        return not self._promoter.is_promoted(entry, self._snapshot) and self._is_committed(entry)

    def _is_committed(self, entry: VersionEntry) -> bool:
        """Whether the row is in the catalog already, not only in the overlay of this group."""
        return self._snapshot.version_entry(entry.table_id, entry.branch, entry.version) is not None


def _check_origin(files: TableFiles, clone: pb.Transaction.Clone, cloned: VersionEntry) -> None:
    """Raise InvalidTransaction unless the Clone names its parent's root, where readers find inherited files (P4)."""
    if files.key_of(clone.ref_path) != cloned.base:
        raise InvalidTransaction(
            f"clone of version {clone.ref_version} of {clone.ref_path!r}: expected the root of its parent, "
            f"{files.store.object_uri(cloned.base)}"
        )
