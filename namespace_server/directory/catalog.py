"""The composition root: one root, its `__manifest`, and the parts that commit, promote, repair and sweep."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from urllib.parse import unquote

from lance_namespace.errors import LanceNamespaceError, TableVersionNotFoundError

from lance_core.errors import LanceCoreError, NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import Deferred, ObjectStore
from lance_core.versions import find_contents
from namespace_server.background.scheduler import Scheduler
from namespace_server.credentials.vending import Permission, Vendor
from namespace_server.directory.committing.attempt_writing import AttemptWriter
from namespace_server.directory.committing.commit_loop import CommitLimits, CommitLoop
from namespace_server.directory.committing.committer import Committer
from namespace_server.directory.committing.failed_attempts import FailedAttempts
from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import GroupPlanner, PendingBatch
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping, RecordRetention
from namespace_server.directory.committing.write_fairness import WriteFairness
from namespace_server.directory.maintenance.figures import TableFigures
from namespace_server.directory.manifest_table.schema import OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.deleted_branches import DeletedBranches
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.model.entries import RecordEntry, VersionEntry
from namespace_server.directory.model.errors import BatchUnknown, CatalogBusy
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ChainKey, ObjectId, join
from namespace_server.directory.model.operations import Batch, chains_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.recovery.background import Recovery
from namespace_server.directory.recovery.backup_note import BackupNote
from namespace_server.directory.recovery.branch_refs import BranchRefs
from namespace_server.directory.recovery.branch_removal import BranchRemoval
from namespace_server.directory.recovery.unmanaged_manifests import UnmanagedManifests
from namespace_server.directory.verifying.allowed_locations import AllowedLocations, BlobLocations
from namespace_server.directory.verifying.verifier import Verifier
from namespace_server.durations import elapsed_clock
from namespace_server.observability.observation import SILENT, CatalogFigures, Observer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """The options of a catalog. With a `sweep_interval` of 0 nothing happens in the background.

    `allowed_locations` are absolute paths or URIs outside the root: symbolic links of registered tables and base paths
    of manifests may lead below them, and else below the root alone. `blob_locations` are those below which values of
    blob columns may be files that this process reads for the callers of operations on rows. With `implicit_namespaces`
    a declare makes the namespaces above its table, in the same batch, and a namespace that does not exist lists as
    empty.
    With `verify_data_files` the ends of data files are read in a bucket too: see `AddedFileChecks`. `group_limit` is
    the most batches that share a flip; None: 64 in a directory, 256 in a bucket, where a flip takes three round trips.
    With `sole_writer` the store takes manifests under canonical names from the servers of this root alone: no search is
    made for versions of other writers above heads (P5), which saves a request for each table.
    `maintenance` has the properties `maintenance.*` of tables that neither have them nor have namespaces that do.
    """

    group_limit: int | None = None
    tries: int = 20
    sweep_interval: timedelta = timedelta(seconds=2)
    stage_max_age: timedelta = timedelta(days=3)
    record_retention: timedelta = timedelta(days=1)
    record_limit: int = 100_000
    manifest_cache_bytes: int = 48 << 20
    transaction_cache_bytes: int = 16 << 20
    limits: Limits = field(default_factory=Limits)
    allowed_locations: tuple[str, ...] = ()
    blob_locations: tuple[str, ...] = ()
    implicit_namespaces: bool = False
    verify_data_files: bool = False
    sole_writer: bool = False
    response_cache_bytes: int = 64 << 20
    maintenance: Mapping[str, str] = field(default_factory=dict)


class StoredCatalog:
    """The catalog below a store's root. Opening does no I/O; nothing is written before the first commit.

    Thread-safe. Several processes may have the same root open. At most `group_limit` batches share a
    flip. `vendor` answers the storage options for clients.
    `observer` receives the work; calls of the store come from `store` itself, if that is a `MeteredStore`.
    """

    def __init__(
        self,
        store: ObjectStore,
        options: CatalogOptions | None = None,
        vendor: Vendor | None = None,
        observer: Observer = SILENT,
    ) -> None:
        options = options or CatalogOptions()
        self.vendor = vendor or Vendor()
        self.store = store
        self.options = options
        # Each part knows only those above it; `unmanaged_manifests` is the promoter's `NameRepair`.
        self.table = ManifestTable(store, observer=observer)
        self.group_limit = options.group_limit or (64 if store.local else 256)
        self.record_housekeeping = RecordHousekeeping(self.group_limit)
        reader = ManifestReader(store)
        self.manifests = ManifestCache(reader, options.manifest_cache_bytes)
        self.transactions = CommittedTransactions(self.manifests, options.transaction_cache_bytes)
        self.unmanaged_manifests = UnmanagedManifests(
            store, self.table, reader, self.transactions, self.record_housekeeping, observer
        )
        self.figures = TableFigures(store, self.manifests, options.maintenance)
        self.promoter = Promoter(store, self.table, reader, self.unmanaged_manifests)
        self.deleted_branches = DeletedBranches(store, self.promoter)
        self.backup_note = BackupNote(store)
        self.branch_refs = BranchRefs(store, self.promoter, self.manifests)
        self.branch_removal = BranchRemoval(store, self.table)
        self.allowed_locations = AllowedLocations(store, options.allowed_locations)
        self.verifier = Verifier(
            store,
            stage_max_age=options.stage_max_age,
            known=self.manifests.get,
            load=self.manifests.load,
            kept=self.table.kept,
            allowed=self.allowed_locations,
            contents=options.verify_data_files,
        )
        self.blob_locations = BlobLocations(options.blob_locations)
        limits = CommitLimits(self.group_limit, options.tries)
        planner = GroupPlanner(store, self.manifests, self.transactions, self.promoter)
        queue, failed_attempts = FlipQueue(limits.group_size), FailedAttempts(store)
        fairness = WriteFairness(store, self.table)
        writer = AttemptWriter(
            store, self.table, self.verifier, self.deleted_branches, fairness, sole_writer=options.sole_writer
        )
        loop = CommitLoop(
            store,
            self.table,
            planner,
            writer,
            reader,
            self.promoter,
            self.record_housekeeping,
            failed_attempts,
            queue,
            fairness,
            limits,
            observer,
        )
        self.committer = Committer(
            store,
            self.table,
            self.verifier,
            planner,
            loop,
            queue,
            self.record_housekeeping,
            failed_attempts,
            observer,
        )
        self.background = Scheduler()
        self.recovery = Recovery(
            store,
            self.table,
            self.committer,
            self.promoter,
            self.record_housekeeping,
            self.unmanaged_manifests,
            self.branch_refs,
            self.branch_removal,
            self.backup_note,
            RecordRetention(
                records=options.record_retention,
                limit=options.record_limit,
                tombstones=max(options.record_retention, 2 * options.stage_max_age),
            ),
            options.sweep_interval,
        )

    def storage_options_at(self, uri: str, permission: Permission = "write") -> dict[str, str]:
        """The storage options with which clients reach the table at this URI below the root; may ask a token service.

        Raises ServiceUnavailableError (17).
        """
        return self.vendor.options(self.store.object_path(self.key_of(uri)), permission) if self.vendor.vends else {}

    def key_of(self, uri: str) -> str:
        """The key of what has this URI below the root."""
        return unquote(uri.removeprefix(self.store.uri.rstrip("/") + "/"))

    def start(self) -> None:
        """Begin to sweep in the background (M7). Every read and every commit does so too."""
        if self.options.sweep_interval:
            self.background.start(self.recovery)

    def close(self) -> None:
        """Stop what runs in the background, recovery after a last sweep, and release the store."""
        self.background.stop()
        self.store.close()

    def snapshot(self, at: int | None = None) -> CatalogSnapshot:
        """The newest snapshot, in one request, or the one of catalog version `at`.

        Raises TableVersionNotFoundError (11) for a catalog version that does not exist or is no longer kept.
        """
        self.start()
        if at is None:
            return self.table.refresh()
        try:
            return self.table.at(at)
        except ReferenceNotFound as error:
            raise TableVersionNotFoundError(f"catalog version {at} does not exist or is no longer kept") from error

    def state(self) -> CatalogFigures | None:
        """The figures of the catalog in memory, without a storage request; None if no version was read yet."""
        snapshot = self.table.known
        if snapshot is None:
            return None
        state, disk = snapshot.state, snapshot.disk
        longest = self.store.longest_call()
        cursors = snapshot.cursors()
        live = [cursor for cursor in cursors if not cursor.is_expired(snapshot.collector.oldest)]
        return CatalogFigures(
            version=snapshot.version,
            committed_at=snapshot.timestamp_ms / 1_000 if snapshot.version else None,
            age=elapsed_clock() - snapshot.listed_at,
            clock_ahead=self.table.clock.ahead,
            head_ahead=self.table.clock.head_ahead(snapshot.timestamp_ms),
            rows=sum(fragment.live for fragment in disk.layout.fragments) if isinstance(disk, OnDisk) else 0,
            entries={"namespace": len(state.namespaces), "table": len(state.tables), "record": len(state.records)},
            open_records=len(state.open_records),
            unpromoted=self.promoter.backlog(snapshot),
            caches={"manifests": self.manifests.state, "transactions": self.transactions.state},
            longest_call=0.0 if longest is None else longest.seconds,
            backed_up_at=self.backup_note.last,
            other_servers=self.table.peers.count(),
            cursors=(len(live), len(cursors) - len(live)),
            cursor_lag=max((snapshot.version - cursor.version for cursor in live), default=0),
        )

    def is_newest(self, snapshot: CatalogSnapshot, *, vacant: str) -> bool:
        """Whether a snapshot is still the newest, and the key `vacant` is vacant; in one round trip."""
        self.start()
        newest, is_vacant = Deferred(self.table.refresh), Deferred(partial(self.is_vacant, vacant))
        self.store.gather([newest, is_vacant])
        return newest.result is snapshot and is_vacant.result

    def is_vacant(self, key: str) -> bool:
        """Whether no object has this key."""
        return find_contents(self.store, key) is None

    def load_manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row, for an answer about it.

        Raises `NotFound` if the version was removed, `CorruptFile` if it is damaged, as a head is that is missing.
        """
        try:
            return self.manifests.load(entry)
        except NotFound:
            head = self.table.refresh().head(entry.table_id, entry.branch)
            if head is None or head.identity != entry.identity:
                raise
            return self.manifests.load_head(entry)

    def commit_batches(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        """Commit batches as a group; see `Committer.decide`. Branches that begin get their ref files (M8)."""
        self.start()
        chains = {chain for batch in batches for chain in chains_of(batch.operations) if chain[1] is not None}
        if chains:
            self._finish_removals(chains)
        decided = self.committer.decide(batches)
        if chains:
            decided = self._decide_again(decided)
        for pending in decided:
            self.branch_refs.note_forks(pending, self.table)
        return decided

    def _decide_again(self, decided: Sequence[PendingBatch]) -> list[PendingBatch]:
        """The verdicts, after deciding again each rejected batch that names branches which clients deleted (M8)."""
        chains = [self._rejected_branches(pending) for pending in decided]
        try:
            deleted = {chain for chain in set().union(*chains) if self.forget_if_deleted(self.table.current, *chain)}
        except LanceCoreError as error:
            logger.warning("whether branches were deleted is not known: %s", error)
            return list(decided)
        again = [number for number, named in enumerate(chains) if named & deleted]
        if not again:
            return list(decided)
        verdicts = dict(zip(again, self.committer.decide([decided[number].batch for number in again]), strict=True))
        return [verdicts.get(number, pending) for number, pending in enumerate(decided)]

    @staticmethod
    def _rejected_branches(pending: PendingBatch) -> set[tuple[ObjectId, str]]:
        """The branches that a rejected batch names."""
        verdict = pending.verdict
        if not isinstance(verdict, LanceNamespaceError) or isinstance(verdict, CatalogBusy | BatchUnknown):
            return set()
        return {(table_id, branch) for table_id, branch in chains_of(pending.batch.operations) if branch is not None}

    def forget_if_deleted(self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str | None) -> bool:
        """Whether a client deleted a branch by path (M8). If so, its rows go in flips of their own, if they can now.

        Raises `StorageError` if storage cannot be read.
        """
        if not self.deleted_branches.is_deleted(snapshot, (table_id, branch)):
            return False
        newest = self.table.refresh()  # after storage: one that was made again in the catalog has its rows by then
        if newest is not snapshot and not self.deleted_branches.is_deleted(newest, (table_id, branch)):
            return newest.head(table_id, branch) is None
        rows = list(newest.versions(table_id, branch))
        self.unmanaged_manifests.give_up({row.base for row in rows}, newest)
        self.record_housekeeping.remove(rows)
        try:
            self.flush_record_housekeeping()
        except (LanceCoreError, LanceNamespaceError) as error:
            logger.warning(
                "the rows of branch %s of %s, which was deleted, stay for now: %s", branch, join(table_id), error
            )
        return True

    def _finish_removals(self, chains: Iterable[ChainKey]) -> None:
        """Finish the removal of deleted branches whose names are used again (B2)."""
        try:
            left = self.branch_removal.waiting(self.table.current, chains)
        except (LanceCoreError, LanceNamespaceError):
            return  # the commit meets it too, and reports it
        if left:
            self.finish_branches(left)

    def finish_branches(self, records: Iterable[RecordEntry]) -> None:
        """Remove the files of deleted branches, and the records of those that are gone, by a flip (B2).

        Raises nothing: a failed removal is left to the sweep, and to the next commit on the branch.
        """
        try:
            self.recovery.remove_branches(records, self.table.current)
            self.flush_record_housekeeping()
        except (LanceCoreError, LanceNamespaceError) as error:
            logger.warning("records of deleted branches are left to the sweep: %s", error)

    def finish_batches(self, batches: Iterable[str]) -> None:
        """Finish the open records of batches; see `Recovery.finish_batches`."""
        self.recovery.finish_batches(batches)

    def flush_record_housekeeping(self) -> None:
        """Do the record housekeeping that waits; see `Committer.flush_record_housekeeping`."""
        self.committer.flush_record_housekeeping()

    def sweep(self) -> None:
        """Sweep once; see `Recovery.sweep`."""
        self.recovery.sweep()
