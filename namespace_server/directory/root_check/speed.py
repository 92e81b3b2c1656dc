"""Times of requests, the clocks of the store and of this machine, and what a batch costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from lance_core.storage.port import ObjectStore
from namespace_server.directory.root_check.workspace import Workspace

TO_COMMIT: Final = ("put", "put_if_absent")
"""The requests that follow each other until a batch of transactions is committed: staging, and the flip."""
TO_ANSWER: Final = (*TO_COMMIT, "put_if_absent")
"""The same until it is answered: then promotion, beside the proof that no version is newer."""
REQUESTS_OF_A_BATCH: Final = 5
REQUESTS_PER_TABLE: Final = 4
"""Requests of a batch, and further ones for each of its tables, to each of which it appends one fragment.

In a catalog that was collected once. Before, each manifest is staged alone: one less, and one more for each table.
"""

_SAMPLES: Final = 5
_BODY: Final = b"a root check of lance-namespace\n" * 128


@dataclass(frozen=True, slots=True)
class Timing:
    """How long requests of one kind took, one after another, in seconds."""

    median: float
    slowest: float

    def __str__(self) -> str:
        return f"{_milliseconds(self.median)} ({_milliseconds(self.slowest)})"


@dataclass(frozen=True, slots=True)
class BatchCost:
    """The cost of a batch without contention on a warm server, by the medians of its requests.

    Attributes:
        seconds_to_commit: Until it is committed.
        seconds: Until it is answered.
        requests: Requests of a batch that appends to two tables.
        seconds_of_a_read: A read of the catalog.
    """

    seconds_to_commit: float
    seconds: float
    requests: int
    seconds_of_a_read: float

    @classmethod
    def of(cls, timings: Mapping[str, Timing]) -> BatchCost:
        """The cost with requests of these times."""
        to_commit, to_answer = (sum(timings[name].median for name in names) for names in (TO_COMMIT, TO_ANSWER))
        return cls(to_commit, to_answer, REQUESTS_OF_A_BATCH + 2 * REQUESTS_PER_TABLE, timings["get"].median)

    def as_json(self) -> dict[str, object]:
        """The cost with the numbers of round trips."""
        return {**asdict(self), "round_trips_to_commit": len(TO_COMMIT), "round_trips": len(TO_ANSWER)}

    def text(self) -> str:
        """The cost as lines of text."""
        return (
            f"a batch of two appends: {self.requests} requests; {len(TO_COMMIT)} round trips until it is committed, "
            f"about {_milliseconds(self.seconds_to_commit)}, and {len(TO_ANSWER)} until it is answered, "
            f"about {_milliseconds(self.seconds)}\n"
            f"a read of the catalog: 1 round trip, about {_milliseconds(self.seconds_of_a_read)}"
        )


def measure(store: ObjectStore, work: Workspace) -> dict[str, Timing]:
    """The times of requests, a few of each kind, made one after another. Raises `StorageError`."""
    keys = [work.key(f"speed/{number}") for number in range(_SAMPLES)]
    vacant = [work.slot() for _ in range(_SAMPLES)]
    calls: dict[str, Callable[[int], object]] = {
        "put": lambda at: store.put(keys[at], _BODY),
        "put_if_absent": lambda at: store.put_if_absent(vacant[at], _BODY),
        "get": lambda at: store.get(keys[at]),
        "head": lambda at: store.head(keys[at]),
        "list": lambda _: list(store.list(f"{work.directory}/speed")),
    }
    return {name: _time(call) for name, call in calls.items()}


def _time(call: Callable[[int], object]) -> Timing:
    taken = []
    for number in range(_SAMPLES):
        began = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - began)
    return Timing(median(taken), max(taken))


def clock_offset(store: ObjectStore, key: str, now: Callable[[], datetime]) -> float:
    """Seconds by which the store's clock is certainly ahead of this machine's (`now`), negative if it is behind.

    Writes the object `key`. Zero if the date of the object can have been the time of this machine while it was written:
    stores round dates down to seconds. Raises `StorageError`.
    """
    before = now()
    store.put(key, _BODY)
    after = now()
    return _seconds_apart(before, after, store.head(key).last_modified)


def _seconds_apart(before: datetime, after: datetime, found: datetime) -> float:
    last = found if found.microsecond else found + timedelta(seconds=1)
    if found > after:
        return (found - after).total_seconds()
    return min((last - before).total_seconds(), 0.0)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:.{0 if seconds >= 0.01 else 1}f} ms"
