"""A store in which time passes when it is told to: all objects that are there look older."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta

from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.storage.wrappers.delegation import WrappedStore


class TimeLapse(WrappedStore):
    """Dates of objects are as if `let_pass` had taken as long as it says. New objects have the time of the machine."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._moments: list[float] = []
        self._passed: list[timedelta] = []

    def let_pass(self, duration: timedelta) -> None:
        """Make all objects that are there older by `duration`."""
        self._moments.append(time.time())
        self._passed = [each + duration for each in self._passed]
        self._passed.append(duration)

    def head(self, path: str) -> ObjectMeta:
        return self._aged(super().head(path))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectMeta]:
        return map(self._aged, super().list(prefix, start_after=start_after))

    def first(self, prefix: str) -> ObjectMeta | None:
        found = super().first(prefix)
        return None if found is None else self._aged(found)

    def _aged(self, meta: ObjectMeta) -> ObjectMeta:
        written: datetime = meta.last_modified
        later = bisect_right(self._moments, written.timestamp())
        return meta if later == len(self._moments) else meta._replace(last_modified=written - self._passed[later])
