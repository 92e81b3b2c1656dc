"""Roaring bitmaps as files and messages hold them: 32 bits, portable serialization."""

from __future__ import annotations

from pyroaring import BitMap

from lance_core.errors import CorruptFile


def decode_bitmap(data: bytes, what: str) -> BitMap:
    """The numbers in `data`, which must be one bitmap and nothing else.

    The library checks lengths and order while it reads, so bytes of any origin are safe. Run containers stay runs: a
    megabyte can hold every number, and only who lists them needs memory. Raises `CorruptFile` saying `what` it is.
    """
    try:
        numbers = BitMap.deserialize(data)
    except (ValueError, IndexError, MemoryError) as error:
        raise CorruptFile(f"{what} of {len(data)} bytes is not a Roaring bitmap: {error}") from error
    size = len(numbers.serialize())
    if size != len(data):
        raise CorruptFile(f"{what} has {len(data)} bytes, expected a bitmap of {size}")
    return numbers
