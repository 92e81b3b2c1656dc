"""The input of planning from storage: manifests, and versions of other writers. It writes nothing."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from lance_core.cleanup.reachability import file_name, names_used
from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.commit.prepare import FirstVersion, History, PreparedCommit, TableFiles, prepare_commit
from lance_core.errors import CorruptFile, InvalidTransaction, LanceCoreError, NotFound, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import BRANCHES_DIRECTORY, branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from lance_core.transaction.dirty_reads import dirty_read, readings_to_check
from lance_core.transaction.readings import may_have_read_number, other_meaning, read_once
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.manifest_cache import CacheKey, ManifestCache, cache_key
from namespace_server.directory.manifests.manifest_reader import PlannedVersion, find_files
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.manifests.quarantine import QuarantinedFile
from namespace_server.directory.model.entries import RecordEntry, TableEntry, VersionEntry
from namespace_server.directory.model.intents import horizon_at
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)
_HELD_MS: Final = 86_400_000
"""How long a client is taken to hold a version that went to quarantine, and to be rebased from it."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The versions that a transaction is rebased onto: the one it read (if still there), the head, and all between.

    A Clone has none of these, but the version that it is `cloned` from.
    """

    read: VersionEntry | None = None
    head: VersionEntry | None = None
    concurrent: tuple[VersionEntry, ...] = ()
    cloned: VersionEntry | None = None


class PlanningContext:
    """Manifests for the planning of one attempt at a group, on `snapshot`. A call has the same answer throughout it.

    `attempt` is the uuid of the attempt (N5), `now_ms` its time in milliseconds since the epoch.
    """

    def __init__(
        self,
        store: ObjectStore,
        manifests: ManifestCache,
        transactions: CommittedTransactions,
        promoter: Promoter,
        snapshot: CatalogSnapshot,
    ) -> None:
        self.attempt = str(uuid.uuid4())
        self.now_ms = time.time_ns() // 1_000_000
        self._store = store
        self._manifests = manifests
        self._transactions = transactions
        self._promoter = promoter
        self._snapshot = snapshot
        self._planned: dict[CacheKey, ManifestFile] = {}
        self._quarantined: list[QuarantinedFile] | None = None

    def remember_manifest(self, planned: PlannedVersion) -> None:
        """Remember a manifest that is planned, for the operations and batches planned on top of it."""
        self._planned[cache_key(planned.entry)] = planned.file

    def manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row: of this group, from the cache, or read from storage (M4).

        Raises `NotFound`, and `CorruptFile`, also for the head of a table that is missing.
        """
        key = cache_key(entry)
        planned = self._planned.get(key)
        if planned is not None:
            return planned
        head = None if entry.branch is not None else self._snapshot.head(entry.table_id, None)
        is_head = head is not None and (head is entry or cache_key(head) == key)
        return self._manifests.load_head(entry) if is_head else self._manifests.load(entry)

    def row_manifest(self, view: CatalogSnapshot, chain: ChainKey, version: int) -> ManifestFile | None:
        """The manifest of a version of a chain in `view`; None if there is none, or it cannot be read."""
        row = view.version_entry(*chain, version)
        try:
            return None if row is None else self.manifest(row)
        except (NotFound, CorruptFile):
            return None

    def is_adoptable(
        self, path: str, base: str, file: ManifestFile, below: ManifestFile | None, kept: Iterable[VersionEntry]
    ) -> bool:
        """Whether the data and deletion files below `base` that `file` names, and `below` does not, are there and stay.

        `path` is the key of the manifest. A file may be in the plan of a run of gc if it was written longer before its
        manifest than such a plan waits (G2, G5), unless one of `kept`, rows of the snapshot, names it.
        """
        grace = self._snapshot.collector.grace
        location = base.removesuffix(f"/{BRANCHES_DIRECTORY}/{file.branch}") if file.branch else base
        horizon = horizon_at(self._snapshot, location)
        found = find_files(self._store, base, file, below)
        if found is None:
            logger.error("version %d at %s is not adopted: files that it names are missing", file.version, base)
            return False
        old = {key: each.written for key, each in found.items() if each.written < horizon}
        if not old:
            return True
        [manifest] = self._store.require([path])
        slow = {key for key, written in old.items() if manifest.written - written > grace}
        left = self.unnamed(base, slow, kept)
        if not left:  # of the others, each garbage collection since then has read the manifest
            return True
        logger.error(
            "version %d at %s is not adopted: it names a file that was written %d s before it, and unreferenced files "
            "may be removed after %d s",
            file.version,
            base,
            manifest.written - min(old[key] for key in left),
            grace,
        )
        return False

    def other_meaning(self, base: str, file: ManifestFile, below: ManifestFile) -> str | None:
        """Why a version of another writer, in the chain with this root, may mean something else than it says (P12).

        `file` is built on `below` by its content. It may be that its writer read a version that is in quarantine, and
        that names other fragments by the same ids. None if it means the same all the same. Raises `StorageError`.
        """
        deleted_rows = read_once(TableFiles(self._store, base).deleted_rows)
        meant = [each for each in self._in_quarantine(base) if may_have_read_number(file.transaction, each.version)]
        for _, view in self._manifests.quarantine.read(meant):
            try:
                reason = other_meaning(file, below, view, deleted_rows)
            except (NotFound, CorruptFile, UnsupportedFeature) as error:
                reason = (
                    f"whether its writer read version {view.version}, which is in quarantine, is not known: {error}"
                )
            if reason is not None:
                logger.error("version %d at %s is not adopted: %s", file.version, base, reason)
                return reason
        return None

    def _in_quarantine(self, base: str) -> list[QuarantinedFile]:
        """The files of a chain that are in quarantine; the first call lists those of all chains.

        Versions of others were read, and heads were promoted, before planning began: what the writer of a version can
        have read under a name that is another's now is there.
        """
        if self._quarantined is None:
            self._quarantined = self._manifests.quarantine.files()
        return [item for item in self._quarantined if item.base == base]

    def dirty_read(self, view: CatalogSnapshot, head: VersionEntry, file: ManifestFile) -> str | None:
        """What a version of a client has of one that is in quarantine, in words; None if it has nothing (P16).

        `file` is built on `head` by its content, and that is promoted. Changes that can have something take a listing.
        Raises `StorageError`.
        """
        below, chain = self.manifest(head), (head.table_id, head.branch)
        readings = readings_to_check(below, file)
        if readings is None:
            return None
        recent = self.now_ms - _HELD_MS
        found = [
            item
            for item in self._in_quarantine(head.base)
            if item.version in readings.exact
            or (item.version < readings.below and _is_since(view.record(item.name), recent))
        ]
        deleted_rows = read_once(TableFiles(self._store, head.base).deleted_rows)
        for _, other in self._manifests.quarantine.read(found):
            try:
                namesake = self.row_manifest(view, chain, other.version)
                reason = dirty_read(below, file, other, namesake, deleted_rows)
            except (NotFound, CorruptFile, UnsupportedFeature) as error:
                reason = f"what it has of version {other.version}, which is in quarantine, is not known: {error}"
            if reason is not None:
                hint = "; after another commit, which has another number, it can be told which one was read"
                return reason + hint if other.version == head.version else reason
        return None

    def unnamed(self, base: str, keys: Collection[str], rows: Iterable[VersionEntry]) -> set[str]:
        """Those of the keys, of files below `base`, that none of the rows names."""
        left = {key: file_name(key.removeprefix(f"{base}/")) for key in keys}
        for names in self._names(rows):
            left = {key: name for key, name in left.items() if name is None or name not in names}
            if not left:
                break
        return set(left)

    def _names(self, rows: Iterable[VersionEntry]) -> Iterator[frozenset[str]]:
        for row in rows:
            try:
                yield frozenset(names_used(self.manifest(row)))
            except LanceCoreError:  # a version that cannot be read keeps nothing alive
                continue

    def root_path(self, entry: VersionEntry) -> str:
        """The root of the chain of a row, as manifests and transactions name it."""
        return root_path(self._store, entry.base)

    def root_key(self, path: str) -> str | None:
        """The key of a root of files that a manifest names; None for one outside of the store."""
        return TableFiles(self._store, "").key_of(path)

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
        """Build the next manifest on the head (P2). Raises `CommitConflict`, `InvalidTransaction`, `NotFound`."""
        files = TableFiles(self._store, branch_base(table.location, branch))
        if basis.cloned is not None:
            _check_origin(files, transaction.clone, basis.cloned)
        return prepare_commit(
            transaction,
            History(
                None if basis.head is None else self.manifest(basis.head),
                [self._concurrent(entry) for entry in basis.concurrent],
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

    def _concurrent(self, entry: VersionEntry) -> ConcurrentVersion:
        return self._planned.get(cache_key(entry)) or self._transactions.version(entry)

    def _load(self, table: TableEntry, branch: str | None, version: int, basis: Basis) -> ManifestFile:
        """One version of a chain; by its row, because the catalog decides what a number means."""
        known = (basis.read, basis.head, *basis.concurrent, self._snapshot.version_entry(table.id, branch, version))
        entry = next((found for found in known if found is not None and found.version == version), None)
        if entry is None:
            raise NotFound(f"version {version} of {table.location}: expected a row in the catalog")
        return self.manifest(entry)

    def is_made_by_group(self, entry: VersionEntry, base: CatalogSnapshot) -> bool:
        """Whether a row is in `base`, the overlay of the group, and not in the catalog."""
        return base is not self._snapshot and base.has_version(entry) and not self._snapshot.has_version(entry)

    def is_changed_by_group(self, tables: Iterable[ObjectId], base: CatalogSnapshot) -> bool:
        """Whether one of these tables is another in `base`, the overlay of the group, than in the catalog."""
        committed, planned = self._snapshot.state.tables, base.state.tables
        return base is not self._snapshot and any(committed.get(each) is not planned.get(each) for each in tables)

    def is_moved_by_group(self, table: TableEntry, base: CatalogSnapshot) -> bool:
        """Whether a table has its name in `base`, the overlay of the group, and lay there before under none or another.

        One that the group makes has no versions of other writers to be looked for.
        """
        at = table.location
        if base is self._snapshot or self._snapshot.location(table.id) == at:
            return False
        return self._snapshot.table_at(at) is not None or self._snapshot.tombstone_at(at) is not None

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the canonical file of a committed row is known to be the row's, before this attempt."""
        return self._promoter.is_promoted(entry, self._snapshot)


def _check_origin(files: TableFiles, clone: pb.Transaction.Clone, cloned: VersionEntry) -> None:
    """Raise InvalidTransaction unless the Clone names its parent's root, where readers find inherited files (P4)."""
    if files.key_of(clone.ref_path) != cloned.base:
        raise InvalidTransaction(
            f"clone of version {clone.ref_version} of {clone.ref_path!r}: expected the root of its parent, "
            f"{files.store.object_uri(cloned.base)}"
        )


def _is_since(report: RecordEntry | None, since_ms: int) -> bool:
    """Whether a quarantined file was reported since then; one without a report is new."""
    return report is None or report.timestamp_ms >= since_ms
