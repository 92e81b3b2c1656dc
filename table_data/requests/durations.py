"""Times as requests write them: `30s`, `5m`."""

from __future__ import annotations

import re
from typing import Final

from table_data.errors import InvalidCall

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str, what: str) -> float:
    """Seconds. `what` begins the text of the error. Raises `InvalidCall`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise InvalidCall(f"{what}: expected a number and ms, s, m or h, such as 30s, found {text[:40]!r}")
    return float(found[1]) * _SECONDS[found[2]]
