"""Plan a group: each batch on the overlay of those before it, after adopting unmanaged versions above its heads."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import CorruptFile, LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import PlannedVersion
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.manifests.stored_versions import FoundVersion
from namespace_server.directory.model.entries import VersionEntry, changes_of
from namespace_server.directory.model.errors import nothing_done
from namespace_server.directory.model.history import FlipOutline, adopted_version, outline_of
from namespace_server.directory.model.object_ids import ChainKey
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
from namespace_server.directory.planning.plan_builder import Findings, Plan
from namespace_server.directory.planning.planner import plan_batch, require_managed
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.directory.planning.unmanaged_versions import adopt_found, removed_files
from namespace_server.outcomes import with_nothing_done

logger = logging.getLogger(__name__)

Verdict = Plan | LanceNamespaceError
"""The verdict of a batch: it is committed as planned, or this error."""
FoundAbove = Mapping[ChainKey, list[FoundVersion]]
"""Canonical manifests above the heads of chains, ascending; chains without any are left out (P5)."""

_CHANGES_OF_ROWS: Final = frozenset({"delete", "update"})
"""Operations that are compared with others row by row, where those changed the same fragments."""


@dataclass(slots=True)
class PendingBatch:
    """A batch on its way. `verdict` is final once it is `decided`; `snapshot` is where it was decided.

    `taken`: it is in a group, and waits no more in the `FlipQueue`. Only the committer changes it.
    """

    batch: Batch
    findings: Findings
    chains: frozenset[ChainKey]
    verdict: Verdict | None = None
    snapshot: CatalogSnapshot | None = None
    taken: bool = False
    decided: bool = False

    def decide(self, verdict: Verdict, snapshot: CatalogSnapshot | None) -> None:
        """Give the batch its verdict, reached on a snapshot if there is one. The only place where it gets one."""
        self.verdict, self.snapshot = verdict, snapshot


class PlannedBatch(NamedTuple):
    """A batch of an attempt and its verdict; None if it must follow the flip of its group.

    `final`: the verdict rests on the committed snapshot alone, so it holds whether the flip is won or lost (P7).
    """

    pending: PendingBatch
    verdict: Verdict | None
    final: bool


@dataclass(slots=True)
class GroupAttempt:
    """One attempt at a group: the snapshot that it is planned on, its changes, and the verdict of each batch.

    `names` are the names by which the planned batches are found: uuids, idempotency keys, request hashes (P1, A1).
    `removed_files` are keys and SHA-256 of files of deleted branches, to be removed: see
    `unmanaged_versions.removed_files`. `adopted` are the unmanaged versions that it adopts. `chains` are those that its
    batches name. `refused` are batches that were refused before it.
    """

    snapshot: CatalogSnapshot
    context: PlanningContext
    overlay: Overlay
    chains: frozenset[ChainKey]
    names: set[str] = field(default_factory=set)
    batches: list[PlannedBatch] = field(default_factory=list)
    removed_files: list[tuple[str, str]] = field(default_factory=list)
    adopted: list[VersionEntry] = field(default_factory=list)
    refused: Sequence[PlannedBatch] = ()

    def outline(self) -> FlipOutline:
        """The history's entry of the batches that this attempt commits."""
        batches = {
            plan.batch.uuid: outline_of(
                plan.batch,
                ((made.entry, made.file.operation, made.rows) for made in plan.published),
                plan.granted,
            )
            for plan in self.plans
            if plan.changes
        }
        return FlipOutline(batches, [adopted_version(entry) for entry in self.adopted])

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
        return set().union(*(_judged_chains(planned.pending) for planned in self.batches))

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

        Writes nothing. On a bucket the manifests that all of them need are read first, at once. Raises nothing for a
        batch that cannot be carried out: its error is its verdict. One that must follow the flip of the group has none;
        see `plan_batch`. Of the chains that are `moving` more versions are on storage than were found: no assertion of
        them holds.
        """
        attempt = self._begin(group, snapshot)
        if not self._store.local:
            self.read_ahead([pending.batch for pending in group], snapshot)
        for pending in group:
            unjudged = [*self._adopt(attempt, pending, found), *moving]
            basis = attempt.basis(pending.batch)
            verdict = _refused_assertion(pending, unjudged) or self._plan_one(attempt, pending, basis)
            final = basis is snapshot and verdict is not None
            if isinstance(verdict, Plan) and verdict.changes:
                attempt.accept(verdict)
                final = False
            attempt.batches.append(PlannedBatch(pending, verdict, final))
        return attempt

    def adopt(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot, found: FoundAbove) -> GroupAttempt:
        """As `plan`, without the batches: an attempt that adopts versions above their heads, and decides none."""
        attempt = self._begin(group, snapshot)
        for pending in group:
            self._adopt(attempt, pending, found)
        return attempt

    def _begin(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot) -> GroupAttempt:
        context = PlanningContext(self._store, self._manifests, self._transactions, self._promoter, snapshot)
        chains = frozenset().union(*(pending.chains for pending in group))
        return GroupAttempt(snapshot, context, Overlay(snapshot), chains)

    def read_ahead(self, batches: Sequence[Batch], snapshot: CatalogSnapshot) -> None:
        """Read into memory, at once, the manifests and transactions that planning would read one batch after the other.

        That is the head of each chain that gets a version, and of each version since the one that a transaction read
        its transaction; or its manifest, if rows of the same fragments may have been changed.
        """
        heads, concurrent = _versions_to_read(batches, snapshot)
        self._store.gather([*self._manifests.reads(heads), *self._transactions.reads(concurrent)])

    def keep(self, published: Iterable[PlannedVersion]) -> None:
        """Keep these versions in memory for the planning of others on top of them: they have just become heads."""
        for version in published:
            self._manifests.put(version.entry, version.file)
            self._transactions.keep(version.entry, version.file)

    def _plan_one(self, attempt: GroupAttempt, pending: PendingBatch, basis: CatalogSnapshot) -> Verdict | None:
        """The verdict of one batch; None if it must follow the flip of the group.

        An exception is one before the commit step: nothing was done, and the text of a store's error stays in the log.
        """
        try:
            require_managed(attempt.snapshot)
            return plan_batch(pending.batch, basis, pending.findings, attempt.context)
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
        canonical name: such versions were built on the unmanaged file that has that name (M6).

        Returns the chains where that is not possible now: whether the head is behind storage is unknown there.
        """
        unjudged: list[ChainKey] = []
        for chain in pending.chains & found.keys() if attempt.snapshot.managed else ():
            overlay = attempt.overlay.of(chain[0])
            table = overlay.table(chain[0])
            if table is None or table.location != attempt.snapshot.location(chain[0]):
                continue  # the group moved the table: what was found lies at the location of another one
            attempt.removed_files += removed_files(attempt.snapshot, table, chain[1], found[chain])
            head = attempt.snapshot.head(*chain)
            if head is not None and not attempt.context.is_promoted(head):
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


def _judged_chains(pending: PendingBatch) -> set[ChainKey]:
    """The chains of a batch on whose heads its verdict rests; none that its subject may not see."""
    operations = (item for item in pending.batch.operations if not isinstance(item, AdoptTableVersions))
    return chains_of(operations) & pending.chains


def _refused_assertion(pending: PendingBatch, unjudged: Collection[ChainKey]) -> LanceNamespaceError | None:
    """An assertion does not hold where the head may be behind storage (P9); of what is hidden nothing is told."""
    chains = pending.chains.intersection(unjudged)
    operations = pending.batch.operations
    if any(isinstance(item, AssertTableVersion) and (item.id, item.branch) in chains for item in operations):
        return with_nothing_done(
            ServiceUnavailableError(
                f"batch {pending.batch.uuid}: nothing was done: storage has versions above the asserted head, "
                "committed around the catalog, that cannot be judged now; repeat it"
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
