"""Threads beside an event loop for blocking calls: few of them, and a bounded number of calls that wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class TooManyCalls(Exception):
    """As many calls wait as may. This one was not begun."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"expected at most {waiting} calls that wait")
        self.waiting = waiting


class CallThreads:
    """Threads for blocking calls. Belongs to one event loop. Close it.

    Args:
        threads: How many calls are made at once.
        waiting: How many more may wait.
        name: What the names of the threads begin with.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._waiting = waiting
        self._under_way = 0

    async def call(self, work: Callable[[], T], give_up: Callable[[], None]) -> T:
        """The result of a call.

        Where it is cancelled, `give_up` is called, in this thread: the call should end soon then. A call that still
        waited is not made.

        Raises:
            TooManyCalls: As many wait as may.
        """
        if self._under_way >= self._most:
            raise TooManyCalls(self._waiting)
        self._under_way += 1
        loop = asyncio.get_running_loop()
        made = self._pool.submit(copy_context().run, work)
        made.add_done_callback(lambda _: self._end_on(loop))
        try:
            return await asyncio.wrap_future(made)
        except asyncio.CancelledError:
            give_up()
            raise

    def _end_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """A thread is free again, or the call that waited for one was cancelled."""
        try:
            loop.call_soon_threadsafe(self._ended)
        except RuntimeError:  # the loop has ended, and nothing waits there
            return

    def _ended(self) -> None:
        self._under_way -= 1

    def close(self) -> None:
        """Begin no more calls. Those under way end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)
