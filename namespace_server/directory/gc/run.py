"""One collection of a catalog: time, fence, look, plan, sweep, close (design note 018)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from lance_core.cleanup.kinds import FileKind
from lance_core.errors import CorruptFile, ReferenceNotFound, UnsupportedFeature
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.gc.clock import Clock, store_time
from namespace_server.directory.gc.delete import Budget, Sweep
from namespace_server.directory.gc.directories import is_owned
from namespace_server.directory.gc.expired_versions import ExpiredVersions, removed_rows
from namespace_server.directory.gc.fence import FENCE_METADATA, plan_fence
from namespace_server.directory.gc.history import (
    CatalogVersionFile,
    copy_versions,
    dated_ahead,
    list_catalog_versions,
    needed_versions,
    oldest_allowed,
    oldest_to_keep,
    superseded_versions,
    unnamed_files,
)
from namespace_server.directory.gc.leases import end_leases
from namespace_server.directory.gc.mark import Search
from namespace_server.directory.gc.mark_report import OrphanReport, Total
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
from namespace_server.directory.gc.report import CollectionReport, by_location
from namespace_server.directory.gc.restored_versions import put_back_named
from namespace_server.directory.gc.scan_state import (
    Choice,
    choose_locations,
    read_seen,
    seen_after,
    write_seen,
)
from namespace_server.directory.gc.settings import CollectionSettings
from namespace_server.directory.gc.store_dates import StoreDates, date_limits
from namespace_server.directory.gc.table_retention import find_superseded
from namespace_server.directory.model.entries import Changes, VersionEntry, changes_of
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.progress import Progress, untold
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.planner import require_managed

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
    """What a run decides by: the time by the store's clock, the settings, and the oldest catalog version to keep.

    `given` are the settings that are set with the fence. `run` is the uuid of the run, empty for an estimate. `dates`
    are those of the catalog versions that were listed. Versions
    that `seen` needs are copied.
    """

    now: datetime
    settings: CollectionSettings
    given: Mapping[str, str]
    oldest: int
    run: str
    dates: StoreDates
    seen: CatalogSnapshot

    @property
    def horizon(self) -> datetime:
        """What was written before, and nothing names, goes."""
        return self.now - self.settings.grace

    @property
    def now_ms(self) -> int:
        """The time in milliseconds since the epoch."""
        return int(self.now.timestamp() * 1_000)


class Collector:
    """Collects one catalog. Several runs at one time, in any processes, are safe: each removes garbage only.

    `settle` is the pause before what was written meanwhile is looked for again. `sleep` waits for a number of seconds,
    `clock` tells the time of a run (`store_time`). `progress` is told the phases of a run: fence, list, mark, confirm,
    plan, sweep, close.
    """

    def __init__(
        self,
        catalog: StoredCatalog,
        *,
        settle: timedelta = SETTLE,
        sleep: Callable[[float], None] = time.sleep,
        clock: Clock = store_time,
        progress: Progress = untold,
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
    ) -> CollectionReport:
        """Remove what nothing needs. A crash at any moment leaves a catalog that is whole; the next run goes on.

        Args:
            given: Settings of the catalog, by name, to be set for this run and those that follow.
            budget: How much may be done.
            everywhere: Look at all tables. Else at those that changed since the last run, where something waits for its
                time, and where none looked for as long as `gc.orphans.every` (`choose_locations`).
            tables: Look at the files of these tables only; empty for all.

        Raises:
            ValueError: A setting is unknown or wrong, or a table is at a place that the catalog did not choose.
            TableNotFoundError: One of `tables` does not exist (4).
            CollectionStopped: The store's clock is wrong.
            BatchUnknown, CatalogBusy: The fence may not be committed; nothing was removed.
            CatalogDamaged, CatalogTooNew: The rows of the catalog cannot be read.
            ReferenceNotFound: There is no catalog, or another run removed catalog versions meanwhile.
            StorageError: The store failed. What was removed was garbage.
        """
        snapshot = self._newest()
        _check_owned(snapshot, tables)
        run = str(uuid.uuid4())
        settings = settings_of(snapshot, given)
        versions = list_catalog_versions(self._store)
        sweep = Sweep(self._store, snapshot, versions[-1].meta.path, budget or Budget(), self._progress)
        runs = list_runs(self._store)
        complete = sweep.carry_out(runs.unfinished)
        now = self._clock(self._store, run)
        oldest = oldest_to_keep(versions, settings, now, snapshot.collector.oldest)
        terms = _Terms(now, settings, given or {}, oldest, run, StoreDates(versions, now), snapshot)
        expired = find_superseded(self._store, snapshot, settings, now).expire(self._commit)
        copy_versions(self._store, versions, {each for each in needed_versions(snapshot) if each < terms.oldest})
        self._progress("fence")
        fenced = self._commit(partial(_fence, terms=terms), table_metadata=FENCE_METADATA)
        history, problem = self._history(versions, fenced, terms)
        choice = self._choose(fenced, terms, everywhere=everywhere or bool(tables))
        gone = self._expired(fenced, terms.horizon)
        search = self._search(fenced, terms.horizon, gone, choice, tables)
        search.look()
        found = search.report()
        if found.orphans:
            self._progress("confirm")
            self._sleep(self._settle.total_seconds())
            search.look_again()
            found = search.report()
        put_back_named(self._store, fenced, self._table.kept, self._commit)
        quarantined = find_quarantined(self._store, fenced, terms.horizon, now)
        self._progress("plan")
        plans = store_plans(self._store, run, [*history, *removals_of(found), *quarantined])
        complete = sweep.carry_out(plans) and complete
        search.remove_empty_directories()
        sweep.forget(runs.finished_before(now - _PLANS_KEPT))
        self._progress("close")
        purged = self._close(fenced, terms.now_ms)
        if search.deleted_branches:
            self._commit(partial(_forget, heads=tuple(search.deleted_branches)))
        if not tables:
            write_seen(self._store, seen_after(choice, search, found, gone.waiting, now))
        swept = sweep.swept
        return CollectionReport(
            root=self._store.uri,
            run=run,
            catalog_version=found.catalog_version,
            horizon=terms.horizon,
            oldest=fenced.collector.oldest,
            settings=settings.as_texts(),
            removed={reason: Total(files, swept.sizes[reason]) for reason, files in sorted(swept.files.items())},
            kept=tuple(swept.kept),
            refused=swept.refused,
            purged=purged,
            **_rest_of(found, gone.problems | problem | expired.problems | sweep.damaged, terms, fenced),
            expired=expired.total,
            left_out=len(choice.left_out),
            left_behind=find_left_behind(self._store, self._table.current, search.removed),
            complete=complete,
        )

    def estimate(
        self,
        given: Mapping[str, str] | None = None,
        now: datetime | None = None,
        *,
        everywhere: bool = True,
        tables: Collection[ObjectId] = (),
    ) -> CollectionReport:
        """What `collect` would remove at the time `now` of the machine's clock. Writes nothing. Raises as `collect`."""
        snapshot = self._newest()
        _check_owned(snapshot, tables)
        settings = settings_of(snapshot, given)
        now = now or datetime.now(UTC)
        versions = list_catalog_versions(self._store)
        oldest = oldest_to_keep(versions, settings, now, snapshot.collector.oldest)
        terms = _Terms(now, settings, {}, oldest, "", StoreDates(versions, now), snapshot)
        superseded = find_superseded(self._store, snapshot, settings, now)
        fenced = snapshot.apply(_fence(snapshot, terms))
        history, problem = self._history(versions, fenced, terms)
        choice = self._choose(fenced, terms, everywhere=everywhere or bool(tables))
        gone = self._expired(fenced, terms.horizon)
        search = self._search(fenced, terms.horizon, gone, choice, tables)
        search.look()
        found = search.report()
        quarantined = find_quarantined(self._store, fenced, terms.horizon, now)
        return CollectionReport(
            root=self._store.uri,
            run="",
            catalog_version=found.catalog_version,
            horizon=terms.horizon,
            oldest=fenced.collector.oldest,
            settings=settings.as_texts(),
            removed=_totals([*history, *removals_of(found), *quarantined]),
            kept=(),
            refused={},
            purged=tuple(sorted(purging_locations(fenced))),
            **_rest_of(found, gone.problems | problem | superseded.problems, terms, fenced),
            expired=superseded.total,
            left_out=len(choice.left_out),
            left_behind=find_left_behind(self._store, snapshot, search.removed),
            complete=True,
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
        require_managed(snapshot)
        return snapshot

    def _history(
        self, versions: Sequence[CatalogVersionFile], fenced: CatalogSnapshot, terms: _Terms
    ) -> tuple[list[Removal], dict[str, str]]:
        """What goes of the catalog's own history, versions first, and why others, or its rows, were not judged."""
        superseded, ahead = superseded_versions(versions, fenced.collector.oldest), dated_ahead(versions, terms.now)
        try:
            unnamed = unnamed_files(self._store, versions, fenced, terms.horizon, terms.settings.grace)
        except (CorruptFile, UnsupportedFeature) as error:
            return superseded, {**ahead, MANIFEST_TABLE: str(error)}
        return [*superseded, *unnamed], ahead

    def _choose(self, fenced: CatalogSnapshot, terms: _Terms, *, everywhere: bool) -> Choice:
        seen = {} if everywhere else read_seen(self._store)
        every = terms.settings.look_every
        return choose_locations(self._store, fenced, seen, now=terms.now, horizon=terms.horizon, every=every)

    def _expired(self, fenced: CatalogSnapshot, horizon: datetime) -> ExpiredVersions:
        return ExpiredVersions(self._store, fenced, partial(removed_rows, self._table, fenced), horizon)

    def _search(
        self,
        fenced: CatalogSnapshot,
        horizon: datetime,
        expired: ExpiredVersions,
        choice: Choice,
        tables: Collection[ObjectId],
    ) -> Search:
        return Search(
            self._store,
            self._table,
            fenced,
            horizon,
            tables,
            expired=expired,
            deleted=lambda: expired.removed,
            purging=purging_locations(fenced),
            left_out=choice.left_out,
            known=choice.known,
            progress=self._progress,
        )

    def _close(self, fenced: CatalogSnapshot, now_ms: int) -> tuple[str, ...]:
        """End the purges whose locations are empty; returns these."""
        empty = {location for location in purging_locations(fenced) if not self._has_files(location)}
        if not empty:
            return ()
        self._commit(partial(conclude_purges, empty=empty, now_ms=now_ms))
        return tuple(sorted(empty))

    def _has_files(self, location: str) -> bool:
        """Whether a file is left that goes with its table. Files of unknown names and other datasets stay there."""
        return any(is_of_table(meta.path.removeprefix(f"{location}/")) for meta in self._store.list(location))


def _fence(snapshot: CatalogSnapshot, terms: _Terms) -> Changes:
    """The changes of the fence: the horizon, the oldest kept version, leases that end, and tables that are purged."""
    fence = plan_fence(
        snapshot,
        horizon=int(terms.horizon.timestamp()),
        oldest=oldest_allowed(snapshot, terms.oldest, terms.seen),
        run=terms.run,
        now_ms=terms.now_ms,
        settings=terms.given,
    )
    dated = date_limits(snapshot, terms.dates)
    known = snapshot.apply(dated) if dated else snapshot
    purges = claim_purges(known, terms.settings.dropped_window, terms.now_ms)
    return fence.then(dated, end_leases(known, terms.now_ms), purges)


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


def settings_of(snapshot: CatalogSnapshot, given: Mapping[str, str] | None) -> CollectionSettings:
    """The settings of a catalog, with those that are given. Raises `ValueError` for one of these.

    Stored settings of later releases count for those alone.
    """
    known = CollectionSettings().as_texts()
    stored = {name: text for name, text in snapshot.collector.settings.items() if name in known}
    return CollectionSettings().with_texts({**stored, **(given or {})})


def removals_of(found: OrphanReport) -> list[Removal]:
    """What goes, manifests first: a version that is listed can be read."""
    ordered = sorted(found.orphans, key=lambda orphan: (orphan.kind not in MANIFEST_KINDS, orphan.path))
    return [Removal(orphan.path, orphan.size, orphan.written, orphan.reason) for orphan in ordered]


def _totals(removals: Iterable[Removal]) -> dict[str, Total]:
    """Files and bytes by reason."""
    found: dict[str, Total] = {}
    for item in removals:
        before = found.get(item.reason, Total(0, 0))
        found[item.reason] = Total(before.files + 1, before.size + item.size)
    return dict(sorted(found.items()))


def _rest_of(found: OrphanReport, problem: Mapping[str, str], terms: _Terms, fenced: CatalogSnapshot) -> dict[str, Any]:
    young = [orphan for orphan in found.young if orphan.judged_by >= terms.horizon]
    held = [orphan for orphan in found.young if orphan.judged_by < terms.horizon]
    return {
        "too_young": Total(len(young), sum(orphan.size for orphan in young)),
        "held": by_location(held),
        "purges_held": purges_held(fenced, terms.settings.dropped_window, terms.now_ms),
        "not_judged": {**problem, **found.not_judged},
        "unknown": len(found.unknown),
    }
