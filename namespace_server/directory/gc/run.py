"""One garbage collection of a catalog: time, horizon, mark, plan, delete, close (design note 018)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from lance_namespace.errors import UnsupportedOperationError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from lance_core.cleanup.kinds import FileKind
from lance_core.errors import CorruptFile, ReferenceNotFound, UnsupportedFeature
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.gc.delete import Budget, Deleter
from namespace_server.directory.gc.directories import is_owned
from namespace_server.directory.gc.expired_versions import ExpiredVersions, removed_rows
from namespace_server.directory.gc.history import (
    CatalogVersionFile,
    copy_versions,
    dated_ahead,
    kept_for_cursors,
    list_catalog_versions,
    needed_versions,
    oldest_allowed,
    oldest_for_cursors,
    oldest_to_keep,
    superseded_versions,
    unnamed_files,
)
from namespace_server.directory.gc.horizon import (
    HORIZON_METADATA,
    Clock,
    StoreDates,
    date_limits,
    end_leases,
    move_horizon,
    store_time,
)
from namespace_server.directory.gc.mark import MarkPhase
from namespace_server.directory.gc.plan import Removal, list_runs, store_plans
from namespace_server.directory.gc.purges import (
    claim_purges,
    conclude_purges,
    find_left_behind,
    is_of_table,
    purges_held,
    purging_locations,
)
from namespace_server.directory.gc.quarantine import find_quarantined
from namespace_server.directory.gc.report import UPLOADED, GcReport, MarkResult, Total, totals
from namespace_server.directory.gc.restored_versions import put_back_named
from namespace_server.directory.gc.scan_state import (
    Choice,
    choose_locations,
    read_scan_state,
    scan_state_after,
    write_scan_state,
)
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.gc.table_retention import Superseded, find_superseded
from namespace_server.directory.model.entries import Changes, VersionEntry, changes_of
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.multipart_uploads import find_ended_uploads
from namespace_server.directory.planning.planner import require_managed
from namespace_server.observability.observation import Progress, no_progress

SETTLE: Final = timedelta(seconds=5)
"""Pause between a first look and the last, for commits by path that are under way."""
_TRIES: Final = 60
"""Tries of a commit, each of which loses some twenty races against other writers before it is given up."""
_PAUSE: Final = 2.0
"""Seconds between two of them, on average."""
_PLANS_KEPT: Final = timedelta(days=1)
"""Age from which the plans of earlier runs go that are done. A process that was held as long finds none, and ends."""
MANIFEST_KINDS: Final = frozenset({FileKind.MANIFEST.value, FileKind.STAGED.value, FileKind.BUNDLE.value})


@dataclass(frozen=True, slots=True)
class _Terms:
    """The times and settings by which a run decides.

    Attributes:
        run: The uuid of the run; empty for an estimate.
        now: The time by the store's clock.
        settings: The settings, with those that are given.
        given: The settings that are set with the horizon.
        versions: The versions of the catalog that were listed; those that `seen` needs are copied.
        dates: When they were written.
        oldest: The oldest of them to keep.
        for_cursors: The oldest of them that may be kept for cursors.
        seen: The newest of them.
        scope: Where it looks.
    """

    run: str
    now: datetime
    settings: GcSettings
    given: Mapping[str, str]
    versions: Sequence[CatalogVersionFile]
    dates: StoreDates
    oldest: int
    for_cursors: int
    seen: CatalogSnapshot
    scope: _RunScope

    @property
    def horizon(self) -> datetime:
        """Unreferenced files written before this are deleted."""
        return self.now - self.settings.grace

    @property
    def now_ms(self) -> int:
        """The time in milliseconds since the epoch."""
        return int(self.now.timestamp() * 1_000)


@dataclass(frozen=True, slots=True)
class _RunScope:
    """The locations that a run looks at: all (`everywhere`), or changed ones; only those of `tables`, if given."""

    everywhere: bool
    tables: Collection[ObjectId]


def _terms(
    run: str,
    now: datetime,
    settings: GcSettings,
    given: Mapping[str, str],
    versions: Sequence[CatalogVersionFile],
    seen: CatalogSnapshot,
    scope: _RunScope,
) -> _Terms:
    oldest = oldest_to_keep(versions, settings, now, seen.collector.oldest)
    for_cursors = oldest_for_cursors(versions, settings, now, seen.collector.oldest)
    needed = kept_for_cursors(seen, for_cursors)
    oldest = oldest if needed is None else min(oldest, needed)
    return _Terms(run, now, settings, given, versions, StoreDates(versions, now), oldest, for_cursors, seen, scope)


@dataclass(slots=True)
class _Marked:
    """The findings of a run on the version of the catalog that has its horizon.

    Attributes:
        snapshot: That version.
        history: What goes of the catalog's own history, versions first.
        problems: Why others of its versions, or its rows, were not judged; by location.
        choice: The locations at which it looked.
        expired: Finds the manifests of expired versions.
        mark: The mark phase.
        result: What that found.
    """

    snapshot: CatalogSnapshot
    history: list[Removal]
    problems: Mapping[str, str]
    choice: Choice
    expired: ExpiredVersions
    mark: MarkPhase
    result: MarkResult

    def removals(self) -> Iterator[Removal]:
        """The objects to delete, manifests before their files: a version that is listed can be read."""
        ordered = sorted(self.result.orphans, key=lambda orphan: (orphan.kind not in MANIFEST_KINDS, orphan.path))
        yield from self.history
        yield from (Removal(each.path, each.size, each.written, each.reason) for each in ordered if each.is_owned)


class Collector:
    """Collects the garbage of one catalog. Several runs at one time, in any processes, are safe: each removes garbage.

    `settle` is the pause before what was written meanwhile is looked for again. `sleep` waits for a number of seconds,
    `clock` returns the time of a run (`store_time`). `progress` is called with the phases of a run: horizon, list,
    mark, confirm, plan, delete, close.
    """

    def __init__(
        self,
        catalog: StoredCatalog,
        *,
        settle: timedelta = SETTLE,
        sleep: Callable[[float], None] = time.sleep,
        clock: Clock = store_time,
        progress: Progress = no_progress,
    ) -> None:
        self._catalog = catalog
        self._store = catalog.store
        self._table = catalog.table
        self._settle = settle
        self._sleep = sleep
        self._clock = clock
        self._progress = progress

    def collect(
        self,
        given: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        *,
        everywhere: bool = True,
        tables: Collection[ObjectId] = (),
    ) -> GcReport:
        """Remove what is not needed. A crash at any moment leaves a catalog that is whole; the next run goes on.

        Args:
            given: Settings of the catalog, by name, to be set for this run and those that follow.
            budget: How much may be done.
            everywhere: Look at all tables. Else at those that changed since the last run, where something waits for its
                time, and where none looked for as long as `gc.orphans.every` (`choose_locations`).
            tables: Look at the files of these tables only; empty for all.

        Raises:
            ValueError: A setting is unknown or wrong, or a table is at a place that the catalog did not choose.
            TableNotFoundError: One of `tables` does not exist (4).
            UnsupportedOperationError: Another implementation made the catalog, and it is not adopted (0).
            GcStopped: The store's clock is wrong.
            BatchUnknown, CatalogBusy: The horizon may not be committed; nothing was removed.
            CatalogDamaged, CatalogTooNew: The rows of the catalog cannot be read.
            ReferenceNotFound: There is no catalog, or another run removed catalog versions meanwhile.
            StorageError: The store failed. What was removed was garbage.
        """
        snapshot = self._newest()
        require_managed(snapshot)
        _check_owned(snapshot, tables)
        run = str(uuid.uuid4())
        settings = settings_of(snapshot, given)
        versions = list_catalog_versions(self._store)
        deleter = Deleter(self._store, snapshot, versions[-1].meta.path, budget or Budget(), self._progress)
        runs = list_runs(self._store)
        complete = deleter.carry_out(runs.unfinished)
        now = self._clock(self._store, run)
        terms = _terms(run, now, settings, given or {}, versions, snapshot, _RunScope(everywhere, tables))
        superseded = find_superseded(self._store, snapshot, settings, now).expire(self._commit)
        copy_versions(self._store, versions, {each for each in needed_versions(snapshot) if each < terms.oldest})
        self._progress("horizon")
        after_horizon = self._commit(partial(_with_horizon, terms=terms), table_metadata=HORIZON_METADATA)
        marked = self._mark(after_horizon, terms)
        if marked.result.orphans:
            self._progress("confirm")
            self._sleep(self._settle.total_seconds())
            marked.mark.look_again()
            marked.result = marked.mark.report()
        put_back_named(self._store, after_horizon, self._table.kept, self._commit)
        self._progress("plan")
        plans = store_plans(self._store, run, self._removals(marked, terms))
        complete = deleter.carry_out(plans) and complete
        marked.mark.remove_empty_directories()
        deleter.forget(runs.finished_before(now - _PLANS_KEPT))
        self._progress("close")
        purged = self._close(after_horizon, terms.now_ms)
        if marked.mark.deleted_branches:
            self._commit(partial(_forget, heads=tuple(marked.mark.deleted_branches)))
        if not tables:
            state = scan_state_after(marked.choice, marked.mark, marked.result, marked.expired.waiting, now)
            write_scan_state(self._store, state)
        report = self._report(marked, terms, superseded, self._table.current)
        done = deleter.outcome
        return replace(
            report,
            removed={reason: Total(files, done.sizes[reason]) for reason, files in sorted(done.files.items())},
            kept=tuple(done.kept),
            refused=done.refused,
            purged=purged,
            not_judged={**deleter.damaged, **report.not_judged},
            complete=complete,
        )

    def estimate(
        self,
        given: Mapping[str, str] | None = None,
        now: datetime | None = None,
        *,
        older_than: timedelta | None = None,
        everywhere: bool = True,
        tables: Collection[ObjectId] = (),
    ) -> GcReport:
        """Report what `collect` would remove at the time `now` of the machine's clock, file by file. Writes nothing.

        Only over an external manifest store does reading finish commits that are decided. `older_than` takes the place
        of `gc.uncommitted.grace`, and may be any duration. `tables` may be at places that the catalog did not choose,
        and the catalog one that is not adopted: then the report lists what is not needed, and that it stays. Raises as
        `collect`, except for what is of writing.
        """
        snapshot = self._newest()
        settings = settings_of(snapshot, given)
        settings = settings if older_than is None else replace(settings, grace=older_than)
        now = now or datetime.now(UTC)
        versions = list_catalog_versions(self._store)
        terms = _terms("", now, settings, {}, versions, snapshot, _RunScope(everywhere, tables))
        marked = self._mark(snapshot.apply(_with_horizon(snapshot, terms)), terms)
        superseded = find_superseded(self._store, snapshot, settings, now)
        report = self._report(marked, terms, superseded, snapshot)
        removed = totals((item.reason, item.size) for item in self._removals(marked, terms))
        return replace(report, removed=removed, marked=marked.result)

    def _mark(self, after_horizon: CatalogSnapshot, terms: _Terms) -> _Marked:
        """Look at the history of the catalog and at its tables, on the version that has the horizon."""
        history, problems = self._history(after_horizon, terms)
        choice = self._choose(after_horizon, terms)
        expired = ExpiredVersions(
            self._store, after_horizon, partial(removed_rows, self._table, after_horizon), terms.horizon
        )
        mark = MarkPhase(
            self._store,
            self._table,
            after_horizon,
            terms.horizon,
            terms.scope.tables,
            expired=expired,
            deleted=lambda: expired.removed,
            purging=purging_locations(after_horizon),
            left_out=choice.left_out,
            known=choice.known,
            progress=self._progress,
        )
        mark.look()
        return _Marked(after_horizon, history, problems, choice, expired, mark, mark.report())

    def _removals(self, marked: _Marked, terms: _Terms) -> Iterator[Removal]:
        """All that goes; nothing of a catalog that is not adopted."""
        if not marked.snapshot.managed:
            return
        yield from marked.removals()
        yield from find_quarantined(self._store, marked.snapshot, terms.horizon, terms.now)
        for each in find_ended_uploads(self._store, terms.horizon):
            yield Removal(each.path, each.size, each.last_modified, UPLOADED)

    def _report(self, marked: _Marked, terms: _Terms, superseded: Superseded, newest: CatalogSnapshot) -> GcReport:
        """The report before anything is removed."""
        found = marked.result
        young = [(orphan.path, orphan.size) for orphan in found.young if orphan.judged_by >= terms.horizon]
        held = [orphan for orphan in found.young if orphan.judged_by < terms.horizon]
        return GcReport(
            root=self._store.uri,
            run=terms.run,
            catalog_version=found.catalog_version,
            horizon=terms.horizon,
            oldest=marked.snapshot.collector.oldest,
            settings=terms.settings.as_texts(),
            removed={},
            kept=(),
            refused={},
            purged=tuple(sorted(purging_locations(marked.snapshot))),
            too_young=Total(len(young), sum(size for _, size in young)),
            held=totals((orphan.path.partition("/")[0], orphan.size) for orphan in held),
            purges_held=purges_held(marked.snapshot, terms.settings.dropped_window, terms.now_ms),
            not_judged={**marked.expired.problems, **marked.problems, **superseded.problems, **found.not_judged},
            expired=superseded.total,
            left_out=len(marked.choice.left_out),
            left_behind=find_left_behind(self._store, newest, marked.mark.removed),
            unknown=len(found.unknown),
            complete=True,
            marked=None,
        )

    def _commit(
        self, plan: Callable[[CatalogSnapshot], Changes], *, table_metadata: Mapping[str, str] | None = None
    ) -> CatalogSnapshot:
        """Commit a change of the catalog, and wait while writers win all of its tries: they never wait for a run."""
        retrying = Retrying(
            retry=retry_if_exception_type(CatalogBusy),
            stop=stop_after_attempt(_TRIES),
            wait=wait_random(0, 2 * _PAUSE),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(self._catalog.committer.commit_changes, plan, table_metadata=table_metadata)

    def _newest(self) -> CatalogSnapshot:
        snapshot = self._table.refresh_by_listing()
        if not snapshot.version:
            raise ReferenceNotFound(f"{self._store.object_uri(MANIFEST_TABLE)}: expected a catalog, found none")
        return snapshot

    def _history(self, after_horizon: CatalogSnapshot, terms: _Terms) -> tuple[list[Removal], dict[str, str]]:
        """Removals of the catalog's own history, versions first, and why others, or its rows, were not judged."""
        try:
            require_managed(after_horizon)  # an estimate may be of another implementation's catalog
        except UnsupportedOperationError as error:
            return [], {MANIFEST_TABLE: str(error)}
        superseded = superseded_versions(terms.versions, after_horizon.collector.oldest)
        ahead = dated_ahead(terms.versions, terms.now)
        try:
            unnamed = unnamed_files(self._store, terms.versions, after_horizon, terms.horizon, terms.settings.grace)
        except (CorruptFile, UnsupportedFeature) as error:
            return superseded, {**ahead, MANIFEST_TABLE: str(error)}
        return [*superseded, *unnamed], ahead

    def _choose(self, after_horizon: CatalogSnapshot, terms: _Terms) -> Choice:
        seen = {} if terms.scope.everywhere or terms.scope.tables else read_scan_state(self._store)
        every = terms.settings.look_every
        return choose_locations(self._store, after_horizon, seen, now=terms.now, horizon=terms.horizon, every=every)

    def _close(self, after_horizon: CatalogSnapshot, now_ms: int) -> tuple[str, ...]:
        """End the purges whose locations are empty; returns these."""
        empty = {location for location in purging_locations(after_horizon) if not self._has_files(location)}
        if not empty:
            return ()
        self._commit(partial(conclude_purges, empty=empty, now_ms=now_ms))
        return tuple(sorted(empty))

    def _has_files(self, location: str) -> bool:
        """Whether a file is left that goes with its table. Files of unknown names and other datasets stay there."""
        return any(is_of_table(meta.path.removeprefix(f"{location}/")) for meta in self._store.list(location))


