"""The commit loop: plan on a snapshot, write, flip; after a conflict again, on the newer snapshot.

One thread at a time runs it. Several processes on one root are safe: only the compare-and-set on `__manifest` decides.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lance_namespace.errors import TableBranchNotFoundError

from lance_core.errors import StorageError
from lance_core.storage.port import Deferred, ObjectStore
from lance_core.versions import find_contents
from namespace_server.directory.committing.failed_attempts import Leftovers
from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import (
    NOTHING_FOUND,
    FoundAbove,
    GroupAttempt,
    GroupPlanner,
    PendingBatch,
)
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping
from namespace_server.directory.committing.unmanaged_rounds import UnmanagedRound
from namespace_server.directory.committing.unproved_flip import UnprovedFlip
from namespace_server.directory.committing.write_fairness import Turns
from namespace_server.directory.manifest_table.flip import (
    Flip,
    FlipCommitted,
    FlipLost,
    FlipOutcome,
    FlipSuperseded,
    FlipUnknown,
    Following,
)
from namespace_server.directory.manifest_table.table import RECORD_LIFETIME, ManifestTable
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.manifests.deleted_branches import DeletedBranches
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.manifests.staged_bundles import may_have_bundles, with_bundle
from namespace_server.directory.manifests.stored_versions import versions_above
from namespace_server.directory.model.elapsed import elapsed_clock
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import BatchTooOld, BatchUnknown, CatalogBusy, CommittedElsewhere
from namespace_server.directory.model.object_ids import ChainKey, join
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.planning_context import PlannedVersion
from namespace_server.directory.verifying.verifier import Verifier
from namespace_server.observability.observation import FlipOutcome as ObservedOutcome
from namespace_server.observability.observation import Observer

logger = logging.getLogger(__name__)

_FLIP_OUTCOMES: Final[Mapping[type, ObservedOutcome]] = {
    FlipCommitted: "committed",
    FlipLost: "lost",
    FlipSuperseded: "superseded",
    FlipUnknown: "unknown",
}


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """`group_size`: the most batches that share a flip. `tries`: how often a group may be planned again (F5).

    `sole_writer`: nothing is looked for above heads, because no other writer can commit there (P5).
    """

    group_size: int = 64
    tries: int = 20
    sole_writer: bool = False


@dataclass(frozen=True, slots=True)
class OtherChanges:
    """Changes that are no batch, planned anew on every snapshot. With `table_metadata` a flip is made without any."""

    plan: Callable[[CatalogSnapshot], Changes]
    table_metadata: Mapping[str, str] | None = None
    strict: bool = False
    tries: int | None = None


@dataclass(frozen=True, slots=True)
class _Observed:
    """What storage held while files were written: the newest snapshot, and versions above the heads (P5, P9).

    `changed`: findings on which a batch was planned do not hold any more; see `Verifier.recheck`. `deleted`: branches
    that a client deleted (M8).
    """

    newest: CatalogSnapshot
    above: FoundAbove
    changed: bool
    deleted: Collection[ChainKey]


class CommitLoop:
    """Commits a group of batches, or other changes, and promotes what a flip published. For the thread that flips."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        planner: GroupPlanner,
        reader: ManifestReader,
        manifests: ManifestCache,
        transactions: CommittedTransactions,
        promoter: Promoter,
        deleted_branches: DeletedBranches,
        record_housekeeping: RecordHousekeeping,
        leftovers: Leftovers,
        queue: FlipQueue,
        limits: CommitLimits,
        observer: Observer,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._planner = planner
        self._reader = reader
        self._manifests = manifests
        self._transactions = transactions
        self._promoter = promoter
        self._deleted_branches = deleted_branches
        self._record_housekeeping = record_housekeeping
        self._leftovers = leftovers
        self._queue = queue
        self._limits = limits
        self._observer = observer
        self._carried = OtherChanges(record_housekeeping.plan)
        self._turns = Turns(store, table)
        self._ahead = UnprovedFlip()  # the last flip that was handed over
        self._ahead.settle(committed=True)

    def commit_group(self, group: Sequence[PendingBatch]) -> list[PlannedVersion]:
        """Give the batches of a group their verdicts; returns the versions that its flip committed.

        A batch that has to wait for the promotion of another batch of the group is left without a verdict, and after
        an exception each that has none yet. Raises `BatchUnknown`, `CatalogBusy`, `StorageError`,
        `CatalogDamaged`, `CatalogTooNew`.
        """
        own = UnprovedFlip()
        try:
            attempt, snapshot = self._run(group, None, own)
            _decide(attempt, snapshot)
            own.settle(committed=True)
            return attempt.published
        finally:
            own.settle(committed=False)

    def commit_changes(self, changes: OtherChanges) -> CatalogSnapshot:
        """Commit changes that are no batch; returns the newest snapshot. Raises as `commit_group` does."""
        return self._run([], changes, None)[1]

    def promote(self, published: Sequence[PlannedVersion]) -> None:
        """Promote what a flip published and what is not promoted yet; what fails is left to the sweep."""
        left = [version.entry for version in published if not self._promoter.is_done(version.entry)]
        if not left:
            return
        try:
            with self._observer.step("promote"):
                self._promoter.promote(left)
        except Exception:
            logger.exception("promotion is left to the sweep")

    def _await_ahead(self, group: Sequence[PendingBatch]) -> UnprovedFlip | None:
        """The last flip, if it is not proved yet and the group may be planned on it; else waits until it is settled."""
        ahead = self._ahead
        if group and not ahead.is_settled and not self._turns.are_taken and ahead.is_apart_from(group):
            return ahead
        ahead.is_committed()
        return None

    def _run(
        self, group: Sequence[PendingBatch], changes: OtherChanges | None, own: UnprovedFlip | None
    ) -> tuple[GroupAttempt, CatalogSnapshot]:
        """The commit loop: plan, write, flip, until it is committed; after a conflict again, on the newer snapshot.

        Every round counts as a try, also one that finds a newer catalog version, an unmanaged version or a missing file
        beside writing, and one that only adopts; only a lost flip is followed by a wait. In the second half of the
        tries chains that grow all the time hold up no batch: it is committed above what it adopts. Verdicts that hold
        without the flip are given at once (P7); the other batches are planned again. The first try of a group may be
        planned on the last flip while that is not proved; not knowing yet what stands above heads, it adopts and
        removes nothing. `own` is handed over to the next group. Batches that another server may commit are given up as
        soon as one is to commit them.

        Returns the attempt that is committed, or that needs no flip, and the snapshot in which its verdicts hold.
        Raises `BatchUnknown`, `CatalogBusy`, `StorageError`, `CatalogDamaged`, `CatalogTooNew`.
        """
        ahead = self._await_ahead(group)
        if group:
            self._turns.wait()
        snapshot, unmanaged = self._table.current if ahead is None else ahead.snapshot, UnmanagedRound()
        most = self._limits.tries if changes is None or changes.tries is None else changes.tries
        for tries in range(1, most + 1):
            if self._give_up(group):
                return self._planner.plan((), snapshot, NOTHING_FOUND), snapshot
            began = time.monotonic()
            moving = unmanaged.moving if tries > most // 2 else frozenset()
            with self._observer.step("plan"):
                attempt = self._plan(group, snapshot, unmanaged, moving)
                flip = self._prepare(attempt, changes)
            try:
                with self._observer.step("stage"):
                    observed = self._write(attempt, flip, ahead)
            except BaseException:
                self._leftovers.add(attempt, flip)
                raise
            stands, ahead = ahead is None or ahead.is_committed(), None
            if not stands or observed.newest.version != snapshot.version:
                self._leftovers.add(attempt, flip)
                self._turns.lost(observed.newest.version - snapshot.version)
                snapshot, unmanaged = observed.newest, unmanaged.anew()
                continue
            _refuse(group, observed.deleted, snapshot)
            following = unmanaged.following(
                observed.above, adopted=bool(attempt.adopted), judged=attempt.judged_chains, moving=moving
            )
            changed = observed.changed or observed.deleted or attempt.promoted_head
            if changed or (unmanaged.adopts and flip is None):
                following = following or replace(unmanaged, found=observed.above, adopts=False)
            if following is not None:
                self._leftovers.add(attempt, flip)
                unmanaged = following
                continue
            _decide(attempt, snapshot, only_final=True)
            if flip is None:
                return attempt, snapshot
            outcome = self._send(flip, attempt, tries, began, None if unmanaged.adopts else own)
            if isinstance(outcome, FlipCommitted):
                if not unmanaged.adopts:
                    return attempt, outcome.snapshot
                snapshot, unmanaged = outcome.snapshot, unmanaged.adopted_in(outcome.snapshot, observed.above)
                continue
            if isinstance(outcome, FlipUnknown):
                if unmanaged.adopts:
                    break  # of the batches nothing was sent
                raise BatchUnknown(flip.attempt, outcome.reason)
            if isinstance(outcome, FlipSuperseded) and own is not None:
                own.settle(committed=False)
                self._queue.resume()
            snapshot, unmanaged = self._await_next_try(flip, attempt, outcome, tries), unmanaged.anew()
        raise CatalogBusy(attempt.context.attempt, most, unmanaged.moving)

    def _plan(
        self,
        group: Sequence[PendingBatch],
        snapshot: CatalogSnapshot,
        unmanaged: UnmanagedRound,
        moving: Collection[ChainKey],
    ) -> GroupAttempt:
        waiting = [each for each in group if each.verdict is None]
        if unmanaged.adopts:
            return self._planner.adopt(waiting, snapshot, unmanaged.found)
        return self._planner.plan(waiting, snapshot, unmanaged.found, moving)

    def _give_up(self, group: Sequence[PendingBatch]) -> bool:
        """Give up batches of which nothing was sent, or lost its slot for certain. True if that leaves none.

        Those are batches that another server may commit, if one is to do that, and those with a key that are so old
        that the record of a commit under that key may have expired.
        """
        elsewhere = self._table.peers.committing() is not None
        oldest = elapsed_clock() - RECORD_LIFETIME
        for pending in group:
            if pending.verdict is not None:
                continue
            batch = pending.batch
            if elsewhere and batch.movable:
                pending.verdict = CommittedElsewhere(batch.uuid)
            elif batch.idempotency_key is not None and batch.accepted_at < oldest:
                pending.verdict = BatchTooOld(batch.uuid, RECORD_LIFETIME)
        return bool(group) and all(pending.verdict is not None for pending in group)

    def _prepare(self, attempt: GroupAttempt, changes: OtherChanges | None) -> Flip | None:
        """The flip of an attempt; None when nothing changes. A flip of batches carries record maintenance along."""
        if changes is None and not attempt.overlay.steps:
            return None
        other = changes or self._carried
        rows = other.plan(attempt.snapshot).then(*attempt.overlay.steps)
        if not rows and other.table_metadata is None:
            return None
        return self._table.prepare(
            attempt.snapshot,
            rows,
            attempt=attempt.context.attempt,
            table_metadata=other.table_metadata,
            strict=other.strict,
            outline=attempt.outline(),
        )

    def _write(self, attempt: GroupAttempt, flip: Flip | None, ahead: UnprovedFlip | None) -> _Observed:
        """Write what the flip makes reachable and look at storage beside it, in one parallel step (S1, P5)."""
        rechecked = [(planned.pending.batch, planned.pending.findings) for planned in attempt.batches]
        newest = Deferred(partial(self._refresh, ahead))
        chains = () if self._limits.sole_writer else attempt.chains
        above = Deferred(partial(versions_above, self._store, attempt.snapshot, chains))
        changed = Deferred(partial(self._verifier.recheck, rechecked, attempt.snapshot))
        deleted = Deferred(partial(self._deleted_branches.among, attempt.snapshot, attempt.chains))
        objects = [item for plan in attempt.plans for item in plan.staged]
        if may_have_bundles(self._store, attempt.snapshot):
            objects = with_bundle(objects)
        calls: list[Callable[[], object]] = [newest, above, changed, deleted, *self._turns.requests()]
        calls += [partial(self._store.put, *item, durable=False) for item in objects]
        calls += [partial(self._remove_late, *item) for item in attempt.removed_files]
        if flip is not None:
            calls.append(partial(self._table.stage, flip))
        self._store.gather(calls)
        self._store.sync([key for key, _ in objects])
        return _Observed(newest.result, above.result, changed.result, deleted.result)

    def _refresh(self, ahead: UnprovedFlip | None) -> CatalogSnapshot:
        """The newest snapshot, after it is known what became of the flip ahead."""
        if ahead is not None:
            ahead.is_committed()
        return self._table.refresh_for_flip()

    def _remove_late(self, path: str, sha256: str) -> None:
        """Remove the file of a version that went with its branch, and that was written late, unless it is another one.

        No row can name it again. What cannot be removed now is met again.
        """
        try:
            e_tag = self._store.head(path).e_tag
            if e_tag is None or hashlib.sha256(find_contents(self._store, path) or b"").hexdigest() != sha256:
                return
            remove_if(self._store, path, e_tag)
        except StorageError as error:
            logger.warning("%s is left of a branch that was deleted: %s", path, error)
        else:
            logger.error("%s was written after its branch was deleted, and is removed", path)

    def _send(
        self, flip: Flip, attempt: GroupAttempt, tries: int, began: float, own: UnprovedFlip | None
    ) -> FlipOutcome:
        """The commit step of a flip. A batch counts as sent unless the flip is in no history or was refused.

        On a bucket the next group is planned as soon as the slot is won, and sent as soon as the flip is proved.
        Versions of this one are promoted beside the proof where that may be (G7), and hold up nobody else.
        """
        _mark(attempt, sent=True)
        published = attempt.published
        following = Following(
            won=partial(self._won, flip, published, elapsed_clock(), own),
            committed=partial(self._conclude, attempt, began, own),
        )
        try:
            outcome = self._table.commit(flip, following)
        except StorageError:
            self._observer.flip("failed", tries)
            _mark(attempt, sent=False)
            self._leftovers.add(attempt, flip)
            raise
        self._observer.flip(_FLIP_OUTCOMES[type(outcome)], tries)
        if isinstance(outcome, FlipLost | FlipSuperseded):
            _mark(attempt, sent=False)
        if not isinstance(outcome, FlipCommitted):
            self._reader.forget(version.entry for version in published)
        elif attempt.adopted:
            self._observer.adopted(len(attempt.adopted))
        return outcome

    def _await_next_try(
        self, flip: Flip, attempt: GroupAttempt, outcome: FlipLost | FlipSuperseded, tries: int
    ) -> CatalogSnapshot:
        """The snapshot to plan on next, after a wait of at most a quarter of a second, with full jitter.

        The files of a lost flip are removed, and its winner is followed. Of a superseded flip everything stays (G9).
        """
        if isinstance(outcome, FlipLost):
            self._turns.lost()
            self._table.discard(flip)
            self._leftovers.add(attempt, flip, rows=False)
        time.sleep(random.uniform(0, min(0.25, 0.002 * 2**tries)))  # noqa: S311
        return self._table.follow(flip.base, outcome.winner) if isinstance(outcome, FlipLost) else self._table.refresh()

    def _won(
        self,
        flip: Flip,
        published: Sequence[PlannedVersion],
        sent_at: float,
        own: UnprovedFlip | None,
        snapshot: CatalogSnapshot,
    ) -> Callable[[], None] | None:
        """Keep the manifests of a flip that won its slot, and let the next group be planned on it (F8).

        Not in a directory, where the proof takes a few look-ups. Returns the promotion to be done beside the proof. It
        would hold up the proof, for which a group waits that comes next. `sent_at` is before the slot was written: its
        answer may come late, and others promote from then on (G21).
        """
        self._reader.remember(published, sent_at)
        promotion = partial(self.promote, published) if published and not self._queue.is_awaited else None
        if own is not None and not own.is_settled and not self._store.local:
            own.won(flip, snapshot)
            self._ahead = own
            self._queue.release()
        return promotion

    def _conclude(
        self, attempt: GroupAttempt, began: float, own: UnprovedFlip | None, snapshot: CatalogSnapshot
    ) -> None:
        """Give the verdicts of a flip that is committed, and let the next one be sent. Promotion may be under way."""
        self.conclude_records(snapshot)
        self._turns.flipped(snapshot.version, time.monotonic() - began)
        _decide(attempt, snapshot)
        self._keep(attempt.published)
        if own is not None:
            own.settle(committed=True)

    def conclude_records(self, snapshot: CatalogSnapshot) -> None:
        """Forget the record maintenance that is done in `snapshot`, by this process or by others."""
        closed = self._record_housekeeping.conclude(snapshot)
        self._promoter.forget(closed)
        self._leftovers.add_closed(closed, snapshot)

    def _keep(self, published: Iterable[PlannedVersion]) -> None:
        """Keep versions in memory that have just become heads."""
        for version in published:
            self._manifests.put(version.entry, version.file)
            self._transactions.keep(version.entry, version.file)


def _decide(attempt: GroupAttempt, snapshot: CatalogSnapshot, *, only_final: bool = False) -> None:
    """Give the batches of an attempt the verdicts that hold in `snapshot`; one that must wait keeps None."""
    for pending, verdict, final in attempt.batches:
        if pending.verdict is None and (final or not only_final):
            pending.verdict, pending.snapshot = verdict, snapshot


def _refuse(group: Iterable[PendingBatch], deleted: Collection[ChainKey], snapshot: CatalogSnapshot) -> None:
    """Reject the batches that name branches which a client deleted: what they build on, or begin anew, is gone."""
    for pending in group:
        gone = [chain for chain in pending.chains if chain in deleted]
        if pending.verdict is None and gone:
            (table_id, branch), *_ = gone
            error = TableBranchNotFoundError(f"table {join(table_id)}: branch {branch!r} was deleted by a client")
            pending.verdict, pending.snapshot = error, snapshot


def _mark(attempt: GroupAttempt, *, sent: bool) -> None:
    for planned in attempt.batches:
        planned.pending.sent = sent
