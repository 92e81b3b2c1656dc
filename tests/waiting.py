"""Waiting for what happens on other threads and in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition holds. Raises `AssertionError` if it does not within that time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
