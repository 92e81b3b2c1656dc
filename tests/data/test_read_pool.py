"""The pool of worker processes for reads: which one a read goes to, lost, killed and late ones, reads that wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ServiceUnavailableError, ThrottlingError

from namespace_server.workers.read_pool import ReadPool
from namespace_server.workers.worker_process import WorkTimeout
from table_data.batch_operations import TableState
from table_data.errors import ColumnNotFound, WorkFailed
from table_data.jobs.job import Job
from tests.data.pools import play_with, processes_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_relief")]
COUNT = Job("count_table_rows", {})
ALL = Job("query_table", {"k": 0})
MANY = 1_000_000
Scene = Callable[[ReadPool], Awaitable[None]]


def table(directory: Path, name: str, rows: int) -> TableState:
    uri = str(directory / name)
    lance.write_dataset(pa.table({"a": list(range(rows))}), uri)
    return TableState((name,), uri, 1)


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    return table(tmp_path_factory.mktemp("tables"), "ten", 10)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    return table(tmp_path_factory.mktemp("tables"), "many", MANY)


def play(scene: Scene, size: int = 1, waiting: int = 8) -> None:
    play_with(lambda starter: ReadPool(starter, size, waiting=waiting, timeout=60.0), scene)


@contextlib.asynccontextmanager
async def held(pool: ReadPool, wanted: TableState) -> AsyncIterator[object]:
    """The process that a read of the table goes to, busy for the block."""
    reader = await pool._hold(wanted.uri)
    reader.note(wanted.uri)
    try:
        yield reader
    finally:
        pool._release(reader)


def test_one_process_does_one_read_after_another(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, ten) == 10
        first = processes_of(pool)
        assert await pool.value(Job("count_table_rows", {"predicate": "a < 3"}), ten) == 3
        with pytest.raises(ColumnNotFound, match="No field named nope"):
            await pool.value(Job("count_table_rows", {"predicate": "nope = 1"}), ten)
        assert await pool.value(COUNT, ten) == 10
        assert processes_of(pool) == first

    play(scene)


def test_rows_come_whole_whether_few_or_many(ten: TableState, many: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        for read, rows in ((ten, 10), (many, MANY), (ten, 10)):
            async with pool.rows(ALL, read) as found:
                data = b"".join([chunk async for chunk in found.chunks()])
            assert pa.ipc.open_file(data).read_all()["a"].to_pylist() == list(range(rows))
        assert len(processes_of(pool)) == 1

    play(scene)


def test_of_two_processes_each_keeps_its_table(tmp_path: Path) -> None:
    one, other = table(tmp_path, "one", 1), table(tmp_path, "other", 2)

    async def scene(pool: ReadPool) -> None:
        async with held(pool, one) as first, held(pool, other) as second:  # each table is opened by another process
            assert first is not second
        for _ in range(3):
            assert (await pool.value(COUNT, one), await pool.value(COUNT, other)) == (1, 2)
            async with held(pool, one) as again:
                assert again is first
            async with held(pool, other) as again:
                assert again is second

    play(scene, size=2)


def test_a_busy_process_is_not_waited_for_while_one_is_free(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with held(pool, ten):
            assert await pool.value(COUNT, ten) == 10
        assert len(processes_of(pool)) == 2

    play(scene, size=2)


def test_a_process_that_ended_while_idle_is_replaced(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        await pool.value(COUNT, ten)
        [first], [process] = processes_of(pool), pool._started
        process._process.kill()
        await asyncio.to_thread(process.wait)
        assert await pool.value(COUNT, ten) == 10
        assert processes_of(pool) != {first}

    play(scene)


def test_a_process_that_ends_in_a_read_is_told_and_replaced(ten: TableState, many: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        await pool.value(COUNT, ten)
        [first] = processes_of(pool)
        os.kill(first, signal.SIGSTOP)
        reading = asyncio.ensure_future(pool.value(COUNT, ten))
        await asyncio.sleep(0.05)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WorkFailed, match="found its end"):
            await reading
        async with pool.rows(ALL, many) as found:
            [second] = processes_of(pool)
            os.kill(second, signal.SIGKILL)
            with pytest.raises(WorkFailed, match="found its end"):
                _ = [chunk async for chunk in found.chunks()]
        assert await pool.value(COUNT, ten) == 10
        assert processes_of(pool).isdisjoint({first, second})

    play(scene)


def test_a_read_that_takes_too_long_ends_with_its_process(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        await pool.value(COUNT, ten)
        [first], [reader] = processes_of(pool), pool._started
        os.kill(first, signal.SIGSTOP)
        reader._timeout = 0.2
        with pytest.raises(WorkTimeout, match=r"within 0\.2 s"):
            await pool.value(COUNT, ten)
        await asyncio.gather(*pool._background)
        assert not reader._process.is_alive()

    play(scene)


def test_rows_that_are_left_unread_end_the_process(ten: TableState, many: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with pool.rows(ALL, many):
            [first] = processes_of(pool)
        assert await pool.value(COUNT, ten) == 10
        assert processes_of(pool) != {first}

    play(scene)


def test_too_many_that_wait_are_refused_and_the_others_have_their_turns(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with held(pool, ten):
            waiting = [asyncio.ensure_future(pool.value(COUNT, ten)) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(
                ThrottlingError,
                match="max_waiting_work: expected at most 3 reads of rows that wait at one time, found 4",
            ):
                await pool.value(COUNT, ten)
            waiting[1].cancel()
        assert await waiting[0] == await waiting[2] == 10
        assert await pool.value(COUNT, ten) == 10
        assert len(pool._free) == 1

    play(scene, waiting=3)


@pytest.mark.parametrize("steps", range(6))
def test_a_cancelled_read_gives_its_place_back(ten: TableState, steps: int) -> None:
    """At any of its first waits: the start of its process, its turn, its answer."""

    async def scene(pool: ReadPool) -> None:
        first, second = (asyncio.ensure_future(pool.value(COUNT, ten)) for _ in range(2))
        for _ in range(steps):
            await asyncio.sleep(0.01)
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert await first == 10
        assert await second == 10
        assert await pool.value(COUNT, ten) == 10
        assert len(pool._free) == 1

    play(scene)


def test_a_closed_pool_ends_what_waits_for_an_answer(ten: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        await pool.value(COUNT, ten)
        [process] = processes_of(pool)
        os.kill(process, signal.SIGSTOP)
        reading = asyncio.ensure_future(pool.value(COUNT, ten))
        await asyncio.sleep(0.05)
        await pool.close()
        with pytest.raises(WorkFailed, match="found its end"):
            await reading

    play(scene)


def test_a_closed_pool_ends_what_runs_and_refuses_what_waits(many: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(pytest.raises(WorkFailed))
            found = await stack.enter_async_context(pool.rows(ALL, many))
            waiting = asyncio.ensure_future(pool.value(COUNT, many))
            await asyncio.sleep(0)
            processes = set(pool._started)
            await pool.close()
            with pytest.raises(ServiceUnavailableError, match="shutting down"):
                await waiting
            assert not any(process._process.is_alive() for process in processes)
            async for _ in found.chunks():
                pass
        with pytest.raises(ServiceUnavailableError, match="shutting down"):
            await pool.value(COUNT, many)

    play(scene)
