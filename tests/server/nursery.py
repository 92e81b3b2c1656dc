"""Server processes that are told to go wrong; see `crashing_server.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson

from tests.server.servers import REPOSITORY

NURSERY = Path(__file__).with_name("crashing_server.py")


class Nursery:
    """Servers, one at a time, that may be told to die at a write. They are forked: starting one takes no time."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        self._process = subprocess.Popen(
            [sys.executable, str(NURSERY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.url = ""
        self.pid = 0

    def start(self, root: Path, log: Path, kill: tuple[int, bool] | None = None, lose: float = 0) -> None:
        assert self._process.stdin is not None
        order = {"root": str(root), "log": str(log), "kill": kill, "lose": lose}
        self._process.stdin.write(orjson.dumps(order).decode() + "\n")
        self._process.stdin.flush()
        lines = {self._line(), self._line()}
        [pid] = [line for line in lines if line.startswith("pid ")]
        [listening] = lines - {pid}
        self.pid, self.url = int(pid.split()[1]), listening.rpartition(" ")[2]

    def stop(self) -> int:
        """Ask the server to end, if it has not ended already; its exit status, negative for a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        return int(self._line().removeprefix("ended "))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the nursery ended"
        return line
