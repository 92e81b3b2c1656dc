"""The one writer of a catalog in this process: group commit, compare-and-set on `__manifest`, retry of lost flips.

The first thread that takes the flip lock leads a group: it takes the batches that queued meanwhile, has them planned,
stages their files and flips. Then it promotes what the flip published. Several processes on one root are safe: only
the compare-and-set decides.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import StorageError
from lance_core.format.manifest import Identity
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.group_attempt import (
    NOTHING_FOUND,
    FoundAbove,
    GroupAttempt,
    PendingBatch,
)
from namespace_server.directory.committing.group_planner import GroupPlanner
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.manifest_reader import ManifestReader
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.record_maintenance import RecordMaintenance
from namespace_server.directory.committing.verifier import Verifier
from namespace_server.directory.manifest_table.flip import (
    Flip,
    FlipCommitted,
    FlipLost,
    FlipOutcome,
    FlipSuperseded,
    FlipUnknown,
)
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import (
    CatalogBusy,
    CatalogDamaged,
    CatalogTooNew,
    CommitOutcomeUnknown,
    nothing_done,
)
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import Batch, DeleteBranch, DeleteTableVersions
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.chains import chains_of
from namespace_server.directory.planning.plan_builder import AddedFiles, Plan, StagedManifest, VacantLocation
from namespace_server.directory.planning.planner import replay_committed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """`group_size`: the most batches that share a flip. `tries`: how often a group may be planned again (F5)."""

    group_size: int = 64
    tries: int = 20


@dataclass(frozen=True, slots=True)
class _Look:
    """Storage as it was seen beside staging: the newest snapshot, and what stands above the heads (P5, P9).

    `refused`: a file that a transaction adds is missing, a location that a client chose is in use, or what names the
    object of a deletion is not the same as before.
    """

    newest: CatalogSnapshot
    above: FoundAbove
    refused: bool


class Committer:
    """Commits batches in groups, without waiting for groups to form. Thread-safe.

    `last_commit` is the time, by `time.monotonic`, at which the last call of `commit` ended; 0.0 before the first one.
    """

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        reader: ManifestReader,
        manifests: ManifestCache,
        promoter: Promoter,
        record_maintenance: RecordMaintenance,
        limits: CommitLimits,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._reader = reader
        self._manifests = manifests
        self._promoter = promoter
        self._record_maintenance = record_maintenance
        self._limits = limits
        self._planner = GroupPlanner(store, manifests, promoter)
        self._queue: deque[PendingBatch] = deque()
        self._queue_lock = threading.Lock()
        self._flip_lock = threading.Lock()
        self.last_commit = 0.0

    def commit(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        """Commit batches; returns when each has its verdict and its versions are promoted as far as possible.

        Batches are independent: each is all or nothing, and one's rejection never fails another. The verdict of a batch
        that could not be planned, because the catalog or a store could not be read, says that nothing was done (A3).
        """
        try:
            return self._commit(batches)
        finally:
            self.last_commit = time.monotonic()

    def _commit(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        chains = [frozenset(chains_of(batch.operations)) for batch in batches]
        try:
            snapshot = self._table.current
            if any(snapshot.table(table_id) is None for table_id, _ in set().union(*chains)):
                snapshot = self._table.refresh()
            findings = self._verifier.verify(batches, snapshot)
        except Exception as error:  # noqa: BLE001 - nothing was sent yet
            _log_failure(len(batches), error)
            return [
                PendingBatch(batch, {}, named, nothing_done(batch.uuid, error))
                for batch, named in zip(batches, chains, strict=True)
            ]
        mine = [PendingBatch(*each) for each in zip(batches, findings, chains, strict=True)]
        with self._queue_lock:
            self._queue.extend(mine)
        while not all(pending.decided.is_set() for pending in mine):
            with self._flip_lock:
                group = self._take_group()
                published = self._lead(group)
            if not group:  # other threads lead the groups that hold these batches
                for pending in mine:
                    pending.decided.wait()
            while self._finish(group, published):
                group = [pending for pending in group if pending.verdict is None]
                with self._flip_lock:
                    published = self._lead(group)
        return mine

    def flip(
        self,
        plan: Callable[[CatalogSnapshot], Changes],
        *,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> CatalogSnapshot:
        """Commit changes that are no batch: record maintenance, or the adoption of a root. A lost flip is retried.

        Returns the newest snapshot; without changes and metadata nothing is written. Raises `CommitOutcomeUnknown`,
        `CatalogBusy`, `StorageError`.
        """
        attempt = str(uuid.uuid4())
        with self._flip_lock:
            for tries in range(1, self._limits.tries + 1):
                snapshot = self._table.refresh()
                changes = plan(snapshot)
                if not changes and table_metadata is None:
                    return snapshot
                attempt = str(uuid.uuid4())
                flip = self._table.prepare(
                    snapshot, changes, attempt=attempt, table_metadata=table_metadata, strict=strict
                )
                self._table.stage(flip)
                outcome = self._table.commit(flip)
                if isinstance(outcome, FlipCommitted):
                    self._conclude_maintenance(outcome.snapshot)
                    return outcome.snapshot
                if isinstance(outcome, FlipUnknown):
                    raise CommitOutcomeUnknown(attempt, outcome.reason)
                self._await_next_try(flip, outcome, tries)
        raise CatalogBusy(attempt, self._limits.tries)

    def flush_record_maintenance(self) -> None:
        """Do the record maintenance that waits, in flips of its own. Raises as `flip`."""
        while waiting := self._record_maintenance.waiting:
            self.flip(self._record_maintenance.plan_alone)
            if self._record_maintenance.waiting >= waiting:
                return

    def _take_group(self) -> list[PendingBatch]:
        with self._queue_lock:
            return [self._queue.popleft() for _ in range(min(self._limits.group_size, len(self._queue)))]

    def _lead(self, group: list[PendingBatch]) -> list[Plan]:
        """Decide a group; returns the plans that this flip committed.

        A batch that has to wait for the promotion of another batch of the group is left without a verdict. After an
        exception only those outcomes are unknown whose commit step had begun.
        """
        try:
            return self._flip_with_retries(group)
        except Exception as error:  # noqa: BLE001 - every batch of the group must be told
            _log_failure(len(group), error)
            for pending in group:
                pending.verdict = pending.verdict or (
                    CommitOutcomeUnknown(pending.batch.uuid, "the committer failed")
                    if pending.sent
                    else nothing_done(pending.batch.uuid, error)
                )
            return []
        except BaseException:
            for pending in group:
                pending.verdict = pending.verdict or CommitOutcomeUnknown(pending.batch.uuid, "the committer stopped")
                pending.decided.set()
            raise

    def _flip_with_retries(self, group: list[PendingBatch]) -> list[Plan]:
        """Plan, stage and flip until every batch has a verdict. A lost flip is retried on the newest snapshot.

        Every round counts as a try: also one that finds a newer catalog version, an unmanaged version or a missing file
        beside staging, and plans again at once. Only after a lost flip it waits before the next try.
        """
        undecided = group
        snapshot, found = self._table.current, NOTHING_FOUND
        for tries in range(1, self._limits.tries + 1):
            if not undecided:
                return []
            attempt = self._planner.plan(undecided, snapshot, found)
            flip = self._prepare(attempt)
            look = self._stage(attempt, flip, undecided)
            if look.refused:
                continue
            if look.newest.version != snapshot.version:
                snapshot, found = look.newest, NOTHING_FOUND
                continue
            if attempt.promoted_head or _identities(look.above) != _identities(found):
                found = look.above
                continue
            attempt.decide_final(undecided)
            if flip is None:
                attempt.decide_all(undecided, snapshot)
                return []
            outcome = self._send(flip, undecided)
            if isinstance(outcome, FlipCommitted):
                return self._conclude(undecided, attempt, outcome.snapshot)
            undecided = [pending for pending in undecided if pending.verdict is None]
            if isinstance(outcome, FlipUnknown):
                for pending in undecided:
                    pending.verdict = CommitOutcomeUnknown(pending.batch.uuid, outcome.reason)
                return []
            self._await_next_try(flip, outcome, tries)
            snapshot, found = self._table.refresh(), NOTHING_FOUND
        self._give_up(undecided, snapshot)
        return []

    def _await_next_try(self, flip: Flip, outcome: FlipLost | FlipSuperseded, tries: int) -> None:
        """Clear up behind a lost flip and wait, at most a quarter of a second, with full jitter.

        Of a displaced flip everything stays (G9).
        """
        if isinstance(outcome, FlipLost):
            self._table.discard(flip)
        time.sleep(random.uniform(0, min(0.25, 0.002 * 2**tries)))  # noqa: S311

    def _give_up(self, group: Sequence[PendingBatch], snapshot: CatalogSnapshot) -> None:
        """Retries are exhausted. "Busy" is no verdict: another copy of a batch may be committed, by its record (F5)."""
        for pending in group:
            try:
                replayed = replay_committed(pending.batch, snapshot, pending.findings)
            except LanceNamespaceError as error:
                pending.verdict = error
            else:
                pending.verdict = replayed or CatalogBusy(pending.batch.uuid, self._limits.tries)
            pending.snapshot = snapshot

    def _prepare(self, attempt: GroupAttempt) -> Flip | None:
        """The flip of an attempt, record maintenance included; None when nothing changes."""
        if not attempt.overlay.steps:
            return None
        changes = self._record_maintenance.plan(attempt.snapshot).then(*attempt.overlay.steps)
        return self._table.prepare(attempt.snapshot, changes, attempt=attempt.context.attempt)

    def _stage(self, attempt: GroupAttempt, flip: Flip | None, group: Sequence[PendingBatch]) -> _Look:
        """Write what the flip makes reachable and look at storage beside it, in one parallel step (S1, P5)."""
        chains = {chain for pending in group for chain in pending.chains}
        objects = [item for verdict in attempt.verdicts if isinstance(verdict, Plan) for item in verdict.staged]
        writes: list[Callable[[], object]] = [partial(self._store.put, *item, durable=False) for item in objects]
        if flip is not None:
            writes.append(partial(self._table.stage, flip))
        looks: list[Callable[[], Any]] = [self._table.refresh, partial(self._verifier.probe, attempt.snapshot, chains)]
        looks += [partial(self._look_later, group), partial(self._look_again, group)]
        newest, above, refused, changed, *_ = self._store.gather([*looks, *writes])
        self._store.sync([key for key, _ in objects])
        return _Look(newest, above, refused or changed)

    def _look_later(self, group: Sequence[PendingBatch]) -> bool:
        """Ask storage what verification left open; True when a batch turned out to be refused."""
        unseen = [
            (pending, index, finding)
            for pending in group
            for index, finding in pending.findings.items()
            if isinstance(finding, AddedFiles | StagedManifest | VacantLocation) and not finding.seen
        ]
        looked = self._store.map(
            lambda item: self._verifier.look_later(item[0].batch.operations[item[1]], item[2]), unseen
        )
        for (pending, index, _), finding in zip(unseen, looked, strict=True):
            pending.findings[index] = finding
        return any(isinstance(finding, LanceNamespaceError) for finding in looked)

    def _look_again(self, group: Sequence[PendingBatch]) -> bool:
        """Read the references of what batches delete after they were planned; True where they changed since (B1, B2).

        A flip that deletes follows this look, and no other flip is between them. Who writes a tag or a branch confirms
        it by a flip: that one is before the look, or comes too late.
        """
        deletes = [
            (pending, index, operation)
            for pending in group
            for index, operation in enumerate(pending.batch.operations)
            if isinstance(operation, DeleteBranch | DeleteTableVersions) and index in pending.findings
        ]
        looked = self._store.map(lambda item: self._verifier.look_again(item[2], item[0].findings[item[1]]), deletes)
        changed = False
        for (pending, index, _), finding in zip(deletes, looked, strict=True):
            changed |= finding != pending.findings[index]
            pending.findings[index] = finding
        return changed

    def _send(self, flip: Flip, group: Sequence[PendingBatch]) -> FlipOutcome:
        """The commit step of a flip. A batch counts as sent unless the flip is in no history or was refused."""
        _mark(group, sent=True)
        try:
            outcome = self._table.commit(flip)
        except StorageError:
            _mark(group, sent=False)
            raise
        if isinstance(outcome, FlipLost | FlipSuperseded):
            _mark(group, sent=False)
        return outcome

    def _conclude(self, group: Sequence[PendingBatch], attempt: GroupAttempt, snapshot: CatalogSnapshot) -> list[Plan]:
        """The flip is committed: give the verdicts and keep the manifests that it published in memory."""
        self._conclude_maintenance(snapshot)
        attempt.decide_all(group, snapshot)
        plans = attempt.published()
        for plan in plans:
            self._reader.remember(plan.published)
            self._manifests.keep(plan.published)
        return plans

    def _conclude_maintenance(self, snapshot: CatalogSnapshot) -> None:
        self._promoter.forget(self._record_maintenance.conclude(snapshot))

    def _finish(self, group: list[PendingBatch], published: list[Plan]) -> bool:
        """Promote the committed versions, then release the decided batches. True when batches of the group wait."""
        entries = [version.entry for plan in published for version in plan.published]
        try:
            if entries:
                self._promoter.promote(entries)
        except Exception:
            logger.exception("promotion is left to the sweep")
        finally:  # promotion does not change these verdicts, and other threads wait for them
            for pending in group:
                if pending.verdict is not None:
                    pending.decided.set()
        return any(pending.verdict is None for pending in group)


def _mark(group: Sequence[PendingBatch], *, sent: bool) -> None:
    for pending in group:
        pending.sent = sent


def _log_failure(batches: int, error: Exception) -> None:
    """One line for damage that the message explains, a trace for everything else."""
    known = isinstance(error, CatalogDamaged | CatalogTooNew)
    logger.error("a group of %d batches was not committed: %s", batches, error, exc_info=None if known else error)


def _identities(found: FoundAbove) -> dict[ChainKey, list[Identity]]:
    """What was found, by content: a quarantined file may have been followed by another one of its number."""
    return {chain: [file.identity for _, file, _ in versions] for chain, versions in found.items()}
