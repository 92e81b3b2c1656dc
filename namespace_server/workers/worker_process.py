"""One worker process, and the socket through which the event loop speaks to it.

A thread between would take longer than many a job. See `protocol` for the messages.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import OrderedDict, deque
from contextlib import suppress
from typing import Final

from lance_namespace.errors import ServiceUnavailableError

from namespace_server.outcomes import NOTHING_DONE
from namespace_server.workers.pipes import PipeEnd, widen
from namespace_server.workers.protocol import LENGTH, MARK, Message, decode, encode
from namespace_server.workers.starter import StartedProcess
from table_data.errors import ClientError, OutOfMemory, WorkFailed
from table_data.open_datasets import OPEN_TABLES

_log = logging.getLogger(__name__)

_JOINED: Final = 1 << 16
"""Bytes of a body that are copied in order to be sent by one call."""


class WorkTimeout(ServiceUnavailableError):
    """A job did not end in time, and its worker was ended. Nothing was changed by it."""

    outcome = NOTHING_DONE


class WorkerProcess:
    """A process that may take `memory` bytes (0: no bound), and has `timeout` seconds for each step of a job.

    `bound` is the name of the setting that the time is of.

    Belongs to one event loop. Waiting for its end blocks. One job at a time speaks to it.
    """

    def __init__(self, process: StartedProcess, end: socket.socket, memory: int, timeout: float, bound: str) -> None:
        end.setblocking(False)
        widen(end)
        self._process = process
        self._socket = end
        self._timeout = timeout
        self._bound = bound
        self._memory = memory
        self._was_too_large = False
        self._was_interrupted = False
        self.awaits_reply = False
        self.is_killed = False
        self.tables: OrderedDict[str, None] = OrderedDict()
        """Tables that the process has open, as far as is known here."""
        self.holder: tuple[str | None] | None = None
        """The principal of its job, None in no job."""
        self.turns: deque[asyncio.Future[None]] = deque()
        """Those that wait for this process and no other."""
        self.ended: list[int] = []
        """Changes that the process may forget, of which it has not been notified."""
        self.open_changes = 0
        """Changes that have begun here, and may be staged again."""
        self.has_given_back = False
        """Whether it was asked to give back memory since its last job."""
        self.keeps_bodies = False
        """Whether the rows of one of them may take much room."""

    def note(self, table: str) -> None:
        """Remember that the process has a table open."""
        self.tables[table] = None
        self.tables.move_to_end(table)
        if len(self.tables) > OPEN_TABLES:
            self.tables.popitem(last=False)

    @property
    def memory(self) -> int:
        """The bytes of memory that the process has, without those of files."""
        return self._process.memory

    def check_memory(self) -> None:
        """End a process in a job that takes more memory than it may. The caller that awaits its reply gets an error."""
        if self.awaits_reply and self._memory and self.memory > self._memory:
            self._was_too_large = True
            self._process.kill()

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return not self.is_killed and self._process.is_alive()

    async def ask(self, *messages: Message, body: bytes = b"") -> None:
        """Send the process messages, the last of which it answers."""
        self.awaits_reply = True
        await self.notify(*messages, body=body)

    async def notify(self, *messages: Message, body: bytes = b"") -> None:
        """Send the process messages that it does not answer. The body of a message is sent behind them as it is."""
        loop = asyncio.get_running_loop()
        frame = encode(messages)
        if len(body) <= _JOINED:
            frame, body = frame + body, b""
        try:
            await loop.sock_sendall(self._socket, frame)
            if body:
                await loop.sock_sendall(self._socket, body)
        except OSError as error:
            raise self._lost() from error
        except BaseException:  # cancelled in the middle of a message
            self.kill()
            raise

    def endings(self) -> Message:
        """The message about changes that ended, which must be sent next."""
        ended, self.ended, self.keeps_bodies = self.ended, [], False
        return ("end", ended)

    async def give(self, descriptor: int) -> None:
        """Give the process a descriptor of its own for this file."""
        while True:
            try:
                socket.send_fds(self._socket, [MARK], [descriptor])
            except BlockingIOError:
                await self._ready(self._socket.fileno(), to_write=True)
            except OSError as error:
                raise self._lost() from error
            else:
                return

    async def answer(self, limit: float | None = None) -> Message:
        """The answer of the process, within so many seconds; an error that it answers is raised.

        Raises `ClientError`, `WorkTimeout`.
        """
        limit = self._timeout if limit is None else max(0.0, min(limit, self._timeout))
        try:
            async with asyncio.timeout(limit):
                [length] = LENGTH.unpack(await self._read(LENGTH.size))
                [reply] = decode(await self._read(length))
                if reply[0] == "file":
                    reply = ("file", await self._read(reply[1]))
        except TimeoutError:
            raise self._late(limit) from None
        except OSError as error:
            raise self._lost() from error
        self.awaits_reply = reply[0] == "rows"
        if reply[0] == "error":
            raise reply[1]
        return reply

    async def receive_pipe(self) -> PipeEnd:
        """The end of a pipe that the process writes to. Raises `ClientError`, `WorkTimeout`."""
        await self.wait_for(self._socket.fileno())
        try:
            _, descriptors, _, _ = socket.recv_fds(self._socket, len(MARK), 1)
        except OSError as error:
            raise self._lost() from error
        if not descriptors:
            raise self._lost()
        os.set_blocking(descriptors[0], False)
        return PipeEnd(descriptors[0], "rb")

    async def wait_for(self, descriptor: int) -> None:
        """Wait until the process has written, or closed its end. Raises `WorkTimeout`."""
        await self._ready(descriptor, to_write=False)

    def interrupt(self) -> None:
        """Have the process end soon, whatever it does. What waits for its answer finds its end, so the socket stays."""
        self._was_interrupted = True
        if self.awaits_reply:
            self._process.kill()
        else:
            self.kill()

    def kill(self) -> None:
        """End the process, and close its channels. May be called more than once."""
        self.awaits_reply = False
        self.is_killed = True
        self._process.kill()
        with suppress(OSError):
            self._socket.close()

    def wait(self) -> None:
        """Wait for the end of the process. Blocking."""
        self._process.wait()

    async def _ready(self, descriptor: int, *, to_write: bool) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await ready(descriptor, to_write=to_write)
        except TimeoutError:
            raise self._late(self._timeout) from None

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

    def _late(self, limit: float) -> WorkTimeout:
        self.kill()
        bound = "timeout of the request" if limit < self._timeout else self._bound
        return WorkTimeout(f"work on rows: expected its end within {limit:.3g} s ({bound}); nothing was changed")

    def _lost(self) -> ClientError:
        self.kill()
        if self._was_too_large:
            return OutOfMemory(
                f"work on rows: expected to need at most {self._memory} bytes of memory (worker_memory_bytes), found "
                "more; nothing was changed"
            )
        if not self._was_interrupted and self._process.was_aborted():
            _log.error("a worker process ended in its job: it was aborted")
            return OutOfMemory(
                "work on rows: expected values that fit into the memory of a worker (worker_memory_bytes) and that are "
                "valid, found one that aborts it; nothing was changed"
            )
        if not self._was_interrupted:
            _log.error("a worker process ended in its job")
        return WorkFailed("work on rows: expected an answer of the worker process, found its end; nothing was changed")


async def ready(descriptor: int, *, to_write: bool) -> None:
    """Wait until a descriptor can be read from, or written to."""
    loop = asyncio.get_running_loop()
    found = loop.create_future()
    (loop.add_writer if to_write else loop.add_reader)(descriptor, _resolve, found)
    try:
        await found
    finally:
        (loop.remove_writer if to_write else loop.remove_reader)(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
