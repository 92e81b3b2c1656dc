"""The one writer of a catalog in this process: batches and all other changes go through one commit loop.

`Committer._commit_changes` is the loop: plan on a snapshot, write, flip; after a conflict again, on the newer snapshot.
One thread at a time commits a group: the batches that queued meanwhile. Then it promotes what the flip published, while
the next one flips. On a bucket the next one is planned and staged as soon as the slot is won (F8). Several processes on
one root are safe: only the compare-and-set on `__manifest` decides.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import StorageError
from lance_core.format.manifest import Identity
from lance_core.storage.port import Deferred, ObjectStore
from namespace_server.directory.committing.committed_transactions import CommittedTransactions
from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import (
    NOTHING_FOUND,
    FoundAbove,
    GroupAttempt,
    GroupPlanner,
    PendingBatch,
    Verdict,
)
from namespace_server.directory.committing.leftovers import Leftovers
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.manifest_reader import ManifestReader
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.record_maintenance import RecordMaintenance
from namespace_server.directory.committing.removals import remove_if
from namespace_server.directory.committing.stored_versions import versions_above
from namespace_server.directory.committing.turns import Turns
from namespace_server.directory.committing.unproved_flip import UnprovedFlip
from namespace_server.directory.committing.verifier import Verifier
from namespace_server.directory.manifest_table.flip import (
    Flip,
    FlipCommitted,
    FlipLost,
    FlipOutcome,
    FlipSuperseded,
    FlipUnknown,
    Following,
)
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import (
    BatchConflict,
    CatalogBusy,
    CatalogDamaged,
    CatalogTooNew,
    CommitOutcomeUnknown,
    CommittedElsewhere,
    nothing_done,
)
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import Batch, UndropNamespace, UndropTable, chains_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.planning.planner import replay_committed
from namespace_server.directory.planning.planning_context import PlannedVersion
from namespace_server.observation import SILENT, BatchOutcome, Observer
from namespace_server.observation import FlipOutcome as ObservedOutcome

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

    `fenced`: nothing is looked for above heads, because no other writer can commit there (P5).
    """

    group_size: int = 64
    tries: int = 20
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class _OtherChanges:
    """Changes that are no batch, planned anew on every snapshot. With `table_metadata` a flip is made without any."""

    plan: Callable[[CatalogSnapshot], Changes]
    table_metadata: Mapping[str, str] | None = None
    strict: bool = False
    tries: int | None = None


@dataclass(frozen=True, slots=True)
class _Observed:
    """What storage held while files were written: the newest snapshot, and versions above the heads (P5, P9).

    `changed`: findings on which a batch was planned do not hold any more; see `Verifier.recheck`.
    """

    newest: CatalogSnapshot
    above: FoundAbove
    changed: bool


