"""Durations: the clock that measures them, and their texts.

14d, 36h, 1.5h, 500ms: one grammar for settings, options, properties and requests.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta
from fractions import Fraction
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_DURATION: Final = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|[smhdw])\s*")
_MICROSECONDS: Final = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


def elapsed_clock() -> float:
    """Seconds by a monotonic clock that counts the time in which the machine was suspended."""
    return time.clock_gettime(_CLOCK)


def parse_duration(text: str) -> timedelta:
    """The duration that a number and one of ms, s, m, h, d, w mean, to the microsecond.

    Raises `ValueError` for another text.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]}: expected a number and one of ms, s, m, h, d, w, such as 14d")
    try:
        return timedelta(microseconds=round(Fraction(found[1]) * _MICROSECONDS[found[2]]))
    except OverflowError as error:
        raise ValueError(f"{text}: expected less than a billion days") from error


def format_duration(duration: timedelta) -> str:
    """The shortest text that means this duration: in whole days, hours, minutes or seconds, else in parts of these."""
    microseconds = duration // timedelta(microseconds=1)
    for unit in ("d", "h", "m"):
        if microseconds and microseconds % _MICROSECONDS[unit] == 0:
            return f"{microseconds // _MICROSECONDS[unit]}{unit}"
    seconds, rest = divmod(microseconds, _MICROSECONDS["s"])
    return f"{seconds}s" if not rest else f"{seconds}.{rest:06}".rstrip("0") + "s"
