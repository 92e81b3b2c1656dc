"""The `mode` of a request that has rows."""

from __future__ import annotations

from collections.abc import Sequence

from table_data.errors import InvalidCall


def mode_of(wanted: str | None, modes: Sequence[str]) -> str:
    """One of `modes`, which are in snake case; the first if none is wanted. Its name may be in Pascal case, too.

    Raises `InvalidCall`.
    """
    given = modes[0] if wanted is None else wanted
    found = given.replace("_", "").lower()
    for mode in modes:
        if mode.replace("_", "") == found:
            return mode
    raise InvalidCall(f"mode {given[:80]!r}: expected one of {', '.join(modes)}")
