"""Which batch records and tombstones expire (rules A2 and G15)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from namespace_server.directory.model.entries import REMOVING, TOMBSTONES, RecordEntry
from namespace_server.directory.model.snapshot import CatalogSnapshot

MIN_RECORD_AGE: Final = timedelta(minutes=2)
"""Younger records never expire, however many there are: a flip whose proof was delayed is recognised by them (G7)."""
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class RecordRetention:
    """How long records are kept after their batch: closed ones for `records`, the newest `limit` of them at most.

    Tombstones are kept for `tombstones`: as long as a manifest that was staged for a removed table may be published
    (S2, G15).
    """

    records: timedelta
    limit: int
    tombstones: timedelta


def find_expired(snapshot: CatalogSnapshot, retention: RecordRetention, now_ms: int) -> list[RecordEntry]:
    """The closed records and the tombstones that may be removed at `now_ms` (milliseconds since the epoch)."""
    records = list(snapshot.records())
    closed = [record for record in records if record.state == "closed"]
    closed.sort(key=lambda record: (record.timestamp_ms, record.batch_uuid))
    surplus = len(closed) - retention.limit
    oldest = now_ms - retention.records // _MILLISECOND
    settled = now_ms - MIN_RECORD_AGE // _MILLISECOND
    expired = [
        record
        for number, record in enumerate(closed)
        if record.timestamp_ms < oldest or (number < surplus and record.timestamp_ms < settled)
    ]
    oldest = now_ms - retention.tombstones // _MILLISECOND
    ended = TOMBSTONES - {REMOVING}  # that of a branch goes with its files
    expired += [record for record in records if record.state in ended and record.timestamp_ms < oldest]
    return expired
