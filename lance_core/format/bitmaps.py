"""Decodes 32-bit Roaring bitmaps in the portable serialization."""

from __future__ import annotations

from pyroaring import BitMap

from lance_core.errors import CorruptFile


def decode_bitmap(data: bytes, what: str) -> BitMap:
    """The numbers in `data`, which must be exactly one bitmap.

    Untrusted bytes are safe: the library checks lengths and order while reading. Run containers are not expanded, so
    the bitmap needs little memory even if it holds every number. Raises `CorruptFile`; `what` names the data in its
    message.
    """
    try:
        numbers = BitMap.deserialize(data)
    except (ValueError, IndexError, MemoryError) as error:
        raise CorruptFile(f"{what} of {len(data)} bytes is not a Roaring bitmap: {error}") from error
    size = len(numbers.serialize())
    if size != len(data):
        raise CorruptFile(f"{what} has {len(data)} bytes, expected a bitmap of {size}")
    return numbers
