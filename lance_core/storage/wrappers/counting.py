"""Counting what a piece of work asks of a store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from lance_core.storage.port import ObjectStore, Results
from lance_core.storage.wrappers.delegation import WrappedStore

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Cost:
    """Requests in all and by verb, and serial round trips.

    A call outside `map` and `gather` is one round trip. One of those is as many as its slowest item made. `sync` is
    neither a request nor a round trip: no remote store has it.
    """

    requests: int = 0
    round_trips: int = 0
    by_verb: Counter[str] = field(default_factory=Counter)


class _Lane:
    """One item of a `map` over one store, with the steps that it made one after another."""

    __slots__ = ("steps", "store")

    def __init__(self, store: CountingStore) -> None:
        self.store = store
        self.steps = 0


_lane: ContextVar[_Lane | None] = ContextVar("storage_lane", default=None)


class CountingStore(WrappedStore):
    """Counts every call of every thread.

    `cost` runs from the beginning or the last `reset`; `measure` counts a stretch of time. Round trips of threads that
    do not wait for each other add up, so measure one actor at a time (and whoever works for it).
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._measuring: list[Cost] = []
        self.reset()

    def reset(self) -> None:
        """Begin `cost` again from nothing."""
        with self._lock:
            self._measuring = [measured for measured in self._measuring if measured is not getattr(self, "cost", None)]
            self.cost = Cost()
            self._measuring.append(self.cost)

    @contextmanager
    def measure(self) -> Iterator[Cost]:
        """The cost of what happens inside. Measures may nest and overlap."""
        cost = Cost()
        with self._lock:
            self._measuring.append(cost)
        try:
            yield cost
        finally:
            with self._lock:
                self._measuring = [measured for measured in self._measuring if measured is not cost]

    def map(self, call: Callable[[T], R], items: Sequence[T]) -> Results[R]:
        lanes: list[_Lane] = []

        def count(item: T) -> R:
            lane = _Lane(self)
            lanes.append(lane)
            token = _lane.set(lane)
            try:
                return call(item)
            finally:
                _lane.reset(token)

        try:
            return self.inner.map(count, items)
        finally:
            self._step(max((lane.steps for lane in lanes), default=0))

    def _call(self, verb: str, path: str, request: Callable[[], R]) -> R:  # noqa: ARG002
        with self._lock:
            for cost in self._measuring:
                cost.requests += 1
                cost.by_verb[verb] += 1
        self._step(1)
        return request()

    def _step(self, steps: int) -> None:
        lane = _lane.get()
        if lane is not None and lane.store is self:
            lane.steps += steps
        elif steps:
            with self._lock:
                for cost in self._measuring:
                    cost.round_trips += steps
