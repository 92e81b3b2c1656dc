"""Faults at each call of something: `make test` has them at some of the calls, `make test-long` at every one."""

from __future__ import annotations

import pytest

SOME_OR_EVERY = pytest.mark.parametrize(
    "step", [pytest.param(3, id="some"), pytest.param(1, marks=pytest.mark.long, id="every")]
)
"""Gives a test the step from one call to the next."""


def numbers(count: int, step: int, also: int = 0) -> range:
    """The numbers of some of `count` calls, with that of the call that matters most among them."""
    return range(also % step, count, step)
