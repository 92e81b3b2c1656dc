"""Maintenance in the background of a server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from lance_core.storage.memory import MemoryStore
from namespace_server.answer import Answer
from namespace_server.background.maintenance import MaintenanceSchedule
from namespace_server.background.periods import claim_period
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


def schedule(ground: Ground) -> MaintenanceSchedule:
    return MaintenanceSchedule(ground.catalog.store, ground.catalog.table, 1)


def test_it_runs_until_it_is_stopped(ground: Ground) -> None:
    make_table(ground)
    made, asked = schedule(ground), []

    async def change(operation: str, request: dict[str, Any]) -> Answer:
        asked.append(operation)
        done = await asyncio.to_thread(ground.namespace.data.change, operation, request)
        made.stop()
        return done

    asyncio.run(asyncio.wait_for(made.run(change), 60))
    assert asked == ["compact_table"]
    assert len(ground.open(T).get_fragments()) == 1


def test_a_failure_is_logged_and_the_next_run_comes(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    make_table(ground)
    made, asked = schedule(ground), []

    async def change(operation: str, _request: dict[str, Any]) -> Answer:
        asked.append(operation)
        if len(asked) == 2:
            made.stop()
        raise RuntimeError("broken")

    with caplog.at_level(logging.INFO, logger="namespace_server.background.maintenance"):
        asyncio.run(asyncio.wait_for(made.run(change), 60))
    assert asked == ["compact_table", "compact_table"]
    assert "maintenance failed" in caplog.text
