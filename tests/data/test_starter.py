"""The process that forks workers: what it has loaded, what ends it, and what ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.limits import DataLimits, RequestLimits
from namespace_server.rest.service import CatalogService
from namespace_server.workers.change_pool import ChangePool
from namespace_server.workers.read_pool import ReadPool
from namespace_server.workers.starter import WorkerStarter
from table_data.batch_operations import TableState
from table_data.jobs.job import Job
from tests.data.arrow import stream
from tests.data.pools import play_with, processes_of, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_relief")]
COUNT = Job("count_table_rows", {"predicate": "a > 0"})
INSERT = Job("insert_into_table", {"mode": "append"})
Scene = Callable[[ReadPool], Awaitable[None]]


@pytest.fixture
def table(tmp_path: Path) -> TableState:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": range(10)}), uri)
    return TableState(("t",), uri, 1)


@pytest.fixture
def starter() -> Iterator[WorkerStarter]:
    found = WorkerStarter()
    yield found
    asyncio.run(found.close())


@pytest.mark.parametrize("preload", [False, True])
def test_it_is_started_with_the_server(tmp_path: Path, preload: bool) -> None:
    """If the settings say so; no worker is."""

    async def scene() -> None:
        service = CatalogService(
            DirectoryNamespace(root=str(tmp_path)),
            Authenticator({}),
            RequestLimits(data=DataLimits(preload=preload)),
        )
        service.start()
        if preload:
            await until(lambda: service.data._starter._process is not None)
        assert (service._data is not None) == preload
        assert service.data._changes._started == service.data._reads._started == set()
        await service.close()

    asyncio.run(scene())


def play(starter: WorkerStarter, scene: Scene) -> None:
    play_with(lambda given: ReadPool(given, 1, waiting=8), scene, starter)


def threads_of(process: int) -> int:
    return len(list(Path(f"/proc/{process}/task").iterdir()))


def test_it_has_one_thread_when_it_forks(starter: WorkerStarter, table: TableState) -> None:
    """What other threads hold at a fork is held for ever in the worker."""

    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, table) == 9
        assert starter._process is not None
        assert threads_of(starter._process.pid) == 1

    play(starter, scene)


def test_workers_give_their_files_different_names(table: TableState) -> None:
    """No random numbers are made before the fork, which all workers would go on from."""
    directory = Path(table.uri) / "data"
    before = set(directory.iterdir())

    async def scene(pool: ChangePool) -> None:
        for _ in range(3):
            async with pool.change(INSERT, stream(pa.table({"a": [1]}))) as change:
                await change.stage(table)
            await pool.hold(table.uri)
        assert len(processes_of(pool)) == 3
        assert len(set(directory.iterdir()) - before) == 3

    play_with(lambda given: ChangePool(given, 4), scene)


def test_it_takes_no_modules_from_the_directory_it_is_started_in(
    starter: WorkerStarter, table: TableState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lance.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)

    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, table) == 9

    play(starter, scene)


def test_another_takes_its_place_and_its_workers_go_on(starter: WorkerStarter, table: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, table) == 9
        first, [worker] = starter._process, pool._started
        assert first is not None
        first.kill()
        first.wait()
        assert await pool.value(COUNT, table) == 9
        assert processes_of(pool) == {worker._process.number}
        worker._process.kill()
        await asyncio.to_thread(worker.wait)
        assert await pool.value(COUNT, table) == 9
        assert starter._process is not first

    play(starter, scene)


def test_it_leaves_no_ended_worker_behind(starter: WorkerStarter, table: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, table) == 9
        [worker] = pool._started
        worker._process.kill()
        await until(lambda: not Path(f"/proc/{worker._process.number}").exists())

    play(starter, scene)


def test_it_ends_while_it_loads() -> None:
    async def scene() -> None:
        starter = WorkerStarter()
        starter.load()
        starting = asyncio.ensure_future(starter.start(0, 1))
        await until(lambda: starter._process is not None)
        process = starter._process
        await starter.close()
        with pytest.raises(OSError, match="started no longer"):
            await starting
        assert process is not None
        assert process.poll() is not None

    asyncio.run(scene())


def test_it_and_its_workers_end_with_the_server(starter: WorkerStarter, table: TableState) -> None:
    async def scene(pool: ReadPool) -> None:
        assert await pool.value(COUNT, table) == 9
        process, [worker] = starter._process, pool._started
        assert process is not None
        assert starter._control is not None
        starter._control.close()
        worker._socket.close()
        await asyncio.to_thread(process.wait)
        await asyncio.to_thread(worker.wait)

    play(starter, scene)
