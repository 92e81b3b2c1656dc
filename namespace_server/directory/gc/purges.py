"""Tables that were dropped, from the end of the time in which they can come back (rules G13 to G15).

A tombstone `dropped` becomes `purging` in the commit that moves the horizon, so that nothing undrops the table
afterwards; then its files go; then it becomes `purged`, and keeps the location taken until no late request can use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta
from typing import Final

from lance_core.cleanup.kinds import FileKind, is_write_ahead, role_of
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.report import Total
from namespace_server.directory.model.entries import DROPPED, PURGE, PURGED, PURGING, Changes, RecordEntry, changes_of
from namespace_server.directory.model.intents import held_horizons
from namespace_server.directory.model.retention import DROPPED_WINDOW, read_window
from namespace_server.directory.model.snapshot import CatalogSnapshot

_MILLISECOND: Final = timedelta(milliseconds=1)
_ALL_TIME: Final = timedelta(days=100_000)


def claim_purges(snapshot: CatalogSnapshot, window: timedelta, now_ms: int) -> Changes:
    """The changes that claim each table that was dropped more than `window` before `now_ms`, or is to be purged.

    The tombstones of `snapshot` have times by the store (`date_limits`).
    The tombstone of a table that had a window of its own states it. A table that a pinned catalog version may name is
    left alone, one that a version may name which a cursor keeps, and one whose location an intent names: the job may
    still read it.
    """
    oldest = snapshot.collector.oldest
    needed = [pin.version for pin in snapshot.pins()]
    needed += [cursor.version for cursor in snapshot.cursors() if not cursor.is_expired(oldest)]
    pinned = min(needed, default=snapshot.version + 1)
    over = [record for record in _over(snapshot, window, now_ms) if record.catalog_version < pinned]
    intended = held_horizons(snapshot).keys()
    return changes_of(replace(record, state=PURGING) for record in over if intended.isdisjoint(_locations(record)))


def purges_held(snapshot: CatalogSnapshot, window: timedelta, now_ms: int) -> tuple[str, ...]:
    """The locations of tables whose time is over, and that an intent keeps."""
    over = {location for record in _over(snapshot, window, now_ms) for location in _locations(record)}
    return tuple(sorted(over & held_horizons(snapshot).keys()))


def purging_locations(snapshot: CatalogSnapshot) -> set[str]:
    """The locations whose files a run deletes."""
    return {location for record in _purging(snapshot) for location in _locations(record)}


def is_of_table(key: str) -> bool:
    """Whether a file, by its key relative to the root of its table, goes with it: none of unknown names or others."""
    role = role_of(key)
    return role is not None and (role.kind is not FileKind.NESTED or is_write_ahead(key))


def find_left_behind(
    store: ObjectStore, snapshot: CatalogSnapshot, directories: Iterable[str]
) -> dict[str, tuple[Total, tuple[str, ...]]]:
    """The rest in those of the directories whose tables are purged: files and bytes, and links to directories.

    Files of unknown names, and other datasets, are the user's. One listing for each such directory that is there.
    """
    found: dict[str, tuple[Total, tuple[str, ...]]] = {}
    for location in sorted(directories):
        tombstone = snapshot.tombstone_at(location)
        if tombstone is not None and tombstone.state == PURGED:
            sizes = [meta.size for meta in store.list(location)]
            links = tuple(sorted(store.linked_directories(location)))
            if sizes or links:
                found[location] = Total(len(sizes), sum(sizes)), links
    return found


def conclude_purges(snapshot: CatalogSnapshot, empty: AbstractSet[str], now_ms: int) -> Changes:
    """The changes that end the purges of which all locations are `empty`."""
    done = [record for record in _purging(snapshot) if _locations(record) <= empty]
    return changes_of(replace(record, state=PURGED, timestamp_ms=now_ms) for record in done)


def _purging(snapshot: CatalogSnapshot) -> list[RecordEntry]:
    return [record for record in snapshot.records() if record.state == PURGING]


def _over(snapshot: CatalogSnapshot, window: timedelta, now_ms: int) -> Iterator[RecordEntry]:
    for record in snapshot.records():
        if record.state == DROPPED and record.timestamp_ms < now_ms - _window_of(record, window) // _MILLISECOND:
            yield record


def _window_of(record: RecordEntry, otherwise: timedelta) -> timedelta:
    if PURGE.items() <= record.properties.items():
        return -_ALL_TIME
    try:
        return read_window(record.properties[DROPPED_WINDOW])
    except (KeyError, ValueError):
        return otherwise


def _locations(record: RecordEntry) -> set[str]:
    return {party.location for party in record.participants}
