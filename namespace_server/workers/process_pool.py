"""A bounded pool of worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from lance_namespace.errors import ServiceUnavailableError

from namespace_server.observability.observation import SILENT, Observer, PoolState
from namespace_server.outcomes import with_nothing_done
from namespace_server.workers.shares import Shares
from namespace_server.workers.starter import WorkerStarter
from namespace_server.workers.worker_process import WorkerProcess
from table_data.errors import WorkFailed

RELIEF: Final = 4
"""Processes that are started beyond the size of a pool while all others are in long jobs."""
_LONG: Final = 0.05
"""Seconds after which a job is a long one, for which the next job does not wait."""
_SURPLUS: Final = 1.0
"""Seconds between two looks for processes beyond the size of a pool that are not needed."""
_LOOK: Final = 1.0
"""Seconds after a job in which a process gives back memory."""
_LARGE: Final = 1 << 30
_WATCH: Final = 0.05
"""Seconds between two looks at the memory of processes that are in a job."""


class ProcessPool:
    """Up to `size` processes, started when they are needed. Belongs to one event loop.

    A job has `timeout` seconds for each of its steps, by the setting `bound`, and may take `memory` bytes; 0 is no
    bound. The jobs of one principal hold `share` of the processes at one time; 0 is two thirds. A process whose job
    did not end as it should is killed, and another takes its place: it can hold nothing that others need. So is one
    that keeps a third of its memory after a job. Where all are in long jobs, one more is started for the next job: up
    to `RELIEF`, which end when others are free.
    """

    def __init__(
        self,
        starter: WorkerStarter,
        size: int,
        *,
        timeout: float = 3600.0,
        memory: int = 0,
        rows: int = 16 << 30,
        share: int = 0,
        bound: str = "work_timeout",
        observer: Observer = SILENT,
    ) -> None:
        self.observer = observer
        self._starter = starter
        self._timeout = timeout
        self._bound = bound
        self._memory = memory
        self._rows = rows
        self._large = memory // 3 if memory else _LARGE
        self._free: list[WorkerProcess | None] = [None] * size
        self._shares: Shares[WorkerProcess | None] = Shares(share or default_share(size))
        self._started: set[WorkerProcess] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False
        self._relief = 0
        self._starting = 0
        self._lost = 0
        self._begun = 0.0
        self._timers: dict[str, asyncio.TimerHandle] = {}

    async def close(self) -> None:
        """End the processes. Jobs in progress are ended too, as those of a client that went away."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._shares.cancel()
        for process in list(self._started):
            process.interrupt()
            self._end(process)
        while self._background:
            await asyncio.gather(*self._background)

    @property
    def state(self) -> PoolState:
        """The present state of the processes. May be called by any thread."""
        free = sum(process is not None for process in list(self._free))
        waiting, held_back = self._shares.waiting_jobs
        return PoolState(max(0, len(self._started) - free), free, waiting, self._lost, held_back)

    @property
    def is_waited_for(self) -> bool:
        """Whether work waits for a process."""
        return bool(self._shares.waiting_jobs[0])

    async def _hold(self, table: str | None = None, principal: str | None = None) -> WorkerProcess:
        """Wait for a free process and take it; one that has the table open, if there is one. `_release` it after.

        A principal that holds its share waits until it gives one back.
        """
        if len(self._free) < 2:  # none is free from now on
            self._look_after("relief", _LONG, self._relieve)
        if self._free and self._shares.admits(principal):
            self._shares.take(principal)
            having = [at for at, process in enumerate(self._free) if process is not None and table in process.tables]
            started = [at for at, process in enumerate(self._free) if process is not None] if self._relief else []
            process = self._free.pop((having or started or [-1])[-1])
        else:
            try:
                process = await self._shares.wait(principal, self._put_back)
            except asyncio.CancelledError:
                self._check_open()
                raise
        self._begun = asyncio.get_running_loop().time()
        if self._memory:
            self._look_after("watch", _WATCH, self._watch_memory)
        if process is not None and process.is_alive():
            process.has_given_back = False
            process.holder = (principal,)
            return process
        if process is not None:
            self._started.discard(process)
            process.kill()
            _refuse(process)
        starting = asyncio.ensure_future(self._start())
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._shares.give_back(principal)
            starting.add_done_callback(lambda done: self._put_back(None if done.exception() else done.result()))
            raise
        except BaseException:
            self._shares.give_back(principal)
            self._put_back(None)
            raise
        process.holder = (principal,)
        return process

    async def _hold_again(self, process: WorkerProcess, principal: str | None = None) -> None:
        """Wait for this process and take it, whatever the principal holds. Raises `WorkFailed` if it has ended."""
        if process.is_killed:
            raise _gone()
        if process in self._free:
            self._free.remove(process)
        else:
            await self._turn(process)
        self._shares.take(principal)
        process.holder = (principal,)
        if not process.is_alive():
            process.kill()
            self._release(process)
            raise _gone()

    async def _turn(self, process: WorkerProcess) -> None:
        """Wait until this process is free."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        process.turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._put_back(process)
            self._check_open()
            raise

    def _put_back(self, process: WorkerProcess | None) -> None:
        if process is not None and _next(process):
            return
        if self._shares.give(process):
            return
        self._free.append(process)
        if self._relief:
            self._look_after("surplus", _SURPLUS, self._end_surplus)
        self._look_after("memory", _LOOK, self._retire_large)

    def _release(self, process: WorkerProcess) -> None:
        """Give a process back. One whose reply is still awaited is ended."""
        if process.holder is not None:
            [principal], process.holder = process.holder, None
            self._shares.give_back(principal)
        if process.awaits_reply:
            process.kill()
        if process.is_killed:
            self._lost += 1
            self._end(process)
        else:
            self._put_back(process)

    def _end(self, process: WorkerProcess, *, is_needed: bool = True) -> None:
        """Give the place of a killed process to another when it has ended and its memory is free."""
        _refuse(process)
        if process not in self._started:
            return
        self._started.discard(process)
        self._begin(self._replace(process, is_needed=is_needed))

    async def _replace(self, process: WorkerProcess, *, is_needed: bool) -> None:
        await asyncio.to_thread(process.wait)
        if is_needed:
            await self._add()

    async def _add(self) -> None:
        """Start a process now, so that the next job need not wait for it."""
        successor = None
        with suppress(Exception):  # the next job tries to start one, and has the error
            successor = await self._start()
        self._put_back(successor)

    async def _start(self) -> WorkerProcess:
        self._check_open()
        self._starting += 1
        try:
            started, end = await self._starter.start(self._memory, self._rows)
        finally:
            self._starting -= 1
        self._begun = asyncio.get_running_loop().time()
        process = WorkerProcess(started, end, self._memory, self._timeout, self._bound)
        try:
            self._check_open()
        except ServiceUnavailableError:
            process.interrupt()
            await asyncio.to_thread(process.wait)
            raise
        self._started.add(process)
        return process

    def _look_after(self, what: str, seconds: float, look: Callable[[], None]) -> None:
        """Look once after so many seconds."""
        if what not in self._timers and not self._closed:
            self._timers[what] = asyncio.get_running_loop().call_later(seconds, self._look, what, look)

    def _look(self, what: str, look: Callable[[], None]) -> None:
        del self._timers[what]
        look()

    def _relieve(self) -> None:
        """Start one more process, or one for each job that waits, if all are in long jobs."""
        if self._free:
            return
        is_long = asyncio.get_running_loop().time() - self._begun >= _LONG
        if is_long and not self._starting:
            waiting, held_back = self._shares.waiting_jobs
            for _ in range(min(max(waiting - held_back, 1), RELIEF - self._relief)):
                self._relief += 1
                self._begin(self._add())
        self._look_after("relief", _LONG, self._relieve)

    def _end_surplus(self) -> None:
        """End processes beyond the size of the pool while another is free."""
        for process in self._free[:-1]:
            if self._relief and (process is None or not process.open_changes):
                self._relief -= 1
                self._free.remove(process)
                if process is not None:
                    process.kill()
                    self._end(process, is_needed=False)
        if self._relief:
            self._look_after("surplus", _SURPLUS, self._end_surplus)

    def _watch_memory(self) -> None:
        """End the processes whose jobs take too much memory."""
        busy = [process for process in self._started if process not in self._free]
        for process in busy:
            process.check_memory()
        if busy:
            self._look_after("watch", _WATCH, self._watch_memory)

    def _retire_large(self) -> None:
        """Have free processes that kept much memory give it back; end those that did and have it still."""
        for process in [process for process in self._free if process is not None]:
            if process.open_changes or process.memory <= self._large:
                continue
            self._free.remove(process)
            if process.has_given_back:
                process.kill()
                self._end(process)
            else:
                process.has_given_back = True
                self._begin(self._have_given_back(process))

    async def _have_given_back(self, process: WorkerProcess) -> None:
        with suppress(Exception):  # it ends just now
            await process.notify(("give back",))
        self._release(process)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done beside the jobs; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _check_open(self) -> None:
        if self._closed:
            raise with_nothing_done(ServiceUnavailableError("the server is shutting down; nothing was done"))


def default_share(size: int) -> int:
    """Two thirds of the processes that there may be, and at least one."""
    return max(1, -(-2 * (size + RELIEF) // 3))


def part_of_one(bound: int) -> int:
    """The part of a bound of waiting work that one principal may have: three quarters."""
    return bound - bound // 4


def _next(process: WorkerProcess) -> bool:
    """Give the process to the next that waits for it; whether one does."""
    while process.turns:
        turn = process.turns.popleft()
        if not turn.done():
            turn.set_result(None)
            return True
    return False


def _refuse(process: WorkerProcess) -> None:
    """Fail the waits for an ended process."""
    for turn in process.turns:
        if not turn.done():
            turn.set_exception(_gone())
    process.turns.clear()


def _gone() -> WorkFailed:
    return WorkFailed("work on rows: expected the process that began it, found its end; nothing was changed")
