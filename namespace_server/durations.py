"""Durations as texts: 14d, 36h, 90m."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_duration(text: str) -> timedelta:
    """The duration that a number and one of s, m, h, d, w mean. Raises `ValueError` for another text."""
    found = re.fullmatch(r"([0-9]+)([smhdw])", text)
    if found is None:
        raise ValueError(f"{text}: expected a number and one of s, m, h, d, w, such as 14d")
    try:
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    except OverflowError as error:
        raise ValueError(f"{text}: expected less than a billion days") from error


def format_duration(duration: timedelta) -> str:
    """A text that means this duration in whole seconds: days, hours, minutes or seconds."""
    seconds = duration // timedelta(seconds=1)
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"
