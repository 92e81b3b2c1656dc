"""Runs of maintenance for clients: in threads beside the event loop, with changes that the tasks of requests make."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from namespace_server.answer import Answer
from namespace_server.data.port import CommitChange
from namespace_server.rest.errors import ClientDisconnected
from namespace_server.throttling import LimitReached
from namespace_server.workers.process_pool import part_of_one
from table_data.requests.table_requests import TableRequest

_SETTING: Final = "change_workers"

MakeChange = Callable[[str, TableRequest], Awaitable[Answer]]
"""Commits a change of a table; see `CommitChange`."""
Run = Callable[[CommitChange, Callable[[], bool]], Answer]
"""Does the work of a run: with what commits its changes, and with whether it is to begin no more."""


class MaintenanceRuns:
    """The runs of one server. Belongs to one event loop.

    A run has one change under way at a time, so that there are at most as many as workers for changes. Its changes are
    made by the task that waits for it: where that is cancelled, or its client is gone, no further one is made.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="maintain")
        self._running: Counter[str | None] = Counter()
        self._is_stopped = False

    async def run(self, work: Run, make: MakeChange, principal: str | None) -> Answer:
        """The result of a run.

        Raises:
            LimitReached: As many runs are under way as may be, or three quarters of them for the same principal.
        """
        with self._counted(principal):
            changes = _Changes()
            over = partial(self._is_over, changes)
            thread = asyncio.get_running_loop().run_in_executor(
                self._threads, copy_context().run, work, changes.commit, over
            )
            return await changes.make_all(thread, make)

    def stop(self) -> None:
        """Have the runs begin no more work."""
        self._is_stopped = True

    async def close(self) -> None:
        """Wait for the end of the threads."""
        self.stop()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _is_over(self, changes: _Changes) -> bool:
        return self._is_stopped or changes.has_ended

    @contextmanager
    def _counted(self, principal: str | None) -> Iterator[None]:
        found, own = self._running.total(), self._running[principal]
        if found >= self._most:
            raise LimitReached(_SETTING, self._most, "runs of maintenance", found + 1)
        if principal is not None and own >= part_of_one(self._most):
            raise LimitReached(_SETTING, part_of_one(self._most), "runs of maintenance of one principal", own + 1)
        self._running[principal] += 1
        try:
            yield
        finally:
            self._running[principal] -= 1
            if not self._running[principal]:
                del self._running[principal]


@dataclass(frozen=True, slots=True)
class _Change:
    operation: str
    request: TableRequest
    answer: Future[Answer] = field(default_factory=Future)


class _Changes:
    """The changes of one run, on their way from its thread to the task that makes them.

    Attributes:
        has_ended: Whether no further one is made.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[_Change | None] = asyncio.Queue()
        self.has_ended = False

    def commit(self, operation: str, request: TableRequest) -> Answer:
        """See `CommitChange`. Called in the thread of the run. Raises `ClientDisconnected` once the task has ended."""
        change = _Change(operation, request)
        self._loop.call_soon_threadsafe(self._take, change)
        return change.answer.result()

    async def make_all(self, run: asyncio.Future[Answer], make: MakeChange) -> Answer:
        """Make the changes of a run until it ends. Its result; raises what it raises."""
        run.add_done_callback(self._end)
        try:
            while (change := await self._waiting.get()) is not None:
                try:
                    change.answer.set_result(await make(change.operation, change.request))
                except BaseException as error:
                    is_cancelled = isinstance(error, asyncio.CancelledError)
                    change.answer.set_exception(_gone() if is_cancelled else error)
                    if not isinstance(error, Exception):
                        raise
            return await run
        finally:
            self.has_ended = True
            while not self._waiting.empty():
                if (left := self._waiting.get_nowait()) is not None:
                    left.answer.set_exception(_gone())

    def _take(self, change: _Change) -> None:
        if self.has_ended:
            change.answer.set_exception(_gone())
        else:
            self._waiting.put_nowait(change)

    def _end(self, run: asyncio.Future[Answer]) -> None:
        if not run.cancelled():
            run.exception()  # asyncio logs errors that are never looked at
        self._waiting.put_nowait(None)


def _gone() -> ClientDisconnected:
    return ClientDisconnected("expected a client that waits for its answer, found none")
