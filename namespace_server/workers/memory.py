"""The memory of a worker process: measured, and given back."""

from __future__ import annotations

import ctypes
import os
from typing import Final

import pyarrow as pa

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LIBC: Final = ctypes.CDLL(None)


def anonymous_bytes(process: int) -> int:
    """The memory that only this process has: not files that it maps. 0 where the system does not state it."""
    try:
        with open(f"/proc/{process}/statm", "rb", buffering=0) as file:  # noqa: PTH123 - many times a second
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):  # it has ended
        return 0
    return (int(resident) - int(shared)) * _PAGE


def give_back() -> None:
    """Give memory back to the system that this process does not use."""
    pa.default_memory_pool().release_unused()
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
