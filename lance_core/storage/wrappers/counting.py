"""Counts requests and round trips to a store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from lance_core.storage.port import ObjectStore, Results
from lance_core.storage.wrappers.delegation import WrappedStore

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Cost:
    """The number of requests, in total and by verb, and of sequential round trips.

    A call outside `map` and `gather` is one round trip. A `map` or `gather` counts as many as the item with the most
    round trips, a block with a call `beside` it as many as the one of both that has more. `sync` is neither a request
    nor a round trip, because remote stores have no such request.
    """

    requests: int = 0
    round_trips: int = 0
    by_verb: Counter[str] = field(default_factory=Counter)


class _Lane:
    """One item of a `map` over one store, with the number of its sequential round trips."""

    __slots__ = ("steps", "store")

    def __init__(self, store: CountingStore) -> None:
        self.store = store
        self.steps = 0


_lane: ContextVar[_Lane | None] = ContextVar("storage_lane", default=None)


class CountingStore(WrappedStore):
    """Counts every call of every thread.

    `cost` counts since the creation or the last `reset`; `measure` counts a block of code. Round trips of independent
    threads are added up, so only one client should be measured at a time.
    """

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._measuring: list[Cost] = []
        self.reset()

    def reset(self) -> None:
        """Reset `cost` to zero."""
        with self._lock:
            self._measuring = [measured for measured in self._measuring if measured is not getattr(self, "cost", None)]
            self.cost = Cost()
            self._measuring.append(self.cost)

    @contextmanager
    def measure(self) -> Iterator[Cost]:
        """The cost of the block. Measurements may be nested and may overlap."""
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
            with self._count_apart(lanes):
                return call(item)

        try:
            return self.inner.map(count, items)
        finally:
            self._step(max((lane.steps for lane in lanes), default=0))

    def beside(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        return self._beside(call)

    @contextmanager
    def _beside(self, call: Callable[[], object]) -> Iterator[None]:
        lanes: list[_Lane] = []

        def count() -> None:
            with self._count_apart(lanes):
                call()

        try:
            with self.inner.beside(count), self._count_apart(lanes):
                yield
        finally:
            self._step(max((lane.steps for lane in lanes), default=0))

    @contextmanager
    def _count_apart(self, lanes: list[_Lane]) -> Iterator[None]:
        """Count the round trips of the block as one of several `lanes`."""
        lane = _Lane(self)
        lanes.append(lane)
        token = _lane.set(lane)
        try:
            yield
        finally:
            _lane.reset(token)

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
