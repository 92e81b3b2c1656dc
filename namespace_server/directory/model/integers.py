"""The range of the integers that requests, versions and timestamps may have: 64 bits, signed."""

from __future__ import annotations

from typing import Final, TypeGuard

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1


def is_int64(value: object) -> TypeGuard[int]:
    """Whether a value from JSON is an integer of at most 64 bits; booleans are none."""
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
