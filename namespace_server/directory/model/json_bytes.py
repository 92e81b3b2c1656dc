"""JSON that is kept."""

from __future__ import annotations

from typing import Any, Final

import orjson

_BUFFER: Final = 4096


def json_bytes(value: Any) -> bytes:
    """A value as compact JSON, in as much memory as it has bytes.

    orjson encodes into a buffer of some thousand bytes, which a short result keeps for as long as it lives.
    """
    encoded = orjson.dumps(value)
    return bytes(memoryview(encoded)) if len(encoded) < _BUFFER else encoded