def _with_horizon(snapshot: CatalogSnapshot, terms: _Terms) -> Changes:
    """The changes by which a run begins: horizon, oldest kept version, leases that end, and tables that are purged."""
    horizon = move_horizon(
        snapshot,
        horizon=int(terms.horizon.timestamp()),
        oldest=oldest_allowed(snapshot, terms.oldest, terms.seen, terms.for_cursors),
        run=terms.run,
        now_ms=terms.now_ms,
        settings=terms.given,
    )
    dated = date_limits(snapshot, terms.dates)
    known = snapshot.apply(dated) if dated else snapshot
    purges = claim_purges(known, terms.settings.dropped_window, terms.now_ms)
    return horizon.then(dated, end_leases(known, terms.now_ms), purges)


def _forget(snapshot: CatalogSnapshot, heads: Collection[VersionEntry]) -> Changes:
    """The removal of all rows of branches that clients deleted, by their newest versions (M8)."""
    gone = [head for head in heads if snapshot.head(head.table_id, head.branch) == head]
    rows = (row for head in gone for row in snapshot.versions(head.table_id, head.branch))
    return changes_of((), frozenset(row.object_id for row in rows))


def _check_owned(snapshot: CatalogSnapshot, tables: Collection[ObjectId]) -> None:
    """Raise `ValueError` for a table whose location is another one than the catalog chooses (G16)."""
    for table_id in tables:
        table = snapshot.table(table_id)
        if table is not None and not is_owned(table.location):
            raise ValueError(f"table {join(table_id)}: the catalog did not choose {table.location}: nothing of it goes")


def settings_of(snapshot: CatalogSnapshot, given: Mapping[str, str] | None) -> GcSettings:
    """The settings of a catalog, with those that are given. Raises `ValueError` for one of these.

    Stored settings of later releases count for those alone.
    """
    known = GcSettings().as_texts()
    stored = {name: text for name, text in snapshot.collector.settings.items() if name in known}
    return GcSettings().with_texts({**stored, **(given or {})})
