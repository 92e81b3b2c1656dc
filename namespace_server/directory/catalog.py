"""The composition root: one root, its `__manifest`, and the parts that commit, promote, repair and sweep."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar
from urllib.parse import unquote

from lance_namespace.errors import LanceNamespaceError, TableVersionNotFoundError

from lance_core.errors import LanceCoreError, NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import Deferred, ObjectStore
from lance_core.versions import find_contents
from namespace_server.credentials.vending import Vendor
from namespace_server.directory.committing.allowed_locations import AllowedLocations
from namespace_server.directory.committing.commit_loop import CommitLimits
from namespace_server.directory.committing.committed_transactions import CommittedTransactions
from namespace_server.directory.committing.committer import Committer
from namespace_server.directory.committing.group_planner import AttemptContext, PendingBatch
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.manifest_reader import ManifestReader
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.record_maintenance import RecordMaintenance, RecordRetention
from namespace_server.directory.committing.stored_versions import versions_above
from namespace_server.directory.committing.verifier import Verifier
from namespace_server.directory.manifest_table.schema import OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.elapsed import elapsed_clock
from namespace_server.directory.model.entries import RecordEntry, VersionEntry
from namespace_server.directory.model.errors import CatalogBusy, CommitOutcomeUnknown
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ChainKey, ObjectId, join
from namespace_server.directory.model.operations import AdoptTableVersions, Batch, chains_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.unmanaged_versions import never_adopted
from namespace_server.directory.recovery.branch_refs import BranchRefs
from namespace_server.directory.recovery.branch_removal import BranchRemoval
from namespace_server.directory.recovery.sweeper import Sweeper
from namespace_server.directory.recovery.unmanaged_manifests import UnmanagedManifests
from namespace_server.observation import SILENT, CatalogFigures, Observer

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """The options of a catalog. With a `sweep_interval` of 0 nothing happens in the background.

    `allowed_locations` are absolute paths or URIs outside the root: symbolic links of registered tables and base paths
    of manifests may lead below them, and else below the root alone. With `implicit_namespaces` a declare makes the
    namespaces above its table, in the same batch, and a namespace that does not exist lists as empty.
    With `verify_data_files` the ends of data files are read in a bucket too: see `AddedFileChecks`. `group_limit` is
    the most batches that share a flip; None: 64 in a directory, 256 in a bucket, where a flip takes three round trips.
    `fenced` says that the store takes manifests under canonical names from the servers of this root alone: what other
    writers committed above a head is not looked for (P5), which saves a request for each table.
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
    implicit_namespaces: bool = False
    verify_data_files: bool = False
    fenced: bool = False
    response_cache_bytes: int = 64 << 20


