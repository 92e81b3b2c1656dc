"""Which records expire (rule A2), and which tombstones (rule G15); what is too old to be told from a repetition."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from namespace_server.directory.committing import commit_loop
from namespace_server.directory.committing.record_housekeeping import RecordRetention, find_expired
from namespace_server.directory.model.entries import RecordEntry, RecordState, changes_of
from namespace_server.directory.model.errors import BatchTooOld
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.durations import elapsed_clock
from tests.directory.tables import Ground
from tests.storage.faults import FaultStore

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


@pytest.mark.slow
def test_a_server_that_is_held_for_longer_than_records_are_kept_commits_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held at its flip; another one commits under the same key, and its record expires."""
    other = Ground(tmp_path)
    other.make_namespace("g")
    other.make_table("g", "t")
    store = FaultStore(LocalStore(tmp_path, "none"))
    held = Ground(tmp_path, store)
    drop = {"id": ["g", "t"]}

    def arrive(verb: str, path: str) -> None:
        if verb != "put_if_absent" or not path.startswith("__manifest/_versions/"):
            return
        remove()
        other.namespace.write("drop_table", drop, idempotency_key="k")
        other.make_table("g", "t")  # the client, which was answered, goes on
        other.catalog.sweep()
        later = time.time_ns() // 1_000_000 + 180_000
        retention = RecordRetention(timedelta(days=1), 0, timedelta(days=6))
        other.catalog.record_housekeeping.remove(find_expired(other.catalog.snapshot(), retention, later))
        other.catalog.committer.flush_record_housekeeping()
        monkeypatch.setattr(commit_loop, "elapsed_clock", lambda: elapsed_clock() + 180)

    remove = store.before(arrive)
    with pytest.raises(BatchTooOld, match="expected to commit it within 60 s"):
        held.namespace.write("drop_table", drop, idempotency_key="k")
    assert other.catalog.snapshot().table(("g", "t")) is not None
    monkeypatch.undo()
    held.namespace.write("drop_table", drop, idempotency_key="another")
    assert other.catalog.snapshot().table(("g", "t")) is None


def test_a_record_is_no_older_than_the_batch_of_an_earlier_catalog_version() -> None:
    """Its writer's clock may have been days behind; one that was ahead says nothing about others."""
    first, ahead, behind = (
        replace(record(name, "closed", age), catalog_version=version)
        for name, age, version in (("first", HOUR // 2, 5), ("ahead", -1000 * HOUR, 6), ("behind", 200 * HOUR, 7))
    )
    deregistered = replace(record("deregistered", "deregistered", 200 * HOUR), catalog_version=8)
    old = replace(record("old", "closed", 300 * HOUR), catalog_version=4)
    assert expired(first, ahead, behind, deregistered, old) == {"old"}
    assert expired(behind, deregistered) == {"behind", "deregistered"}
