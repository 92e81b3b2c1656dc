"""The worker processes for reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from namespace_server.observability.observation import SILENT, Observer
from namespace_server.throttling import LimitReached
from namespace_server.workers.pipes import CHUNK, PipeEnd
from namespace_server.workers.process_pool import ProcessPool, part_of_one
from namespace_server.workers.protocol import Message
from namespace_server.workers.spool import SpooledAnswer, SpoolSpace
from namespace_server.workers.starter import WorkerStarter
from namespace_server.workers.worker_process import WorkerProcess
from table_data.batch_operations import TableState
from table_data.errors import WorkFailed
from table_data.jobs.job import Job

_DISK: Final = 1 << 30
_WAITING: Final = "max_waiting_work"


class ReadPool(ProcessPool):
    """Processes that read. Up to `waiting` reads wait for one.

    A read goes to a process that has the table open, if one is free: indices stay in its memory.
    """

    def __init__(
        self,
        starter: WorkerStarter,
        size: int,
        *,
        waiting: int,
        space: SpoolSpace | None = None,
        timeout: float = 60.0,
        memory: int = 0,
        share: int = 0,
        observer: Observer = SILENT,
    ) -> None:
        super().__init__(
            starter, size, timeout=timeout, memory=memory, share=share, bound="query_timeout", observer=observer
        )
        self._limit = waiting
        self._space = space or SpoolSpace(_DISK)

    async def value(self, job: Job, table: TableState, principal: str | None = None) -> Any:
        """Do a read whose answer is a JSON value. Raises `ClientError`, `WorkTimeout`, `ThrottlingError`."""
        async with self.rows(job, table, principal) as answer:
            if answer.value is None:
                raise WorkFailed(f"{job.operation}: expected a value, found rows")
            return answer.value[0]

    @asynccontextmanager
    async def rows(self, job: Job, table: TableState, principal: str | None = None) -> AsyncIterator[ReadRows]:
        """Begin a read. The block begins when its first rows are there; its end ends a read that goes on.

        The process is free when the rows are made, whether they are taken or not. Raises `ClientError`, `WorkTimeout`,
        `ThrottlingError`.
        """
        if not (self._free and self._shares.admits(principal)):
            self._check_waiting(principal)
        process = await self._hold(table.uri, principal)
        try:
            process.note(table.uri)
            with self.observer.job("read"):
                await process.ask(("read", job, table))
                reply = await process.answer()
            pipe = await process.receive_pipe() if reply[0] == "rows" else None
        except BaseException:
            self._release(process)
            raise
        if pipe is None:
            self._release(process)
            yield ReadRows(reply)
            return
        answer = SpooledAnswer(self._space)
        making = asyncio.create_task(_make(process, pipe, answer))

        def end(_: asyncio.Task[None]) -> None:
            pipe.close()
            self._release(process)
            answer.end()

        making.add_done_callback(end)  # also of a task that was cancelled before it began
        try:
            yield ReadRows(reply, answer, making)
        finally:
            making.cancel()
            with suppress(Exception, asyncio.CancelledError):
                await making
            answer.close()

    def _check_waiting(self, principal: str | None) -> None:
        """Raise `LimitReached` if as many reads wait as may, or three quarters of these are of one principal."""
        waiting, _ = self._shares.waiting_jobs
        if waiting >= self._limit:
            raise LimitReached(_WAITING, self._limit, "reads of rows that wait", waiting + 1)
        own = self._shares.waiting(principal)
        if principal is not None and own >= (part := part_of_one(self._limit)):
            raise LimitReached(_WAITING, part, "reads of rows of one principal that wait", own + 1)


class ReadRows:
    """The bytes of rows as an Arrow IPC file, as a process writes them; or the `value` that it answered instead."""

    def __init__(
        self, reply: Message, answer: SpooledAnswer | None = None, making: asyncio.Task[None] | None = None
    ) -> None:
        self._answer = answer
        self._making = making
        self._few: bytes = reply[1] if reply[0] == "file" else b""
        self.value: tuple[Any] | None = (reply[1],) if reply[0] == "value" else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes, in pieces. Raises `ClientError` if the work fails on the way, `WorkTimeout`, `ThrottlingError`."""
        if self._answer is None or self._making is None:
            yield self._few
            return
        while data := await self._answer.take():
            yield data
        await self._making


async def _make(process: WorkerProcess, pipe: PipeEnd, answer: SpooledAnswer) -> None:
    """Take rows from a process as fast as it makes them."""
    while data := await _read(process, pipe):
        await answer.put(data)
    await process.answer()


async def _read(process: WorkerProcess, pipe: PipeEnd) -> bytes:
    """The next bytes of a pipe; none at its end."""
    while (data := pipe.read(CHUNK)) is None:
        await process.wait_for(pipe.fileno())
    return data
