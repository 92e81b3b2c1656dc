"""How far the clock of this machine is from the store's, by which every limit of time counts (G28, G30)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from lance_core.errors import NotFound
from lance_core.storage.port import ObjectStore
from namespace_server.durations import elapsed_clock

logger = logging.getLogger(__name__)

MOST_APART: Final = timedelta(hours=1)
"""The most that a clock may be from the store's."""
_INTERVAL: Final = 600.0
"""Seconds between two looks at a date of the store."""


class StoreClock:
    """The time by the store's clock, from the dates of objects that this process wrote. Thread-safe.

    `now` gives nanoseconds since the epoch by the machine's clock, `elapsed` seconds by a monotonic one. A commit
    is noted, which costs nothing; `look` asks for its date later, so no commit takes a request more.
    """

    def __init__(
        self,
        store: ObjectStore,
        now: Callable[[], int] = time.time_ns,
        elapsed: Callable[[], float] = elapsed_clock,
    ) -> None:
        self._store = store
        self._now = now
        self._elapsed = elapsed
        self._wrote: tuple[str, float] | None = None
        self._began: float | None = None
        self._looked = float("-inf")
        self._logged: set[str] = set()

    def wrote(self, key: str) -> None:
        """Note that this process has written an object just now."""
        self._wrote = key, self._elapsed()

    def look(self, head_ms: int) -> None:
        """Ask for the date of the last object, if none was asked for lately; log each fault once until it is gone.

        Nothing is, as long as no date of the store is known.

        `head_ms` is when the newest catalog version says that it was committed, in milliseconds since the epoch. At
        most one request. Raises `StorageError`.
        """
        wrote, self._wrote = self._wrote, None
        if wrote is not None and self._elapsed() - self._looked >= _INTERVAL:
            try:
                found = self._store.head(wrote[0]).last_modified
            except NotFound:  # it was removed by now
                found = None
            if found is not None:
                self._looked = self._elapsed()
                self._began = found.timestamp() - wrote[1]
        self._log("clock", self.problem())
        self._log("head", self._problem_of(head_ms))

    @property
    def ahead(self) -> float | None:
        """Seconds by which the machine's clock is ahead of the store's, negative if behind; None if not known."""
        began = self._began
        return None if began is None else self._now() / 1e9 - began - self._elapsed()

    def time_ms(self) -> int:
        """The time by the store in milliseconds since the epoch; by the machine's clock where that is not known."""
        return int(self._now() // 1_000_000 - (self.ahead or 0.0) * 1_000)

    def earlier_ms(self) -> int:
        """The earlier one of the times by the store and by the machine: nothing expires early if one of them jumps."""
        return min(self.time_ms(), self._now() // 1_000_000)

    def head_ahead(self, head_ms: int) -> float:
        """Seconds by which a time, in milliseconds since the epoch, is in the future; 0 if it is not."""
        return max(head_ms - self.time_ms(), 0) / 1_000

    def problem(self) -> str | None:
        """The fault in words if the clocks are too far apart for this process to set limits of time; else None."""
        ahead = self.ahead
        if ahead is None or abs(ahead) <= MOST_APART.total_seconds():
            return None
        store, machine = (_text(each / 1_000) for each in (self.time_ms(), self._now() / 1e6))
        return f"the store says that it is {store}, this machine {machine}: expected less than an hour between them"

    def _problem_of(self, head_ms: int) -> str | None:
        if self._began is None or self.head_ahead(head_ms) <= MOST_APART.total_seconds():
            return None
        return (
            f"the newest catalog version is dated {_text(head_ms / 1_000)}, and it is {_text(self.time_ms() / 1_000)}: "
            "the clock of a server was ahead; until then each commit is dated just after the one before"
        )

    def _log(self, what: str, problem: str | None) -> None:
        if problem is None:
            self._logged.discard(what)
        elif what not in self._logged:
            self._logged.add(what)
            logger.error("%s", problem)


def _text(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s since the epoch"
