"""What waits for catalog versions: the event streams and long polls of one server.

One look at storage serves all who wait, and none is made while nobody does. Waiting takes no thread. What is new is
told by a number alone: events are read from the history by those who were woken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from namespace_server.throttling import LimitReached

_log = logging.getLogger(__name__)


class EventStreams:
    """Those who wait, at most `most`. Belongs to one event loop.

    `newest` asks for the newest catalog version, every `interval` seconds while somebody waits. Versions that this
    server commits itself, or answers from, are known at once (`saw`).

    Attributes:
        open: Streams and long polls that are open.
        sent: Events that were sent since the start.
    """

    def __init__(self, newest: Callable[[], Awaitable[int]], *, most: int, interval: float) -> None:
        self.open = 0
        self.sent = 0
        self._ask = newest
        self._most = most
        self._interval = interval
        self._newest = 0
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_closed = False
        self._waiting = 0
        self._watcher: asyncio.Task[None] | None = None

    @contextmanager
    def admitted(self) -> Iterator[asyncio.Event]:
        """Within, one more is open; gives what is set when it has to end. Raises `LimitReached` (21) if not."""
        if self.open >= self._most:
            raise LimitReached("max_event_streams", self._most, "streams of events, and waits for them,", self.open + 1)
        self.open += 1
        try:
            yield self._ended
        finally:
            self.open -= 1

    def saw(self, version: int) -> None:
        """The catalog has this version: wake those who wait for it."""
        if version > self._newest:
            self._newest = version
            self._wake()

    async def beyond(self, version: int, seconds: float, ended: asyncio.Event) -> bool:
        """Wait for a catalog version beyond this one, at most so many seconds; False if there is none then.

        Also False once it has `ended`.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                while self._newest <= version and not (ended.is_set() or self._is_closed):
                    if self._watcher is None:
                        self._watcher = asyncio.create_task(self._watch())
                    await self._news.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting -= 1
        return self._newest > version and not ended.is_set()

    def end_all(self) -> None:
        """Have all that are open end now. Their clients come again."""
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
        self._wake()

    def close(self) -> None:
        """End all that are open, and each one that is opened from now on, once it has sent what there is."""
        self._is_closed = True
        self.end_all()
        self._ended.set()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _watch(self) -> None:
        """Look for news until nobody waits. A failed look is made again: who reads finds out what is wrong."""
        is_failing = False
        try:
            while self._waiting and not self._is_closed:
                await asyncio.sleep(self._interval)
                try:
                    self.saw(await self._ask())
                    is_failing = False
                except Exception as error:  # noqa: BLE001 - whatever storage raises, streams go on when it is back
                    if not (is_failing or self._is_closed):
                        _log.warning("the newest catalog version is not known to those who follow it: %s", error)
                    is_failing = True
        finally:
            self._watcher = None
