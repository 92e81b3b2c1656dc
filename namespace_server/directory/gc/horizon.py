"""The commit that moves the horizon, on which a run rests: everything that it does to the catalog before it looks.

It is decided by one time, that of the store (rule G28). The horizon and the oldest kept version never go back (G1, G4).
Pins and intents whose time is over end by it (G10, G12, G30).

Limits of time count from the store's date of the catalog version that set them, not from a writer's clock (G30). The
commit writes what it finds: the end of a pin or an intent, and the time of a drop, by the store. So they do not change
once the catalog version that set them is gone, and each of them is met by such a commit before it goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.history import CatalogVersionFile, latest_times
from namespace_server.directory.manifest_table.schema import COLLECTED, MANAGED_FLAG, WRITER_FLAGS_KEY
from namespace_server.directory.manifest_table.store_clock import MOST_APART
from namespace_server.directory.model.collector_rows import CollectorEntry, Lease
from namespace_server.directory.model.entries import DATED, DROPPED, Changes, RecordEntry, changes_of
from namespace_server.directory.model.root_layout import gc_run_key
from namespace_server.directory.model.snapshot import CatalogSnapshot

Clock = Callable[[ObjectStore, str], datetime]
"""Returns the time of a run, by its uuid."""
HORIZON_METADATA: Final[Mapping[str, str]] = {WRITER_FLAGS_KEY: str(MANAGED_FLAG | COLLECTED)}
"""Table metadata of the commit: releases that do not know the rules of garbage collection stop to write (G25)."""


class GcStopped(LanceCoreError):
    """A run cannot go on, with the reason. What it deleted was garbage. It may be started again."""


def store_time(store: ObjectStore, run: str, now: datetime | None = None) -> datetime:
    """The store's date, in whole seconds, of an object that the run `run` writes for it.

    Everything that a run decides is decided by this time. A wrong one that lies ahead would refuse all writers for
    good, so it is compared with the machine's clock (`now`). By one that lies behind less is removed.

    Raises:
        GcStopped: It is more than an hour from the machine's clock.
        StorageError: The store failed.
    """
    key = gc_run_key(run, "clock")
    store.put(key, b"", durable=False)
    found = store.head(key).last_modified.replace(microsecond=0)
    now = now or datetime.now(UTC)
    if abs(found - now) > MOST_APART:
        raise GcStopped(
            f"the store says that it is {found:%Y-%m-%dT%H:%M:%SZ}, this machine {now:%Y-%m-%dT%H:%M:%SZ}: expected "
            "less than an hour between them"
        )
    return found


def move_horizon(
    snapshot: CatalogSnapshot, *, horizon: int, oldest: int, run: str, now_ms: int, settings: Mapping[str, str]
) -> Changes:
    """The changes that move the horizon (seconds since the epoch) and the oldest kept catalog version.

    Neither goes back; the oldest kept version is never above the snapshot. `settings` are set, others stay.
    """
    before = snapshot.collector
    grace = now_ms // 1_000 - horizon
    entry = CollectorEntry(
        max(before.horizon, horizon),
        max(before.oldest, min(oldest, snapshot.version)),
        run,
        now_ms,
        {**before.settings, **settings},
        min(grace, before.grace) if before.run else grace,
    )
    return changes_of([entry])


def end_leases(snapshot: CatalogSnapshot, now_ms: int) -> Changes:
    """The changes that end the pins and intents whose time is over at `now_ms`, since the epoch.

    Those of `snapshot` have times by the store (`date_limits`). No server and no job compares: until this commit they
    count, and after it they do not, for everybody.
    """
    leases: list[Lease] = [*snapshot.pins(), *snapshot.intents()]
    return changes_of(removes=[lease.object_id for lease in leases if lease.until_ms and lease.until_ms < now_ms])


class StoreDates:
    """When catalog versions were written, by the store, as far as `versions` have it; `now` is the time of the run."""

    def __init__(self, versions: Sequence[CatalogVersionFile], now: datetime) -> None:
        self._versions = versions
        self._written = latest_times([version.meta.last_modified for version in versions], now)
        self._now = now

    def is_listed(self, version: int) -> bool:
        """Whether the versions that were listed go as far as `version`: its date is known, or a bound of it."""
        return 0 < version <= (self._versions[-1].number if self._versions else 0)

    def latest_ms(self, version: int) -> int:
        """The latest time, in milliseconds since the epoch, at which a version may have been written.

        That of a version that is gone, or whose date is wrong (`latest_times`), is at most the date of the next one; of
        one that is not known (0), or came later than the versions were listed, the time of the run.
        """
        place = bisect_left(self._versions, version, key=lambda each: each.number) if version > 0 else None
        if place is None or place == len(self._versions):
            return _milliseconds(self._now)
        return _milliseconds(self._written[place])


def date_limits(snapshot: CatalogSnapshot, dates: StoreDates) -> Changes:
    """The changes that put times by the store's clock into the leases and the tombstones that have none yet.

    What was set after the versions were listed counts as set now, and is met again by the next run.
    """
    leases: list[Lease] = [*snapshot.pins(), *snapshot.intents()]
    return changes_of([*_leases(leases, dates), *_drops(snapshot, dates)])


def _leases(leases: Sequence[Lease], dates: StoreDates) -> Iterator[Lease]:
    for lease in leases:
        if lease.set_in:
            until_ms = dates.latest_ms(lease.set_in) + lease.seconds * 1_000
            yield replace(lease, until_ms=until_ms, set_in=0 if dates.is_listed(lease.set_in) else lease.set_in)
        elif lease.until_ms and not lease.seconds:
            # Of a release that did not write the catalog version: it counts as set now. Its clock was the same one.
            lasts_ms = lease.until_ms - lease.timestamp_ms if lease.timestamp_ms else 0
            until_ms = max(lease.until_ms, dates.latest_ms(0) + lasts_ms)
            yield replace(lease, until_ms=until_ms, seconds=max(lasts_ms // 1_000, 1))


def _drops(snapshot: CatalogSnapshot, dates: StoreDates) -> Iterator[RecordEntry]:
    for record in snapshot.records():
        if record.state == DROPPED and not DATED.items() <= record.properties.items():
            dropped_in = record.catalog_version and record.catalog_version + 1
            is_known = dates.is_listed(dropped_in) or not dropped_in
            properties = {**record.properties, **(DATED if is_known else {})}
            yield replace(record, timestamp_ms=dates.latest_ms(dropped_in), properties=properties)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)
