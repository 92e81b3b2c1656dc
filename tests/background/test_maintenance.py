"""Maintenance in the background of a server."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from lance_core.storage.memory import MemoryStore
from namespace_server.answer import Answer
from namespace_server.background.maintenance import TableMaintenance
from namespace_server.background.periods import Periods, claim_period
from namespace_server.background.scheduler import JobResult, Scheduler
from namespace_server.data.port import CommitChange
from namespace_server.directory.model.root_layout import MAINTENANCE_CLAIMS
from tests.directory.gc.unreferenced import list_orphans
from tests.directory.tables import Ground
from tests.maintenance.tables import T, make_table


def test_one_process_works_in_a_period() -> None:
    store = MemoryStore("claims")

    def claim(period: int) -> bool:
        return claim_period(store, MAINTENANCE_CLAIMS, period)

    assert [claim(3600), claim(3600)] == [True, False]
    store.put(f"{MAINTENANCE_CLAIMS}/note", b"of others")
    assert [claim(7200), claim(7200), claim(3600)] == [True, False, True]
    kept = sorted(meta.path.rpartition("/")[2] for meta in store.list(MAINTENANCE_CLAIMS))
    assert kept == ["3600", "7200", "note"]


def test_a_claim_is_no_orphan(ground: Ground) -> None:
    make_table(ground)
    ground.catalog.sweep()
    assert claim_period(ground.catalog.store, MAINTENANCE_CLAIMS, 3600)
    report = list_orphans(ground.root)
    assert (report.orphans, report.unknown) == ((), ())


def job(ground: Ground, change: CommitChange) -> TableMaintenance:
    return TableMaintenance(ground.catalog.store, ground.catalog.table, change, 1)


def test_it_runs_until_it_is_stopped(ground: Ground) -> None:
    make_table(ground)
    asked, done, scheduler = list[str](), threading.Event(), Scheduler()

    def change(operation: str, request: dict[str, Any]) -> Answer:
        asked.append(operation)
        answer = ground.namespace.data.change(operation, request)
        scheduler.stop_soon("maintenance")
        done.set()
        return answer

    scheduler.start(job(ground, change))
    assert done.wait(60)
    scheduler.stop()
    assert asked == ["compact_table"]
    assert len(ground.open(T).get_fragments()) == 1
    assert scheduler.states()["maintenance"].runs == 1


def test_a_failure_is_logged_and_the_next_run_comes(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    make_table(ground)
    asked, twice, scheduler = list[str](), threading.Event(), Scheduler()

    def change(operation: str, _request: dict[str, Any]) -> Answer:
        asked.append(operation)
        if len(asked) == 3:
            twice.set()
        raise RuntimeError("broken")

    with caplog.at_level(logging.INFO, logger="namespace_server.background"):
        scheduler.start(job(ground, change))
        assert twice.wait(60)
        scheduler.stop()
    assert asked[:2] == ["compact_table", "compact_table"]
    assert "maintenance failed" in caplog.text
    assert scheduler.states()["maintenance"].failures >= 2


def test_a_period_is_claimed_once_and_none_while_nothing_may_be_changed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, paused = [7_200.5], [True]
    monkeypatch.setattr("namespace_server.background.periods.time.time", lambda: now[0])

    def refuse(_operation: str, _request: dict[str, Any]) -> Answer:
        raise AssertionError("there is nothing to maintain")

    def made() -> TableMaintenance:
        return TableMaintenance(ground.catalog.store, ground.catalog.table, refuse, 3_600, paused=lambda: paused[0])

    one, other, never = made(), made(), threading.Event()
    assert one.run(never) is JobResult.IDLE
    paused[0] = False
    assert [one.run(never), one.run(never), other.run(never)] == [JobResult.DONE, JobResult.IDLE, JobResult.IDLE]
    assert one.delay() == pytest.approx(3_599.5)
    now[0] = 10_800.1
    assert [other.run(never), one.run(never)] == [JobResult.DONE, JobResult.IDLE]
    claims = [meta.path.rpartition("/")[2] for meta in ground.catalog.store.list(MAINTENANCE_CLAIMS)]
    assert claims == ["10800"]


def test_what_others_claim_first_is_tried_again_in_the_next_period() -> None:
    store = MemoryStore("periods")
    one, other = (Periods(store, MAINTENANCE_CLAIMS, 10**9, unit=7) for _ in range(2))
    assert [one.claim(), one.claim(), other.claim()] == [True, False, False]
    [claim] = store.list(MAINTENANCE_CLAIMS)
    assert int(claim.path.rpartition("/")[2]) % 7 == 0
    store.delete(claim.path)
    assert not one.claim()