class StoredCatalog:
    """The catalog below a store's root. Opening does no I/O; nothing is written before the first commit.

    Thread-safe. Several processes may have the same root open. At most `group_limit` batches share a
    flip. `vendor` answers the storage options for clients.
    `observer` is told of the work; of calls of the store by `store` itself, if that is a `MeteredStore`.
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
        self.record_maintenance = RecordMaintenance(self.group_limit)
        reader = ManifestReader(store)
        self.manifests = ManifestCache(reader, options.manifest_cache_bytes)
        self.transactions = CommittedTransactions(self.manifests, options.transaction_cache_bytes)
        self.unmanaged_manifests = UnmanagedManifests(
            store, self.table, reader, self.transactions, self.record_maintenance, observer
        )
        self.promoter = Promoter(store, self.table, reader, self.unmanaged_manifests)
        self.branch_refs = BranchRefs(store, self.promoter, self.manifests)
        self.branch_removal = BranchRemoval(store, self.table)
        self.verifier = Verifier(
            store,
            stage_max_age=options.stage_max_age,
            known=self.manifests.get,
            load=self.manifests.load,
            kept=self.table.kept,
            allowed=AllowedLocations(store, options.allowed_locations),
            contents=options.verify_data_files,
        )
        self.committer = Committer(
            store,
            self.table,
            self.verifier,
            reader,
            self.manifests,
            self.transactions,
            self.promoter,
            self.record_maintenance,
            CommitLimits(self.group_limit, options.tries, options.fenced),
            observer,
        )
        self.sweeper = Sweeper(
            store,
            self.table,
            self.committer,
            self.promoter,
            self.record_maintenance,
            self.unmanaged_manifests,
            self.branch_refs,
            self.branch_removal,
            RecordRetention(
                records=options.record_retention,
                limit=options.record_limit,
                tombstones=max(options.record_retention, 2 * options.stage_max_age),
            ),
            options.sweep_interval,
        )

    def storage_options_at(self, uri: str) -> dict[str, str]:
        """What clients are handed to reach the table at this URI below the root; may ask a token service.

        Raises ServiceUnavailableError (17).
        """
        key = unquote(uri.removeprefix(self.store.uri.rstrip("/") + "/"))
        return self.vendor.options(self.store.object_path(key)) if self.vendor.vends else {}

    def start(self) -> None:
        """Begin to sweep in the background (M7). Every read and every commit does so too."""
        self.sweeper.start()

    def close(self) -> None:
        """Stop the sweeper after a last sweep and release the store."""
        self.sweeper.stop()
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
        """What this process knows of the catalog, without a look at storage; None if it has read no version yet."""
        snapshot = self.table.known
        if snapshot is None:
            return None
        state, disk = snapshot.state, snapshot.disk
        longest = self.store.longest_call()
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

    def reconciled_snapshot(self, chain: ChainKey) -> CatalogSnapshot:
        """The newest snapshot, after adopting the unmanaged versions above the head of a chain (P5).

        A writer opens the head that the answer names and looks at storage for later versions. Where it cannot rebase
        over those it gives up and sends nothing that could adopt them: an append after an overwrite, for ever
        (invariant 12). One round trip where there is nothing to adopt. What is never adopted, because it was not built
        on the head or its files are gone or may go, is moved to quarantine (M6). It is not part of the answer, nor is
        what cannot be adopted now because nothing can be written. In a fenced root nothing is looked for.

        Raises ServiceUnavailableError (17) if it is not known whether the versions are adopted.
        """
        if self.options.fenced:
            return self.snapshot()
        self.start()
        known = self.table.current
        newest, found = Deferred(self.table.refresh), Deferred(partial(versions_above, self.store, known, [chain]))
        self.store.gather([newest, found])
        snapshot, above = newest.result, found.result
        if snapshot is not known and _end_of(snapshot, chain) != _end_of(known, chain):
            above = versions_above(self.store, snapshot, [chain])
        if not above or not snapshot.managed:
            return snapshot
        top = above[chain][-1][1].version
        name = str(uuid.uuid4())
        [adoption] = self.commit([Batch(name, (AdoptTableVersions(*chain),), request_hash=name)])
        if isinstance(adoption.verdict, CommitOutcomeUnknown | CatalogBusy):
            raise adoption.verdict
        adopted = self.table.current.top(*chain)
        if adopted is None or adopted[0] < top:
            self._set_aside(chain)
        return self.table.current

    def answer_as_of(
        self, pinned: CatalogSnapshot, chain: ChainKey, answer: Callable[[], T]
    ) -> tuple[T, CatalogSnapshot | None]:
        """An answer about a chain as of a catalog version, and the newer snapshot that adopts what is above its head.

        A job reads all of its tables as of one catalog version. Where that is still the newest for this chain, versions
        of other writers that stand above the head are adopted (P5), or nothing would ever adopt them: each job begins
        at the catalog version before. The answer does not have them. Storage is looked at beside the answer. Raises
        what `answer` raises; what cannot be adopted now is logged.

        Returns:
            The answer, and a snapshot in which the version directly above the one answered is an adopted one; None if
            there is no such snapshot.
        """
        newest = self.table.current
        answered = Deferred(answer)
        if self.options.fenced or not pinned.managed or not _has_same_head(pinned, newest, chain):
            answered()
            return answered.result, _with_adopted(pinned, newest, chain)
        above = Deferred(partial(self._above, newest, chain))
        self.store.gather([answered, above])
        if above.result:
            try:
                newest = self.reconciled_snapshot(chain)
            except (LanceCoreError, LanceNamespaceError) as error:
                logger.warning("what stands above the head of %s is not adopted yet: %s", join(chain[0]), error)
        return answered.result, _with_adopted(pinned, newest, chain)

    def _above(self, snapshot: CatalogSnapshot, chain: ChainKey) -> bool:
        """Whether a file stands above the head of a chain; False where that cannot be told now."""
        try:
            return bool(versions_above(self.store, snapshot, [chain]))
        except LanceCoreError as error:
            logger.warning("what stands above the head of %s cannot be read: %s", join(chain[0]), error)
            return False

    def _set_aside(self, chain: ChainKey) -> None:
        """Quarantine what stands above the promoted head of a chain and is never adopted."""
        try:
            snapshot = self.table.current
            above = versions_above(self.store, snapshot, [chain]).get(chain, [])
            snapshot = self.table.refresh()
            table, head = snapshot.table(chain[0]), snapshot.head(*chain)
            context = AttemptContext(self.store, self.manifests, self.transactions, self.promoter, snapshot)
            if table is not None and head is not None and context.is_promoted(head):
                sha256 = never_adopted(snapshot, table, chain[1], above, context)
                if sha256 is not None:
                    self.unmanaged_manifests.set_aside(head, sha256)
        except LanceCoreError as error:
            logger.warning("what stands above the head of %s stays there for now: %s", join(chain[0]), error)

    def commit(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        """Commit batches as a group; see `Committer.commit`. Branches that begin get their ref files (M8)."""
        self.start()
        chains = {chain for batch in batches for chain in chains_of(batch.operations) if chain[1] is not None}
        if chains:
            self._finish_removals(chains)
        decided = self.committer.commit(batches)
        if chains:
            decided = self._decide_again(decided)
        for pending in decided:
            self.branch_refs.note_forks(pending, self.table)
        return decided

    def _decide_again(self, decided: Sequence[PendingBatch]) -> list[PendingBatch]:
        """The verdicts, after deciding again what was rejected and names branches that clients deleted (M8)."""
        chains = [self._rejected_branches(pending) for pending in decided]
        try:
            deleted = {chain for chain in set().union(*chains) if self.forget_if_deleted(self.table.current, *chain)}
        except LanceCoreError as error:
            logger.warning("whether branches were deleted is not known: %s", error)
            return list(decided)
        again = [number for number, named in enumerate(chains) if named & deleted]
        verdicts = dict(zip(again, self.committer.commit([decided[number].batch for number in again]), strict=True))
        return [verdicts.get(number, pending) for number, pending in enumerate(decided)]

    @staticmethod
    def _rejected_branches(pending: PendingBatch) -> set[tuple[ObjectId, str]]:
        """The branches that a rejected batch names."""
        verdict = pending.verdict
        if not isinstance(verdict, LanceNamespaceError) or isinstance(verdict, CatalogBusy | CommitOutcomeUnknown):
            return set()
        return {(table_id, branch) for table_id, branch in chains_of(pending.batch.operations) if branch is not None}

    def forget_if_deleted(self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str) -> bool:
        """Whether a client deleted a branch by path (M8). If so, its rows go in flips of their own, if they can now.

        Raises `StorageError` if that cannot be told.
        """
        if not self.branch_refs.is_deleted(snapshot, table_id, branch):
            return False
        self.record_maintenance.remove(snapshot.versions(table_id, branch))
        try:
            self.flush_record_maintenance()
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
            return  # the commit meets it too, and tells it
        if left:
            self.finish_branches(left)

    def finish_branches(self, records: Iterable[RecordEntry]) -> None:
        """Remove the files of deleted branches, and the records of those that are gone, by a flip (B2).

        Raises nothing: what cannot be done now is left to the sweep, and to the next commit on the branch.
        """
        self.record_maintenance.remove(self.branch_removal.remove_files(records))
        try:
            self.flush_record_maintenance()
        except (LanceCoreError, LanceNamespaceError) as error:
            logger.warning("records of deleted branches are left to the sweep: %s", error)

    def finish_batches(self, batches: Iterable[str]) -> None:
        """Finish the open records of batches; see `Sweeper.finish_batches`."""
        self.sweeper.finish_batches(batches)

    def flush_record_maintenance(self) -> None:
        """Do the record maintenance that waits; see `Committer.flush_record_maintenance`."""
        self.committer.flush_record_maintenance()

    def sweep(self) -> None:
        """Sweep once; see `Sweeper.sweep`."""
        self.sweeper.sweep()


def _end_of(snapshot: CatalogSnapshot, chain: ChainKey) -> tuple[object, object]:
    """The table and the head that the next version of a chain follows."""
    return snapshot.table(chain[0]), snapshot.head(*chain)


def _has_same_head(earlier: CatalogSnapshot, newest: CatalogSnapshot, chain: ChainKey) -> bool:
    """Whether a chain is of the same table, and has the same head, in an earlier snapshot and in the newest one."""
    before, after = earlier.table(chain[0]), newest.table(chain[0])
    if before is None or after is None or before.location != after.location:
        return False
    head, now = earlier.head(*chain), newest.head(*chain)
    return head is now or (
        head is not None and now is not None and (head.version, head.identity) == (now.version, now.identity)
    )


def _with_adopted(earlier: CatalogSnapshot, newest: CatalogSnapshot, chain: ChainKey) -> CatalogSnapshot | None:
    """The newest snapshot, if the version that follows the head of a chain in the earlier one was adopted since."""
    before, after = earlier.table(chain[0]), newest.table(chain[0])
    if before is None or after is None or before.location != after.location:
        return None
    head = earlier.head(*chain)
    first = next(newest.versions(*chain, start=None if head is None else head.version + 1), None)
    return newest if first is not None and first.was_adopted else None
