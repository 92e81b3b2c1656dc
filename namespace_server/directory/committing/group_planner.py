"""Plan a group: each batch on the overlay of those before it, after adopting unmanaged versions above its heads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.attempt_context import AttemptContext
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.stored_versions import FoundVersion
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import AssertTableVersion, Batch, KeepAnswer, TableOperation
from namespace_server.directory.model.overlay import Overlay
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Findings, Plan
from namespace_server.directory.planning.planner import plan_batch, require_managed
from namespace_server.directory.planning.planning_context import MustFollowGroup
from namespace_server.directory.planning.unmanaged_versions import adopt_found

logger = logging.getLogger(__name__)

Verdict = Plan | LanceNamespaceError
"""What a batch is answered: it is committed as planned, or this error."""
FoundAbove = Mapping[ChainKey, list[FoundVersion]]
"""Canonical manifests above the heads of chains, ascending; chains without any are left out (P5)."""

NOTHING_FOUND: FoundAbove = {}


@dataclass(slots=True)
class PendingBatch:
    """A batch on its way. `verdict` is final once `decided` is set; `snapshot` is where it was decided.

    `sent`: the commit step of a flip with this batch began and did not certainly fail. From then on only the catalog
    can tell the outcome (F1). Only the committer changes it.
    """

    batch: Batch
    findings: Findings
    chains: frozenset[ChainKey]
    verdict: Verdict | None = None
    snapshot: CatalogSnapshot | None = None
    sent: bool = False
    decided: threading.Event = field(default_factory=threading.Event)


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
    only after another look at storage, so the attempt decides nothing.
    """

    snapshot: CatalogSnapshot
    context: AttemptContext
    overlay: Overlay
    names: set[str] = field(default_factory=set)
    batches: list[PlannedBatch] = field(default_factory=list)
    promoted_head: bool = False

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
    def chains(self) -> set[ChainKey]:
        """The chains that its batches name."""
        return {chain for planned in self.batches for chain in planned.pending.chains}

    @property
    def plans(self) -> list[Plan]:
        """The plans of the batches that can be carried out."""
        return [planned.verdict for planned in self.batches if isinstance(planned.verdict, Plan)]


class GroupPlanner:
    """Plans groups of batches."""

    def __init__(self, store: ObjectStore, manifests: ManifestCache, promoter: Promoter) -> None:
        self._store = store
        self._manifests = manifests
        self._promoter = promoter

    def plan(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot, found: FoundAbove) -> GroupAttempt:
        """Plan a group on a snapshot, and adopt the unmanaged versions that were `found` above its heads.

        Committed versions that a batch removes or builds on are promoted. Raises nothing for a batch that cannot be
        carried out: its error is its verdict.
        """
        context = AttemptContext(self._store, self._manifests, self._promoter, snapshot)
        attempt = GroupAttempt(snapshot, context, Overlay(snapshot))
        for pending in group:
            unjudged = self._adopt(attempt, pending, found)
            basis = attempt.basis(pending.batch)
            verdict = _refused_assertion(pending.batch, unjudged) or self._plan_one(attempt, pending, basis)
            final = basis is snapshot and verdict is not None
            if isinstance(verdict, Plan) and verdict.changes:
                attempt.accept(verdict)
                final = False
            attempt.batches.append(PlannedBatch(pending, verdict, final))
        return attempt

    def _plan_one(self, attempt: GroupAttempt, pending: PendingBatch, basis: CatalogSnapshot) -> Verdict | None:
        """The verdict of one batch; None if it must wait until another batch of the group is promoted."""
        try:
            require_managed(attempt.snapshot)
            return plan_batch(pending.batch, basis, pending.findings, attempt.context)
        except MustFollowGroup:
            return None
        except LanceNamespaceError as error:
            return error
        except LanceCoreError as error:
            return ServiceUnavailableError(f"batch {pending.batch.uuid}: storage cannot be used: {error}")
        except Exception as error:
            logger.exception("batch %s cannot be planned", pending.batch.uuid)
            return InternalError(
                f"batch {pending.batch.uuid}: it cannot be planned ({type(error).__name__}); nothing was done"
            )

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
        return unjudged


def _refused_assertion(batch: Batch, unjudged: Collection[ChainKey]) -> LanceNamespaceError | None:
    """An assertion does not hold where the head may be behind storage (P9)."""
    if any(isinstance(item, AssertTableVersion) and (item.id, item.branch) in unjudged for item in batch.operations):
        return ServiceUnavailableError(
            f"batch {batch.uuid}: storage has versions above the asserted head that cannot be judged now; repeat it"
        )
    return None


def _names(batch: Batch) -> tuple[str, ...]:
    names = (batch.uuid, batch.request_hash)
    return names if batch.idempotency_key is None else (*names, batch.idempotency_key)
