"""Starting a worker process, and what is told when one does not end as it should. See `table_data.worker`."""

from __future__ import annotations

import socket
import subprocess
import sys

from lance_namespace.errors import ServiceUnavailableError

from table_data.errors import WorkFailed


class WorkTimeout(ServiceUnavailableError):
    """A job did not end in time, and its worker was ended. Nothing was changed by it."""


def start_worker(memory: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process that may allocate so many bytes (0: no bound); it, and the socket to speak to it through."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this interpreter and our module
            [sys.executable, "-P", "-m", "table_data.worker", str(theirs.fileno()), str(memory)],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            process_group=0,  # an interrupt from the terminal is for the server
        )
    return process, ours


def took_too_long(limit: float) -> WorkTimeout:
    """What is told of a process that was ended after so many seconds."""
    return WorkTimeout(f"work on rows: expected its end within {limit:.3g} s; nothing was changed")


def ended_early() -> WorkFailed:
    """What is told of a process that ended in a job."""
    return WorkFailed("work on rows: expected an answer of the worker process, found its end; nothing was changed")
