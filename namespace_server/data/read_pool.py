"""A bounded pool of worker processes for reads. The event loop speaks to them itself.

A thread between would take longer than many a read. See `table_data.worker` for what is spoken.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import struct
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from lance_namespace.errors import ServiceUnavailableError, ThrottlingError

from namespace_server.data.worker_process import ended_early, start_worker, took_too_long
from table_data.batch_operations import TableState
from table_data.errors import WorkFailed
from table_data.jobs import OPEN_TABLES, Job
from table_data.pipes import CHUNK, PipeEnd

_log = logging.getLogger(__name__)

_LENGTH: Final = struct.Struct("!i")
_LONG_LENGTH: Final = struct.Struct("!Q")


class ReadPool:
    """Up to `size` processes, started when they are needed. Belongs to one event loop.

    A read has `timeout` seconds for each of its steps, and may allocate `memory` bytes; 0 is no bound. Up to `waiting`
    reads wait for a process. A process whose read did not end as it should is killed, and another takes its place. A
    read goes to a process that has the table open, if one is free: indices stay in its memory.
    """

    def __init__(self, size: int, *, waiting: int, timeout: float = 3600.0, memory: int = 0) -> None:
        self._timeout = timeout
        self._memory = memory
        self._free: list[_Reader | None] = [None] * size
        self._limit = waiting
        self._turns: deque[asyncio.Future[_Reader | None]] = deque()
        self._started: set[_Reader] = set()
        self._endings: set[asyncio.Future[None]] = set()
        self._closed = False

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
        reader = await self._hold(table.uri)
        try:
            reader.note(table.uri)
            await reader.send(("read", job, table))
            reply = await reader.answer()
            if reply[0] != "rows":
                yield ReadRows(reader, reply)
                return
            with await reader.receive_pipe() as pipe:
                yield ReadRows(reader, reply, pipe)
        finally:
            self._release(reader)

    async def close(self) -> None:
        """End the processes. Reads in progress are ended too, as those of a client that went away."""
        self._closed = True
        for turn in self._turns:
            turn.cancel()
        for reader in list(self._started):
            reader.interrupt()
            self._end(reader)
        await asyncio.gather(*self._endings)

    async def _hold(self, table: str) -> _Reader:
        """Wait for a free process and take it; one that has the table open, if there is one."""
        if self._free:
            having = [at for at, reader in enumerate(self._free) if reader is not None and table in reader.tables]
            reader = self._free.pop(having[-1] if having else -1)
        else:
            reader = await self._turn()
        if reader is not None and reader.is_alive():
            return reader
        if reader is not None:
            self._started.discard(reader)
            reader.kill()
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda done: self._put_back(None if done.exception() else done.result()))
            raise
        except BaseException:
            self._put_back(None)
            raise

    async def _turn(self) -> _Reader | None:
        if len(self._turns) >= self._limit:
            raise ThrottlingError(f"{len(self._turns)} reads of rows wait already; nothing was done, try again")
        turn: asyncio.Future[_Reader | None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._put_back(turn.result())
            self._check_open()
            raise

    def _put_back(self, reader: _Reader | None) -> None:
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(reader)
                return
        self._free.append(reader)

    def _release(self, reader: _Reader) -> None:
        if reader.owes_answer:
            reader.kill()
        if reader.is_killed:
            self._end(reader)
        else:
            self._put_back(reader)

    def _end(self, reader: _Reader) -> None:
        """Give the place of a killed process to another when it has ended and its memory is free."""
        if reader not in self._started:
            return
        self._started.discard(reader)
        ending = asyncio.ensure_future(asyncio.to_thread(reader.wait))
        self._endings.add(ending)

        def ended(done: asyncio.Future[None]) -> None:
            self._endings.discard(done)
            self._put_back(None)

        ending.add_done_callback(ended)

    async def _start(self) -> _Reader:
        self._check_open()
        reader = _Reader(*await asyncio.to_thread(start_worker, self._memory), self._timeout)
        try:
            self._check_open()
        except ServiceUnavailableError:
            reader.interrupt()
            await asyncio.to_thread(reader.wait)
            raise
        self._started.add(reader)
        return reader

    def _check_open(self) -> None:
        if self._closed:
            raise _closing()


class _Reader:
    """One process and the socket to it."""

    def __init__(self, process: Any, connection: socket.socket, timeout: float) -> None:
        connection.setblocking(False)
        self._process = process
        self._socket = connection
        self._timeout = timeout
        self._was_interrupted = False
        self.owes_answer = False
        self.is_killed = False
        self.tables: OrderedDict[str, None] = OrderedDict()

    def note(self, table: str) -> None:
        """Remember that the process has a table open."""
        self.tables[table] = None
        self.tables.move_to_end(table)
        if len(self.tables) > OPEN_TABLES:
            self.tables.popitem(last=False)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return not self.is_killed and self._process.poll() is None

    async def send(self, message: tuple[Any, ...]) -> None:
        """Tell the process something that it answers."""
        self.owes_answer = True
        data = pickle.dumps(message)
        head = _LENGTH.pack(len(data)) if len(data) < 1 << 31 else _LENGTH.pack(-1) + _LONG_LENGTH.pack(len(data))
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, head + data)
        except OSError as error:
            raise self._lost() from error

    async def answer(self) -> tuple[Any, ...]:
        """What the process answers; an error that it answers is raised. Raises `ClientError`, `WorkTimeout`."""
        try:
            async with asyncio.timeout(self._timeout):
                [length] = _LENGTH.unpack(await self._read(_LENGTH.size))
                if length < 0:
                    [length] = _LONG_LENGTH.unpack(await self._read(_LONG_LENGTH.size))
                reply: tuple[Any, ...] = pickle.loads(await self._read(length))  # noqa: S301 - from our own process
        except TimeoutError:
            self.kill()
            raise took_too_long(self._timeout) from None
        except OSError as error:
            raise self._lost() from error
        self.owes_answer = reply[0] == "rows"
        if reply[0] == "error":
            raise reply[1]
        return reply

    async def receive_pipe(self) -> PipeEnd:
        """The end of a pipe that the process writes to. Raises `ClientError`, `WorkTimeout`."""
        await self.wait_for(self._socket.fileno())
        try:
            _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        except OSError as error:
            raise self._lost() from error
        if not descriptors:
            raise self._lost()
        os.set_blocking(descriptors[0], False)
        return PipeEnd(descriptors[0], "rb")

    async def wait_for(self, descriptor: int) -> None:
        """Wait until the process has written, or closed its end. Raises `WorkTimeout`."""
        try:
            async with asyncio.timeout(self._timeout):
                await _readable(descriptor)
        except TimeoutError:
            self.kill()
            raise took_too_long(self._timeout) from None

    def interrupt(self) -> None:
        """Have the process end soon, whatever it does. What waits for its answer finds its end, so the socket stays."""
        self._was_interrupted = True
        if self.owes_answer:
            self._process.kill()
        else:
            self.kill()

    def kill(self) -> None:
        """End the process, and close what it is spoken to through. May be called more than once."""
        self.owes_answer = False
        self.is_killed = True
        self._process.kill()
        with suppress(OSError):
            self._socket.close()

    def wait(self) -> None:
        """Wait for the end of the process. Blocking."""
        self._process.wait()

    async def _read(self, length: int) -> bytes:
        """Exactly so many bytes: after some messages stands one with a descriptor."""
        loop = asyncio.get_running_loop()
        parts: list[bytes] = []
        while length:
            data = await loop.sock_recv(self._socket, length)
            if not data:
                raise self._lost()
            parts.append(data)
            length -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _lost(self) -> WorkFailed:
        self.kill()
        if not self._was_interrupted:
            _log.error("a worker process ended in its job")
        return ended_early()


class ReadRows:
    """The bytes of rows as an Arrow IPC file, as a process writes them; or the `value` that it answered instead."""

    def __init__(self, reader: _Reader, reply: tuple[Any, ...], pipe: PipeEnd | None = None) -> None:
        self._reader = reader
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
                await self._reader.wait_for(self._pipe.fileno())
            elif data:
                yield data
            else:
                break
        await self._reader.answer()


def _closing() -> ServiceUnavailableError:
    return ServiceUnavailableError("the server is shutting down; nothing was done")


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
