"""The pool of worker processes for changes: lost, killed and late ones, changes that wait or are cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ServiceUnavailableError

from namespace_server.workers.change_pool import ChangePool
from namespace_server.workers.spool import SpoolFile, SpoolSpace
from namespace_server.workers.worker_process import WorkerProcess, WorkTimeout
from table_data.batch_operations import TableState
from table_data.errors import ColumnNotFound, InvalidCall, WorkFailed
from table_data.jobs.job import Job
from tests.data.pools import play_with

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_relief")]
NOTHING = Job("delete_from_table", {"predicate": "a > 100"})
INSERT = Job("insert_into_table", {"mode": "append"})
Scene = Callable[[ChangePool], Awaitable[None]]
RowsOf = Callable[..., bytes | SpoolFile]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    uri = str(tmp_path_factory.mktemp("tables") / "t.lance")
    lance.write_dataset(pa.table({"a": range(10)}), uri)
    return TableState(("t",), uri, 1)


def play(scene: Scene) -> None:
    play_with(lambda starter: ChangePool(starter, 1, timeout=60.0), scene)


async def works(pool: ChangePool, table: TableState) -> bool:
    """Whether a change is staged, which finds nothing to change."""
    async with pool.change(NOTHING) as change:
        return (await change.stage(table)).operations == ()


def only(pool: ChangePool) -> WorkerProcess:
    [process] = pool._started
    return process


def kill(process: WorkerProcess) -> None:
    process._process.kill()
    process.wait()


def body_of(*values: int) -> bytes:
    """Rows of the table."""
    rows = pa.table({"a": values})
    body = io.BytesIO()
    with pa.ipc.new_stream(body, rows.schema) as writer:
        writer.write_table(rows)
    return body.getvalue()


def file_of(*values: int) -> SpoolFile:
    """A file with rows of the table."""
    found = SpoolFile(SpoolSpace(1 << 20))
    found._append([body_of(*values)], 0)
    return found


@pytest.fixture(params=[body_of, file_of], ids=["message", "file"])
def rows_of(request: pytest.FixtureRequest) -> Callable[..., bytes | SpoolFile]:
    found: Callable[..., bytes | SpoolFile] = request.param
    return found


def data_files(table: TableState) -> set[str]:
    return {path.name for path in (Path(table.uri) / "data").iterdir()}


def test_one_process_does_one_change_after_another(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        first = only(pool)
        assert await works(pool, table)
        wrong = Job("delete_from_table", {"predicate": "nope = 1"})
        with pytest.raises(ColumnNotFound, match="No field named nope"):
            async with pool.change(wrong) as change:
                await change.stage(table)
        assert await works(pool, table)
        assert only(pool) is first

    play(scene)


def test_a_process_that_ended_while_idle_is_replaced(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        first = only(pool)
        kill(first)
        assert await works(pool, table)
        assert only(pool) is not first

    play(scene)


def test_a_process_that_ends_in_its_change_is_told_and_replaced(
    table: TableState, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        stopped = only(pool)._process.number
        os.kill(stopped, signal.SIGSTOP)
        staged = asyncio.create_task(works(pool, table))
        await asyncio.sleep(0.1)
        os.kill(stopped, signal.SIGKILL)
        with pytest.raises(WorkFailed, match="found its end"):
            await staged
        assert await works(pool, table)

    play(scene)
    assert "a worker process ended in its job" in caplog.text


def test_a_change_that_takes_too_long_ends_with_its_process(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        late = only(pool)
        os.kill(late._process.number, signal.SIGSTOP)
        with pytest.raises(WorkTimeout, match=r"within 0\.2 s"):
            async with pool.change(NOTHING) as change:
                await change.stage(table, limit=0.2)
        assert await works(pool, table)
        assert only(pool) is not late

    play(scene)


def test_a_change_that_is_cancelled_ends_with_its_process(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        held = only(pool)
        os.kill(held._process.number, signal.SIGSTOP)
        staged = asyncio.create_task(works(pool, table))
        await asyncio.sleep(0.1)
        staged.cancel()
        with pytest.raises(asyncio.CancelledError):
            await staged
        assert await works(pool, table)
        assert only(pool) is not held

    play(scene)


def test_a_change_that_needs_rows_and_has_none(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        with pytest.raises(InvalidCall, match="expected rows"):
            async with pool.change(Job("insert_into_table", {})) as change:
                await change.stage(table)
        assert await works(pool, table)

    play(scene)


class TestAppends:
    """A change that only appends leaves its process to others while it is committed."""

    def test_others_are_staged_before_it_ends(self, table: TableState, rows_of: RowsOf) -> None:
        async def scene(pool: ChangePool) -> None:
            async with pool.change(INSERT, rows_of(1, 2)) as first, pool.change(INSERT, rows_of(3)) as second:
                assert (await first.stage(table)).result == {"num_inserted_rows": 2}
                assert (await second.stage(table)).result == {"num_inserted_rows": 1}
                assert await works(pool, table)

        play(scene)

    def test_it_can_be_staged_again_and_discarded(self, table: TableState, rows_of: RowsOf) -> None:
        async def scene(pool: ChangePool) -> None:
            before = data_files(table)
            async with pool.change(INSERT, rows_of(1, 2)) as first, pool.change(INSERT, rows_of(3)) as second:
                one = await first.stage(table)
                kept = data_files(table) - before
                await second.stage(table)
                await second.discard()
                assert data_files(table) - before == kept
                await first.discard()
                again = await first.stage(table)
                assert again.result == one.result == {"num_inserted_rows": 2}
                assert again.operations != one.operations
                await first.discard()
            assert data_files(table) == before

        play(scene)

    def test_the_process_forgets_it(self, table: TableState, rows_of: RowsOf) -> None:
        """After its end if it has a file, with the next change otherwise."""

        async def scene(pool: ChangePool) -> None:
            async with pool.change(INSERT, rows_of(1)) as first:
                await first.stage(table)
                async with pool.change(INSERT, rows_of(2)) as second:
                    await second.stage(table)
                    told = only(pool).ended == []
            process = only(pool)
            assert told
            if rows_of is body_of:
                assert process.ended == [2, 1]
                assert await works(pool, table)
                assert process.ended == [3]
            else:
                assert process.ended == []
            await process.ask(("stage", 1, table))
            with pytest.raises(WorkFailed, match="KeyError"):
                await process.answer()

        play(scene)

    def test_one_with_a_file_that_ends_while_its_process_is_held_is_forgotten_soon(self, table: TableState) -> None:
        async def scene(pool: ChangePool) -> None:
            async with contextlib.AsyncExitStack() as deleting:
                async with pool.change(INSERT, file_of(1)) as first:
                    await first.stage(table)
                    other = await deleting.enter_async_context(
                        pool.change(Job("delete_from_table", {"predicate": "a = 1"}))
                    )
                    assert (await other.stage(table)).operations
                assert only(pool).ended == [1]
                await other.discard()
            assert only(pool).ended == []

        play(scene)

    def test_it_waits_for_its_own_process_before_others_do(self, table: TableState) -> None:
        async def scene(pool: ChangePool) -> None:
            order: list[str] = []

            async def again() -> None:
                await first.stage(table)
                order.append("first")

            async def another() -> None:
                await works(pool, table)
                order.append("another")

            async with pool.change(INSERT, body_of(1)) as first:
                await first.stage(table)
                async with pool.change(Job("delete_from_table", {"predicate": "a = 1"})) as deletion:
                    await deletion.stage(table)
                    waiting = asyncio.create_task(another())
                    await asyncio.sleep(0)
                    repeated = asyncio.create_task(again())
                    cancelled = asyncio.create_task(again())
                    await asyncio.sleep(0)
                    cancelled.cancel()
                    await asyncio.sleep(0)
                    assert order == []
                await asyncio.gather(waiting, repeated)
            assert order == ["first", "another"]
            assert await works(pool, table)

        play(scene)

    @pytest.mark.parametrize(("held", "noticed"), [(False, False), (True, False), (True, True)])
    def test_it_cannot_be_staged_again_by_another_process(self, table: TableState, held: bool, noticed: bool) -> None:
        async def scene(pool: ChangePool) -> None:
            async with pool.change(INSERT, body_of(1)) as first:
                await first.stage(table)
                process = only(pool)
                if held:
                    async with pool.change(Job("delete_from_table", {"predicate": "a = 1"})) as deletion:
                        await deletion.stage(table)
                        again = asyncio.create_task(first.stage(table))
                        await asyncio.sleep(0)
                        kill(process)
                        if noticed:
                            await deletion.discard()
                else:
                    kill(process)
                    again = asyncio.create_task(first.stage(table))
                with pytest.raises(WorkFailed, match="found its end"):
                    await again
                await first.discard()
            assert await works(pool, table)

        play(scene)

    def test_any_other_change_keeps_its_process_until_it_ends(self, table: TableState) -> None:
        async def scene(pool: ChangePool) -> None:
            async with pool.change(Job("delete_from_table", {"predicate": "a = 1"})) as change:
                assert (await change.stage(table)).operations
                assert pool._free == []
                await change.discard()
            assert len(pool._free) == 1

        play(scene)


def test_a_process_ends_with_its_parent(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        process = only(pool)
        process._socket.close()
        await asyncio.to_thread(process.wait)

    play(scene)


def test_a_closed_pool_ends_changes_and_refuses_those_that_wait(table: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        assert await works(pool, table)
        os.kill(only(pool)._process.number, signal.SIGSTOP)
        busy, waiting = asyncio.create_task(works(pool, table)), asyncio.create_task(works(pool, table))
        await asyncio.sleep(0.1)
        await pool.close()
        with pytest.raises(WorkFailed, match="found its end"):
            await busy
        with pytest.raises(ServiceUnavailableError, match="shutting down"):
            await waiting
        with pytest.raises(ServiceUnavailableError, match="shutting down"):
            await works(pool, table)

    play(scene)
