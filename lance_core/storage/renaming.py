"""Locks on files, and atomic renames beyond those of POSIX, where the operating system has them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from lance_core.storage.file_bytes import open_regular

_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
_HERE: Final = -100
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_LONGEST_WAIT: Final = 5.0
"""Seconds. A process may be stopped while it has a lock; one that dies releases it."""


@contextmanager
def locked(file: str) -> Iterator[os.stat_result]:
    """Hold a lock on the file of this name, and on no earlier file of the name; gives its status.

    Only callers of this function exclude each other. A file system without locks excludes none. Raises `OSError`, of
    it `FileNotFoundError` if there is no file, and `BlockingIOError` if others have the lock for five seconds.
    """
    while True:
        descriptor, _ = open_regular(file)
        try:
            _lock(descriptor)
            found = os.fstat(descriptor)
            if os.path.samestat(found, os.stat(file)):
                yield found
                return
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    end = time.monotonic() + _LONGEST_WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.001)
        except OSError as error:
            if error.errno not in _UNSUPPORTED | {errno.ENOLCK}:
                raise
            return
        else:
            return


def rename_to_vacant(source: str, target: str) -> bool:
    """Atomically rename a file to a vacant name. Returns False if the system has no such rename.

    On a journaling file system one of the two names survives a power loss. Raises as `os.rename` does, and
    `FileExistsError` if `target` is taken.
    """
    return _rename(source, target, _NO_REPLACE)


def exchange_if(source: str, target: str, is_expected: Callable[[os.stat_result], bool]) -> bool | None:
    """Exchange the files of two names if `is_expected` is true of the one at `target`; whether it was.

    The comparison follows the exchange, so that nothing can come between them. A file that is not the expected one gets
    its name back, unless a third one took the name from the caller's file meanwhile. Until then readers see the
    caller's file. No other process may use the name `source`; the caller removes it.

    Returns None, and does nothing, if the system or the file system cannot exchange files. Raises as `os.rename` does:
    `FileNotFoundError` if there is no file at `target`.
    """
    put = os.stat(source)
    if not _rename(source, target, _EXCHANGE):
        return None
    found = os.stat(source)
    if is_expected(found):
        return True
    while not _put_back(source, target, put):
        put, found = found, os.stat(source)
    return False


def _put_back(source: str, target: str, put: os.stat_result) -> bool:
    """Give the file at `source` the name `target` instead of the file `put`; False if a third file had the name."""
    try:
        _rename(source, target, _EXCHANGE)
    except FileNotFoundError:
        try:
            os.link(source, target)
        except FileExistsError:
            return _put_back(source, target, put)
        return True
    return os.path.samestat(os.stat(source), put)


def _rename(source: str, target: str, flag: int) -> bool:
    renameat2 = getattr(_LIBC, "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flag) == 0:
        return True
    error = ctypes.get_errno()
    if error in _UNSUPPORTED:
        return False
    raise OSError(error, os.strerror(error), source, None, target)
