"""Processes of the command line, forked from one that has imported it: to import takes two seconds of a processor.

A fork runs `lance-namespace` with the arguments, the environment and the files that a process of its own would be
given; nothing but imports was done before.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

_REPOSITORY = Path(__file__).resolve().parents[2]
_STATUS = struct.Struct("i")
_LONGEST = 1 << 20
"""Bytes of an order: the environment, for the most part."""


class ForkedProcess:
    """What tests need of `subprocess.Popen`."""

    def __init__(self, pid: int, status: socket.socket, stdout: int) -> None:
        self.pid = pid
        self.stdout = os.fdopen(stdout)
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        return self._read_status(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._read_status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read_status(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                [self.returncode] = _STATUS.unpack(self._status.recv(_STATUS.size))
            except (BlockingIOError, TimeoutError):
                return None
            self._status.close()
        return self.returncode


class _Forker:
    """The process that forks, started with the first order and ended with this one."""

    def __init__(self) -> None:
        self._orders: socket.socket | None = None
        self._lock = threading.Lock()

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], stderr: IO[str]) -> ForkedProcess:
        order = json.dumps({"arguments": arguments, "environment": dict(environment)}).encode()
        status, of_fork = socket.socketpair()
        stdout, written = os.pipe()
        with self._lock, of_fork:
            orders = self._orders or self._begin()
            socket.send_fds(orders, [order], [written, stderr.fileno(), of_fork.fileno()])
            os.close(written)
            [pid] = _STATUS.unpack(orders.recv(_STATUS.size))
        return ForkedProcess(pid, status, stdout)

    def _begin(self) -> socket.socket:
        self._orders, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._orders.setsockopt(socket.SOL_SOCKET, option, _LONGEST)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.server.forking", str(theirs.fileno())],
                cwd=_REPOSITORY,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(_end, self._orders, process)
        return self._orders


def _end(orders: socket.socket, process: subprocess.Popen[bytes]) -> None:
    orders.close()
    process.wait(60)


fork = _Forker().start
"""Run the command line with arguments in an environment; its standard error is a file, its standard output a pipe."""


def _fork(orders: socket.socket) -> dict[str, Any] | None:
    """Fork processes until the tests end. Returns None then, and in each fork its order."""
    running: dict[int, tuple[int, int]] = {}  # pids and where their status is told, by their pidfds
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in running:
                poll.unregister(ready)
                pid, status = running.pop(ready)
                with suppress(BrokenPipeError):
                    os.write(status, _STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                os.close(ready)
                os.close(status)
                continue
            content, files, _, _ = socket.recv_fds(orders, _LONGEST, 3)
            if not content:
                return None
            stdout, stderr, status = files
            pid = os.fork()
            if pid == 0:
                os.dup2(stdout, 1)
                os.dup2(stderr, 2)
                for file in (*files, *running, *(other for _, other in running.values())):
                    os.close(file)
                order: dict[str, Any] = json.loads(content)
                return order
            os.close(stdout)
            os.close(stderr)
            watched = os.pidfd_open(pid)
            running[watched] = pid, status
            poll.register(watched, select.POLLIN)
            orders.send(_STATUS.pack(pid))


_IMPORTED = ("namespace_server.cli.server", "namespace_console.application", "namespace_mcp.http")
"""What takes long to import."""


def main() -> None:
    for module in _IMPORTED:
        import_module(module)
    from namespace_server.__main__ import main as run_command

    warnings.filterwarnings("ignore", "lance is not fork-safe")  # it is until its first use, which is in the fork
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        order = _fork(orders)
    if order is not None:
        os.environ.clear()
        os.environ.update(order["environment"])
        time.tzset()
        sys.argv = ["lance-namespace", *order["arguments"]]
        run_command()


if __name__ == "__main__":
    main()
