"""What bytes are, by how they begin: the images and sounds that every browser shows, and nothing else.

Types whose files may hold scripts (SVG, HTML, PDF) are never among them, whatever a column or a file is called.
"""

from __future__ import annotations

from typing import Final

NEEDED: Final = 16
"""Bytes that are looked at."""

_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_IN_CONTAINERS: Final = {(b"RIFF", b"WEBP"): "image/webp", (b"RIFF", b"WAVE"): "audio/wav"}


def media_type(beginning: bytes) -> str | None:
    """The type of what begins so, None if it is none of the known ones."""
    for start, kind in _BEGINNINGS:
        if beginning.startswith(start):
            return kind
    return _IN_CONTAINERS.get((beginning[:4], beginning[8:12]))
