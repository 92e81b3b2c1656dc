"""The `mode` of a request that has rows."""

from __future__ import annotations

from collections.abc import Sequence

from table_data.batch_operations import Json
from table_data.errors import InvalidCall


def mode_of(request: Json, modes: Sequence[str]) -> str:
    """One of `modes`, which are in snake case; the first if the request has none. Its name may be in Pascal case, too.

    Raises `InvalidCall`.
    """
    given = str(request.get("mode") or modes[0])
    found = given.replace("_", "").lower()
    for mode in modes:
        if mode.replace("_", "") == found:
            return mode
    raise InvalidCall(f"mode {given[:80]!r}: expected one of {', '.join(modes)}")
