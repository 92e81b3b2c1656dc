"""One attempt at a group of batches: the values that pass between planning, staging and the flip."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lance_namespace.errors import LanceNamespaceError

from namespace_server.directory.committing.attempt_context import AttemptContext
from namespace_server.directory.committing.stored_versions import FoundVersion
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import Batch, KeepAnswer, TableOperation
from namespace_server.directory.model.overlay import Overlay
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Finding, Plan

Verdict = Plan | LanceNamespaceError
"""What a batch is answered: it is committed as planned, or this error."""
FoundAbove = Mapping[ChainKey, list[FoundVersion]]
"""Canonical manifests above the heads of chains, ascending; chains without any are left out (P5)."""

NOTHING_FOUND: FoundAbove = {}


@dataclass(slots=True)
class PendingBatch:
    """A batch on its way. `verdict` is final once `decided` is set; `snapshot` is where it was decided.

    `sent`: the commit step of a flip with this batch began and did not certainly fail. From then on only the catalog
    can tell the outcome (F1).
    """

    batch: Batch
    findings: dict[int, Finding]
    chains: frozenset[ChainKey]
    verdict: Verdict | None = None
    snapshot: CatalogSnapshot | None = None
    sent: bool = False
    decided: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class GroupAttempt:
    """One attempt: the snapshot that it is planned on, its changes, and the verdict of each batch.

    `final[i]`: verdict i rests on the committed snapshot alone, so it holds whether the flip is won or lost (P7).
    `names` are the names by which the planned batches are found: uuids, idempotency keys, request hashes (P1, A1).
    `promoted_head`: a head below unmanaged versions was promoted by this attempt. What stands above it now is
    known only after another look at storage, so the attempt decides nothing.
    """

    snapshot: CatalogSnapshot
    context: AttemptContext
    overlay: Overlay
    names: set[str] = field(default_factory=set)
    verdicts: list[Verdict | None] = field(default_factory=list)
    final: list[bool] = field(default_factory=list)
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

    def decide_final(self, group: Sequence[PendingBatch]) -> None:
        """Give the batches of the group the verdicts that hold without the flip."""
        for pending, verdict, final in zip(group, self.verdicts, self.final, strict=True):
            if final:
                pending.verdict, pending.snapshot = verdict, self.snapshot

    def decide_all(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot) -> None:
        """Give the other batches their verdicts, which hold in `snapshot`; a batch that must wait keeps None."""
        for pending, verdict in zip(group, self.verdicts, strict=True):
            if pending.verdict is None:
                pending.verdict, pending.snapshot = verdict, snapshot

    def published(self) -> list[Plan]:
        """The plans that publish table versions."""
        return [verdict for verdict in self.verdicts if isinstance(verdict, Plan) and verdict.published]


def _names(batch: Batch) -> tuple[str, ...]:
    names = (batch.uuid, batch.request_hash)
    return names if batch.idempotency_key is None else (*names, batch.idempotency_key)
