"""The bytes of files, by plain system calls, for `local`. All raise `OSError`, unless they say otherwise."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import Final

_COPIED_AT_ONCE: Final = 1 << 30
_READ_AT_ONCE: Final = 1 << 20
_NO_FILE: Final = frozenset({errno.ENXIO, errno.ENODEV})

NOT_REGULAR: Final = "not a regular file"


_OPEN_TO_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Without O_NONBLOCK, to open a named pipe waits for a process that writes to it. Regular files ignore it."""


def open_regular(file: str) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file, for reading, and its status. Never waits.

    Raises `FileNotFoundError` for whatever else has the name: a directory, a named pipe, a device, a socket.
    """
    try:
        descriptor = os.open(file, _OPEN_TO_READ)
    except BlockingIOError:  # a file server has a lease on the file, which it returns to one who waits
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise
        descriptor = os.open(file, _OPEN_TO_READ & ~os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _NO_FILE:  # a socket, or a device without a driver
            raise FileNotFoundError(errno.ENOENT, NOT_REGULAR, file) from error
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, NOT_REGULAR, file)
    return descriptor, found


def read_exactly(descriptor: int, offset: int, length: int) -> bytes:
    """`length` bytes from `offset`; fewer at the end of the file."""
    data = os.pread(descriptor, max(length, 0), offset)
    if len(data) == length or length <= 0 or not data:
        return data
    parts = [data]
    position = len(data)
    while position < length and (part := os.pread(descriptor, length - position, offset + position)):
        parts.append(part)
        position += len(part)
    return b"".join(parts)


def write_bytes(descriptor: int, data: bytes) -> None:
    """Write all of the bytes."""
    view = memoryview(data)
    while view.nbytes:
        view = view[os.write(descriptor, view) :]


def copy_bytes(source: int, target: int) -> None:
    """Copy a file, inside the kernel where possible, so that file systems can share the blocks."""
    position = 0
    if sys.platform == "linux":
        with suppress(OSError):  # not supported everywhere; the remaining bytes are copied below
            while copied := os.copy_file_range(source, target, _COPIED_AT_ONCE, position):
                position += copied
    while part := os.pread(source, _READ_AT_ONCE, position):
        write_bytes(target, part)
        position += len(part)


def same_file(one: str, other: str) -> bool:
    """Whether two names are of one file; False if one of them cannot be looked up."""
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def unlink(file: str) -> None:
    """Remove a name if that is possible."""
    with suppress(OSError):
        os.unlink(file)
