"""Settings of the whole process for serving: the garbage collector, the C allocator, the switch interval.

Only the process that serves calls this. The catalog is a library in other processes too, and leaves theirs alone.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import pyarrow as pa

from namespace_server.directory.manifest_table.bulk_load import add_load_hook

LARGE: Final = 100_000
"""Rows from which on a loaded catalog is hidden from the garbage collector."""

_LIBC: Final = ctypes.CDLL(None)
_M_ARENA_MAX: Final = -8


@cache
def tune_process() -> None:
    """Tune this process for serving a catalog, for the rest of its life. Call it before threads start.

    Reference counting frees what a request leaves behind: looking for cycles after every 700 objects costs more than
    the request. See `limit_arenas` and `loading_large` for memory.
    """
    gc.set_threshold(100_000, 20, 50)
    limit_arenas()
    add_load_hook(loading_large)


def switch_often() -> None:
    """Let threads take turns ten times as often as by default, for catalogs in a directory.

    Reads contend for the GIL while a group is planned: a third more of them get through, and commits are no slower. On
    a bucket hundreds of threads wait for answers, and each that waits for the GIL wakes once in an interval: it would
    cost a fifth of the processor time of a batch.
    """
    sys.setswitchinterval(0.0005)


def limit_arenas() -> None:
    """Let all threads that start from now on share one arena of the C library.

    The threads that decode data files would otherwise leave arenas of their own behind, full of holes: some 40 MB for
    each large file. Decoding and encoding are no slower for it.
    """
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_M_ARENA_MAX, 1)


@contextmanager
def loading_large(rows: int) -> Iterator[None]:
    """Run a load of that many rows; from `LARGE` on so that it does not slow the process down afterwards.

    The garbage collector is off meanwhile and never looks at the result, and freed memory goes back to the system.
    """
    if rows < LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
        pa.default_memory_pool().release_unused()
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)
