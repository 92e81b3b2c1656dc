"""A run of maintenance: which tables are worth work, and the work, one table after another.

A table is looked at by its row and the manifest of its head; nothing is written for that. Its work is a change like
those of clients: staged by pylance on the newest version, and committed by the catalog, which rebases it or rejects it.
What is rejected is given up, and its files are removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import Final, NamedTuple

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    PermissionDeniedError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.compaction import CompactionOptions
from lance_core.errors import CorruptFile, LanceCoreError, NotFound, ReferenceNotFound, StorageError, system_reason
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.storage.port import ObjectStore
from namespace_server.answer import Answer
from namespace_server.data.port import CommitChange
from namespace_server.directory.maintenance.coverage import IndexPlan, plan_indices
from namespace_server.directory.maintenance.fragments import FragmentPlan, plan_fragments
from namespace_server.directory.maintenance.policy import Policy, WrongPolicy, policy_of
from namespace_server.directory.maintenance.report import (
    MaintenanceReport,
    TableOutcome,
    TableRun,
    TableStatus,
    TableWork,
)
from namespace_server.directory.maintenance.requested import RequestedMaintenance
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import file_damaged, namespace_not_found, table_not_found
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress, no_progress
from table_data.requests.table_requests import CompactTable, OptimizeIndices, ReserveFragmentIds, TableRequest

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""Tables whose manifests are read in one round."""
_LOOKED_BACK: Final = 8
"""Versions of a table that are looked at for other commits than appends."""
_DISTURBED: Final = frozenset({"delete", "update", "merge", "data_replacement", "create_index", None})
"""Operations that must be done again if a Rewrite of their fragments is committed meanwhile. None: not known."""
_DISTURBED_BY_INDEX: Final = frozenset({"data_replacement", "create_index", None})
"""Operations that must be done again if an index over the same rows is committed meanwhile. None: not known."""
_GONE: Final = (ConcurrentModificationError, TableNotFoundError, TableVersionNotFoundError)
"""Work that other writers have made void."""
_UNUSED_SECONDS: Final = 86_400
"""Time in which a reservation of fragment ids that no Rewrite followed is not repeated."""
_COMPACT: Final = "maintenance: compact"
_INDICES: Final = "maintenance: optimise indices"


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Which tables are maintained: these, and those below these namespaces; all where both are empty."""

    tables: Sequence[ObjectId] = ()
    namespaces: Sequence[ObjectId] = ()

    def of(self, snapshot: CatalogSnapshot) -> list[ObjectId]:
        """The tables. Raises TableNotFoundError (4), NamespaceNotFoundError (1)."""
        for table_id in self.tables:
            if snapshot.table(table_id) is None:
                raise table_not_found(table_id)
        for namespace_id in self.namespaces:
            if snapshot.namespace(namespace_id) is None:
                raise namespace_not_found(namespace_id)
        if not self.tables and not self.namespaces:
            return list(snapshot.all_tables())
        below = tuple(self.namespaces)
        named = set(self.tables)
        return [
            table_id
            for table_id in snapshot.all_tables()
            if table_id in named or any(table_id[: len(above)] == above for above in below)
        ]


class _Candidate(NamedTuple):
    """A table, its head when it was read, and what of it is worth work."""

    table_id: ObjectId
    head: VersionEntry
    policy: Policy
    fragments: int
    plan: FragmentPlan | None
    indices: IndexPlan | None

    @property
    def work(self) -> TableWork:
        """What of the table is worth work."""
        plan, indices = self.plan, self.indices
        return TableWork(
            *((0, 0, 0) if plan is None else (plan.small, plan.deleted, plan.size)),
            *(((), 0) if indices is None else (indices.names, indices.rows)),
        )


@dataclass(slots=True)
class _Reserved:
    """Fragment ids that are reserved and not used yet."""

    first: int = 0
    count: int = 0


@dataclass(slots=True)
class Maintenance:
    """Maintains the tables of one catalog. Main branches only. One run at a time.

    Attributes:
        store: The root of the catalog.
        table: Its rows.
        change: Commits the changes; not needed for a plan.
        defaults: Properties of tables that have none themselves.
        now: The time in seconds since the epoch.
        stopped: Whether the run is to end after the commit that is under way.
        progress: Called with the number of tables that were looked at.
        message: Text that is stored with the commits, in place of one that says what each is.
        judge: Raises for a catalog in which a caller may not have the work done. Asked for one table alone.
    """

    store: ObjectStore
    table: ManifestTable
    change: CommitChange | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    stopped: Callable[[], bool] = lambda: False
    progress: Progress = no_progress
    message: str | None = None
    judge: Callable[[CatalogSnapshot], None] = lambda _: None
    _first: ObjectId | None = field(default=None, init=False)
    """The table at which the next run begins: the last one ran out of time before it."""

    def plan(self, selection: TableSelection | None = None, *, forced: bool = False) -> MaintenanceReport:
        """Report what a run would do and leave. Writes nothing; takes arguments and raises as `run`."""
        return self._go(selection or TableSelection(), lambda: False, partial(self._planned, forced=forced))

    def run(
        self, selection: TableSelection | None = None, *, seconds: float | None = None, forced: bool = False
    ) -> MaintenanceReport:
        """Maintain the selected tables.

        Args:
            selection: Which tables.
            seconds: Time after which no more work is begun. The next run begins where this one ended.
            forced: Whether work is done on tables too that other writers have changed just now.

        Raises:
            ReferenceNotFound: There is no catalog that keeps the versions of its tables.
            TableNotFoundError: A selected table does not exist (4).
            NamespaceNotFoundError: A selected namespace does not exist (1).
            CatalogDamaged, CatalogTooNew, StorageError: The rows of the catalog cannot be read.
        """
        is_over = self._end(seconds)
        return self._go(
            selection or TableSelection(), is_over, lambda candidate: self._work(candidate, is_over, forced=forced)
        )

    def _go(
        self, selection: TableSelection, is_over: Callable[[], bool], work: Callable[[_Candidate], TableOutcome]
    ) -> MaintenanceReport:
        snapshot = self.table.refresh_by_listing()
        if not snapshot.managed:
            raise ReferenceNotFound(
                f"{self.store.object_uri(MANIFEST_TABLE)}: expected a catalog that keeps the versions of its tables"
            )
        tables = self._in_order(selection.of(snapshot))
        outcomes: list[TableOutcome] = []
        seen = 0
        for begin in range(0, len(tables), _AT_ONCE):
            if is_over():
                break
            for found in self.store.map(partial(self._look, snapshot), tables[begin : begin + _AT_ONCE]):
                if is_over():
                    break
                self.progress("maintain", seen, len(tables))
                seen += 1
                if isinstance(found, TableOutcome):
                    outcomes.append(found)
                elif found is not None and (found.plan is not None or found.indices is not None):
                    outcomes.append(work(found))
        self._first = tables[seen] if seen < len(tables) else None
        return MaintenanceReport(self.store.uri, snapshot.version, seen, len(tables) - seen, tuple(outcomes))

    def run_on(self, asked: RequestedMaintenance) -> TableRun:
        """Maintain one table of a catalog that keeps the versions of its tables, or plan that.

        A refusal for want of a privilege is raised where nothing was committed before: it is answered and recorded like
        that of any other change. A later one stands in the outcome.

        Raises:
            TableNotFoundError: The table does not exist (4).
            InvalidInputError: It has no version yet, or its policy has a property that cannot be read (13).
            PermissionDeniedError: The caller of `change` may not do the first change (15), or `judge` says so before.
            LanceCoreError: The rows of the catalog, or the newest manifest of the table, cannot be read.
        """
        snapshot = self._newest()
        [table_id] = TableSelection((asked.table_id,)).of(snapshot)
        try:
            first = self._candidate(snapshot, table_id)
        except WrongPolicy as error:
            raise InvalidInputError(f"table {join(table_id)}: {error}") from error
        if first is None:
            raise InvalidInputError(f"table {join(table_id)}: expected a table with a version, found none yet")
        if first.plan is None and first.indices is None:
            return _table_run(_outcome(first, TableStatus.NOTHING_TO_DO), first, first, snapshot.version)
        if asked.dry_run:
            return _table_run(self._planned(first, forced=asked.forced), first, first, snapshot.version)
        is_over = self._end(asked.seconds)
        outcome = self._work(first, is_over, forced=asked.forced)
        if outcome.status is TableStatus.DONE and not outcome.commits:
            outcome.status = TableStatus.NOTHING_TO_DO
            if is_over():
                outcome.status, outcome.reason = TableStatus.GIVEN_UP, "the run was over before anything was committed"
        newest = self.table.refresh()
        try:
            self.judge(newest)
            last = self._look(newest, table_id)
        except (PermissionDeniedError, TableNotFoundError):
            last = None
        return _table_run(outcome, first, last if isinstance(last, _Candidate) else None, newest.version)

    def _newest(self) -> CatalogSnapshot:
        """The newest catalog. Raises as `judge`: the table may be another one by now, which its caller may not see."""
        snapshot = self.table.refresh()
        self.judge(snapshot)
        return snapshot

    def _end(self, seconds: float | None) -> Callable[[], bool]:
        """Whether a run is over that began now, and begins no work after so many seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        return lambda: self.stopped() or (end is not None and time.monotonic() >= end)

    def _in_order(self, tables: list[ObjectId]) -> list[ObjectId]:
        if self._first is None:
            return tables
        at = next((number for number, table_id in enumerate(tables) if table_id >= self._first), 0)
        return tables[at:] + tables[:at]

    def _look(self, snapshot: CatalogSnapshot, table_id: ObjectId) -> _Candidate | TableOutcome | None:
        """As `_candidate`; the outcome, if the table cannot be looked at."""
        try:
            return self._candidate(snapshot, table_id)
        except (WrongPolicy, LanceCoreError) as error:
            head = snapshot.head(table_id)
            version = 0 if head is None else head.version
            return TableOutcome(join(table_id), TableStatus.FAILED, version, reason=str(error))

    def _candidate(self, snapshot: CatalogSnapshot, table_id: ObjectId) -> _Candidate | None:
        """A table at the snapshot; None if it has no version. Raises `WrongPolicy`, `LanceCoreError`."""
        head = snapshot.head(table_id)
        if head is None:
            return None
        policy = policy_of(snapshot, table_id, self.defaults)
        file = self._manifest(head)
        count = len(file.outline.fragments)
        return _Candidate(table_id, head, policy, count, plan_fragments(file, policy), plan_indices(file, policy))

    def _manifest(self, entry: VersionEntry) -> ManifestFile:
        data = ManifestReader(self.store).read(entry)
        return parse_manifest_file(data, expected_version=entry.version, lazily=True)

    def _planned(self, candidate: _Candidate, *, forced: bool) -> TableOutcome:
        outcome = _outcome(candidate, TableStatus.PLANNED)
        if not forced:
            self._is_left(candidate, _DISTURBED if candidate.plan is not None else _DISTURBED_BY_INDEX, outcome)
        return outcome

    def _work(self, first: _Candidate, is_over: Callable[[], bool], *, forced: bool) -> TableOutcome:
        """Compact a table, then extend its indices. Raises PermissionDeniedError if nothing was committed before."""
        outcome = _outcome(first, TableStatus.DONE)
        try:
            try:
                candidate = self._compact_all(first, outcome, is_over, forced=forced)
            except (LanceNamespaceError, LanceCoreError) as error:
                if isinstance(error, (*_GONE, PermissionDeniedError)):
                    raise
                outcome.status, outcome.reason = TableStatus.FAILED, _reason(first.table_id, error)
                candidate = first
            if candidate is not None and candidate.indices is not None and not is_over():
                self._optimize_indices(candidate, candidate.indices, outcome, forced=forced)
        except _GONE as error:
            outcome.status, outcome.reason = TableStatus.GIVEN_UP, str(error)
        except (LanceNamespaceError, LanceCoreError) as error:
            if isinstance(error, PermissionDeniedError) and outcome.version == first.head.version:
                raise
            outcome.status, outcome.reason = TableStatus.FAILED, _reason(first.table_id, error)
        return outcome

    def _compact_all(
        self, first: _Candidate, outcome: TableOutcome, is_over: Callable[[], bool], *, forced: bool
    ) -> _Candidate | None:
        """Commit one bounded Rewrite after another, until nothing is worth it. The table after that."""
        reserved, candidate = _Reserved(), first
        while candidate.plan is not None and not is_over():
            if not forced and self._is_left(candidate, _DISTURBED, outcome):
                break
            if candidate.plan.reserved > reserved.count:
                if not forced and self._is_repeated(candidate, outcome):
                    break
                reserved = self._reserve(candidate, outcome)
            if not self._compact(candidate, candidate.plan, reserved, outcome):
                break
            found = self._look(self._newest(), candidate.table_id)
            if not isinstance(found, _Candidate):
                return None
            candidate = found
        return candidate

    def _is_left(self, candidate: _Candidate, disturbed: frozenset[str | None], outcome: TableOutcome) -> bool:
        version = self._disturbed(candidate, disturbed)
        if version is None:
            return False
        outcome.status = TableStatus.BUSY
        outcome.reason = f"version {version} was committed less than {candidate.policy.quiet_seconds} s ago"
        return True

    def _is_repeated(self, candidate: _Candidate, outcome: TableOutcome) -> bool:
        """Whether the newest version is a reservation that no Rewrite followed: a run that failed, or is at work.

        Each further reservation would be one more version for nothing.
        """
        head = self._newest().head(candidate.table_id)
        if head is None or head.timestamp_ms <= (self.now() - _UNUSED_SECONDS) * 1000:
            return False
        if self._manifest(head).operation != "reserve_fragments":
            return False
        outcome.status = TableStatus.FAILED
        outcome.reason = (
            f"version {head.version} reserved fragment ids for a compaction that failed or has not ended: "
            "expected another change of the table, a day to pass or --force before the next one"
        )
        return True

    def _disturbed(self, candidate: _Candidate, disturbed: frozenset[str | None]) -> int | None:
        """A version of the last seconds whose writer, if it goes on so, would have to give way to the work."""
        since = (self.now() - candidate.policy.quiet_seconds) * 1000
        versions: Iterator[VersionEntry] = self._newest().versions(candidate.table_id, descending=True)
        recent = takewhile(lambda entry: entry.timestamp_ms > since, versions)
        for entry in islice(recent, _LOOKED_BACK):
            try:
                if self._manifest(entry).operation in disturbed:
                    return entry.version
            except NotFound:
                continue
        return None

    def _reserve(self, candidate: _Candidate, outcome: TableOutcome) -> _Reserved:
        """Reserve fragment ids in a commit of its own: a Rewrite of indexed fragments names the ids of new ones."""
        assert candidate.plan is not None
        count = candidate.plan.reserved
        request: ReserveFragmentIds = {**self._request(candidate, _COMPACT), "count": count}
        answer = self._change("reserve_fragments", request)
        outcome.version = _number(answer, "version")
        entry = self._newest().version_entry(candidate.table_id, None, outcome.version)
        if entry is None:
            raise table_not_found(candidate.table_id)
        return _Reserved(self._manifest(entry).outline.max_fragment_id - count + 1, count)

    def _compact(self, candidate: _Candidate, plan: FragmentPlan, reserved: _Reserved, outcome: TableOutcome) -> bool:
        """Commit one Rewrite. Whether there was something to rewrite."""
        options = CompactionOptions(
            target_rows_per_fragment=plan.target_rows,
            materialize_deletions_threshold=candidate.policy.deleted_share,
            max_source_bytes=candidate.policy.rewrite_bytes,
        )
        request: CompactTable = {
            **self._request(candidate, _COMPACT),
            "options": options,
            "reserved": {"first": reserved.first, "count": reserved.count},
        }
        answer = self._change("compact_table", request)
        outcome.version = _number(answer, "version")
        removed, added = _number(answer, "removed_fragments"), _number(answer, "added_fragments")
        if not removed:
            return False
        outcome.commits += 1
        outcome.removed_fragments += removed
        outcome.added_fragments += added
        outcome.rewritten_indices += _number(answer, "rewritten_indices")
        if plan.reserved:
            reserved.first += added
            reserved.count -= added
        return True

    def _optimize_indices(self, candidate: _Candidate, plan: IndexPlan, outcome: TableOutcome, *, forced: bool) -> None:
        """Commit one segment in place of those of each index that is worth it."""
        outcome.indices, outcome.unindexed_rows = plan.names, plan.rows
        if not forced and self._is_left(candidate, _DISTURBED_BY_INDEX, outcome):
            return
        request: OptimizeIndices = {**self._request(candidate, _INDICES), "names": list(plan.names)}
        answer = self._change("optimize_indices", request)
        outcome.version = _number(answer, "version")
        outcome.added_segments = _number(answer, "added_segments")
        outcome.removed_segments = _number(answer, "removed_segments")
        outcome.commits += bool(outcome.added_segments)

    def _request(self, candidate: _Candidate, what: str) -> TableRequest:
        return {"id": list(candidate.table_id), "context": {"message": self.message or what}}

    def _change(self, operation: str, request: TableRequest) -> Answer:
        if self.change is None:
            raise TypeError("maintenance without changes can only plan")
        return self.change(operation, request)


def _reason(table_id: ObjectId, error: Exception) -> str:
    """Why work failed, without what an error of the store says of places: that goes to the log."""
    if isinstance(error, CorruptFile):
        return str(file_damaged(error))
    if isinstance(error, StorageError):
        _log.warning("maintenance of table %s: storage cannot be used: %s", join(table_id), error)
        return f"storage cannot be used: {system_reason(error) or type(error).__name__}"
    return str(error)


def _table_run(outcome: TableOutcome, first: _Candidate, last: _Candidate | None, catalog_version: int) -> TableRun:
    if last is not None:
        outcome.version = last.head.version
    return TableRun(
        outcome,
        catalog_version,
        first.head.version,
        first.fragments,
        first.work,
        None if last is None else last.fragments,
        None if last is None else last.work,
    )


def _number(answer: Answer, field: str) -> int:
    value = answer.body[field]
    assert isinstance(value, int)
    return value


def _outcome(candidate: _Candidate, status: TableStatus) -> TableOutcome:
    work = candidate.work
    return TableOutcome(
        join(candidate.table_id),
        status,
        candidate.head.version,
        work.small_fragments,
        work.fragments_with_deletions,
        work.bytes,
        indices=work.indices,
        unindexed_rows=work.unindexed_rows,
    )
