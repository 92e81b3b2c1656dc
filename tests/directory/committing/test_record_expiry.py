"""Which records expire (rule A2), and which tombstones (rule G15)."""

from __future__ import annotations

from datetime import timedelta

from namespace_server.directory.committing.record_maintenance import RecordRetention, find_expired
from namespace_server.directory.model.entries import RecordEntry, RecordState, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot

NOW = 1_000_000_000_000
HOUR = 3_600_000
RETENTION = RecordRetention(records=timedelta(hours=1), limit=100, tombstones=timedelta(hours=6))


def record(name: str, state: RecordState, age_ms: int) -> RecordEntry:
    return RecordEntry(name, state, timestamp_ms=NOW - age_ms)


def expired(*records: RecordEntry, retention: RecordRetention = RETENTION) -> set[str]:
    snapshot = CatalogSnapshot().apply(changes_of(records))
    return {entry.batch_uuid for entry in find_expired(snapshot, retention, NOW)}


def test_closed_records_expire_after_the_retention() -> None:
    assert expired(record("old", "closed", HOUR + 1), record("young", "closed", HOUR)) == {"old"}


def test_open_records_and_reports_never_expire() -> None:
    assert expired(record("open", "open", 100 * HOUR), record("report", "foreign", 100 * HOUR)) == set()


def test_a_deleted_branch_whose_files_are_left_never_expires() -> None:
    assert expired(record("branch", "removing", 1000 * HOUR)) == set()


def test_tombstones_have_a_retention_of_their_own() -> None:
    assert expired(
        record("purged", "purged", 6 * HOUR + 1),
        record("deregistered", "deregistered", 6 * HOUR + 1),
        record("of a branch", "removed", 6 * HOUR + 1),
        record("young", "purged", 2 * HOUR),
    ) == {"purged", "deregistered", "of a branch"}


def test_the_tombstone_of_a_dropped_table_stays_until_its_files_are_gone() -> None:
    assert expired(record("dropped", "dropped", 1000 * HOUR), record("purging", "purging", 1000 * HOUR)) == set()


def test_beyond_the_limit_the_oldest_records_expire_unless_they_are_younger_than_two_minutes() -> None:
    retention = RecordRetention(records=timedelta(hours=1), limit=1, tombstones=timedelta(hours=6))
    ages = {"oldest": 180_000, "older": 150_000, "recent": 90_000, "newest": 60_000}
    records = [record(name, "closed", age) for name, age in ages.items()]
    assert expired(*records, retention=retention) == {"oldest", "older"}
