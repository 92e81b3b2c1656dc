"""Pipes and sockets between the server and its workers."""

from __future__ import annotations

import fcntl
import io
import os
from contextlib import suppress
from typing import Final

CHUNK: Final = 1 << 20
"""Bytes that a pipe holds, where the system allows so many."""

BUFFER: Final = 2 << 20
"""Bytes on their way through a socket."""


class PipeEnd(io.FileIO):
    """One end of a pipe, closed when it is dropped."""


def open_pipe() -> tuple[PipeEnd, PipeEnd]:
    """The end to read from and the end to write to."""
    source, sink = os.pipe()
    with suppress(OSError):  # more than this system allows
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, CHUNK)
    return PipeEnd(source, "rb"), PipeEnd(sink, "wb")
