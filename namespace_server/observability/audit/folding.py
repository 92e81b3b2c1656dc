"""Which of many refused attempts have a line of their own.

A client that is refused thousands of times a second must not fill a disk, nor push out of bounds what others did. In
each minute so many attempts of a principal, of an address and of all addresses without a principal have lines. Further
ones are counted by what they have in common, and the counts are written at the end of the minute.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from namespace_server.attempts import AttemptRecord, Decision

WINDOW: Final = 60.0
"""Seconds."""
OF_PRINCIPAL: Final = 600
OF_ADDRESS: Final = 30
OF_STRANGERS: Final = 300
"""Lines in a window: of one principal, of one address that showed no principal, and of all of these."""
_MOST_CALLERS: Final = 4_096
"""Callers that are told apart in a window."""
_MOST_COUNTS: Final = 1_024


class Folded(NamedTuple):
    """What attempts that are counted together have in common; None for all others beyond the number of counts."""

    action: str | None
    decision: Decision
    code: int
    principal: str | None
    client: str | None


class Folding:
    """Counts attempts by caller. One caller at a time; `now` is by a clock that never goes back."""

    def __init__(self) -> None:
        self._began = 0.0
        self._callers: Counter[tuple[bool, str | None]] = Counter()
        self._strangers = 0
        self._counts: Counter[Folded] = Counter()

    def admits(self, attempt: AttemptRecord) -> bool:
        """Whether an attempt has a line of its own; else it is counted."""
        is_known = attempt.principal is not None
        caller = (is_known, attempt.principal if is_known else attempt.origin.client)
        if caller not in self._callers and len(self._callers) >= _MOST_CALLERS:
            caller = (is_known, None)
        used = self._callers[caller]
        if used < (OF_PRINCIPAL if is_known else OF_ADDRESS) and (is_known or self._strangers < OF_STRANGERS):
            self._callers[caller] += 1
            self._strangers += not is_known
            return True
        key = Folded(attempt.action, attempt.decision, attempt.code, attempt.principal, attempt.origin.client)
        if key not in self._counts and len(self._counts) >= _MOST_COUNTS:
            key = Folded(None, attempt.decision, attempt.code, None, None)
        self._counts[key] += 1
        return False

    def end_window(self, now: float, *, at_once: bool = False) -> list[tuple[Folded, int]]:
        """What was counted in the window, if that is over; a new one begins then."""
        if not at_once and now < self._began + WINDOW:
            return []
        counts = list(self._counts.items())
        self._began = now
        self._callers.clear()
        self._strangers = 0
        self._counts.clear()
        return counts
