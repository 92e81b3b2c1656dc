"""Operations on rows as the routes use them: admitted within bounds, done by worker processes beside the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lance_namespace.errors import ThrottlingError
from starlette.types import Receive

from namespace_server.data.creation import TableCreation
from namespace_server.data.operations import DataAnswer, DataOperations, namespace_errors
from namespace_server.data.port import TableCatalog
from namespace_server.data.read_pool import ReadPool
from namespace_server.data.reads import NEWEST, PlannedRead, ReadPoint, plan_read
from namespace_server.data.uploads import StagedUploads
from namespace_server.data.workers import WorkerPool
from namespace_server.rest.errors import BodyTooLarge, ClientDisconnected, RequestTimeout
from namespace_server.rest.limits import DataLimits
from table_data.batch_operations import Json
from table_data.frames import END, frame_head
from table_data.pipes import PipeEnd, open_pipe

T = TypeVar("T")

_COMMITTING = 32
"""Threads for changes that are staged and wait for their commit, while workers stage others."""


@dataclass(frozen=True, slots=True)
class RowStream:
    """The bytes of an Arrow IPC file, and the versions that its rows were read at."""

    chunks: AsyncIterator[bytes]
    catalog_version: int
    table_version: int | None


class DataService:
    """Operations on rows of one catalog. Belongs to one event loop.

    Changes and reads have worker processes of their own, so that a long insert keeps no query waiting. What cannot
    begin waits; if too many wait, the next is refused (`ThrottlingError`, 21).
    """

    def __init__(self, catalog: TableCatalog, limits: DataLimits) -> None:
        self._catalog = catalog
        self._limits = limits
        timeout, memory = limits.work_timeout, limits.worker_memory
        self._workers = WorkerPool(limits.change_workers, timeout=timeout, memory=memory)
        self._reads = ReadPool(limits.read_workers, waiting=limits.waiting, timeout=timeout, memory=memory)
        self._operations: DataOperations[PipeEnd] = DataOperations(catalog, self._workers)
        self._creation = TableCreation(catalog, self._operations)
        self._uploads = StagedUploads(catalog, self._operations)
        width = limits.change_workers + min(limits.waiting, _COMMITTING)
        self._changes = _Lane("change-rows", width, limits.change_workers + limits.waiting)
        self._finding = _Lane("find-table", _COMMITTING, _COMMITTING + limits.waiting)

    async def change(self, operation: str, request: Json, receive: Receive | None = None) -> DataAnswer:
        """Commit a change. With `receive` the body of the request is its rows, which are passed on as they come.

        Raises the namespace errors of the operation, `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`.
        """
        if receive is None:
            return await self._changes.run(partial(self._operations.change, operation, request))
        return await self._with_rows(partial(self._operations.change, operation, request), receive)

    async def create_table(self, request: Json, receive: Receive) -> DataAnswer:
        """Create a table from the rows of the body. Raises as `change` does."""
        return await self._with_rows(partial(self._creation.create, request), receive)

    async def stage_rows(self, request: Json, receive: Receive) -> DataAnswer:
        """Write the rows of the body for a batch that commits them. Raises as `change` does."""
        return await self._with_rows(partial(self._uploads.stage, request), receive)

    async def value(self, operation: str, request: Json, *, at: ReadPoint = NEWEST) -> DataAnswer:
        """Answer a read whose answer is a JSON value. Raises the namespace errors of the operation."""
        planned = await self._plan(operation, request, at)
        if planned.known is not None:
            return planned.answer(planned.known)
        with namespace_errors():
            return planned.answer(await self._reads.value(planned.job, planned.table))

    @asynccontextmanager
    async def rows(
        self, operation: str, request: Json, receive: Receive, *, at: ReadPoint = NEWEST
    ) -> AsyncIterator[RowStream]:
        """Answer a read with rows: the bytes of an Arrow IPC file, once its first rows are there.

        A client that goes away, or takes no bytes for `chunk_timeout` seconds, ends the block with
        `ClientDisconnected`. Raises the namespace errors of the operation, also while bytes are read.
        """
        async with _while_connected(receive) as connection:
            planned = await self._plan(operation, request, at)
            with namespace_errors():
                async with self._reads.rows(planned.job, planned.table) as rows:
                    chunks = _taken(rows.chunks(), connection, self._limits.chunk_timeout)
                    yield RowStream(chunks, planned.catalog_version, planned.table.version)

    async def close(self) -> None:
        """End the workers, and what they are doing."""
        await self._reads.close()
        await asyncio.to_thread(self._workers.close)
        await asyncio.gather(self._changes.close(), self._finding.close())

    async def _plan(self, operation: str, request: Json, at: ReadPoint) -> PlannedRead:
        plan = partial(plan_read, self._catalog, operation, request, at)
        if self._catalog.local and at.catalog_version is None:
            return plan()
        return await self._finding.run(plan)

    async def _with_rows(self, work_on: Callable[[PipeEnd], DataAnswer], receive: Receive) -> DataAnswer:
        """Do work on the rows of a body, which are passed on while it is done."""
        source, sink = open_pipe()
        with source, sink:
            work = asyncio.ensure_future(self._changes.run(partial(work_on, source)))
            feeding = asyncio.create_task(self._feed(receive, sink))
            done, _ = await asyncio.wait({work, feeding}, return_when=asyncio.FIRST_COMPLETED)
            if work not in done and feeding.exception() is not None:
                with suppress(Exception):  # the rows ended before their end, for the reason that is raised
                    await work
                raise feeding.exception() or AssertionError
            if feeding not in done:
                feeding.cancel()
                with suppress(asyncio.CancelledError):
                    await feeding
            return await work

    async def _feed(self, receive: Receive, sink: PipeEnd) -> None:
        """Pass on the body of a request. Closes the pipe; without an end frame unless the body came to its end."""
        total = 0
        os.set_blocking(sink.fileno(), False)
        with sink, suppress(BrokenPipeError):  # the worker wants no more; what it answers says why
            while True:
                try:
                    async with asyncio.timeout(self._limits.chunk_timeout):
                        message = await receive()
                except TimeoutError:
                    raise RequestTimeout(
                        f"request body: expected more within {self._limits.chunk_timeout:g} s, found nothing"
                    ) from None
                if message["type"] != "http.request":
                    raise ClientDisconnected("request body: expected its end, found a closed connection")
                data = message.get("body", b"")
                total += len(data)
                if total > self._limits.body:
                    raise BodyTooLarge(f"request body: expected at most {self._limits.body} bytes, found more")
                if data:
                    await _write(sink, frame_head(len(data)) + data)
                if not message.get("more_body", False):
                    await _write(sink, END)
                    return


class _Lane:
    """Threads that wait for workers, and a bound on what waits for the threads."""

    def __init__(self, name: str, width: int, capacity: int) -> None:
        self._executor = ThreadPoolExecutor(width, thread_name_prefix=name)
        self._capacity = capacity
        self._admitted = 0

    async def run(self, work: Callable[[], T]) -> T:
        if self._admitted >= self._capacity:
            raise ThrottlingError(f"{self._admitted} operations on rows wait already; nothing was done, try again")
        self._admitted += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._admitted -= 1

    async def close(self) -> None:
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)


@asynccontextmanager
async def _while_connected(receive: Receive) -> AsyncIterator[asyncio.Timeout]:
    """End the block when the client goes away, or at the time that the block sets. Raises `ClientDisconnected`."""
    try:
        async with asyncio.timeout(None) as connection:
            watch = asyncio.create_task(_until_disconnect(receive, connection))
            try:
                yield connection
            finally:
                watch.cancel()
    except TimeoutError:
        raise ClientDisconnected("expected a client that reads its answer, found none") from None


async def _until_disconnect(receive: Receive, connection: asyncio.Timeout) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    connection.reschedule(asyncio.get_running_loop().time())


async def _taken(chunks: AsyncIterator[bytes], connection: asyncio.Timeout, patience: float) -> AsyncIterator[bytes]:
    """Pieces of rows, each of which has to be taken within so many seconds."""
    loop = asyncio.get_running_loop()
    async for chunk in chunks:
        connection.reschedule(loop.time() + patience)
        yield chunk
        connection.reschedule(None)


async def _write(sink: PipeEnd, data: bytes) -> None:
    view = memoryview(data)
    loop = asyncio.get_running_loop()
    while view:
        try:
            view = view[os.write(sink.fileno(), view) :]
        except BlockingIOError:
            writable = loop.create_future()
            loop.add_writer(sink.fileno(), _resolve, writable)
            try:
                await writable
            finally:
                loop.remove_writer(sink.fileno())


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
