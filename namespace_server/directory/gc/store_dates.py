"""Limits of time count from the store's date of the catalog version that set them, not from a writer's clock (G30).

A fence writes what it finds: the end of a pin or an intent, and the time of a drop, by the store. So they do not change
once the catalog version that set them is gone, and each of them is met by a fence before it goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from namespace_server.directory.gc.history import CatalogVersionFile, latest_times
from namespace_server.directory.model.collector_rows import Lease
from namespace_server.directory.model.entries import DATED, DROPPED, Changes, RecordEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot


class StoreDates:
    """When catalog versions were written, by the store, as far as `versions` tell; `now` is the time of the run."""

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

    What was set after the versions were listed counts as set now, and is met again by the next fence.
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
