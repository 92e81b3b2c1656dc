"""The commit loop: plan, write, claim, prove, decide, promote; after a conflict again, on the newer snapshot.

`CommitLoop.run` is the whole of it. One thread at a time runs it, up to where its batches are decided: while they are
promoted, the next one begins. Several processes on one root are safe: only the compare-and-set on `__manifest` decides.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lance_namespace.errors import LanceNamespaceError, TableBranchNotFoundError

from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.attempt_writing import AttemptWriter, Observed
from namespace_server.directory.committing.failed_attempts import FailedAttempts
from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import GroupAttempt, GroupPlanner, PendingBatch, PlannedBatch
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping
from namespace_server.directory.committing.unmanaged_rounds import UnmanagedRound
from namespace_server.directory.committing.write_fairness import WriteFairness
from namespace_server.directory.manifest_table.flip import (
    Flip,
    FlipClaimed,
    FlipCommitted,
    FlipLost,
    FlipOutcome,
    FlipRefused,
    FlipSuperseded,
    FlipUnknown,
)
from namespace_server.directory.manifest_table.table import RECORD_LIFETIME, ManifestTable
from namespace_server.directory.manifests.manifest_reader import ManifestReader, PlannedVersion
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import BatchTooOld, BatchUnknown, CatalogBusy, CommittedElsewhere
from namespace_server.directory.model.object_ids import ChainKey, join
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.promoted_rows import rows_to_promote
from namespace_server.durations import elapsed_clock
from namespace_server.observability.observation import FlipOutcome as ObservedOutcome
from namespace_server.observability.observation import Observer

logger = logging.getLogger(__name__)

_FLIP_OUTCOMES: Final[Mapping[type, ObservedOutcome]] = {
    FlipCommitted: "committed",
    FlipLost: "lost",
    FlipSuperseded: "superseded",
    FlipUnknown: "unknown",
    FlipRefused: "failed",
}


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """`group_size`: the most batches that share a flip. `tries`: how often a group may be planned again (F5)."""

    group_size: int = 64
    tries: int = 20


@dataclass(frozen=True, slots=True)
class OtherChanges:
    """Changes that are no batch, planned anew on every snapshot. With `table_metadata` a flip is made without any."""

    plan: Callable[[CatalogSnapshot], Changes]
    table_metadata: Mapping[str, str] | None = None
    strict: bool = False
    tries: int | None = None


class CommitLoop:
    """Commits a group of batches, or other changes, and promotes what a flip published. For the thread that flips."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        planner: GroupPlanner,
        writer: AttemptWriter,
        reader: ManifestReader,
        promoter: Promoter,
        record_housekeeping: RecordHousekeeping,
        failed_attempts: FailedAttempts,
        queue: FlipQueue,
        fairness: WriteFairness,
        limits: CommitLimits,
        observer: Observer,
    ) -> None:
        self._store = store
        self._table = table
        self._planner = planner
        self._writer = writer
        self._reader = reader
        self._promoter = promoter
        self._record_housekeeping = record_housekeeping
        self._failed_attempts = failed_attempts
        self._queue = queue
        self._fairness = fairness
        self._limits = limits
        self._observer = observer
        self._carried = OtherChanges(record_housekeeping.plan)

    def run(self, group: Sequence[PendingBatch], changes: OtherChanges | None = None) -> CatalogSnapshot:
        """Commit a group of batches, or changes that are no batch, by one flip; give each batch its verdict.

        Every round counts as a try, also one that finds a newer catalog version, an unmanaged version or a missing file
        beside writing, and one that only adopts; only a lost flip is followed by a wait. In the second half of the
        tries chains that grow all the time hold up no batch: it is committed above what it adopts. A batch that must
        follow another one of its group is left without a verdict, and after an exception each that has none yet.

        Returns the snapshot that has what was committed; the newest one if nothing had to be. Raises `BatchUnknown`,
        `CatalogBusy`, `StorageError`, `CatalogDamaged`, `CatalogTooNew`.
        """
        if group:
            self._fairness.wait()
        snapshot, unmanaged = self._table.current, UnmanagedRound()
        most = self._limits.tries if changes is None or changes.tries is None else changes.tries
        for number in range(1, most + 1):
            began = time.monotonic()
            moving = unmanaged.moving if number > most // 2 else frozenset()
            # What batches build on or remove gets its canonical name first (M1, P6).
            waiting, refused = self._sort_out(group, unmanaged.deleted)
            self._promote_bases(waiting, snapshot, unmanaged)
            # Plan. This writes nothing. A round that adopts commits what stands above heads, and no batch.
            attempt, flip = self._plan(waiting, refused, changes, snapshot, unmanaged, moving)
            # Write the files that the flip will make reachable. Beside that storage shows what others did meanwhile.
            seen = self._write(attempt, flip)
            again = self._overtaken(attempt, flip, seen, unmanaged, moving)
            if again is not None:
                self._give_up(attempt, flip, again[0])
                snapshot, unmanaged = again
                continue
            with self._in_doubt(attempt):  # an exception from here on says nothing of the outcome (A3)
                # Claim the slot of the next version by one conditional write: the commit point. A slot that is taken is
                # lost, silence is not (F1): after a lost answer the newest version decides; that is proved like a win.
                claim = self._claim(attempt, flip)
                # On a bucket what the flip publishes may be promoted beside all that follows (G7).
                with self._promoting(attempt, claim) as promoted:
                    # Prove that the version is the newest: its number may have been freed by a clean-up.
                    outcome = self._prove(claim, promoted=promoted)
                    # Decide the batches, and let the next group be planned if these are committed.
                    _decide(attempt, outcome)
                    self._settle(attempt, flip, outcome, number, began)
            match outcome:
                case FlipCommitted(newest) if unmanaged.adopts:
                    snapshot, unmanaged = newest, unmanaged.adopted_in(newest, seen.above)
                case FlipCommitted(newest):
                    self._promote(attempt.published)  # what is left; the next group is planned meanwhile
                    return newest
                case FlipLost() | FlipSuperseded():
                    snapshot, unmanaged = self._await_next_try(attempt, flip, outcome, number), unmanaged.anew()
                case FlipRefused(error):
                    raise error
                case FlipUnknown(reason) if unmanaged.adopts:  # of the batches nothing was sent
                    logger.warning("the outcome of an adoption is unknown: %s", reason)
                    raise CatalogBusy(attempt.context.attempt, number, unmanaged.found, adopting=True)
                case FlipUnknown(reason):
                    raise BatchUnknown(attempt.context.attempt, reason)
        raise CatalogBusy(attempt.context.attempt, most, unmanaged.moving)

    def _sort_out(
        self, group: Sequence[PendingBatch], deleted: Collection[ChainKey]
    ) -> tuple[list[PendingBatch], list[PlannedBatch]]:
        """The batches of a group to be planned, and those that are refused before. Nothing of them was sent."""
        elsewhere = self._table.peers.committing() is not None
        waiting, refused = list[PendingBatch](), list[PlannedBatch]()
        for pending in group:
            if pending.verdict is not None:
                continue
            error = _refusal(pending, deleted, elsewhere=elsewhere)
            if error is None:
                waiting.append(pending)
            else:
                refused.append(PlannedBatch(pending, error, final=True))
        return waiting, refused

    def _promote_bases(
        self, waiting: Sequence[PendingBatch], snapshot: CatalogSnapshot, unmanaged: UnmanagedRound
    ) -> None:
        """Promote the rows that batches build on or remove, and the heads below unmanaged versions (M6).

        A batch that needs what cannot be promoted is refused when it is planned, and nothing is adopted above that.
        """
        rows = rows_to_promote([pending.batch for pending in waiting], snapshot, unmanaged.found)
        rows = [row for row in rows if not self._promoter.is_promoted(row, snapshot)]
        if not rows:
            return
        try:
            self._promoter.promote(rows, snapshot)
        except Exception:  # it must not fail the other batches of the group
            logger.exception("what batches build on or remove is not promoted")

    def _plan(
        self,
        waiting: Sequence[PendingBatch],
        refused: Sequence[PlannedBatch],
        changes: OtherChanges | None,
        snapshot: CatalogSnapshot,
        unmanaged: UnmanagedRound,
        moving: Collection[ChainKey],
    ) -> tuple[GroupAttempt, Flip | None]:
        with self._observer.step("plan"):
            if unmanaged.adopts:
                attempt = self._planner.adopt(waiting, snapshot, unmanaged.found)
            else:
                attempt = self._planner.plan(waiting, snapshot, unmanaged.found, moving)
            attempt.refused = refused
            return attempt, self._prepare(attempt, changes)

    def _prepare(self, attempt: GroupAttempt, changes: OtherChanges | None) -> Flip | None:
        """The flip of an attempt; None when nothing changes. A flip of batches carries record housekeeping along."""
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

    def _write(self, attempt: GroupAttempt, flip: Flip | None) -> Observed:
        """See `AttemptWriter.write`. Batches that are refused before they are planned wait for no look at storage."""
        if attempt.refused and flip is None and not attempt.batches:
            return Observed(attempt.snapshot)
        try:
            with self._observer.step("stage"):
                return self._writer.write(attempt, flip)
        except BaseException:
            self._failed_attempts.add(attempt, flip)
            raise

    def _overtaken(
        self,
        attempt: GroupAttempt,
        flip: Flip | None,
        seen: Observed,
        unmanaged: UnmanagedRound,
        moving: Collection[ChainKey],
    ) -> tuple[CatalogSnapshot, UnmanagedRound] | None:
        """The snapshot and round to plan on next, if others changed the base of the attempt while it was written."""
        if seen.newest.version != attempt.snapshot.version:
            return seen.newest, unmanaged.anew()
        if not (unmanaged.found or seen.above or seen.changed or seen.deleted):
            return None  # storage is as the attempt was planned
        following = unmanaged.following(
            seen.above, adopted=bool(attempt.adopted), judged=attempt.judged_chains, moving=moving
        )
        if following is None and (seen.changed or seen.deleted or (unmanaged.adopts and flip is None)):
            following = replace(unmanaged, found=seen.above, adopts=False)
        if following is None:
            return None
        return attempt.snapshot, replace(following, deleted=unmanaged.deleted | seen.deleted)

    def _give_up(self, attempt: GroupAttempt, flip: Flip | None, newest: CatalogSnapshot) -> None:
        """Note an attempt that was overtaken while it was written: its files are removed later."""
        self._fairness.lost(newest.version - attempt.snapshot.version)
        self._failed_attempts.add(attempt, flip)

    @contextmanager
    def _in_doubt(self, attempt: GroupAttempt) -> Iterator[None]:
        """A context in which an exception leaves the outcome of an attempt unknown. Raises `BatchUnknown`.

        What the attempt refused stays refused: nothing of that was sent.
        """
        try:
            yield
        except BaseException as error:
            outcome = FlipUnknown("the committer failed")
            _decide(attempt, outcome)
            if not attempt.batches or not isinstance(error, Exception):
                raise
            logger.exception("the commit step of a group of %d batches failed", len(attempt.batches))
            raise BatchUnknown(attempt.context.attempt, outcome.reason) from error

    def _claim(self, attempt: GroupAttempt, flip: Flip | None) -> FlipClaimed | FlipOutcome:
        """Claim the slot of a flip. What it publishes is kept in memory until it is promoted, or not committed.

        Where nothing changes there is no flip. Verdicts rest on the snapshot then, as if it had just been committed.
        """
        if flip is None:
            return FlipCommitted(attempt.snapshot)
        claim = self._table.claim(flip)
        if isinstance(claim, FlipClaimed) and claim.won_at is not None:
            self._reader.remember(attempt.published, claim.sent_at)
        return claim

    @contextmanager
    def _promoting(self, attempt: GroupAttempt, claim: FlipClaimed | FlipOutcome) -> Iterator[bool]:
        """Promote what a claim publishes while the block runs, where no clean-up can have freed its slot; true if so.

        Not where others wait for the next flip: the requests would hold up the proof, for which they wait too (G7).
        """
        never_taken = isinstance(claim, FlipClaimed) and claim.never_taken
        if never_taken and attempt.published and not self._queue.is_awaited:
            with self._store.beside(partial(self._promote, attempt.published)):
                yield True
        else:
            yield False

    def _prove(self, claim: FlipClaimed | FlipOutcome, *, promoted: bool) -> FlipOutcome:
        """The outcome of a claim; see `ManifestTable.prove`.

        It is unknown where what is in no history was `promoted` beside this, so that others may build on it.
        """
        if not isinstance(claim, FlipClaimed):
            return claim
        outcome = self._table.prove(claim)
        if promoted and isinstance(outcome, FlipSuperseded):
            return FlipUnknown(f"{claim.flip.path} was written where another version was removed within a second")
        return outcome

    def _settle(
        self, attempt: GroupAttempt, flip: Flip | None, outcome: FlipOutcome, number: int, began: float
    ) -> None:
        """Bring what this process remembers in line with an outcome; after that of batches the next group may begin.

        `began`: when this try began, the one of that `number`, by `time.monotonic`.
        """
        if flip is not None:
            self._observer.flip(_FLIP_OUTCOMES[type(outcome)], number)
        if flip is not None and not isinstance(outcome, FlipCommitted):
            self._reader.forget(version.entry for version in attempt.published)
        match outcome:
            case FlipRefused():
                self._failed_attempts.add(attempt, flip)
            case FlipCommitted(newest):
                if flip is not None:
                    self.conclude_records(newest)
                    self._fairness.flipped(newest.version, time.monotonic() - began)
                    self._planner.keep(attempt.published)
                    if attempt.adopted:
                        self._observer.adopted(len(attempt.adopted))
                if attempt.batches:
                    self._queue.release()

    def _await_next_try(
        self, attempt: GroupAttempt, flip: Flip | None, outcome: FlipLost | FlipSuperseded, tries: int
    ) -> CatalogSnapshot:
        """The snapshot to plan on next, after a wait of at most a quarter of a second, with full jitter.

        The files of a lost flip are removed, and its winner is followed. Of a superseded flip everything stays (G9).
        """
        if isinstance(outcome, FlipLost) and flip is not None:
            self._fairness.lost()
            self._table.discard(flip)
            self._failed_attempts.add(attempt, flip, rows=False)
        time.sleep(random.uniform(0, min(0.25, 0.002 * 2**tries)))  # noqa: S311
        if isinstance(outcome, FlipLost):
            return self._table.follow(attempt.snapshot, outcome.winner)
        return self._table.refresh()

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

    def conclude_records(self, snapshot: CatalogSnapshot) -> None:
        """Forget the record housekeeping that is done in `snapshot`, by this process or by others."""
        closed = self._record_housekeeping.conclude(snapshot)
        self._promoter.forget(closed)
        self._failed_attempts.add_closed(closed, snapshot)


