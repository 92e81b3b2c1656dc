"""The worker processes for changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from namespace_server.observability.observation import SILENT, Observer
from namespace_server.workers.process_pool import ProcessPool
from namespace_server.workers.protocol import IN_FILE, Message
from namespace_server.workers.spool import SpoolFile
from namespace_server.workers.starter import WorkerStarter
from namespace_server.workers.worker_process import WorkerProcess, WorkTimeout
from table_data.batch_operations import TableState
from table_data.errors import ClientError
from table_data.jobs.job import Job, Staged

Rows = bytes | SpoolFile
"""An Arrow IPC stream or file."""


class ChangePool(ProcessPool):
    """Processes that change."""

    def __init__(
        self,
        starter: WorkerStarter,
        size: int,
        *,
        timeout: float = 3600.0,
        memory: int = 0,
        rows: int = 16 << 30,
        share: int = 0,
        observer: Observer = SILENT,
    ) -> None:
        super().__init__(starter, size, timeout=timeout, memory=memory, rows=rows, share=share, observer=observer)
        self._numbers = 0

    @asynccontextmanager
    async def change(
        self, job: Job, rows: Rows | None = None, principal: str | None = None
    ) -> AsyncIterator[RemoteChange]:
        """Begin a change. Its rows stay as they are until it ends."""
        self._numbers += 1
        change = RemoteChange(self, self._numbers, job, rows, principal)
        try:
            yield change
        finally:
            await change.end()

    async def hold(self, table: str, principal: str | None = None) -> WorkerProcess:
        """Wait for a process; one that has written to the table, if one is free."""
        process = await self._hold(table, principal)
        process.note(table)
        return process

    async def hold_again(self, process: WorkerProcess, principal: str | None = None) -> WorkerProcess:
        """Wait for this process. Raises `WorkFailed` if it has ended."""
        await self._hold_again(process, principal)
        return process

    async def release(self, process: WorkerProcess) -> None:
        """Give a process back."""
        try:
            if process.keeps_bodies and process.is_alive() and not process.awaits_reply:
                with suppress(ClientError):  # it ends just now; the change may be committed
                    await process.notify(process.endings())
        finally:
            self._release(process)

    async def end(self, process: WorkerProcess, number: int, *, held: bool, had_file: bool) -> None:
        """Let a process forget a change: at once if its rows take much room, else with its next change."""
        process.ended.append(number)
        process.open_changes -= 1
        process.keeps_bodies |= had_file
        if not held and had_file and process in self._free:
            self._free.remove(process)
            held = True
        if held:
            await self.release(process)


class RemoteChange:
    """A change under way in a process, the same for all of its steps.

    A change that only appends rows is committed while the process does other jobs: several of them can then share a
    flip. Any other keeps its process until it ends: what another change of the table staged meanwhile would conflict.
    """

    def __init__(self, pool: ChangePool, number: int, job: Job, rows: Rows | None, principal: str | None) -> None:
        self._pool = pool
        self._number = number
        self._job = job
        self._rows = rows
        self._principal = principal
        self._process: WorkerProcess | None = None
        self._held = False
        self._keeps = False

    async def stage(self, table: TableState, *, limit: float | None = None) -> Staged:
        """Stage it on a version, within so many seconds. Raises `ClientError`, `WorkTimeout`."""
        async with self._turn(table.uri) as (process, begin):
            with self._pool.observer.job("change"):
                stage = ("stage", self._number, table)
                if begin and isinstance(self._rows, SpoolFile):
                    await process.notify(*begin)
                    await process.give(self._rows.fileno())
                    await process.ask(stage)
                else:
                    body = self._rows if begin and isinstance(self._rows, bytes) else b""
                    await process.ask(*begin, stage, body=body)
                staged: Staged = (await process.answer(limit))[1]
            self._keeps = not staged.appends
        return staged

    async def discard(self) -> None:
        """Remove the files that were staged last; files that a process leaves are collected later."""
        if self._process is None:
            return
        with suppress(ClientError, WorkTimeout):
            async with self._turn() as (process, _):
                await process.ask(("discard", self._number))
                await process.answer()

    async def prepare(self, table: TableState) -> None:
        """Let an idle process open the version that the change was committed as: the next change may be of it."""
        if self._held and self._process is not None and not self._pool.is_waited_for:
            with suppress(ClientError):  # it ends just now, and the change is committed
                await self._process.notify(("open", table, self._job.options))

    async def end(self) -> None:
        """Let the process forget the change."""
        if self._process is not None:
            had_file = isinstance(self._rows, SpoolFile)
            await self._pool.end(self._process, self._number, held=self._held, had_file=had_file)

    @asynccontextmanager
    async def _turn(self, table: str = "") -> AsyncIterator[tuple[WorkerProcess, tuple[Message, ...]]]:
        """Hold the process, the same each time; yields it and the messages that it needs first."""
        begin: tuple[Message, ...] = ()
        if self._process is None:
            process = self._process = await self._pool.hold(table, self._principal)
            process.open_changes += 1
            length = IN_FILE if isinstance(self._rows, SpoolFile) else None if self._rows is None else len(self._rows)
            change = ("change", self._number, self._job, length)
            begin = (process.endings(), change)
        elif not self._held:
            process = await self._pool.hold_again(self._process, self._principal)
        else:
            process = self._process
        self._held = True
        try:
            yield process, begin
        finally:
            if not self._keeps:
                self._held = False
                await self._pool.release(process)
