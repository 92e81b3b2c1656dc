"""Renaming a file to a vacant name, in one step where the system can."""

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
    """Give a file another name in one step, if that name is vacant. False where the system has no such rename.

    What moves is what stands at `source` at that moment. A journaling file system keeps one of the two names over a
    power loss. Raises what `os.rename` raises, and `FileExistsError`.
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
