"""Locks as callers provide them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class VersionLocks:
    """One lock per version, in this process. `held` has the versions in the order in which they were locked."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self._guard = threading.Lock()
        self._locks: dict[int, threading.Lock] = {}

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(version, threading.Lock())
        with lock:
            self.held.append(version)
            yield
