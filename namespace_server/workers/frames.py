"""Bytes through a pipe in frames, so that a reader can tell the end from a writer that went away.

A frame is its length in four bytes, little endian, and that many bytes. A frame of length zero is the end.
"""

from __future__ import annotations

import io
import struct
from typing import Any

from table_data.errors import BodyIncomplete

_LENGTH = struct.Struct("<I")
MAX_FRAME = 1 << 20
END = _LENGTH.pack(0)


def frame_head(length: int) -> bytes:
    """What stands before `length` bytes."""
    return _LENGTH.pack(length)


class FrameReader(io.RawIOBase):
    """Reads the bytes of frames from a file descriptor, which it owns. Raises `BodyIncomplete` without an end."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = io.BufferedReader(io.FileIO(descriptor), 1 << 20)
        self._left = 0
        self._ended = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes; 0 at the end."""
        if self._ended:
            return 0
        if not self._left:
            head = self._pipe.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                raise BodyIncomplete("request body: expected its end, found a closed connection")
            [self._left] = _LENGTH.unpack(head)
            if not self._left:
                self._ended = True
                return 0
        view = memoryview(buffer)[: self._left]
        read = self._pipe.readinto(view)
        if not read:
            raise BodyIncomplete("request body: expected its end, found a closed connection")
        self._left -= read
        return read

    def close(self) -> None:
        """Close the descriptor."""
        self._pipe.close()
        super().close()
