"""Scenes with a pool of worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from namespace_server.workers.process_pool import ProcessPool
from namespace_server.workers.starter import WorkerStarter
from namespace_server.workers.worker_process import WorkerProcess

Pool = TypeVar("Pool", bound=ProcessPool)

STARTER: Final = WorkerStarter()
"""It loads pylance once for all scenes."""


def play_with(
    make: Callable[[WorkerStarter], Pool],
    scene: Callable[[Pool], Awaitable[None]],
    starter: WorkerStarter = STARTER,
) -> None:
    """A scene with a pool, whose processes have ended after it."""

    async def run() -> None:
        pool = make(starter)
        processes: set[WorkerProcess] = set()
        try:
            async with asyncio.timeout(60):
                await scene(pool)
            processes = set(pool._started)
        finally:
            await pool.close()
        assert not any(process._process.is_alive() for process in processes)

    asyncio.run(run())


def processes_of(pool: ProcessPool) -> set[int]:
    return {process._process.number for process in pool._started}


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; the scene has a bound of time."""
    while not condition():  # noqa: ASYNC110 - the pool tells nobody
        await asyncio.sleep(0.01)
