"""Limits on the time and memory that reading a damaged file may take."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 2.0
"""Of processor time; an honest file takes a thousandth of it."""

MEGABYTES = 200


@contextmanager
def within_limits(what: str) -> Iterator[None]:
    """Fail when the body takes longer than `SECONDS` or lets the process grow `MEGABYTES` beyond its peak."""
    before, peak = time.thread_time(), _peak()
    yield
    spent, grown = time.thread_time() - before, _peak() - peak
    assert spent < SECONDS, f"{what}: took {spent:.1f} s"
    assert grown < MEGABYTES, f"{what}: took {grown} MB"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
