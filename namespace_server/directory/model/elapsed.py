"""The clock by which the age of what this process does is measured."""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_clock() -> float:
    """Seconds by a clock that never goes back and that counts the time in which the machine was suspended."""
    return time.clock_gettime(_CLOCK)
