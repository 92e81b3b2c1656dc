"""Runs of maintenance in threads, whose changes are made by the tasks that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from namespace_server.answer import Answer
from namespace_server.data.port import CommitChange
from namespace_server.rest.errors import ClientDisconnected
from namespace_server.rest.maintenance_runs import MaintenanceRuns
from namespace_server.throttling import LimitReached

DONE = Answer({"status": "done"}, 1)


async def make_at_once(operation: str, _request: Any) -> Answer:
    return Answer({"made": operation}, 1)


def two_changes(change: CommitChange, _over: Callable[[], bool]) -> Answer:
    made = [change(operation, {"id": ["t"]}).body["made"] for operation in ("compact_table", "optimize_indices")]
    return Answer({"made": made}, 1)


def test_changes_are_made_by_the_task_one_after_another() -> None:
    async def act() -> None:
        runs = MaintenanceRuns(1)
        tasks: list[object] = []

        async def make(operation: str, request: Any) -> Answer:
            tasks.append(asyncio.current_task())
            return await make_at_once(operation, request)

        assert (await runs.run(two_changes, make, "ann")).body == {"made": ["compact_table", "optimize_indices"]}
        assert tasks == [asyncio.current_task()] * 2
        await runs.close()

    asyncio.run(act())


def test_errors_of_changes_and_of_runs_are_raised_where_they_are_waited_for() -> None:
    async def act() -> None:
        runs = MaintenanceRuns(1)

        async def refuse(_operation: str, _request: Any) -> Answer:
            raise ValueError("refused")

        with pytest.raises(ValueError, match="refused"):
            await runs.run(two_changes, refuse, None)
        assert (await runs.run(lambda *_: DONE, refuse, None)) == DONE
        await runs.close()

    asyncio.run(act())


def test_no_change_is_made_for_a_task_that_was_cancelled() -> None:
    async def act() -> None:
        runs, begun = MaintenanceRuns(1), asyncio.Event()
        errors: list[tuple[Exception, bool]] = []
        seen = threading.Event()

        def run(change: CommitChange, is_over: Callable[[], bool]) -> Answer:
            for _ in range(2):
                try:
                    change("compact_table", {"id": ["t"]})
                except ClientDisconnected as error:
                    errors.append((error, is_over()))
            seen.set()
            return DONE

        async def never(_operation: str, _request: Any) -> Answer:
            begun.set()
            await asyncio.Event().wait()
            return DONE

        task = asyncio.create_task(runs.run(run, never, "ann"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(seen.wait, 30)
        assert [over for _, over in errors][1:] == [True]
        await runs.close()

    asyncio.run(act())


def test_there_are_as_many_as_workers_and_three_quarters_for_one_principal() -> None:
    async def act() -> None:
        runs, gate = MaintenanceRuns(4), threading.Event()

        def wait(_change: CommitChange, over: Callable[[], bool]) -> Answer:
            assert gate.wait(30)
            return Answer({"over": over()}, 1)

        tasks = [asyncio.create_task(runs.run(wait, make_at_once, "ann")) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(LimitReached, match="change_workers: expected at most 3 runs of maintenance of one"):
            await runs.run(wait, make_at_once, "ann")
        tasks.append(asyncio.create_task(runs.run(wait, make_at_once, "bob")))
        await asyncio.sleep(0)
        with pytest.raises(LimitReached, match="change_workers: expected at most 4 runs of maintenance at one time"):
            await runs.run(wait, make_at_once, "eve")
        runs.stop()
        gate.set()
        assert [answer.body for answer in await asyncio.gather(*tasks)] == [{"over": True}] * 4
        assert await runs.run(wait, make_at_once, "ann")
        await runs.close()

    asyncio.run(act())
