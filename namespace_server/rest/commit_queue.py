"""The queue in front of `DirectoryNamespace.commit_calls`.

Calls that arrive while a group is committed form the next group. Before it is closed, it waits for the clients of the
previous group, which were answered just now and often call again at once; otherwise two halves of the clients would
take turns in groups half as large. It stops waiting as soon as they are all there, or when nothing arrives for some
milliseconds. Which calls a group takes of those that wait, `FairQueue` says, by their principals.

Behind it, in the threads that commit, a second queue lets the batches of several such groups share a flip: `FlipQueue`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from namespace_server.directory.calls import Call
from namespace_server.directory.json_api import JsonCatalog
from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.outcomes import with_nothing_done
from namespace_server.rest.fair_queue import FairQueue, Group

if TYPE_CHECKING:
    from namespace_server.observability.tracing import Tracing

_log = logging.getLogger(__name__)

T = TypeVar("T")
_Waiting = tuple[Call[object], "asyncio.Future[object]", Context | None]
"""A call, what waits for its answer, and the context of the request if requests are traced."""
_Results = Sequence[object | LanceNamespaceError]

_ANSWERING_ITERATIONS = 1
"""Iterations of the event loop until the answers to a group are written. Clean-up before that would contend with them
for the GIL, and delay them by milliseconds."""
_PATIENCE = 5
"""How many times as long a group waits for callers of other principals that is one large change: it would hold them up,
and their way here and back is longer than a group of small changes should wait."""
_SHARING = 2
"""Threads that commit calls of several principals, at least: while one verifies a large batch, or promotes what it
published, the other one flips what is small."""


class CommitQueue:
    """A bounded queue of calls and the threads that commit them.

    `capacity` bounds the calls accepted and not yet answered, `group` those of one `commit_calls`, and `share` the
    operations in it of one principal, while there are several. `wait` is for how many seconds a group waits for one
    more call, while clients of the previous group have not called again. `workers` are the threads; if that is one, one
    more is started when there are several principals, which commits calls of the others. Belongs to the event loop that
    called `start`; all methods are called on it.
    """

    def __init__(
        self,
        catalog: JsonCatalog,
        *,
        workers: int,
        capacity: int = 4096,
        group: int,
        share: int,
        wait: float,
        tracing: Tracing | None = None,
    ) -> None:
        self._catalog = catalog
        self._capacity = capacity
        self._group = group
        self._group_wait = wait
        self._tracing = tracing
        self._waiting: FairQueue[_Waiting] = FairQueue(share, pipelined=workers > 1)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._workers = workers
        self._most_threads = max(workers, _SHARING)
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._accepted = 0
        self._closing = False
        self._wait: asyncio.TimerHandle | None = None
        self._open = False
        self._done = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def accepted(self) -> int:
        """The calls that are accepted and not yet answered. May be called by any thread."""
        return self._accepted

    @property
    def principals(self) -> int:
        """The principals that sent calls within the last minute. May be called by any thread."""
        return self._waiting.principals

    @property
    def held_back(self) -> int:
        """The calls that wait because their principal has its share with the committer."""
        return self._waiting.held_back

    def start(self) -> None:
        """Start the threads, and accept calls on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._open = True
        for _ in range(self._workers):
            self._start_thread()

    async def enqueue(self, call: Call[T]) -> T:
        """Commit one call and return its answer.

        Raises the call's own error, or `ServiceUnavailableError` (17) without doing anything if the queue is full or
        closed. A waiter that is cancelled leaves its call in the queue: accepted calls are committed.
        """
        if not self._open or self._loop is None:
            raise with_nothing_done(ServiceUnavailableError("the server is shutting down; nothing was done"))
        if self._accepted >= self._capacity:
            raise with_nothing_done(
                ServiceUnavailableError(f"{self._accepted} commits are waiting already; nothing was done, try again")
            )
        waiting: asyncio.Future[object] = self._loop.create_future()
        self._accepted += 1
        entry = (call, waiting, None if self._tracing is None else copy_context())
        self._waiting.add(call.principal, call.size, entry)
        self._gather(self._loop)
        return cast("T", await waiting)

    async def close(self) -> None:
        """Refuse new calls, commit those that were accepted, and end the threads."""
        self._open = False
        if self._accepted:
            await self._done.wait()
        for _ in range(_ANSWERING_ITERATIONS):
            await asyncio.sleep(0)
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the group of the waiting calls when a thread is free for it and no more calls are expected."""
        if not self._waiting.is_ready or not (self._idle or self._add_thread()):
            return
        if self._wait is not None and not self._is_worth_waiting():
            self._wait.cancel()
            self._wait, self._closing = None, False
        if not self._closing:
            self._closing = True  # in the next iteration of the loop: this one may have read more requests
            loop.call_soon(self._close_or_wait, loop, 0)

    def _close_or_wait(self, loop: asyncio.AbstractEventLoop, seen: int) -> None:
        """Close the group, or wait for more calls if they are expected and some came since the last look."""
        found = len(self._waiting)
        if seen < found and self._is_worth_waiting():
            seconds = self._group_wait * (_PATIENCE if self._waiting.is_large else 1)
            self._wait = loop.call_later(seconds, self._close_or_wait, loop, found)
            return
        self._closing, self._wait = False, None
        group = self._waiting.take(self._group)
        if not group.changes:
            return
        self._idle -= 1
        self._jobs.put(partial(self._commit_group, loop, group))
        self._gather(loop)

    def _is_worth_waiting(self) -> bool:
        """Whether the next group has room for calls that are expected."""
        return self._waiting.is_awaited and (self._waiting.is_shared or len(self._waiting) < self._group)

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"commit-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        self._idle += 1
        thread.start()

    def _add_thread(self) -> bool:
        """Start a thread for the calls of other principals than the one whose calls are committed; whether one was."""
        if len(self._threads) >= self._most_threads or not self._waiting.is_shared:
            return False
        self._start_thread()
        return True

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _commit_group(self, loop: asyncio.AbstractEventLoop, taken: Group[_Waiting]) -> None:
        work = partial(self._results_of, [call for call, _, _ in taken.changes])
        contexts = [context for _, _, context in taken.changes if context is not None]
        results = self._tracing.commit_together(contexts, work) if self._tracing is not None and contexts else work()
        loop.call_soon_threadsafe(self._answer, loop, taken, results)

    def _results_of(self, calls: list[Call[object]]) -> _Results:
        try:
            results: _Results = self._catalog.commit_calls(calls)
            if len(results) == len(calls):
                return results
            _log.error("a group of %d commits ended with %d results", len(calls), len(results))
        except BaseException:  # noqa: BLE001 - the flip may have happened; every waiting request needs an answer
            _log.exception("a group of %d commits ended without results", len(calls))
        return [BatchUnknown(call.batch_uuid, "the commit ended without a result") for call in calls]

    def _answer(self, loop: asyncio.AbstractEventLoop, taken: Group[_Waiting], results: _Results) -> None:
        group = taken.changes
        self._accepted -= len(group)
        self._idle += 1
        self._waiting.answered(taken)
        if not (self._accepted or self._open):
            self._done.set()
        for (_, waiting, _), result in zip(group, results, strict=True):
            if waiting.done():  # the request was cancelled
                continue
            if isinstance(result, LanceNamespaceError):
                waiting.set_exception(result)
            else:
                waiting.set_result(result)
        self._gather(loop)
        self._later(loop, _ANSWERING_ITERATIONS, partial(self._clean_up, [call for call, _, _ in group]))

    def _later(self, loop: asyncio.AbstractEventLoop, iterations: int, job: Callable[[], None]) -> None:
        """Hand a job to a thread after some iterations of the event loop."""
        if iterations:
            loop.call_soon(self._later, loop, iterations - 1, job)
        else:
            self._jobs.put(job)

    def _clean_up(self, calls: list[Call[object]]) -> None:
        try:
            self._catalog.clean_up(calls)
        except BaseException:  # noqa: BLE001 - the sweep does it later; the next group must be committed
            _log.exception("the clean-up after %d commits failed", len(calls))