class Committer:
    """Commits batches in groups, without waiting for groups to form. Thread-safe.

    `last_commit` is the time, by `time.monotonic`, at which the last call of `commit` ended; 0.0 before the first one.
    The `observer` is told of the steps, and of what became of each batch.
    """

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        reader: ManifestReader,
        manifests: ManifestCache,
        transactions: CommittedTransactions,
        promoter: Promoter,
        record_maintenance: RecordMaintenance,
        limits: CommitLimits,
        observer: Observer = SILENT,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._reader = reader
        self._manifests = manifests
        self._transactions = transactions
        self._promoter = promoter
        self._record_maintenance = record_maintenance
        self._limits = limits
        self._observer = observer
        self._carried = _OtherChanges(record_maintenance.plan)
        self._planner = GroupPlanner(store, manifests, transactions, promoter)
        self._leftovers = Leftovers(store)
        self._turns = Turns(table)
        self._queue = FlipQueue(limits.group_size)
        self._ahead = UnprovedFlip()  # the last flip that was handed over; for the thread that flips
        self._ahead.settle(committed=True)
        self.last_commit = 0.0

    def commit(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        """Commit batches; returns when each has its verdict and its versions are promoted as far as possible.

        Batches are independent: each is all or nothing, and one's rejection never fails another. The verdict of a batch
        that could not be planned, because the catalog or a store could not be read, says that nothing was done (A3).
        """
        began = time.monotonic()
        try:
            decided = self._commit(batches)
        finally:
            self.last_commit = time.monotonic()
        self._report(decided, time.monotonic() - began)
        return decided

    def _commit(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        chains = [frozenset(chains_of(batch.operations)) for batch in batches]
        try:
            snapshot = self._table.current
            named = set().union(*chains)
            if any(snapshot.table(table_id) is None for table_id, _ in named) or any(map(_is_undrop, batches)):
                snapshot = self._table.refresh()
            with self._observer.step("verify"):
                findings = self._verifier.verify(batches, snapshot)
            if not self._store.local:
                self._planner.read_ahead(batches, snapshot)  # nobody waits for it but these batches
        except Exception as error:  # noqa: BLE001 - nothing was sent yet
            _log_failure(len(batches), error)
            return [
                PendingBatch(batch, {}, named, nothing_done(batch.uuid, error))
                for batch, named in zip(batches, chains, strict=True)
            ]
        mine = [PendingBatch(*each) for each in zip(batches, findings, chains, strict=True)]
        self._queue.add(mine)
        while group := self._queue.take_group(mine):
            try:
                published = self._commit_group(group)
            finally:
                self._queue.release()
            while self._finish(group, published):
                group = [pending for pending in group if pending.verdict is None]
                with self._queue.flipping():
                    published = self._commit_group(group)
        return mine

    def commit_changes(
        self,
        plan: Callable[[CatalogSnapshot], Changes],
        *,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
        tries: int | None = None,
    ) -> CatalogSnapshot:
        """Commit changes that are no batch: record maintenance, or the adoption of a root.

        `plan` may be called several times, each time with a newer snapshot, at most `tries` times if they are given.
        Returns the newest snapshot; without changes and metadata nothing is written. Raises `CommitOutcomeUnknown`,
        `CatalogBusy`, `StorageError`.
        """
        with self._queue.flipping():
            self._await_ahead()
            _, snapshot = self._commit_changes([], _OtherChanges(plan, table_metadata, strict, tries))
        return snapshot

    def flush_record_maintenance(self, *, tries: int | None = None) -> None:
        """Do the record maintenance that waits, in flips of its own. `tries` and errors as of `commit_changes`."""
        while waiting := self._record_maintenance.waiting:
            snapshot = self.commit_changes(self._record_maintenance.plan_alone, tries=tries)
            self._promoter.forget(self._record_maintenance.conclude(snapshot))  # what other servers did counts, too
            if self._record_maintenance.waiting >= waiting:
                return

    def remove_leftovers(self) -> None:
        """Remove the files of attempts that are in no history. What cannot be removed is left to a collection."""
        self._leftovers.remove()

    def _commit_group(self, group: Sequence[PendingBatch]) -> list[PlannedVersion]:
        """Decide a group; returns the versions that its flip committed.

        A batch that has to wait for the promotion of another batch of the group is left without a verdict. After an
        exception only those outcomes are unknown whose commit step had begun.
        """
        self._observer.group(len(group))
        own = UnprovedFlip()
        try:
            ahead = self._await_ahead(group)
            self._turns.wait()
            attempt, snapshot = self._commit_changes(group, ahead=ahead, own=own)
            _decide(attempt, snapshot)
            own.settle(committed=True)
            return attempt.published
        except CommitOutcomeUnknown as unknown:
            reason = unknown.reason
            _reject(group, lambda pending: CommitOutcomeUnknown(pending.batch.uuid, reason))
        except CatalogBusy:
            _reject(group, self._answer_when_busy)
        except Exception as error:  # noqa: BLE001 - every batch of the group needs a verdict
            _log_failure(len(group), error)
            _reject(group, partial(_answer_after_failure, error=error))
        except BaseException:
            _reject(group, lambda pending: CommitOutcomeUnknown(pending.batch.uuid, "the committer stopped"))
            self._queue.decide(group)
            raise
        finally:
            own.settle(committed=False)
        return []

    def _await_ahead(self, group: Sequence[PendingBatch] = ()) -> UnprovedFlip | None:
        """The last flip, if it is not proved yet and the group may be planned on it; else waits until it is settled."""
        ahead = self._ahead
        if group and not ahead.is_settled and not self._turns.are_taken and ahead.is_apart_from(group):
            return ahead
        ahead.is_committed()
        return None

    def _commit_changes(
        self,
        group: Sequence[PendingBatch],
        changes: _OtherChanges | None = None,
        *,
        ahead: UnprovedFlip | None = None,
        own: UnprovedFlip | None = None,
    ) -> tuple[GroupAttempt, CatalogSnapshot]:
        """The commit loop: plan, write, flip, until it is committed; after a conflict again, on the newer snapshot.

        Every round counts as a try, also one that finds a newer catalog version, an unmanaged version or a missing file
        beside writing; only a lost flip is followed by a wait. Verdicts that hold without the flip are given at once
        (P7); the other batches are planned again. The first try is planned on the flip `ahead`, if there is one; not
        knowing yet what stands above heads, it adopts and removes nothing. `own` is handed over to the next group.
        Batches that another server may commit are given up as soon as one is to commit them.

        Returns the attempt that is committed, or that needs no flip, and the snapshot in which its verdicts hold.
        Raises `CommitOutcomeUnknown`, `CatalogBusy`, `StorageError`, `CatalogDamaged`, `CatalogTooNew`.
        """
        snapshot, found = self._table.current if ahead is None else ahead.snapshot, NOTHING_FOUND
        most = self._limits.tries if changes is None or changes.tries is None else changes.tries
        for tries in range(1, most + 1):
            if self._hand_on(group):
                return self._planner.plan((), snapshot, NOTHING_FOUND), snapshot
            began = time.monotonic()
            with self._observer.step("plan"):
                attempt = self._planner.plan([each for each in group if each.verdict is None], snapshot, found)
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
                snapshot, found = observed.newest, NOTHING_FOUND
                continue
            if observed.changed or attempt.promoted_head or _identities(observed.above) != _identities(found):
                self._leftovers.add(attempt, flip)
                found = observed.above
                continue
            _decide(attempt, snapshot, only_final=True)
            if flip is None:
                return attempt, snapshot
            outcome = self._send(flip, attempt, tries, began, own)
            if isinstance(outcome, FlipCommitted):
                return attempt, outcome.snapshot
            if isinstance(outcome, FlipUnknown):
                raise CommitOutcomeUnknown(flip.attempt, outcome.reason)
            if isinstance(outcome, FlipSuperseded) and own is not None:
                own.settle(committed=False)
                self._queue.resume()
            snapshot, found = self._await_next_try(flip, attempt, outcome, tries), NOTHING_FOUND
        raise CatalogBusy(attempt.context.attempt, most)

    def _hand_on(self, group: Sequence[PendingBatch]) -> bool:
        """Give up the batches that another server may commit, if one is to do that. True if that leaves none.

        Nothing of them was sent, or it lost its slot for certain.
        """
        if not group or self._table.peers.committing() is None:
            return False
        for pending in group:
            if pending.verdict is None and pending.batch.movable:
                pending.verdict = CommittedElsewhere(pending.batch.uuid)
        return all(pending.verdict is not None for pending in group)

    def _prepare(self, attempt: GroupAttempt, changes: _OtherChanges | None) -> Flip | None:
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
        chains = () if self._limits.fenced else attempt.chains
        above = Deferred(partial(versions_above, self._store, attempt.snapshot, chains))
        changed = Deferred(partial(self._verifier.recheck, rechecked, attempt.snapshot))
        objects = [item for plan in attempt.plans for item in plan.staged]
        calls: list[Callable[[], object]] = [newest, above, changed]
        calls += [partial(self._store.put, *item, durable=False) for item in objects]
        calls += [partial(self._remove_late, *item) for item in attempt.removed_files]
        if flip is not None:
            calls.append(partial(self._table.stage, flip))
        self._store.gather(calls)
        self._store.sync([key for key, _ in objects])
        return _Observed(newest.result, above.result, changed.result)

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
            if e_tag is None or hashlib.sha256(self._store.get(path)).hexdigest() != sha256:
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
            won=partial(self._won, flip, published, own), committed=partial(self._conclude, attempt, began, own)
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
            self._table.discard(flip)
            self._leftovers.add(attempt, flip, rows=False)
        time.sleep(random.uniform(0, min(0.25, 0.002 * 2**tries)))  # noqa: S311
        return self._table.follow(flip.base, outcome.winner) if isinstance(outcome, FlipLost) else self._table.refresh()

    def _won(
        self, flip: Flip, published: Sequence[PlannedVersion], own: UnprovedFlip | None, snapshot: CatalogSnapshot
    ) -> Callable[[], None] | None:
        """Keep the manifests of a flip that won its slot, and let the next group be planned on it (F8).

        Not in a directory, where the proof takes a few look-ups. Returns the promotion to be done beside the proof. It
        would hold up the proof, for which a group waits that comes next.
        """
        self._reader.remember(published)
        promotion = partial(self._promote, published) if published and not self._queue.is_awaited else None
        if own is not None and not own.is_settled and not self._store.local:
            own.won(flip, snapshot)
            self._ahead = own
            self._queue.release()
        return promotion

    def _conclude(
        self, attempt: GroupAttempt, began: float, own: UnprovedFlip | None, snapshot: CatalogSnapshot
    ) -> None:
        """Give the verdicts of a flip that is committed, and let the next one be sent. Promotion may be under way."""
        self._promoter.forget(self._record_maintenance.conclude(snapshot))
        self._turns.flipped(snapshot.version, time.monotonic() - began)
        _decide(attempt, snapshot)
        self._keep(attempt.published)
        if own is not None:
            own.settle(committed=True)

    def _answer_when_busy(self, pending: PendingBatch) -> Verdict:
        """Retries are exhausted. "Busy" is no verdict: another copy of a batch may be committed, by its record (F5)."""
        pending.snapshot = self._table.current
        try:
            replayed = replay_committed(pending.batch, pending.snapshot, pending.findings)
        except LanceNamespaceError as error:
            return error
        return replayed or CatalogBusy(pending.batch.uuid, self._limits.tries)

    def _keep(self, published: Iterable[PlannedVersion]) -> None:
        """Keep versions in memory that have just become heads."""
        for version in published:
            self._manifests.put(version.entry, version.file)
            self._transactions.keep(version.entry, version.file)

    def _finish(self, group: list[PendingBatch], published: Sequence[PlannedVersion]) -> bool:
        """Promote the committed versions, then release the decided batches. True when batches of the group wait."""
        try:
            self._promote(published)
        finally:  # promotion does not change these verdicts, and other threads wait for them
            self._queue.decide(pending for pending in group if pending.verdict is not None)
        return any(pending.verdict is None for pending in group)

    def _promote(self, published: Sequence[PlannedVersion]) -> None:
        """Promote what a flip published and what is not promoted yet; what fails is left to the sweep."""
        left = [version.entry for version in published if not self._promoter.is_done(version.entry)]
        if not left:
            return
        try:
            with self._observer.step("promote"):
                self._promoter.promote(left)
        except Exception:
            logger.exception("promotion is left to the sweep")

    def _report(self, decided: Sequence[PendingBatch], seconds: float) -> None:
        for pending in decided:
            if isinstance(pending.verdict, CommittedElsewhere):
                continue
            self._observer.batch(_outcome_of(pending.verdict), seconds)
            if isinstance(pending.verdict, BatchConflict):
                self._observer.conflict(pending.verdict.operation, pending.verdict.committed)


def _outcome_of(verdict: Verdict | None) -> BatchOutcome:
    if isinstance(verdict, Plan):
        return "committed"
    if isinstance(verdict, CommitOutcomeUnknown):
        return "unknown"
    return "failed" if isinstance(verdict, ServiceUnavailableError | InternalError | CatalogTooNew) else "rejected"


def _is_undrop(batch: Batch) -> bool:
    """Whether a batch brings back what was dropped: tombstones are looked for in the newest snapshot."""
    return any(isinstance(operation, UndropTable | UndropNamespace) for operation in batch.operations)


def _decide(attempt: GroupAttempt, snapshot: CatalogSnapshot, *, only_final: bool = False) -> None:
    """Give the batches of an attempt the verdicts that hold in `snapshot`; one that must wait keeps None."""
    for pending, verdict, final in attempt.batches:
        if pending.verdict is None and (final or not only_final):
            pending.verdict, pending.snapshot = verdict, snapshot


def _reject(group: Sequence[PendingBatch], answer: Callable[[PendingBatch], Verdict]) -> None:
    """Give the batches of a group that are undecided a verdict each."""
    for pending in group:
        if pending.verdict is None:
            pending.verdict = answer(pending)


def _answer_after_failure(pending: PendingBatch, error: Exception) -> LanceNamespaceError:
    if pending.sent:
        return CommitOutcomeUnknown(pending.batch.uuid, "the committer failed")
    return nothing_done(pending.batch.uuid, error)


def _mark(attempt: GroupAttempt, *, sent: bool) -> None:
    for planned in attempt.batches:
        planned.pending.sent = sent


def _log_failure(batches: int, error: Exception) -> None:
    """One line for damage that the message explains, a trace for everything else."""
    known = isinstance(error, CatalogDamaged | CatalogTooNew)
    logger.error("a group of %d batches was not committed: %s", batches, error, exc_info=None if known else error)


def _identities(found: FoundAbove) -> dict[ChainKey, list[Identity]]:
    """What was found, by content: a quarantined file may have been followed by another one of its number."""
    return {chain: [file.identity for _, file, _ in versions] for chain, versions in found.items()}
