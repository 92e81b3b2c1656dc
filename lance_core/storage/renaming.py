"""Atomic rename of a file to a vacant name, where the operating system supports it."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

_NO_REPLACE: Final = 1
_HERE: Final = -100
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def rename_to_vacant(source: str, target: str) -> bool:
    """Atomically rename a file to a vacant name. Returns False if the system has no such rename.

    On a journaling file system one of the two names survives a power loss. Raises as `os.rename` does, and
    `FileExistsError` if `target` is taken.
    """
    renameat2 = getattr(_LIBC, "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NO_REPLACE) == 0:
        return True
    error = ctypes.get_errno()
    if error in _UNSUPPORTED:
        return False
    raise OSError(error, os.strerror(error), source, None, target)
