"""The one writer of a catalog in this process: batches and all other changes go through one `CommitLoop`.

One thread at a time commits a group: the batches that queued meanwhile. Then it promotes what the flip published, while
the next one flips.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from namespace_server.directory.committing.commit_loop import CommitLoop, OtherChanges
from namespace_server.directory.committing.failed_attempts import FailedAttempts
from namespace_server.directory.committing.flip_queue import FlipQueue
from namespace_server.directory.committing.group_planner import GroupPlanner, PendingBatch, Verdict
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.errors import (
    AccessDenied,
    BatchConflict,
    BatchUnknown,
    CatalogBusy,
    CatalogDamaged,
    CatalogTooNew,
    CommittedElsewhere,
    TablesWithoutCatalog,
    nothing_done,
)
from namespace_server.directory.model.operations import (
    Batch,
    DeclareTable,
    Operation,
    RegisterIntent,
    RegisterTable,
    SetPin,
    UndropNamespace,
    UndropTable,
    chains_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.early_judgement import judge_before
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.planning.planner import replay_committed
from namespace_server.directory.verifying.verifier import Verifier
from namespace_server.observability.observation import SILENT, BatchOutcome, Observer
from namespace_server.outcomes import with_nothing_done

logger = logging.getLogger(__name__)


class Committer:
    """Commits batches in groups, without waiting for groups to form. Thread-safe.

    `last_commit` is the time, by `time.monotonic`, at which the last call of `decide` ended; 0.0 before the first one.
    The `observer` receives the steps, and the outcome of each batch.
    """

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        verifier: Verifier,
        planner: GroupPlanner,
        loop: CommitLoop,
        queue: FlipQueue,
        record_housekeeping: RecordHousekeeping,
        failed_attempts: FailedAttempts,
        observer: Observer = SILENT,
    ) -> None:
        self._store = store
        self._table = table
        self._verifier = verifier
        self._planner = planner
        self._loop = loop
        self._queue = queue
        self._record_housekeeping = record_housekeeping
        self._failed_attempts = failed_attempts
        self._observer = observer
        self.last_commit = 0.0

    def decide(self, batches: Sequence[Batch]) -> list[PendingBatch]:
        """Commit batches; returns when each has its verdict and its versions are promoted as far as possible.

        Batches are independent: each is all or nothing, and one's rejection never fails another. The verdict of a batch
        that could not be planned, because the catalog or a store could not be read, says that nothing was done (A3).
        """
        began = time.monotonic()
        group = [PendingBatch(batch, {}, frozenset(chains_of(batch.operations))) for batch in batches]
        try:
            self._refuse_limits(group)
            self._judge(group)
            self._verify_and_queue([pending for pending in group if pending.verdict is None])
        finally:
            self.last_commit = time.monotonic()
        self._report(group, time.monotonic() - began)
        return group

    def _refuse_limits(self, group: Sequence[PendingBatch]) -> None:
        """Refuse the batches that set limits of time while this machine's clock is not the store's (G30)."""
        problem = self._table.clock.problem()
        for pending in group if problem is not None else ():
            if _sets_limit(pending.batch):
                error = ServiceUnavailableError(f"nothing was done: no limit of time can be set: {problem}")
                pending.decide(with_nothing_done(error), None)

    def _judge(self, group: Sequence[PendingBatch]) -> None:
        """Refuse the batches that lack a privilege before anything that they name is looked at on storage (GR4).

        That is decided on the newest snapshot. What may not be seen is not looked at either; planning refuses it in its
        place. The flip judges again.
        """
        judged = [each for each in group if each.verdict is None and each.batch.subject is not None]
        if not judged:
            return
        try:
            newest, is_asked, key_of = self._table.current, False, TableFiles(self._store, "").key_of
            for pending in judged:
                batch = pending.batch
                found = judge_before(batch, newest, key_of)
                if not found.denials and not any(_looks_at_storage(batch.operations[index]) for index in found.hidden):
                    continue  # planning looks for a newer snapshot, as for what is not there: neither takes longer
                if not is_asked:
                    newest, is_asked = self._table.refresh(), True
                    found = judge_before(batch, newest, key_of)
                if found.denials and found.is_whole and not _is_committed(batch, newest):
                    pending.decide(AccessDenied(found.denials), newest)
                    continue
                pending.findings = {**found.out_of_bounds}
                out_of_sight = {batch.operations[index].id for index in pending.findings}
                pending.chains = frozenset(chain for chain in pending.chains if chain[0] not in out_of_sight)
        except Exception as error:  # noqa: BLE001 - nothing was sent yet
            self._answer_rest(group, error)

    def _verify_and_queue(self, mine: Sequence[PendingBatch]) -> None:
        batches = [pending.batch for pending in mine]
        try:
            snapshot = self._table.current
            named = set().union(*(pending.chains for pending in mine))
            if any(snapshot.location(table_id) is None for table_id, _ in named) or any(map(_is_undrop, batches)):
                snapshot = self._table.refresh()
            known = [pending.findings for pending in mine]
            with self._observer.step("verify"):
                for pending, findings in zip(mine, self._verifier.verify(batches, snapshot, known), strict=True):
                    pending.findings = findings
            if not self._store.local:
                self._planner.read_ahead(batches, snapshot)  # nobody waits for it but these batches
        except Exception as error:  # noqa: BLE001 - nothing was sent yet
            self._answer_rest(mine, error)
            return
        self._queue.add(mine)
        while group := self._queue.take_group(mine):
            try:
                self._run_group(group)
            finally:
                self._queue.finish(group)

    def commit_changes(
        self,
        plan: Callable[[CatalogSnapshot], Changes],
        *,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
        tries: int | None = None,
    ) -> CatalogSnapshot:
        """Commit changes that are no batch: record housekeeping, or the adoption of a root.

        `plan` may be called several times, each time with a newer snapshot, at most `tries` times if they are given.
        Returns the newest snapshot; without changes and metadata nothing is written. Raises `BatchUnknown`,
        `CatalogBusy`, `StorageError`.
        """
        with self._queue.flipping():
            return self._loop.run((), OtherChanges(plan, table_metadata, strict, tries))

    def flush_record_housekeeping(self, *, tries: int | None = None) -> None:
        """Do the record housekeeping that waits, in flips of its own. `tries` and errors as of `commit_changes`."""
        while waiting := self._record_housekeeping.waiting:
            snapshot = self.commit_changes(self._record_housekeeping.plan_alone, tries=tries)
            self._loop.conclude_records(snapshot)  # what other servers did counts, too
            if self._record_housekeeping.waiting >= waiting:
                return

    def remove_failed_attempts(self) -> None:
        """Remove the files of attempts in no history, and staged files of closed records; see `FailedAttempts`."""
        self._failed_attempts.remove(self._table.current)

    def _run_group(self, group: Sequence[PendingBatch]) -> None:
        """Commit a group, and promote what that publishes. Only a batch that must follow its flip has no verdict then.

        After an exception only those outcomes are unknown whose commit step had begun.
        """
        self._observer.group(len(group))
        try:
            self._loop.run(group)
        except BaseException as error:
            self._answer_rest(group, error)
            if not isinstance(error, Exception):
                raise

    def _answer_rest(self, group: Sequence[PendingBatch], error: BaseException) -> None:
        """Give each batch a verdict that an error left without one."""
        if isinstance(error, BatchUnknown):
            logger.warning("the outcome of a group of %d batches is unknown: %s", len(group), error.reason)
        elif isinstance(error, Exception) and not isinstance(error, CatalogBusy):
            _log_failure(len(group), error)
        for pending in group:
            if pending.verdict is None:
                pending.decide(*self._verdict_after(error, pending))

    def _verdict_after(self, error: BaseException, pending: PendingBatch) -> tuple[Verdict, CatalogSnapshot | None]:
        """What an error is to one batch of its group, and on which snapshot. An `Exception` precedes the claim (A3)."""
        uuid = pending.batch.uuid
        match error:
            case BatchUnknown():
                return BatchUnknown(uuid, error.reason), None
            case CatalogBusy():
                return self._verdict_when_busy(pending, error)
            case Exception():
                return nothing_done(uuid, error), None
        return BatchUnknown(uuid, "the committer stopped"), None

    def _verdict_when_busy(self, pending: PendingBatch, busy: CatalogBusy) -> tuple[Verdict, CatalogSnapshot]:
        """Retries are exhausted. "Busy" is no verdict: another copy of a batch may be committed, by its record (F5)."""
        newest = self._table.current
        try:
            replayed = replay_committed(pending.batch, newest, pending.findings)
        except LanceNamespaceError as error:
            return error, newest
        return replayed or busy.of(pending.batch.uuid), newest

    def _report(self, decided: Sequence[PendingBatch], seconds: float) -> None:
        for pending in decided:
            if isinstance(pending.verdict, CommittedElsewhere):
                continue
            self._observer.batch(_outcome_of(pending.verdict), seconds)
            if isinstance(pending.verdict, BatchConflict):
                self._observer.conflict(pending.verdict.operation, pending.verdict.committed)


def _is_committed(batch: Batch, snapshot: CatalogSnapshot) -> bool:
    """Whether a batch is answered as one that is committed already, whatever its subject may do by now (P1)."""
    try:
        return replay_committed(batch, snapshot, {}) is not None
    except LanceNamespaceError:
        return False


def _outcome_of(verdict: Verdict | None) -> BatchOutcome:
    if isinstance(verdict, Plan):
        return "committed"
    if isinstance(verdict, BatchUnknown):
        return "unknown"
    return "failed" if isinstance(verdict, ServiceUnavailableError | InternalError | CatalogTooNew) else "rejected"


def _looks_at_storage(operation: Operation) -> bool:
    """Whether verification looks at something on storage for an operation, or for versions above its chain."""
    if isinstance(operation, DeclareTable):
        return operation.chosen
    return isinstance(operation, RegisterTable | UndropTable | UndropNamespace) or bool(chains_of((operation,)))


def _is_undrop(batch: Batch) -> bool:
    """Whether a batch brings back what was dropped: tombstones are looked for in the newest snapshot."""
    return any(isinstance(operation, UndropTable | UndropNamespace) for operation in batch.operations)


def _sets_limit(batch: Batch) -> bool:
    """Whether a batch sets a limit of time that its answer states: the end of a pin or of an intent."""
    return any(
        isinstance(operation, RegisterIntent) or (isinstance(operation, SetPin) and operation.seconds is not None)
        for operation in batch.operations
    )


def _log_failure(batches: int, error: Exception) -> None:
    """One line for damage that the message explains, a trace for everything else."""
    known = isinstance(error, CatalogDamaged | CatalogTooNew | TablesWithoutCatalog)
    logger.error("a group of %d batches was not committed: %s", batches, error, exc_info=None if known else error)
