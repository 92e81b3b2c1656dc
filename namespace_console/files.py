"""The style sheet and the scripts. Their addresses hold a digest of what is in them, so that browsers keep them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is served: its address below that of all, its type and its content."""

    address: str
    media_type: str
    content: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """All files by their names."""
    found = {}
    for file in files("namespace_console").joinpath("static").iterdir():
        stem, dot, kind = file.name.rpartition(".")
        if dot + kind in _TYPES:
            content = file.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:16]
            found[file.name] = StaticFile(f"{stem}.{digest}.{kind}", _TYPES[dot + kind], content)
    return found


@cache
def by_address() -> dict[str, StaticFile]:
    """All files by their addresses."""
    return {file.address: file for file in static_files().values()}
