"""Plan a group: each batch on the overlay of those before it, after adopting unmanaged versions above its heads."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.attempt_context import AttemptContext
from namespace_server.directory.committing.group_attempt import FoundAbove, GroupAttempt, PendingBatch, Verdict
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import AssertTableVersion, Batch
from namespace_server.directory.model.overlay import Overlay
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import NeedsPromotion, Plan
from namespace_server.directory.planning.planner import plan_batch, require_managed
from namespace_server.directory.planning.unmanaged_versions import adopt_found

logger = logging.getLogger(__name__)


class GroupPlanner:
    """Plans groups of batches; promotes where a plan needs that first."""

    def __init__(self, store: ObjectStore, manifests: ManifestCache, promoter: Promoter) -> None:
        self._store = store
        self._manifests = manifests
        self._promoter = promoter

    def plan(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot, found: FoundAbove) -> GroupAttempt:
        """Plan a group on a snapshot, and adopt the unmanaged versions that were `found` above its heads.

        Raises nothing for a batch that cannot be carried out: its error is its verdict.
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
            attempt.verdicts.append(verdict)
            attempt.final.append(final)
        return attempt

    def _plan_one(self, attempt: GroupAttempt, pending: PendingBatch, basis: CatalogSnapshot) -> Verdict | None:
        """The verdict of one batch; None if it must wait until another batch of the group is promoted."""
        try:
            require_managed(attempt.snapshot)
            asked: set[str] = set()
            while True:  # each operation of the batch may remove other versions
                try:
                    return plan_batch(pending.batch, basis, pending.findings, attempt.context)
                except NeedsPromotion as need:
                    if not all(attempt.context.is_committed(entry) for entry in need.entries):
                        return None
                    wanted = {entry.object_id for entry in need.entries}
                    if wanted <= asked:
                        break
                    asked |= wanted
                    heads = [head for chain in pending.chains if (head := attempt.snapshot.head(*chain)) is not None]
                    self._promoter.promote([*need.entries, *heads], attempt.snapshot)
        except LanceNamespaceError as error:
            return error
        except LanceCoreError as error:
            return ServiceUnavailableError(f"batch {pending.batch.uuid}: storage cannot be used: {error}")
        except Exception as error:
            logger.exception("batch %s cannot be planned", pending.batch.uuid)
            return InternalError(
                f"batch {pending.batch.uuid}: it cannot be planned ({type(error).__name__}); nothing was done"
            )
        return ServiceUnavailableError(
            f"batch {pending.batch.uuid}: versions that it builds on or removes cannot be promoted now; repeat it"
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
