"""Starts worker processes, by one process that has loaded pylance and forks; see `fork_server`."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from namespace_server.workers.memory import anonymous_bytes
from namespace_server.workers.protocol import FORK, FORKED, STATUS

_COMMAND: Final = (sys.executable, "-P", "-m", "namespace_server.workers.fork_server")
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""The environment in which numpy and pyarrow start no threads when they are loaded."""
_FORK_TIMEOUT: Final = 60.0
"""Seconds in which a process that may have to load pylance first forks a worker, also on a busy machine."""
_STATUS_WAIT: Final = 200
"""Milliseconds in which the exit code of a process arrives."""


class StartedProcess:
    """A process that was forked for this one, and is no child of it. It is known by a pidfd, which names no other."""

    def __init__(self, number: int, descriptor: int, status: int) -> None:
        self.number = number
        self._descriptor = descriptor
        self._status = status
        weakref.finalize(self, os.close, descriptor)
        weakref.finalize(self, os.close, status)

    @property
    def memory(self) -> int:
        """The bytes of memory that are not of files, with those that it shares with its parent."""
        return anonymous_bytes(self.number)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self._ends_within(0)

    def kill(self) -> None:
        """End it, if it has not ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for its end. Blocking."""
        self._ends_within(None)

    def was_aborted(self) -> bool:
        """Whether a process that has ended aborted itself, as pylance does where it is refused memory."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(_STATUS_WAIT):
            return False
        status = os.read(self._status, STATUS.size)
        return len(status) == STATUS.size and STATUS.unpack(status)[0] == -signal.SIGABRT

    def _ends_within(self, milliseconds: int | None) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(milliseconds))


class WorkerStarter:
    """Starts workers, one after another, in a thread of its own.

    The process that forks them is started by the first call of `load` or `start`, and again if it has ended.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="start-worker")
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._is_closed = False

    def load(self) -> None:
        """Have pylance loaded, and do not wait for it."""
        self._thread.submit(self._begin)

    async def start(self, memory: int, rows: int) -> tuple[StartedProcess, socket.socket]:
        """A new worker with these bounds, and the socket to speak to it. Raises `OSError`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._start, memory, rows)

    async def close(self) -> None:
        """End the fork server, also while it loads. The workers go on; what waits for one has an `OSError`."""
        self._is_closed = True
        if (process := self._process) is not None:
            process.kill()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown()

    def _start(self, memory: int, rows: int) -> tuple[StartedProcess, socket.socket]:
        try:
            return self._fork(memory, rows)
        except OSError:  # the forking process has ended
            self._end()
            return self._fork(memory, rows)

    def _fork(self, memory: int, rows: int) -> tuple[StartedProcess, socket.socket]:
        control = self._begin()
        ours, theirs = socket.socketpair()  # for each try its own: a worker whose start was not reported finds no peer
        try:
            with theirs:
                socket.send_fds(control, [FORK.pack(memory, rows)], [theirs.fileno()])
            answer, descriptors, _, _ = socket.recv_fds(control, FORKED.size, 2)
            if len(descriptors) < 2:
                raise ConnectionError("expected a new worker process, found the end of the process that forks them")
        except BaseException:
            ours.close()
            raise
        [number] = FORKED.unpack(answer)
        return StartedProcess(number, *descriptors), ours

    def _begin(self) -> socket.socket:
        """Start the process that forks, unless it was."""
        if self._is_closed:
            raise ConnectionError("worker processes are started no longer")
        if self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our module
                    [*_COMMAND, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **_ONE_THREAD},
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # an interrupt from the terminal is for the server
                )
            ours.settimeout(_FORK_TIMEOUT)
            self._control = ours
        return self._control

    def _end(self) -> None:
        if self._process is not None and self._control is not None:
            self._process.kill()
            self._process.wait()
            self._control.close()
        self._process = self._control = None
