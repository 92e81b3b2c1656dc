"""No principal holds all processes of a pool, and waiting jobs have fair turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ThrottlingError

from namespace_server.observability.observation import PoolState
from namespace_server.workers import process_pool
from namespace_server.workers.process_pool import default_share, part_of_one
from namespace_server.workers.read_pool import ReadPool
from namespace_server.workers.shares import Shares
from table_data.batch_operations import TableState
from table_data.errors import OutOfMemory
from table_data.jobs.job import Job
from tests.data.pools import play_with, until

COUNT = Job("count_table_rows", {"predicate": "a > 0"})


def test_a_principal_leaves_processes_to_others() -> None:
    assert [default_share(size) for size in (1, 2, 8)] == [4, 4, 8]  # of 5, 6 and 12
    assert [part_of_one(bound) for bound in (0, 1, 4, 64)] == [0, 1, 3, 48]
    shares: Shares[int] = Shares(2)
    for _ in range(2):
        assert shares.admits("a")
        shares.take("a")
    assert not shares.admits("a")
    assert shares.admits("b")
    shares.give_back("a")
    assert shares.admits("a")


def test_who_has_no_principal_is_not_bounded() -> None:
    shares: Shares[int] = Shares(1)
    for _ in range(5):
        assert shares.admits(None)
        shares.take(None)


def test_the_principal_that_holds_the_fewest_is_next_and_its_oldest_job() -> None:
    async def scene() -> list[str]:
        shares: Shares[int] = Shares(3)
        shares.take("many")
        shares.take("many")
        given: list[str] = []

        async def wait(name: str) -> None:
            await shares.wait(name.split("-", maxsplit=1)[0], lambda _: None)
            given.append(name)

        jobs = [asyncio.ensure_future(wait(name)) for name in ("many-1", "many-2", "few-1", "few-2", "few-3", "few-4")]
        await asyncio.sleep(0)
        assert shares.waiting_jobs == (6, 0)
        for process in range(4):
            assert shares.give(process)
            await asyncio.sleep(0)
        assert shares.waiting_jobs == (2, 2)
        assert not shares.give(9)  # both have their share
        shares.give_back("few")
        assert shares.give(9)
        await asyncio.sleep(0)
        shares.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        return given

    assert asyncio.run(scene()) == ["few-1", "few-2", "many-1", "few-3", "few-4"]


def test_a_process_that_is_given_to_a_cancelled_job_is_put_back() -> None:
    async def scene() -> None:
        shares: Shares[int] = Shares(1)
        back: list[int] = []
        job = asyncio.ensure_future(shares.wait("a", back.append))
        await asyncio.sleep(0)
        assert shares.give(7)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        assert back == [7]
        assert shares.admits("a")
        assert shares.waiting("a") == 0

    asyncio.run(scene())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    uri = str(tmp_path_factory.mktemp("tables") / "t.lance")
    lance.write_dataset(pa.table({"a": range(1, 11), "s": ["x" * 40] * 10}), uri)
    return TableState(("t",), uri, 1)


def play(scene: Callable[[ReadPool], Awaitable[None]], *, memory: int = 0) -> None:
    play_with(lambda starter: ReadPool(starter, 1, waiting=8, share=2, memory=memory), scene)


def test_long_reads_of_one_caller_leave_a_process_to_others(table: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "_LONG", 0.0)
    monkeypatch.setattr(process_pool, "RELIEF", 2)

    async def scene(pool: ReadPool) -> None:
        long = [await pool._hold(principal="many") for _ in range(2)]
        more = [asyncio.ensure_future(pool.value(COUNT, table, "many")) for _ in range(6)]
        assert await pool.value(COUNT, table, "few") == 10
        assert await pool.value(COUNT, table) == 10
        await until(lambda: pool.state.waiting == 6)
        assert pool.state == PoolState(busy=2, free=1, waiting=6, lost=0, held_back=6)
        with pytest.raises(
            ThrottlingError,
            match="max_waiting_work: expected at most 6 reads of rows of one principal that wait at one time, found 7",
        ):
            await pool.value(COUNT, table, "many")
        assert await pool.value(COUNT, table, "few") == 10
        for process in long:
            pool._release(process)
        assert await asyncio.gather(*more) == [10] * 6
        assert pool.state.held_back == pool.state.waiting == 0
        assert pool._shares.admits("many")
        assert not pool._shares._held

    play(scene)


@pytest.mark.parametrize("steps", range(6))
def test_a_cancelled_read_gives_its_share_back(table: TableState, steps: int) -> None:
    async def scene(pool: ReadPool) -> None:
        reads = [asyncio.ensure_future(pool.value(COUNT, table, "a")) for _ in range(3)]
        for _ in range(steps):
            await asyncio.sleep(0.01)
        for read in reads[:2]:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        assert await pool.value(COUNT, table, "a") == 10
        await until(lambda: not pool._shares._held)

    play(scene)


@pytest.mark.parametrize(
    "predicate", ["array_length(array_repeat(a, 4000000000)) > 1", "length(repeat(s, 50000000)) > 1"]
)
def test_a_value_for_which_there_is_no_memory_is_the_callers_error(table: TableState, predicate: str) -> None:
    async def scene(pool: ReadPool) -> None:
        with pytest.raises(OutOfMemory, match="worker_memory_bytes"):
            await pool.value(Job("count_table_rows", {"predicate": predicate}), table)
        assert await pool.value(COUNT, table) == 10

    play(scene, memory=1 << 30)
