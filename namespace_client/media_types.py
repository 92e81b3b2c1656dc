"""What bytes are, by how they begin: the images, sounds and films that browsers show, and nothing else.

Types whose files may hold scripts (SVG, HTML, PDF) are never among them, whatever a column or a file is called.
"""

from __future__ import annotations

from typing import Final

NEEDED: Final = 64
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
_IN_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS: Final = {
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V "), "video/mp4"),
}
"""Of files in the base media file format (ISO/IEC 14496-12): types by the major brand."""
_EBML: Final = b"\x1aE\xdf\xa3"
_WEBM: Final = b"\x42\x82\x84webm"
"""The document type, an element of the header of EBML (RFC 8794)."""


def media_type(beginning: bytes) -> str | None:
    """The type of what begins so, None if it is none of the known ones."""
    for start, kind in _BEGINNINGS:
        if beginning.startswith(start):
            return kind
    if beginning[4:8] == b"ftyp":
        return _BRANDS.get(beginning[8:12])
    if beginning.startswith(_EBML):
        return "video/webm" if _WEBM in beginning[:NEEDED] else None
    return _IN_RIFF.get(beginning[8:12]) if beginning.startswith(b"RIFF") else None
