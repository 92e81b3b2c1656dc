"""What waits for a flip is done by one, is not forgotten before, and never fights other servers for slots."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.storage.local import LocalStore
from namespace_server.directory.committing import record_housekeeping
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping
from namespace_server.directory.model.entries import RecordEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore


def test_what_a_flip_did_not_carry_waits_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second was planned before the first was concluded: what a flip does is not planned again."""
    monkeypatch.setattr(record_housekeeping, "_REMOVALS_PER_FLIP", 2)
    records = [RecordEntry(f"r{number}", "closed") for number in range(5)]
    before = CatalogSnapshot().apply(changes_of(records))
    work = RecordHousekeeping(64)
    work.remove(records)
    first = before.apply(work.plan(before))
    second = first.apply(work.plan(first))

    work.conclude(first)
    work.conclude(second)

    assert {record.batch_uuid for record in second.records()} == {"r4"}
    assert work.waiting == 1
    third = second.apply(work.plan(second))
    work.conclude(third)
    assert not list(third.records())
    assert work.waiting == 0


def test_each_of_two_flips_that_are_under_way_closes_records() -> None:
    records = [RecordEntry(f"r{number}", "open") for number in range(12)]
    before = CatalogSnapshot().apply(changes_of(records))
    work = RecordHousekeeping(4)
    work.close(records)
    first = before.apply(work.plan(before))
    assert len(work.plan(first).puts) == len(work.plan(before).puts) == 4


def test_a_sweep_leaves_the_slots_to_a_busy_server(tmp_path: Path) -> None:
    busy = Ground(tmp_path)
    busy.make_namespace("g")
    table = busy.make_table("g", "t")
    store = FaultStore(LocalStore(tmp_path, "none"))
    idle = Ground(tmp_path, store)
    idle.batch(idle.transaction(table, rows(10, 11)))
    sent: list[str] = []

    def arrive(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            sent.append(path)
            busy.make_namespace(f"n{len(sent)}")

    remove = store.before(arrive)
    idle.catalog.sweep()
    assert len(sent) == 2
    assert list(idle.catalog.snapshot().open_records())
    remove()
    idle.catalog.sweep()
    assert not list(idle.catalog.snapshot().open_records())


def test_what_another_server_did_waits_no_more(tmp_path: Path) -> None:
    idle = Ground(tmp_path)
    idle.make_namespace("g")
    idle.make_table("g", "t")
    maintenance = idle.catalog.record_housekeeping
    idle.catalog.committer.flush_record_housekeeping()
    records = list(idle.catalog.snapshot().open_records())
    assert records
    maintenance.close(records)  # as if they had been promoted here
    other = idle.again()
    other.catalog.sweep()
    other.catalog.flush_record_housekeeping()
    assert not list(idle.catalog.table.refresh().open_records())

    idle.catalog.committer.flush_record_housekeeping()
    assert maintenance.waiting == 0
