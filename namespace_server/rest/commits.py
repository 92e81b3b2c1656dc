"""The queue in front of `DirectoryNamespace.commit`.

Handlers hand in calls and wait; a worker thread takes whatever has queued while the previous group was committed and
hands it over as the next group. Nobody waits for a group to fill.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from namespace_server.rest.port import Answer, Call, Catalog

_log = logging.getLogger(__name__)

_Waiting = tuple[Call, "asyncio.Future[Answer]"]


class OutcomeLost(ServiceUnavailableError):
    """The commit ended in a way that says nothing about its outcome (F1). `detail` is the batch's uuid, if known."""

    def __init__(self, call: Call) -> None:
        batch = getattr(call, "batch_uuid", None)
        named = f"batch {batch}" if batch is not None else "this request"
        super().__init__(f"{named}: the outcome of its commit is unknown; repeat it unchanged")
        self.detail = str(batch) if batch is not None else None


class CommitQueue:
    """A bounded queue of calls and the threads that commit them.

    `capacity` bounds the calls accepted and not yet answered, `group` those that share one `commit`. Belongs to the
    event loop that called `start`; all methods are called on it.
    """

    def __init__(self, catalog: Catalog, *, workers: int, capacity: int = 4096, group: int = 64) -> None:
        self._catalog = catalog
        self._capacity = capacity
        self._group = group
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"commit-{number}", daemon=True) for number in range(workers)
        ]
        self._accepted = 0
        self._open = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to work, for the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._open = True
        for thread in self._threads:
            thread.start()

    async def commit(self, call: Call) -> Answer:
        """Commit one call and return its answer.

        Raises the call's own error, or `ServiceUnavailableError` (17) without doing anything if the queue is full or
        closed. A waiter that is cancelled leaves its call in the queue: what was accepted is committed.
        """
        if not self._open or self._loop is None:
            raise ServiceUnavailableError("the server is shutting down; nothing was done")
        if self._accepted >= self._capacity:
            raise ServiceUnavailableError(f"{self._accepted} commits are waiting already; nothing was done, try again")
        waiting: asyncio.Future[Answer] = self._loop.create_future()
        self._accepted += 1
        self._queue.put((call, waiting))
        return await waiting

    async def close(self) -> None:
        """Refuse new calls, commit those that were accepted, and end the threads."""
        self._open = False
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            group, last = self._gather(first)
            self._answer(group, self._commit([call for call, _ in group]))
            if last:
                return

    def _gather(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """What has queued up to now, and whether the end of the queue was among it."""
        group = [first]
        while len(group) < self._group:
            try:
                waiting = self._queue.get_nowait()
            except queue.Empty:
                break
            if waiting is None:
                return group, True
            group.append(waiting)
        return group, False

    def _commit(self, calls: list[Call]) -> Sequence[Answer | LanceNamespaceError]:
        try:
            results = self._catalog.commit(calls)
        except Exception:  # noqa: BLE001 - whatever it is, the flip may have happened, and every waiter must be told
            _log.exception("a group of %d commits ended without results", len(calls))
            return [OutcomeLost(call) for call in calls]
        if len(results) != len(calls):
            _log.error("a group of %d commits ended with %d results", len(calls), len(results))
            return [OutcomeLost(call) for call in calls]
        return results

    def _answer(self, group: list[_Waiting], results: Sequence[Answer | LanceNamespaceError]) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._settle, group, results)

    def _settle(self, group: list[_Waiting], results: Sequence[Answer | LanceNamespaceError]) -> None:
        self._accepted -= len(group)
        for (_, waiting), result in zip(group, results, strict=True):
            if waiting.done():  # its client has gone
                continue
            if isinstance(result, LanceNamespaceError):
                waiting.set_exception(result)
            else:
                waiting.set_result(result)
