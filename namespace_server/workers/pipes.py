"""Pipes and sockets between the server and its workers."""

from __future__ import annotations

import fcntl
import io
import os
import socket
from contextlib import suppress
from typing import Final

CHUNK: Final = 1 << 20
"""Bytes that a pipe holds, where the system allows so many."""

_BUFFER: Final = 2 << 20
"""Bytes that a socket holds, where the system allows so many."""


class PipeEnd(io.FileIO):
    """One end of a pipe, closed when it is dropped."""


def open_pipe() -> tuple[PipeEnd, PipeEnd]:
    """The end to read from and the end to write to."""
    source, sink = os.pipe()
    with suppress(OSError):  # more than this system allows
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, CHUNK)
    return PipeEnd(source, "rb"), PipeEnd(sink, "wb")


def widen(end: socket.socket) -> None:
    """Let more bytes be on their way from this end of a socket."""
    with suppress(OSError):  # more than this system allows
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
