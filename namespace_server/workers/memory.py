"""The memory of a worker process: measured, bounded, and given back."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_INTERVAL: Final = 0.02
_LARGE: Final = 256 << 20
"""Bytes from which on a process gives back after its job what it does not use."""
_LIBC: Final = ctypes.CDLL(None)


def anonymous_bytes(process: int | None = None) -> int:
    """The memory that only this process has: not files that it maps. 0 where the system does not tell."""
    try:
        with open(f"/proc/{process or 'self'}/statm", "rb", buffering=0) as file:  # noqa: PTH123 - for each job
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


class MemoryWatch:
    """Calls `excess`, in a thread, when this process has more than `limit` bytes while it is busy."""

    def __init__(self, limit: int, excess: Callable[[], None]) -> None:
        self._limit = limit
        self._excess = excess
        self._busy = threading.Event()
        if limit:
            threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> None:
        self._busy.set()

    def __exit__(self, *_: object) -> None:
        self._busy.clear()
        if anonymous_bytes() > _LARGE:
            pa.default_memory_pool().release_unused()
            if hasattr(_LIBC, "malloc_trim"):
                _LIBC.malloc_trim(0)

    def _watch(self) -> None:
        while self._busy.wait():
            if anonymous_bytes() > self._limit:
                self._excess()
            time.sleep(_INTERVAL)
