"""Plan a group: each batch on the overlay of those before it, after adopting unmanaged versions above its heads."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.commit.prepare import FirstVersion, History, PreparedCommit, TableFiles, prepare_commit
from lance_core.errors import CorruptFile, InvalidTransaction, LanceCoreError, NotFound, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import BRANCHES_DIRECTORY, branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from lance_core.transaction.readings import may_have_read_number, other_meaning, read_once
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.manifest_cache import CacheKey, ManifestCache, cache_key
from namespace_server.directory.manifests.manifest_reader import find_files
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.manifests.quarantine import QuarantinedFile
from namespace_server.directory.manifests.stored_versions import FoundVersion
from namespace_server.directory.model.entries import TableEntry, VersionEntry, changes_of
from namespace_server.directory.model.errors import nothing_done
from namespace_server.directory.model.history import FlipOutline, adopted_version, outline_of
from namespace_server.directory.model.intents import horizon_at
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.operations import (
    AdoptTableVersions,
    AssertTableVersion,
    Batch,
    CommitTransaction,
    CreateTableVersion,
    KeepAnswer,
    TableOperation,
    chains_of,
)
from namespace_server.directory.model.overlay import Overlay
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.freshness import unnamed
from namespace_server.directory.planning.plan_builder import Findings, Plan
from namespace_server.directory.planning.planner import plan_batch, require_managed
from namespace_server.directory.planning.planning_context import Basis, MustFollowGroup, PlannedVersion
from namespace_server.directory.planning.unmanaged_versions import adopt_found, removed_files
from namespace_server.outcomes import with_nothing_done

logger = logging.getLogger(__name__)

Verdict = Plan | LanceNamespaceError
"""What a batch is answered: it is committed as planned, or this error."""
FoundAbove = Mapping[ChainKey, list[FoundVersion]]
"""Canonical manifests above the heads of chains, ascending; chains without any are left out (P5)."""

NOTHING_FOUND: FoundAbove = {}

_CHANGES_OF_ROWS: Final = frozenset({"delete", "update"})
"""Operations that are compared with others row by row, where those changed the same fragments."""


@dataclass(slots=True)
class PendingBatch:
    """A batch on its way. `verdict` is final once it is `decided`; `snapshot` is where it was decided.

    `taken`: it is in a group, and waits no more in the `FlipQueue`.
    `sent`: the commit step of a flip with this batch began and did not certainly fail. From then on only the catalog
    can tell the outcome (F1). Only the committer changes it.
    """

    batch: Batch
    findings: Findings
    chains: frozenset[ChainKey]
    verdict: Verdict | None = None
    snapshot: CatalogSnapshot | None = None
    sent: bool = False
    taken: bool = False
    decided: bool = False


class AttemptContext:
    """The `PlanningContext` of one attempt at a group, on `snapshot`. Of storage only `promote` writes."""

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
        self._quarantined: dict[str, list[QuarantinedFile]] = {}

    def remember_manifest(self, planned: PlannedVersion) -> None:
        """See `PlanningContext.remember_manifest`."""
        self._planned[cache_key(planned.entry)] = planned.file

    def manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row: of this group, from the cache, or read from storage (M4).

        Raises `NotFound`, and `CorruptFile`, also for the head of a table that is missing.
        """
        planned = self._planned.get(cache_key(entry))
        if planned is not None:
            return planned
        head = None if entry.branch is not None else self._snapshot.head(entry.table_id, None)
        is_head = head is not None and cache_key(head) == cache_key(entry)
        return self._manifests.load_head(entry) if is_head else self._manifests.load(entry)

    def is_adoptable(
        self, path: str, base: str, file: ManifestFile, below: ManifestFile | None, kept: Iterable[VersionEntry]
    ) -> bool:
        """See `PlanningContext.is_adoptable`."""
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
        left = unnamed(self, base, slow, kept)
        if not left:  # of the others, each collection since then has read the manifest
            return True
        logger.error(
            "version %d at %s is not adopted: it names a file that was written %d s before it, and what nothing names "
            "for %d s may be removed",
            file.version,
            base,
            manifest.written - min(old[key] for key in left),
            grace,
        )
        return False

    def other_meaning(self, base: str, file: ManifestFile, below: ManifestFile) -> str | None:
        """See `PlanningContext.other_meaning`."""
        deleted_rows = read_once(TableFiles(self._store, base).deleted_rows)
        if base not in self._quarantined:  # after `file` was read: what its writer can have read is there by now
            listed = self._manifests.quarantine.files()
            self._quarantined[base] = [item for item in listed if item.base == base]
        meant = [each for each in self._quarantined[base] if may_have_read_number(file.transaction, each.version)]
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

    def promote(self, entries: Sequence[VersionEntry], batch: Batch) -> None:
        """See `PlanningContext.promote`."""
        if not all(self._is_committed(entry) for entry in entries):
            raise MustFollowGroup
        heads = [head for chain in chains_of(batch.operations) if (head := self._snapshot.head(*chain)) is not None]
        self._promoter.promote([*entries, *heads], self._snapshot)
        if not all(self.is_promoted(entry) for entry in entries):
            raise with_nothing_done(
                ServiceUnavailableError(
                    f"batch {batch.uuid}: nothing was done: versions that it builds on or removes cannot be promoted "
                    "now; repeat it"
                )
            )

    def require_unchanged(self, base: CatalogSnapshot, tables: Iterable[ObjectId]) -> None:
        """See `PlanningContext.require_unchanged`."""
        committed, planned = self._snapshot.state.tables, base.state.tables
        if base is not self._snapshot and any(committed.get(each) is not planned.get(each) for each in tables):
            raise MustFollowGroup

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is known to be the row's."""
        return self._promoter.is_promoted(entry, self._snapshot) and self._is_committed(entry)

    def awaits_promotion(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is not known to be the row's."""
        return not self._promoter.is_promoted(entry, self._snapshot) and self._is_committed(entry)

    def _is_committed(self, entry: VersionEntry) -> bool:
        """Whether the row is in the catalog already, not only in the overlay of this group."""
        return self._snapshot.version_entry(entry.table_id, entry.branch, entry.version) is not None


class PlannedBatch(NamedTuple):
    """A batch of an attempt and its verdict; None if it must wait until the group is committed and promoted.

    `final`: the verdict rests on the committed snapshot alone, so it holds whether the flip is won or lost (P7).
    """

    pending: PendingBatch
    verdict: Verdict | None
    final: bool


@dataclass(slots=True)
class GroupAttempt:
    """One attempt at a group: the snapshot that it is planned on, its changes, and the verdict of each batch.

    `names` are the names by which the planned batches are found: uuids, idempotency keys, request hashes (P1, A1).
    `promoted_head`: a head below unmanaged versions was promoted by this attempt. What stands above it now is known
    only after another look at storage, so the attempt decides nothing. `removed_files` are keys and SHA-256 of files of
    deleted branches, to be removed: see `unmanaged_versions.removed_files`. `adopted` are the unmanaged versions that
    it adopts. `chains` are those that the batches of its group name.
    """

    snapshot: CatalogSnapshot
    context: AttemptContext
    overlay: Overlay
    chains: frozenset[ChainKey]
    names: set[str] = field(default_factory=set)
    batches: list[PlannedBatch] = field(default_factory=list)
    promoted_head: bool = False
    removed_files: list[tuple[str, str]] = field(default_factory=list)
    adopted: list[VersionEntry] = field(default_factory=list)

    def outline(self) -> FlipOutline:
        """What the history will tell of the batches that this attempt commits."""
        told = {
            plan.batch.uuid: outline_of(plan.batch, ((made.entry, made.file.operation) for made in plan.published))
            for plan in self.plans
            if plan.changes
        }
        return FlipOutline(told, [adopted_version(entry) for entry in self.adopted])

    def basis(self, batch: Batch) -> CatalogSnapshot:
        """The snapshot itself if nothing planned before concerns the batch, else the overlay."""
        if not self.overlay.steps:
            return self.snapshot
        alone = self.names.isdisjoint(_names(batch)) and all(
            isinstance(operation, KeepAnswer)
            or (isinstance(operation, TableOperation) and self.overlay.of(operation.id) is self.snapshot)
            for operation in batch.operations
        )
        return self.snapshot if alone else self.overlay.whole

    def accept(self, plan: Plan) -> None:
        """Make the changes of a plan visible to the batches that follow."""
        self.overlay.add(plan.changes, plan.tables)
        self.names.update(_names(plan.batch))

    @property
    def judged_chains(self) -> set[ChainKey]:
        """The chains on whose heads verdicts of its batches rest."""
        judged = (item for planned in self.batches for item in planned.pending.batch.operations)
        return chains_of(item for item in judged if not isinstance(item, AdoptTableVersions))

    @property
    def plans(self) -> list[Plan]:
        """The plans of the batches that can be carried out."""
        return [planned.verdict for planned in self.batches if isinstance(planned.verdict, Plan)]

    @property
    def published(self) -> list[PlannedVersion]:
        """The versions of tables that the flip commits."""
        return [version for plan in self.plans for version in plan.published]


class GroupPlanner:
    """Plans groups of batches."""

    def __init__(
        self, store: ObjectStore, manifests: ManifestCache, transactions: CommittedTransactions, promoter: Promoter
    ) -> None:
        self._store = store
        self._manifests = manifests
        self._transactions = transactions
        self._promoter = promoter

    def plan(
        self,
        group: Sequence[PendingBatch],
        snapshot: CatalogSnapshot,
        found: FoundAbove,
        moving: Collection[ChainKey] = (),
    ) -> GroupAttempt:
        """Plan a group on a snapshot, and adopt the unmanaged versions that were `found` above its heads.

        Committed versions that a batch removes or builds on are promoted. On a bucket the manifests that all of them
        need are read first, at once. Raises nothing for a batch that cannot be carried out: its error is its verdict.
        Of the chains that are `moving` more versions are on storage than were found: no assertion of them holds.
        """
        attempt = self._begin(group, snapshot)
        if not self._store.local:
            self._promote_heads(group, snapshot, found)
            self.read_ahead([pending.batch for pending in group], snapshot)
        for pending in group:
            unjudged = [*self._adopt(attempt, pending, found), *moving]
            basis = attempt.basis(pending.batch)
            verdict = _refused_assertion(pending.batch, unjudged) or self._plan_one(attempt, pending, basis)
            final = basis is snapshot and verdict is not None
            if isinstance(verdict, Plan) and verdict.changes:
                attempt.accept(verdict)
                final = False
            attempt.batches.append(PlannedBatch(pending, verdict, final))
        return attempt

    def adopt(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot, found: FoundAbove) -> GroupAttempt:
        """As `plan`, without the batches: an attempt that adopts what was found above their heads, and decides none."""
        attempt = self._begin(group, snapshot)
        for pending in group:
            self._adopt(attempt, pending, found)
        return attempt

    def _begin(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot) -> GroupAttempt:
        context = AttemptContext(self._store, self._manifests, self._transactions, self._promoter, snapshot)
        chains = frozenset().union(*(pending.chains for pending in group))
        return GroupAttempt(snapshot, context, Overlay(snapshot), chains)

    def read_ahead(self, batches: Sequence[Batch], snapshot: CatalogSnapshot) -> None:
        """Read into memory, at once, what planning would read for one batch after the other.

        That is the head of each chain that gets a version, and of each version since the one that a transaction read
        its transaction; or its manifest, if rows of the same fragments may have been changed.
        """
        heads, concurrent = _versions_to_read(batches, snapshot)
        self._store.gather([*self._manifests.reads(heads), *self._transactions.reads(concurrent)])

    def _promote_heads(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot, found: FoundAbove) -> None:
        """Promote at once what planning would promote for one batch after the other.

        A head below unmanaged versions is left to `_adopt`, which looks above it again.
        """
        new = _new_versions(pending.batch for pending in group)
        chains = {(operation.id, operation.branch) for operation in new} - found.keys()
        heads = [head for chain in chains if (head := snapshot.head(*chain)) is not None]
        waiting = [head for head in heads if not self._promoter.is_promoted(head, snapshot)]
        if waiting:
            self._promoter.promote(waiting, snapshot)

    def _plan_one(self, attempt: GroupAttempt, pending: PendingBatch, basis: CatalogSnapshot) -> Verdict | None:
        """The verdict of one batch; None if it must wait until another batch of the group is promoted.

        An exception is one before the commit step: nothing was done, and the text of a store's error stays in the log.
        """
        try:
            require_managed(attempt.snapshot)
            return plan_batch(pending.batch, basis, pending.findings, attempt.context)
        except MustFollowGroup:
            return None
        except CorruptFile as error:  # that of the catalog is a namespace error, too
            return nothing_done(pending.batch.uuid, error)
        except LanceNamespaceError as error:
            return with_nothing_done(error)
        except LanceCoreError as error:
            logger.warning("batch %s cannot be planned: %s", pending.batch.uuid, error)
            return nothing_done(pending.batch.uuid, error)
        except Exception as error:
            logger.exception("batch %s cannot be planned", pending.batch.uuid)
            return nothing_done(pending.batch.uuid, error)

    def _adopt(self, attempt: GroupAttempt, pending: PendingBatch, found: FoundAbove) -> list[ChainKey]:
        """Put rows for the unmanaged versions above the heads that a batch names, rejected or not (P5).

        Not in a root that is not managed: version rows would stop its own writers. Not above a head that has not its
        canonical name: such versions were built on the unmanaged file that has that name (M6). Such a head is promoted
        first, and what stands above it afterwards is adopted by the next attempt.

        Returns the chains where that is not possible now: nothing tells whether the head is behind storage.
        """
        unjudged: list[ChainKey] = []
        for chain in pending.chains if attempt.snapshot.managed else ():
            overlay = attempt.overlay.of(chain[0])
            table = overlay.table(chain[0])
            if chain not in found or table is None:
                continue
            attempt.removed_files += removed_files(attempt.snapshot, table, chain[1], found[chain])
            head = attempt.snapshot.head(*chain)
            if head is not None and not attempt.context.is_promoted(head):
                self._promoter.promote([head], attempt.snapshot)
                if attempt.context.is_promoted(head):
                    attempt.promoted_head = True
                else:
                    unjudged.append(chain)
                continue
            try:
                entries = adopt_found(overlay, table, chain[1], found[chain], attempt.context)
            except LanceCoreError as error:  # it must not fail the other batches of the group
                logger.warning("%s: versions above the head are not adopted: %s", table.location, error)
                unjudged.append(chain)
                continue
            if entries:
                logger.info("%s: adopting versions %d to %d", table.location, entries[0].version, entries[-1].version)
                attempt.overlay.add(changes_of(entries), (table.id,))
                attempt.adopted += entries
        return unjudged


def _refused_assertion(batch: Batch, unjudged: Collection[ChainKey]) -> LanceNamespaceError | None:
    """An assertion does not hold where the head may be behind storage (P9)."""
    if any(isinstance(item, AssertTableVersion) and (item.id, item.branch) in unjudged for item in batch.operations):
        return with_nothing_done(
            ServiceUnavailableError(
                f"batch {batch.uuid}: nothing was done: storage has versions above the asserted head, committed around "
                "the catalog, that cannot be judged now; repeat it"
            )
        )
    return None


def _versions_to_read(
    batches: Iterable[Batch], snapshot: CatalogSnapshot
) -> tuple[list[VersionEntry], list[VersionEntry]]:
    """The rows whose manifests planning needs, and those of which it needs the transactions alone."""
    whole: dict[ChainKey, int] = {}
    alone: dict[ChainKey, int] = {}
    for operation in _new_versions(batches):
        chain = (operation.id, operation.branch)
        if (top := snapshot.top(*chain)) is None:
            continue
        read = operation.transaction.read_version if isinstance(operation, CommitTransaction) else top[0]
        if isinstance(operation, CommitTransaction) and read < top[0]:
            if operation.transaction.WhichOneof("operation") in _CHANGES_OF_ROWS:
                whole[chain] = min(read, whole.get(chain, read))
            else:
                alone[chain] = min(read + 1, alone.get(chain, read + 1))
        whole.setdefault(chain, top[0])
    manifests = [entry for chain, version in whole.items() for entry in snapshot.versions(*chain, start=version)]
    transactions = [entry for chain, version in alone.items() for entry in snapshot.versions(*chain, start=version)]
    return manifests, transactions


def _new_versions(batches: Iterable[Batch]) -> Iterator[CommitTransaction | CreateTableVersion]:
    for batch in batches:
        for operation in batch.operations:
            if isinstance(operation, CommitTransaction | CreateTableVersion):
                yield operation


def _names(batch: Batch) -> tuple[str, ...]:
    names = (batch.uuid, batch.request_hash)
    return names if batch.idempotency_key is None else (*names, batch.idempotency_key)


def _check_origin(files: TableFiles, clone: pb.Transaction.Clone, cloned: VersionEntry) -> None:
    """Raise InvalidTransaction unless the Clone names its parent's root, where readers find inherited files (P4)."""
    if files.key_of(clone.ref_path) != cloned.base:
        raise InvalidTransaction(
            f"clone of version {clone.ref_version} of {clone.ref_path!r}: expected the root of its parent, "
            f"{files.store.object_uri(cloned.base)}"
        )
