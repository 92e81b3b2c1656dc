"""A run of maintenance: which tables are worth work, and the work, one table after another.

A table is looked at by its row and the manifest of its head; nothing is written for that. Its work is a change like
those of clients: staged by pylance on the newest version, and committed by the catalog, which rebases it or rejects it.
What is rejected is given up, and its files are removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from typing import Final, NamedTuple, Protocol

from lance_namespace.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.compaction import CompactionOptions
from lance_core.errors import LanceCoreError, NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.storage.port import ObjectStore
from namespace_server.answer import Answer
from namespace_server.directory.maintenance.coverage import IndexPlan, plan_indices
from namespace_server.directory.maintenance.fragments import FragmentPlan, plan_fragments
from namespace_server.directory.maintenance.policy import Policy, WrongPolicy, policy_of
from namespace_server.directory.maintenance.report import MaintenanceReport, TableOutcome, TableStatus
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import namespace_not_found, table_not_found
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import Progress, no_progress
from table_data.requests.table_requests import CompactTable, OptimizeIndices, ReserveFragmentIds, TableRequest

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


class CommitChange(Protocol):
    """Commits a change of a table on its newest version. Blocking.

    Raises the namespace errors of a change of rows. What was rejected left no files.
    """

    def __call__(self, operation: str, request: TableRequest) -> Answer:
        """`operation` is one of `table_data.operations.CHANGES`."""
        ...


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
    plan: FragmentPlan | None
    indices: IndexPlan | None


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
    """

    store: ObjectStore
    table: ManifestTable
    change: CommitChange | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    stopped: Callable[[], bool] = lambda: False
    progress: Progress = no_progress
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
        end = None if seconds is None else time.monotonic() + seconds

        def is_over() -> bool:
            return self.stopped() or (end is not None and time.monotonic() >= end)

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

    def _in_order(self, tables: list[ObjectId]) -> list[ObjectId]:
        if self._first is None:
            return tables
        at = next((number for number, table_id in enumerate(tables) if table_id >= self._first), 0)
        return tables[at:] + tables[:at]

    def _look(self, snapshot: CatalogSnapshot, table_id: ObjectId) -> _Candidate | TableOutcome | None:
        """A table at the snapshot; None if it has no version. The outcome, if it cannot be looked at."""
        head = snapshot.head(table_id)
        if head is None:
            return None
        try:
            policy = policy_of(snapshot, table_id, self.defaults)
            file = self._manifest(head)
            return _Candidate(table_id, head, policy, plan_fragments(file, policy), plan_indices(file, policy))
        except (WrongPolicy, LanceCoreError) as error:
            return TableOutcome(join(table_id), TableStatus.FAILED, head.version, reason=str(error))

    def _manifest(self, entry: VersionEntry) -> ManifestFile:
        data = ManifestReader(self.store).read(entry)
        return parse_manifest_file(data, expected_version=entry.version, lazily=True)

    def _planned(self, candidate: _Candidate, *, forced: bool) -> TableOutcome:
        outcome = _outcome(candidate, TableStatus.PLANNED)
        if not forced:
            self._is_left(candidate, _DISTURBED if candidate.plan is not None else _DISTURBED_BY_INDEX, outcome)
        return outcome

    def _work(self, first: _Candidate, is_over: Callable[[], bool], *, forced: bool) -> TableOutcome:
        """Compact a table, then extend its indices."""
        outcome = _outcome(first, TableStatus.DONE)
        try:
            try:
                candidate = self._compact_all(first, outcome, is_over, forced=forced)
            except (LanceNamespaceError, LanceCoreError) as error:
                if isinstance(error, _GONE):
                    raise
                outcome.status, outcome.reason = TableStatus.FAILED, str(error)
                candidate = first
            if candidate is not None and candidate.indices is not None and not is_over():
                self._optimize_indices(candidate, candidate.indices, outcome, forced=forced)
        except _GONE as error:
            outcome.status, outcome.reason = TableStatus.GIVEN_UP, str(error)
        except (LanceNamespaceError, LanceCoreError) as error:
            outcome.status, outcome.reason = TableStatus.FAILED, str(error)
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
                reserved = self._reserve(candidate)
            if not self._compact(candidate, candidate.plan, reserved, outcome):
                break
            found = self._look(self.table.refresh(), candidate.table_id)
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
        head = self.table.refresh().head(candidate.table_id)
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
        versions: Iterator[VersionEntry] = self.table.refresh().versions(candidate.table_id, descending=True)
        recent = takewhile(lambda entry: entry.timestamp_ms > since, versions)
        for entry in islice(recent, _LOOKED_BACK):
            try:
                if self._manifest(entry).operation in disturbed:
                    return entry.version
            except NotFound:
                continue
        return None

    def _reserve(self, candidate: _Candidate) -> _Reserved:
        """Reserve fragment ids in a commit of its own: a Rewrite of indexed fragments names the ids of new ones."""
        assert candidate.plan is not None
        count = candidate.plan.reserved
        request: ReserveFragmentIds = {**_request(candidate.table_id), "count": count}
        answer = self._change("reserve_fragments", request)
        entry = self.table.refresh().version_entry(candidate.table_id, None, _number(answer, "version"))
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
            **_request(candidate.table_id),
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
        request: OptimizeIndices = {**_request(candidate.table_id, _INDICES), "names": list(plan.names)}
        answer = self._change("optimize_indices", request)
        outcome.version = _number(answer, "version")
        outcome.added_segments = _number(answer, "added_segments")
        outcome.removed_segments = _number(answer, "removed_segments")
        outcome.commits += bool(outcome.added_segments)

    def _change(self, operation: str, request: TableRequest) -> Answer:
        if self.change is None:
            raise TypeError("maintenance without changes can only plan")
        return self.change(operation, request)


def _request(table_id: ObjectId, message: str = _COMPACT) -> TableRequest:
    return {"id": list(table_id), "context": {"message": message}}


def _number(answer: Answer, field: str) -> int:
    value = answer.body[field]
    assert isinstance(value, int)
    return value


def _outcome(candidate: _Candidate, status: TableStatus) -> TableOutcome:
    outcome = TableOutcome(join(candidate.table_id), status, candidate.head.version)
    if candidate.plan is not None:
        outcome.small, outcome.deleted, outcome.size = candidate.plan.small, candidate.plan.deleted, candidate.plan.size
    if candidate.indices is not None:
        outcome.indices, outcome.unindexed_rows = candidate.indices.names, candidate.indices.rows
    return outcome
