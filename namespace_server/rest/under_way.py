"""Work for clients that may go away: changes that are under way, and what is done while a client is connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.types import Receive

from namespace_server.answer import Answer
from namespace_server.outcomes import UNKNOWN
from namespace_server.rest.errors import ClientDisconnected

_UNWATCHED: Final = 0.1
"""Seconds after which it is worth while to watch whether the client of a request is there."""

PATIENCE: Final = 60.0
"""Seconds for which a change that may be asked for again goes on though its clients have gone: those that repeat a
request wait for a second or a few before they do."""

Work = Coroutine[Any, Any, Answer]


@dataclass(frozen=True, slots=True)
class AskedChange:
    """What a change is known by that may be asked for again: its `key`, and what is asked for under it."""

    key: Hashable
    what: object


@dataclass(slots=True, eq=False)
class _Repeatable:
    """A change that may be asked for again: what was asked, its task, and the number of clients that wait for it.

    Where all of them have gone, `leaving` ends it.
    """

    asked: AskedChange
    task: asyncio.Task[Answer]
    clients: int = 0
    leaving: asyncio.TimerHandle | None = None


class ClientLeft(ClientDisconnected):
    """The client closed the connection before its answer, and its change goes on for a while: it may be repeated."""

    outcome = UNKNOWN


class UnderWay:
    """The changes that are under way, and what of them is decided."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._changes: dict[asyncio.Task[Any], str | None] = {}
        self._repeatable: dict[Hashable, _Repeatable] = {}
        self._committing: set[asyncio.Task[Any] | None] = set()
        self._abandoned: set[asyncio.Task[Any] | None] = set()

    def __len__(self) -> int:
        return len(self._changes)

    def of(self, principal: str | None) -> int:
        """The number of changes of a principal that are under way."""
        return sum(each == principal for each in self._changes.values())

    async def finish(self, work: Work, receive: Receive, principal: str | None) -> Answer:
        """Do a change, to its end or until its client goes away. A batch that is handed over is not taken back.

        Raises `ClientDisconnected`.
        """
        change = self._begin(work, principal)
        try:
            with _watching(receive, partial(self._abandon, change)):
                return await asyncio.shield(change)
        except asyncio.CancelledError:
            if not change.cancelled():
                self._abandon(change)
                raise
            raise ClientDisconnected("expected a client that waits for its answer, found none") from None

    async def finish_once(
        self, asked: AskedChange, begin: Callable[[], Work], receive: Receive, principal: str | None
    ) -> Answer:
        """Do a change that may be asked for again, or wait with others for it if the same is under way.

        Where all of its clients have gone it goes on for the time of `patience`, in which one may ask again. Raises
        what `begin` raises, `ClientDisconnected`.
        """
        change = self._repeatable.get(asked.key)
        if change is None or change.asked != asked:  # the catalog judges another request under the same key
            change = _Repeatable(asked, self._begin(begin(), principal))
            self._repeatable.setdefault(asked.key, change)
            change.task.add_done_callback(partial(self._forget, change))
        self._abandoned.discard(change.task)
        change.clients += 1
        if change.leaving is not None:
            change.leaving.cancel()
        gone = asyncio.Event()
        left = asyncio.create_task(gone.wait())
        try:
            with _watching(receive, gone.set):
                await asyncio.wait((change.task, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            change.clients -= 1
            if not change.task.done() and not change.clients:
                change.leaving = asyncio.get_running_loop().call_later(self._patience, self._leave, change)
        if not change.task.done():
            raise ClientLeft("expected a client that waits for its answer, found none")
        if change.task.cancelled():
            raise ClientDisconnected("expected a client that waits for its answer, found none")
        return change.task.result()

    def _begin(self, work: Work, principal: str | None) -> asyncio.Task[Answer]:
        change = asyncio.create_task(work)
        self._changes[change] = principal
        change.add_done_callback(self._ended)
        return change

    def _leave(self, change: _Repeatable) -> None:
        """End a change that nobody waits for."""
        if not change.clients and not change.task.done():
            if change.task not in self._committing:
                self._forget(change)
            self._abandon(change.task)

    def _forget(self, change: _Repeatable, _task: object = None) -> None:
        if self._repeatable.get(change.asked.key) is change:
            del self._repeatable[change.asked.key]

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Within, a batch of the current change is in other hands."""
        change = asyncio.current_task()
        self._committing.add(change)
        try:
            yield
        finally:
            self._committing.discard(change)

    def check(self) -> None:
        """Raise `ClientDisconnected` if the client of the current change went away while its batch was committed."""
        if asyncio.current_task() in self._abandoned:
            raise ClientDisconnected("expected a client that waits for its answer, found none")

    async def close(self) -> None:
        """Wait for the end of all changes."""
        await asyncio.gather(*self._changes, return_exceptions=True)

    def _abandon(self, change: asyncio.Task[Any]) -> None:
        if change in self._committing:
            self._abandoned.add(change)
        else:
            change.cancel()

    def _ended(self, change: asyncio.Task[Any]) -> None:
        self._changes.pop(change, None)
        self._abandoned.discard(change)
        if not change.cancelled():
            change.exception()  # asyncio logs errors that are never looked at


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[asyncio.Timeout]:
    """End the block when the client goes away, or at the time that the block sets. Raises `ClientDisconnected`."""
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(None) as connection:
            with _watching(receive, lambda: connection.reschedule(clock())):
                yield connection
    except TimeoutError:
        raise ClientDisconnected("expected a client that reads its answer, found none") from None


@contextmanager
def _watching(receive: Receive, gone: Callable[[], None]) -> Iterator[None]:
    """Call `gone` when the client goes away within the block. What is done in a moment is not watched."""
    watches: list[asyncio.Task[None]] = []

    def watch() -> None:
        watches.append(asyncio.create_task(_until_gone(receive)))
        watches[0].add_done_callback(lambda watch: None if watch.cancelled() else gone())

    timer = asyncio.get_running_loop().call_later(_UNWATCHED, watch)
    try:
        yield
    finally:
        timer.cancel()
        for each in watches:
            each.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def taken(chunks: AsyncIterator[bytes], connection: asyncio.Timeout, seconds: float) -> AsyncIterator[bytes]:
    """Pieces of rows, each of which has to be taken within so many seconds."""
    loop = asyncio.get_running_loop()
    async for chunk in chunks:
        connection.reschedule(loop.time() + seconds)
        yield chunk
        connection.reschedule(None)
