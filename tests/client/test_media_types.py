"""Bytes are taken for images, sounds and films by how they begin, and nothing that could hold a script ever is."""

from __future__ import annotations

import pytest

from namespace_client.media_types import media_type


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
        (b"fLaC\0\0", "audio/flac"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "image/avif"),
        (b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", "video/mp4"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", "audio/mp4"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm", "video/webm"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska", None),
        (b"\0\0\0\x14ftypqt  \0\0\0\0", None),
        (b"\0\0\0\x18ftyp<svg", None),
        (b"RIFF\x10\0\0\0AVI LIST", None),
        (b"\x89PNG", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
        (b"<!doctype html>", None),
        (b"%PDF-1.7", None),
        (b"PK\x03\x04", None),
        (b"", None),
    ],
)
def test_the_beginning_decides(beginning: bytes, kind: str | None) -> None:
    assert media_type(beginning) == kind
