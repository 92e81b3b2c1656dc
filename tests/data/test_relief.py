"""Processes beyond the size of a pool, while all of its own are in long jobs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import lance
import pyarrow as pa
import pytest

from namespace_server.workers import process_pool
from namespace_server.workers.change_pool import ChangePool
from namespace_server.workers.process_pool import ProcessPool
from namespace_server.workers.read_pool import ReadPool
from namespace_server.workers.starter import StartedProcess, WorkerStarter
from table_data.batch_operations import TableState
from table_data.jobs.job import Job
from tests.data.arrow import stream
from tests.data.pools import play_with, processes_of, until

pytestmark = pytest.mark.slow
COUNT = Job("count_table_rows", {"predicate": "a > 0"})
INSERT = Job("insert_into_table", {"mode": "append"})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    uri = str(tmp_path_factory.mktemp("tables") / "t.lance")
    lance.write_dataset(pa.table({"a": range(10)}), uri)
    return TableState(("t",), uri, 1)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any job is a long one, and what is not needed ends soon."""
    monkeypatch.setattr(process_pool, "_LONG", 0.0)
    monkeypatch.setattr(process_pool, "_SURPLUS", 0.0)


def play(scene: Callable[[ReadPool], Awaitable[None]], size: int = 1) -> None:
    play_with(lambda starter: ReadPool(starter, size, waiting=8), scene)


async def held(pool: ProcessPool, many: int) -> contextlib.AsyncExitStack:
    """So many processes are in jobs until the stack is closed."""
    stack = contextlib.AsyncExitStack()
    for _ in range(many):
        stack.callback(pool._release, await pool._hold())
    return stack


def test_one_more_is_ready_before_work_waits_for_it(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "RELIEF", 1)

    async def scene(pool: ReadPool) -> None:
        async with await held(pool, 2):
            await until(lambda: len(pool._free) == 1)
            ready = processes_of(pool)
            assert len(ready) == 3
            for _ in range(3):
                assert await pool.value(COUNT, table) == 9
            assert processes_of(pool) == ready

    play(scene, size=2)


def test_there_is_a_bound(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "RELIEF", 2)

    async def scene(pool: ReadPool) -> None:
        async with await held(pool, 3):
            waiting = asyncio.ensure_future(pool.value(COUNT, table))
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert not waiting.done()
            assert len(processes_of(pool)) == 3
        assert await waiting == 9

    play(scene)


def test_they_end_when_others_are_free(table: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with await held(pool, 3):
            pass
        await until(lambda: len(pool._free) == 1 and not pool._background)
        assert len(processes_of(pool)) == 1
        assert await pool.value(COUNT, table) == 9

    play(scene)


def test_one_that_ends_while_it_waits_for_work_is_replaced(table: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with await held(pool, 1):
            await until(lambda: len(pool._free) == 1)
            [spare] = pool._free
            assert spare is not None
            spare._process.kill()
            await asyncio.to_thread(spare.wait)
            assert await pool.value(COUNT, table) == 9
            assert spare not in pool._started

    play(scene)


def test_one_that_a_change_needs_does_not_end(table: TableState) -> None:
    """The rows of an insert are in the process that has staged them."""

    async def scene(pool: ChangePool) -> None:
        async with pool.change(INSERT, stream(pa.table({"a": [1]}))) as change:
            async with await held(pool, 1):
                await change.stage(table)
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert (await change.stage(table)).operations
        await until(lambda: len(pool._free) == 1 and not pool._background)

    play_with(lambda starter: ChangePool(starter, 1), scene)


class Gate:
    """Starts of workers wait until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting = 0
        self._opened = asyncio.Event()
        self._start = WorkerStarter.start
        monkeypatch.setattr(WorkerStarter, "start", lambda starter, memory, rows: self._wait(starter, memory, rows))

    async def _wait(self, starter: WorkerStarter, memory: int, rows: int) -> tuple[StartedProcess, socket.socket]:
        self.waiting += 1
        await self._opened.wait()
        return await self._start(starter, memory, rows)

    def open(self) -> None:
        self._opened.set()


def test_one_is_started_for_each_job_that_waits(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "RELIEF", 0)

    async def scene(pool: ReadPool) -> None:
        async with await held(pool, 1):
            gate = Gate(monkeypatch)
            counting = [asyncio.ensure_future(pool.value(COUNT, table)) for _ in range(3)]
            await until(lambda: pool.state.waiting == 3)
            monkeypatch.setattr(process_pool, "RELIEF", 4)
            try:
                await until(lambda: gate.waiting > 0)
                assert gate.waiting == 3
            finally:
                gate.open()
            assert await asyncio.gather(*counting) == [9, 9, 9]

    play(scene)


def test_none_is_started_while_the_first_ones_start(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading pylance is no long job."""

    async def scene(pool: ReadPool) -> None:
        gate = Gate(monkeypatch)
        counting = asyncio.ensure_future(pool.value(COUNT, table))
        try:
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert gate.waiting == 1
        finally:
            gate.open()
        assert await counting == 9

    play(scene)
