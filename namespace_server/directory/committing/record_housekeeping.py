"""Record housekeeping: closes records, removes rows that are gone or expired, writes reports; carried by flips.

The work of one flip is bounded, so that the cost of a flip depends on its batches and not on the backlog.
`find_expired` returns the records and tombstones that expire (rules A2 and G15).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice, takewhile
from operator import attrgetter
from typing import Final

from namespace_server.directory.model.entries import (
    DEREGISTERED,
    PURGED,
    REMOVED,
    Changes,
    RecordEntry,
    VersionEntry,
    changes_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot

_CLOSINGS_WHEN_IDLE = 1_024
_REMOVALS_PER_FLIP = 256
MIN_RECORD_AGE: Final = timedelta(minutes=2)
"""Younger records never expire, however many there are: a flip whose proof was delayed is recognised by them (G7)."""
_EXPIRING: Final = frozenset({PURGED, DEREGISTERED, REMOVED})
"""States of tombstones that expire: that of a dropped table is purged first, that of a branch goes with its files."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class RecordHousekeeping:
    """The row changes that wait for the next flip, whatever batches it carries. Thread-safe.

    A flip closes at most `closings` records: as many as a flip may open, so that closing keeps up with any number of
    flips at a small cost for each.
    """

    def __init__(self, closings: int) -> None:
        self._closings = closings
        self._lock = threading.Lock()
        self._closing: dict[str, RecordEntry] = {}
        self._gone: dict[str, VersionEntry | RecordEntry] = {}
        self._reports: dict[str, RecordEntry] = {}

    def close(self, records: Iterable[RecordEntry]) -> None:
        """Close these records with the next flips: their promotions are durable, their staged files removed (M7)."""
        with self._lock:
            for record in records:
                self._closing[record.batch_uuid] = record

    def is_closing(self, record: RecordEntry) -> bool:
        """Whether the record waits for a flip that closes it, and for nothing else."""
        return record.batch_uuid in self._closing

    def remove(self, entries: Iterable[VersionEntry | RecordEntry]) -> None:
        """Remove these rows with the next flips: versions that a client's cleanup removed (M5), expired records (A2).

        A row that names another manifest by then stays: a branch may have been made again under the same name.
        """
        with self._lock:
            self._gone.update((entry.object_id, entry) for entry in entries)

    def report(self, records: Iterable[RecordEntry]) -> None:
        """Write these records with the next flip, as they are."""
        with self._lock:
            self._reports.update((record.batch_uuid, record) for record in records)

    @property
    def waiting(self) -> int:
        """The number of rows that wait for a flip."""
        return len(self._closing) + len(self._gone) + len(self._reports)

    def plan_alone(self, snapshot: CatalogSnapshot) -> Changes:
        """As `plan`, for a flip that carries nothing else: more records are closed."""
        return self.plan(snapshot, closings=_CLOSINGS_WHEN_IDLE)

    def plan(self, snapshot: CatalogSnapshot, *, closings: int | None = None) -> Changes:
        """The changes for a flip on `snapshot`: a bounded number of each kind, none that others have made."""
        with self._lock:
            rows = (snapshot.record(batch_uuid) for batch_uuid in self._closing)  # as they are now, notes included
            is_open = (replace(row, state="closed") for row in rows if row is not None and row.state == "open")
            closed = list(islice(is_open, closings or self._closings))
            there = (entry.object_id for entry in self._gone.values() if _is_there(entry, snapshot))
            gone = frozenset(islice(there, _REMOVALS_PER_FLIP))
            reports = list(self._reports.values())
        return changes_of([*closed, *reports], gone)

    def conclude(self, snapshot: CatalogSnapshot) -> list[RecordEntry]:
        """Drop the work that a flip of this process did, which made `snapshot`; returns the records that it closed."""
        with self._lock:
            closed = list(takewhile(lambda record: not _is_open(record, snapshot), self._closing.values()))
            for record in closed:
                del self._closing[record.batch_uuid]
            for batch_uuid in [uid for uid in self._reports if snapshot.record(uid) is not None]:
                del self._reports[batch_uuid]
            for entry in list(islice(self._gone.values(), _REMOVALS_PER_FLIP)):
                if not _is_there(entry, snapshot):
                    del self._gone[entry.object_id]
        return closed


def _is_open(record: RecordEntry, snapshot: CatalogSnapshot) -> bool:
    current = snapshot.record(record.batch_uuid)
    return current is not None and current.state == "open"


def _is_there(entry: VersionEntry | RecordEntry, snapshot: CatalogSnapshot) -> bool:
    if isinstance(entry, RecordEntry):
        return snapshot.record(entry.batch_uuid) is not None
    row = snapshot.version_entry(entry.table_id, entry.branch, entry.version)
    return row is not None and row.identity == entry.identity


@dataclass(frozen=True, slots=True)
class RecordRetention:
    """How long records are kept after their batch: closed ones for `records`, the newest `limit` of them at most.

    Tombstones of tables that were purged or deregistered, and records of what deleted branches held, are kept for
    `tombstones`: as long as a manifest that was staged for a removed table may be published (S2, G15). Those of dropped
    tables stay until these are purged.
    """

    records: timedelta
    limit: int
    tombstones: timedelta


def _not_before_earlier_ones(records: Iterable[RecordEntry], now_ms: int) -> list[RecordEntry]:
    """The records, each with a time that is not before that of the batch of an earlier catalog version.

    Times in the future say nothing about later records.
    """
    found: list[RecordEntry] = []
    latest = 0
    for record in sorted(records, key=attrgetter("catalog_version")):
        if record.is_batch and record.catalog_version and latest < record.timestamp_ms <= now_ms:
            latest = record.timestamp_ms
        is_behind = record.catalog_version and record.timestamp_ms < latest
        found.append(replace(record, timestamp_ms=latest) if is_behind else record)
    return found


def find_expired(snapshot: CatalogSnapshot, retention: RecordRetention, now_ms: int) -> list[RecordEntry]:
    """The closed records and the tombstones that may be removed at `now_ms` (milliseconds since the epoch).

    A record is no older than the batch of an earlier catalog version, whatever the clock of its writer said.
    """
    records = _not_before_earlier_ones(snapshot.records(), now_ms)
    closed = [record for record in records if record.state == "closed"]
    closed.sort(key=lambda record: (record.timestamp_ms, record.catalog_version, record.batch_uuid))
    surplus = len(closed) - retention.limit
    oldest = now_ms - retention.records // _MILLISECOND
    settled = now_ms - MIN_RECORD_AGE // _MILLISECOND
    expired = [
        record
        for number, record in enumerate(closed)
        if record.timestamp_ms < oldest or (number < surplus and record.timestamp_ms < settled)
    ]
    oldest = now_ms - retention.tombstones // _MILLISECOND
    expired += [record for record in records if record.state in _EXPIRING and record.timestamp_ms < oldest]
    return expired
