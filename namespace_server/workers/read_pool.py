"""The worker processes for reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lance_namespace.errors import ThrottlingError

from namespace_server.workers.pipes import CHUNK, PipeEnd
from namespace_server.workers.process_pool import ProcessPool
from namespace_server.workers.worker_process import WorkerProcess
from table_data.batch_operations import TableState
from table_data.errors import WorkFailed
from table_data.jobs.job import Job


class ReadPool(ProcessPool):
    """Processes that read. Up to `waiting` reads wait for one.

    A read goes to a process that has the table open, if one is free: indices stay in its memory.
    """

    def __init__(self, size: int, *, waiting: int, timeout: float = 3600.0, memory: int = 0) -> None:
        super().__init__(size, timeout=timeout, memory=memory)
        self._limit = waiting

    async def value(self, job: Job, table: TableState) -> Any:
        """Do a read whose answer is a JSON value. Raises `ClientError`, `WorkTimeout`, `ThrottlingError`."""
        async with self.rows(job, table) as answer:
            if answer.value is None:
                raise WorkFailed(f"{job.operation}: expected a value, found rows")
            return answer.value[0]

    @asynccontextmanager
    async def rows(self, job: Job, table: TableState) -> AsyncIterator[ReadRows]:
        """Begin a read. The block begins when its first rows are there; what it leaves unread ends the process.

        Raises `ClientError`, `WorkTimeout`, `ThrottlingError`.
        """
        if not self._free and len(self._turns) >= self._limit:
            raise ThrottlingError(f"{len(self._turns)} reads of rows wait already; nothing was done, try again")
        process = await self._hold(table.uri)
        try:
            process.note(table.uri)
            await process.ask(("read", job, table))
            reply = await process.answer()
            if reply[0] != "rows":
                yield ReadRows(process, reply)
                return
            with await process.receive_pipe() as pipe:
                yield ReadRows(process, reply, pipe)
        finally:
            self._release(process)


class ReadRows:
    """The bytes of rows as an Arrow IPC file, as a process writes them; or the `value` that it answered instead."""

    def __init__(self, process: WorkerProcess, reply: tuple[Any, ...], pipe: PipeEnd | None = None) -> None:
        self._process = process
        self._pipe = pipe
        self._few: bytes = reply[1] if reply[0] == "file" else b""
        self.value: tuple[Any] | None = (reply[1],) if reply[0] == "value" else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes, in pieces. Raises `ClientError` if the work fails on the way, `WorkTimeout`."""
        if self._pipe is None:
            yield self._few
            return
        while True:
            data = self._pipe.read(CHUNK)
            if data is None:
                await self._process.wait_for(self._pipe.fileno())
            elif data:
                yield data
            else:
                break
        await self._process.answer()
