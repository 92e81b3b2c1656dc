"""Periods of work that one of the servers on a root does, claimed by files that say so."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lance_core.errors import AlreadyExists
from lance_core.storage.port import ObjectStore


@dataclass(slots=True)
class Periods:
    """Periods of `length` seconds since the epoch; in each of them one process on a root works.

    This saves work and requests. Several processes that work at one time do no harm. Used by one thread.

    Attributes:
        store: The root.
        directory: Where the claims of these periods are.
        length: In seconds, by the machine's clock.
        unit: How far the numbers of two claims in a row are apart.
    """

    store: ObjectStore
    directory: str
    length: int
    unit: int = 1
    _tried: int = field(default=-1, init=False)

    def claim(self) -> bool:
        """Whether this process is the one that works in the period now. True at most once in a period.

        Raises `StorageError`; the period is then left to the others.
        """
        period = int(time.time()) // self.length
        if period == self._tried:
            return False
        self._tried = period
        return claim_period(self.store, self.directory, period * self.unit)

    def until_next(self) -> float:
        """Seconds until the next period begins."""
        return self.length - time.time() % self.length


def claim_period(store: ObjectStore, directory: str, period: int) -> bool:
    """Whether this process is the first to claim a period, by a file of its number; those of earlier ones go.

    Raises `StorageError`.
    """
    try:
        store.put_if_absent(f"{directory}/{period}", b"", durable=False)
    except AlreadyExists:
        return False
    for meta in list(store.list(directory)):
        if (name := meta.path.rpartition("/")[2]).isdigit() and int(name) < period:
            store.delete(meta.path)
    return True