def _decide(attempt: GroupAttempt, outcome: FlipOutcome) -> None:
    """Give the batches of an attempt the verdicts that hold by the outcome of its flip.

    These are all of them if it is a commit, and else those that rest on the committed snapshot alone (P7). The others
    are planned again, or `Committer` answers for the group that an exception ended.
    """
    for pending, verdict, final in (*attempt.refused, *attempt.batches):
        if verdict is None:
            continue  # it must follow this flip
        if final:
            pending.decide(verdict, attempt.snapshot)
        elif isinstance(outcome, FlipCommitted):
            pending.decide(verdict, outcome.snapshot)


def _refusal(pending: PendingBatch, deleted: Collection[ChainKey], *, elsewhere: bool) -> LanceNamespaceError | None:
    """Why a batch is not planned; None if it is.

    Another server commits, and the batch may be handed to it; the record of a commit under its key may have expired
    (P1); or a client deleted a branch that it names (M8): what it builds on, or begins anew, is gone.
    """
    batch = pending.batch
    if elsewhere and batch.movable:
        return CommittedElsewhere(batch.uuid)
    if batch.idempotency_key is not None and batch.accepted_at < elapsed_clock() - RECORD_LIFETIME:
        return BatchTooOld(batch.uuid, RECORD_LIFETIME)
    for table_id, branch in pending.chains if deleted else ():
        if (table_id, branch) in deleted:
            return TableBranchNotFoundError(f"table {join(table_id)}: branch {branch!r} was deleted by a client")
    return None
