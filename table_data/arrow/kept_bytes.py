"""A stream that can be read again: what was read of it is kept, in memory or in a temporary file."""

from __future__ import annotations

import io
import tempfile
from typing import Any, Final

IN_MEMORY: Final = 8 << 20
"""Bytes that are kept in memory. More of them go to a temporary file, which has no name."""


class KeptBytes(io.RawIOBase):
    """Reads a stream, and keeps what it read. With `at_most` nothing is kept of a stream that has more bytes."""

    def __init__(self, source: io.RawIOBase, at_most: int | None = None) -> None:
        self._source = source
        self._at_most = at_most
        self._kept: tempfile.SpooledTemporaryFile[bytes] | None = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        self._length = 0
        self._place = 0

    @property
    def complete(self) -> bool:
        """Whether all that was read can be read again."""
        return self._kept is not None

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether it can be read again."""
        return self.complete

    def tell(self) -> int:
        """The number of bytes before the next one."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go back to a byte that was read. Raises `OSError` for any other place."""
        if self._kept is None or whence != io.SEEK_SET or not 0 <= offset <= self._length:
            raise io.UnsupportedOperation("seek: expected a place among the bytes that were read and kept")
        self._place = offset
        return offset

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes; 0 at the end."""
        view = memoryview(buffer)
        if self._kept is not None and self._place < self._length:
            self._kept.seek(self._place)
            data = self._kept.read(min(len(view), self._length - self._place))
            view[: len(data)] = data
            self._place += len(data)
            return len(data)
        read = self._source.readinto(view) or 0
        self._keep(view[:read])
        self._place += read
        return read

    def close(self) -> None:
        """Forget what was kept. The source stays open."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        super().close()

    def _keep(self, data: memoryview) -> None:
        if self._kept is None:
            return
        if self._at_most is not None and self._length + len(data) > self._at_most:
            self._kept.close()
            self._kept = None
            return
        self._kept.seek(self._length)
        self._kept.write(data)
        self._length += len(data)
