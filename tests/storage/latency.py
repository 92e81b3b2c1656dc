"""A store with added latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from lance_core.storage.overlap import Overlap
from lance_core.storage.port import ObjectStore, Results
from lance_core.storage.wrappers.delegation import WrappedStore

T = TypeVar("T")
R = TypeVar("R")


class LatencyStore(WrappedStore):
    """Every request takes `seconds` longer; `map` runs in parallel as on a remote store. `sync` is not delayed."""

    def __init__(self, inner: ObjectStore, seconds: float, *, workers: int = 32) -> None:
        super().__init__(inner)
        self.local = False
        self._seconds = seconds
        self._overlap = Overlap(workers, "latency")

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        return self._overlap.map(call, items)

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self._overlap.beside(call)

    def close(self) -> None:
        self._overlap.close()
        super().close()

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:
        time.sleep(self._seconds)
        return request()
