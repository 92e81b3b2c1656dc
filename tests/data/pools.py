"""Scenes with a pool of worker processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from namespace_server.workers.process_pool import ProcessPool

Pool = TypeVar("Pool", bound=ProcessPool)


def play_with(make: Callable[[], Pool], scene: Callable[[Pool], Awaitable[None]]) -> None:
    """A scene with a pool, whose processes have ended after it."""

    async def run() -> None:
        pool = make()
        processes: set[int] = set()
        try:
            async with asyncio.timeout(60):
                await scene(pool)
            processes = processes_of(pool)
        finally:
            await pool.close()
        for process in processes:
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)

    asyncio.run(run())


def processes_of(pool: ProcessPool) -> set[int]:
    return {process._process.pid for process in pool._started}
