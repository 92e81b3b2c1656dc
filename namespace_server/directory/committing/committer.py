"""The one writer of a catalog in this process: queue, group commit, compare-and-set, retry.

Whoever finds nobody flipping leads: it takes what queued meanwhile, plans each batch on the overlay of those before
it, stages, flips, and promotes. Several processes on one root are safe: only the compare-and-set decides.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import LanceCoreError, StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.attempt_context import AttemptContext
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.record_maintenance import RecordMaintenance
from namespace_server.directory.committing.verifier import FoundVersion, Verifier, chains_of
from namespace_server.directory.manifest_table.flip import Flip
from namespace_server.directory.manifest_table.table import (
    Committed,
    Displaced,
    FlipOutcome,
    Lost,
    ManifestTable,
    UnknownOutcome,
)
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.errors import (
    CatalogBusy,
    CatalogDamaged,
    CatalogTooNew,
    CommitOutcomeUnknown,
    nothing_done,
)
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import Batch, TableOperation
from namespace_server.directory.model.overlay import Overlay
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import AddedFiles, Finding, NeedsPromotion, Plan, VacantLocation
from namespace_server.directory.planning.planner import plan_batch, replay, require_managed
from namespace_server.directory.planning.table_versions import adopt_found

logger = logging.getLogger(__name__)

Verdict = Plan | LanceNamespaceError
Found = Mapping[ChainKey, list[FoundVersion]]

_NOTHING_FOUND: Found = {}


@dataclass(slots=True)
class Pending:
    """A batch on its way. `verdict` is final once `decided` is set; `snapshot` is where it was decided.

    `sent` says that the commit step of a flip with it began and did not certainly fail: from then on only the catalog
    can say what became of it (F1).
    """

    batch: Batch
    findings: dict[int, Finding]
    chains: frozenset[ChainKey]
    verdict: Verdict | None = None
    snapshot: CatalogSnapshot | None = None
    sent: bool = False
    decided: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class _Attempt:
    """One try at a group: where it stands, what it changes, and what each batch would be told.

    `final[i]`: verdict i rests on the committed snapshot alone, so it holds whatever becomes of the flip (P7). `names`
    are the names that the planned batches may be found by: uuids, idempotency keys and request hashes (P1, A1).
    """

    snapshot: CatalogSnapshot
    context: AttemptContext
    overlay: Overlay
    names: set[str] = field(default_factory=set)
    verdicts: list[Verdict | None] = field(default_factory=list)
    final: list[bool] = field(default_factory=list)

    def basis(self, batch: Batch) -> CatalogSnapshot:
        """What a batch is planned on: the snapshot itself if nothing planned before concerns it, else the overlay."""
        if not self.overlay.steps:
            return self.snapshot
        alone = self.names.isdisjoint(_names(batch)) and all(
            isinstance(operation, TableOperation) and self.overlay.of(operation.id) is self.snapshot
            for operation in batch.operations
        )
        return self.snapshot if alone else self.overlay.whole

    def accept(self, plan: Plan) -> None:
        """Let the batches that follow see what a plan changes."""
        self.overlay.add(plan.changes, plan.tables)
        self.names.update(_names(plan.batch))


class Committer:
    """Commits batches in groups of at most `group_limit`, without waiting for groups to form.

    `tries` bounds how often a group may lose the compare-and-set before it is answered "busy" (F5).
    """

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        promoter: Promoter,
        manifests: ManifestCache,
        *,
        group_limit: int = 64,
        tries: int = 20,
        record_maintenance: RecordMaintenance,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._promoter = promoter
        self._manifests = manifests
        self._group_limit = group_limit
        self._tries = tries
        self._record_maintenance = record_maintenance
        self._queue: deque[Pending] = deque()
        self._queue_lock = threading.Lock()
        self._flip_lock = threading.Lock()

    def commit(self, batches: Sequence[Batch]) -> list[Pending]:
        """Commit batches; returns when each has its verdict and what it published is promoted as far as possible.

        Batches are independent: each is all or nothing, and one's rejection never fails another. A batch that could not
        be planned because the catalog or a store could not be read is told that nothing was done (A3).
        """
        chains = [frozenset(chains_of(batch.operations)) for batch in batches]
        try:
            snapshot = self._table.current
            if any(snapshot.table(table_id) is None for table_id, _ in set().union(*chains)):
                snapshot = self._table.refresh()
            findings = self._verifier.verify(batches, snapshot)
        except Exception as error:  # noqa: BLE001 - nothing was sent yet
            _log_failure(len(batches), error)
            return [
                Pending(batch, {}, named, nothing_done(batch.uuid, error))
                for batch, named in zip(batches, chains, strict=True)
            ]
        mine = [Pending(*each) for each in zip(batches, findings, chains, strict=True)]
        with self._queue_lock:
            self._queue.extend(mine)
        while not all(pending.decided.is_set() for pending in mine):
            with self._flip_lock:
                group = self._take()
                published = self._lead(group)
            if not group:  # others lead what is ours
                for pending in mine:
                    pending.decided.wait()
            while self._finish(group, published):
                group = [pending for pending in group if pending.verdict is None]
                with self._flip_lock:
                    published = self._lead(group)
        return mine

    def _finish(self, group: list[Pending], published: list[Plan]) -> bool:
        """Promote what was committed, then let the decided go. True when batches of the group still wait."""
        entries = [version.entry for plan in published for version in plan.published]
        try:
            if entries:
                self._promoter.promote(entries)
        except Exception:
            logger.exception("promotion is left to the sweep")
        finally:  # others wait for these verdicts, which promotion does not change
            for pending in group:
                if pending.verdict is not None:
                    pending.decided.set()
        return any(pending.verdict is None for pending in group)

    def flip(
        self,
        plan: Callable[[CatalogSnapshot], Changes],
        *,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
    ) -> CatalogSnapshot:
        """Commit changes that are no batch: record maintenance, or the adoption of a root. A lost flip is retried.

        Without changes and metadata nothing happens. Raises `CommitOutcomeUnknown`, `CatalogBusy`, `StorageError`.
        """
        attempt = str(uuid.uuid4())
        with self._flip_lock:
            for tries in range(1, self._tries + 1):
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
                if isinstance(outcome, Committed):
                    self._record_maintenance.done(outcome.snapshot)
                    return outcome.snapshot
                if isinstance(outcome, UnknownOutcome):
                    raise CommitOutcomeUnknown(attempt, outcome.reason)
                if isinstance(outcome, Lost):
                    self._table.discard(flip)
                _back_off(tries)
        raise CatalogBusy(attempt, self._tries)

    def _take(self) -> list[Pending]:
        with self._queue_lock:
            return [self._queue.popleft() for _ in range(min(self._group_limit, len(self._queue)))]

    def _lead(self, group: list[Pending]) -> list[Plan]:
        """Decide a group; returns the plans that this flip committed.

        A batch that has to wait for the promotion of another one of the group is left without a verdict. After an
        exception only those are unknown whose commit step had begun.
        """
        try:
            return self._decide(group)
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

    def _decide(self, group: list[Pending]) -> list[Plan]:
        undecided = group
        snapshot, found = self._table.current, _NOTHING_FOUND
        tries = 0
        while undecided:
            tries += 1
            if tries > self._tries:
                self._give_up(undecided, snapshot)
                break
            attempt = self._plan(undecided, snapshot, found)
            flip = self._prepare(attempt)
            newest, above, missing = self._stage(attempt, flip, undecided)
            if missing:
                continue
            if newest.version != snapshot.version:
                snapshot, found = newest, _NOTHING_FOUND
                continue
            if _counts(above) != _counts(found):
                found = above
                continue
            _decide_final(undecided, attempt)
            if flip is None:
                _decide_all(undecided, attempt, snapshot)
                break
            outcome = self._send(flip, undecided)
            if isinstance(outcome, Committed):
                self._record_maintenance.done(outcome.snapshot)
                return self._committed(undecided, attempt, outcome.snapshot)
            undecided = [pending for pending in undecided if pending.verdict is None]
            if isinstance(outcome, UnknownOutcome):
                for pending in undecided:
                    pending.verdict = CommitOutcomeUnknown(pending.batch.uuid, outcome.reason)
                break
            if isinstance(outcome, Lost):  # of a displaced flip everything stays (G9)
                self._table.discard(flip)
            _back_off(tries)
            snapshot, found = self._table.refresh(), _NOTHING_FOUND
        return []

    def _send(self, flip: Flip, group: Sequence[Pending]) -> FlipOutcome:
        """The commit step of a flip. A batch counts as sent unless the flip is in no history or was refused."""
        _mark(group, sent=True)
        try:
            outcome = self._table.commit(flip)
        except StorageError:
            _mark(group, sent=False)
            raise
        if isinstance(outcome, Lost | Displaced):
            _mark(group, sent=False)
        return outcome

    def _committed(self, group: Sequence[Pending], attempt: _Attempt, snapshot: CatalogSnapshot) -> list[Plan]:
        _decide_all(group, attempt, snapshot)
        plans = [verdict for verdict in attempt.verdicts if isinstance(verdict, Plan) and verdict.published]
        for plan in plans:
            self._promoter.expect(plan.published)
            self._manifests.keep(plan.published)
        return plans

    def _give_up(self, group: Sequence[Pending], snapshot: CatalogSnapshot) -> None:
        """Every try was lost. "Busy" is no verdict: look for the record first, another copy may have committed (F5)."""
        for pending in group:
            try:
                replayed = replay(pending.batch, snapshot, pending.findings)
            except LanceNamespaceError as error:
                pending.verdict = error
            else:
                pending.verdict = replayed or CatalogBusy(pending.batch.uuid, self._tries)
            pending.snapshot = snapshot

    def _plan(self, group: Sequence[Pending], snapshot: CatalogSnapshot, found: Found) -> _Attempt:
        """Plan each batch on the overlay of those before it."""
        context = AttemptContext(self._store, self._manifests, self._promoter, snapshot)
        attempt = _Attempt(snapshot, context, Overlay(snapshot))
        for pending in group:
            self._adopt(attempt, pending, found)
            basis = attempt.basis(pending.batch)
            verdict = self._plan_one(attempt, pending, basis)
            final = basis is snapshot and verdict is not None
            if isinstance(verdict, Plan) and verdict.changes:
                attempt.accept(verdict)
                final = False
            attempt.verdicts.append(verdict)
            attempt.final.append(final)
        return attempt

    def _plan_one(self, attempt: _Attempt, pending: Pending, basis: CatalogSnapshot) -> Verdict | None:
        """The verdict of one batch; None if it must wait until another one of the group is promoted."""
        try:
            require_managed(attempt.snapshot)
            asked: set[str] = set()
            while True:  # an operation may remove other versions than the one before it
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

    def _adopt(self, attempt: _Attempt, pending: Pending, found: Found) -> None:
        """Rows for what others committed above the heads that a batch names, rejected or not (P5).

        None in a root that is not managed: version rows would stop its own writers. None above a head that has not
        its canonical name: what stands there was built on whatever holds that name (M6).
        """
        if not attempt.snapshot.managed:
            return
        for chain in pending.chains:
            if chain not in found:
                continue
            overlay = attempt.overlay.of(chain[0])
            table = overlay.table(chain[0])
            if table is None:
                continue
            head = attempt.snapshot.head(*chain)
            if head is not None and not attempt.context.is_promoted(head):
                self._promoter.promote([head], attempt.snapshot)
                continue
            entries = adopt_found(overlay, table, chain[1], found[chain], attempt.context)
            if entries:
                logger.info("%s: adopting versions %d to %d", table.location, entries[0].version, entries[-1].version)
                attempt.overlay.add(changes_of(entries), (table.id,))

    def _prepare(self, attempt: _Attempt) -> Flip | None:
        """The flip of an attempt, record maintenance included; None when there is nothing to flip."""
        if not attempt.overlay.steps:
            return None
        changes = self._record_maintenance.plan(attempt.snapshot).then(*attempt.overlay.steps)
        return self._table.prepare(attempt.snapshot, changes, attempt=attempt.context.attempt)

    def _stage(
        self, attempt: _Attempt, flip: Flip | None, group: Sequence[Pending]
    ) -> tuple[CatalogSnapshot, Found, bool]:
        """Write what the flip makes reachable and look at storage beside it, in one parallel step.

        Returns the newest snapshot, what stands above the heads under canonical names (P5, P9), and whether a file
        that a transaction adds turned out to be missing, or a location that a client chose to be in use.
        """
        chains = {chain for pending in group for chain in pending.chains}
        objects = [item for verdict in attempt.verdicts if isinstance(verdict, Plan) for item in verdict.staged]
        writes: list[Callable[[], object]] = [partial(self._store.put, *item, durable=False) for item in objects]
        if flip is not None:
            writes.append(partial(self._table.stage, flip))
        looks: list[Callable[[], Any]] = [self._table.refresh, partial(self._verifier.probe, attempt.snapshot, chains)]
        looks.append(partial(self._look_later, group))
        newest, above, missing, *_ = self._store.gather([*looks, *writes])
        self._store.sync([key for key, _ in objects])
        return newest, above, missing

    def _look_later(self, group: Sequence[Pending]) -> bool:
        """Ask storage what verification left open; True when a batch turned out to be refused."""
        unseen = [
            (pending, index, finding)
            for pending in group
            for index, finding in pending.findings.items()
            if isinstance(finding, AddedFiles | VacantLocation) and not finding.seen
        ]
        looked = self._store.map(
            lambda item: self._verifier.look_later(item[0].batch.operations[item[1]], item[2]), unseen
        )
        for (pending, index, _), finding in zip(unseen, looked, strict=True):
            pending.findings[index] = finding
        return any(isinstance(finding, LanceNamespaceError) for finding in looked)


def _mark(group: Sequence[Pending], *, sent: bool) -> None:
    for pending in group:
        pending.sent = sent


def _log_failure(batches: int, error: Exception) -> None:
    """One line for damage that the message explains, a trace for everything else."""
    known = isinstance(error, CatalogDamaged | CatalogTooNew)
    logger.error("a group of %d batches was not committed: %s", batches, error, exc_info=None if known else error)


def _names(batch: Batch) -> tuple[str, ...]:
    names = (batch.uuid, batch.request_hash)
    return names if batch.idempotency_key is None else (*names, batch.idempotency_key)


def _decide_final(group: Sequence[Pending], attempt: _Attempt) -> None:
    for pending, verdict, final in zip(group, attempt.verdicts, attempt.final, strict=True):
        if final:
            pending.verdict, pending.snapshot = verdict, attempt.snapshot


def _decide_all(group: Sequence[Pending], attempt: _Attempt, snapshot: CatalogSnapshot) -> None:
    for pending, verdict in zip(group, attempt.verdicts, strict=True):
        if pending.verdict is None:
            pending.verdict, pending.snapshot = verdict, snapshot


def _counts(found: Found) -> dict[ChainKey, int]:
    return {chain: len(versions) for chain, versions in found.items()}


def _back_off(tries: int) -> None:
    """Wait a moment with full jitter, at most a quarter of a second."""
    time.sleep(random.uniform(0, min(0.25, 0.002 * 2**tries)))  # noqa: S311
