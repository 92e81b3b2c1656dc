"""A timeout of one length for many tasks, with one timer for all of them."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class SharedTimeout:
    """Bounds a block to `seconds`, as `asyncio.timeout` does, in any number of tasks. Belongs to one event loop.

    The block raises `TimeoutError` when its time is over. A task is in at most one block at a time. A timer for each
    block takes as long as a cached read does; since all have the same length, they end in the order in which they
    began, and one timer for the oldest is enough.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[_current_task()] = deadline = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task = _current_task()
        if self._deadlines.pop(task, None) is None and not task.uncancel() and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        """Cancel the tasks whose time is over, and wait for the next one."""
        loop = asyncio.get_running_loop()
        self._timer = None
        now = loop.time()
        for task, deadline in list(self._deadlines.items()):
            if deadline > now:
                self._timer = loop.call_at(deadline, self._expire)
                break
            del self._deadlines[task]
            task.cancel()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "no task runs"
    return task
