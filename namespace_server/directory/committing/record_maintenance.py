"""Housekeeping that rides on flips: records are closed once settled, and closed ones expire.

Bounded per flip, so that the cost of a flip depends on its batches and not on the backlog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice, takewhile

from namespace_server.directory.model.entries import Changes, RecordEntry, VersionEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot

_CLOSINGS_PER_FLIP = 64
"""As many as a flip may open, so that closing keeps up with any number of flips, and none of them takes long for it."""
_CLOSINGS_WHEN_IDLE = 1_024
_REMOVALS_PER_FLIP = 256


class RecordMaintenance:
    """What the next flip should do besides its batches. `forget` is told which records are closed in the catalog."""

    def __init__(self, forget: Callable[[Iterable[RecordEntry]], None]) -> None:
        self._forget = forget
        self._lock = threading.Lock()
        self._closing: dict[str, RecordEntry] = {}
        self._gone: dict[str, VersionEntry | RecordEntry] = {}
        self._reports: dict[str, RecordEntry] = {}

    def close(self, records: Iterable[RecordEntry]) -> None:
        """These records' promotions are durable and their staged files removed: they may be closed (M7)."""
        with self._lock:
            for record in records:
                self._closing[record.batch_uuid] = record

    def is_closing(self, record: RecordEntry) -> bool:
        """Whether the record only waits for a flip to close it."""
        return record.batch_uuid in self._closing

    def remove(self, entries: Iterable[VersionEntry | RecordEntry]) -> None:
        """Rows that may go: of versions that a client's cleanup removed (M5), of expired records (A2).

        A row that has become another one by then stays: a branch may have been made anew under the same name.
        """
        with self._lock:
            self._gone.update((entry.object_id, entry) for entry in entries)

    def report(self, records: Iterable[RecordEntry]) -> None:
        """Records to be written as they are."""
        with self._lock:
            self._reports.update((record.batch_uuid, record) for record in records)

    @property
    def waiting(self) -> int:
        """How many rows wait for a flip."""
        return len(self._closing) + len(self._gone) + len(self._reports)

    def plan_many(self, snapshot: CatalogSnapshot) -> Changes:
        """As `plan`, for a flip that carries nothing else."""
        return self.plan(snapshot, closings=_CLOSINGS_WHEN_IDLE)

    def plan(self, snapshot: CatalogSnapshot, *, closings: int = _CLOSINGS_PER_FLIP) -> Changes:
        """Close settled records and remove rows that may go; a bounded number of each."""
        with self._lock:
            settled = list(islice(self._closing.values(), closings))
            candidates = list(islice(self._gone.values(), _REMOVALS_PER_FLIP))
            reports = list(self._reports.values())
        closed = [replace(record, state="closed") for record in settled if _is_open(record, snapshot)]
        gone = (entry.object_id for entry in candidates if _is_there(entry, snapshot))
        return changes_of([*closed, *reports], frozenset(gone))

    def done(self, snapshot: CatalogSnapshot) -> None:
        """A flip of this process made `snapshot`: drop what it did."""
        with self._lock:
            closed = list(takewhile(lambda record: not _is_open(record, snapshot), self._closing.values()))
            for record in closed:
                del self._closing[record.batch_uuid]
            for batch_uuid in [uid for uid in self._reports if snapshot.record(uid) is not None]:
                del self._reports[batch_uuid]
            for object_id in list(islice(self._gone, _REMOVALS_PER_FLIP)):
                del self._gone[object_id]
        self._forget(closed)


def _is_open(record: RecordEntry, snapshot: CatalogSnapshot) -> bool:
    current = snapshot.record(record.batch_uuid)
    return current is not None and current.state == "open"


def _is_there(entry: VersionEntry | RecordEntry, snapshot: CatalogSnapshot) -> bool:
    if isinstance(entry, RecordEntry):
        return snapshot.record(entry.batch_uuid) is not None
    row = snapshot.version_entry(entry.table_id, entry.branch, entry.version)
    return row is not None and row.identity == entry.identity
