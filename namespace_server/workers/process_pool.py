"""A bounded pool of worker processes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeVar

from lance_namespace.errors import ServiceUnavailableError

from namespace_server.workers.worker_process import WorkerProcess
from table_data.errors import WorkFailed

T = TypeVar("T")


class ProcessPool:
    """Up to `size` processes, started when they are needed. Belongs to one event loop.

    A job has `timeout` seconds for each of its steps, and may allocate `memory` bytes; 0 is no bound. A process whose
    job did not end as it should is killed, and another takes its place: it can hold nothing that others need.
    """

    def __init__(self, size: int, *, timeout: float = 3600.0, memory: int = 0) -> None:
        self._timeout = timeout
        self._memory = memory
        self._free: list[WorkerProcess | None] = [None] * size
        self._turns: deque[asyncio.Future[WorkerProcess | None]] = deque()
        self._started: set[WorkerProcess] = set()
        self._endings: set[asyncio.Future[None]] = set()
        self._closed = False

    async def close(self) -> None:
        """End the processes. Jobs in progress are ended too, as those of a client that went away."""
        self._closed = True
        for turn in self._turns:
            turn.cancel()
        for process in list(self._started):
            process.interrupt()
            self._end(process)
        await asyncio.gather(*self._endings)

    @property
    def is_waited_for(self) -> bool:
        """Whether work waits for a process."""
        return bool(self._turns)

    async def _hold(self, table: str | None = None) -> WorkerProcess:
        """Wait for a free process and take it; one that has the table open, if there is one. `_release` it after."""
        if self._free:
            having = [at for at, process in enumerate(self._free) if process is not None and table in process.tables]
            process = self._free.pop(having[-1] if having else -1)
        else:
            process = await self._turn(self._turns)
        if process is not None and process.is_alive():
            return process
        if process is not None:
            self._started.discard(process)
            process.kill()
            _refuse(process)
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda done: self._put_back(None if done.exception() else done.result()))
            raise
        except BaseException:
            self._put_back(None)
            raise

    async def _hold_again(self, process: WorkerProcess) -> None:
        """Wait for this process and take it. Raises `WorkFailed` if it has ended."""
        if process.is_killed:
            raise _gone()
        if process in self._free:
            self._free.remove(process)
        else:
            await self._turn(process.turns, process)
        if not process.is_alive():
            process.kill()
            self._release(process)
            raise _gone()

    async def _turn(self, turns: deque[asyncio.Future[T]], process: WorkerProcess | None = None) -> T:
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        turns.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._put_back(process or turn.result())  # type: ignore[arg-type]
            self._check_open()
            raise

    def _put_back(self, process: WorkerProcess | None) -> None:
        if process is not None and _next(process.turns, None):
            return
        if not _next(self._turns, process):
            self._free.append(process)

    def _release(self, process: WorkerProcess) -> None:
        """Give a process back. One that owes an answer is ended."""
        if process.owes_answer:
            process.kill()
        if process.is_killed:
            self._end(process)
        else:
            self._put_back(process)

    def _end(self, process: WorkerProcess) -> None:
        """Give the place of a killed process to another when it has ended and its memory is free."""
        _refuse(process)
        if process not in self._started:
            return
        self._started.discard(process)
        ending = asyncio.ensure_future(asyncio.to_thread(process.wait))
        self._endings.add(ending)

        def ended(done: asyncio.Future[None]) -> None:
            self._endings.discard(done)
            self._put_back(None)

        ending.add_done_callback(ended)

    async def _start(self) -> WorkerProcess:
        self._check_open()
        process = await asyncio.to_thread(WorkerProcess, self._memory, self._timeout)
        try:
            self._check_open()
        except ServiceUnavailableError:
            process.interrupt()
            await asyncio.to_thread(process.wait)
            raise
        self._started.add(process)
        return process

    def _check_open(self) -> None:
        if self._closed:
            raise ServiceUnavailableError("the server is shutting down; nothing was done")


def _next(turns: deque[asyncio.Future[T]], result: T) -> bool:
    """Give the next that waits its turn; whether one does."""
    while turns:
        turn = turns.popleft()
        if not turn.done():
            turn.set_result(result)
            return True
    return False


def _refuse(process: WorkerProcess) -> None:
    """Tell those that wait for an ended process and no other."""
    for turn in process.turns:
        if not turn.done():
            turn.set_exception(_gone())
    process.turns.clear()


def _gone() -> WorkFailed:
    return WorkFailed("work on rows: expected the process that began it, found its end; nothing was changed")
