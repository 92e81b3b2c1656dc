"""Makes Roaring bitmaps of numbers, and decodes 32-bit ones in the portable serialization."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

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


def bitmap_of(numbers: npt.NDArray[np.uint32]) -> BitMap:
    """The set of the numbers. `BitMap(numbers)` would take them one by one, as Python objects."""
    values = array("I")
    values.frombytes(numbers.astype(np.uint32, casting="equiv", copy=False).tobytes())
    return BitMap(values)


def bitmap64_of(numbers: npt.NDArray[np.uint64]) -> BitMap64:
    """The same for 64-bit numbers."""
    values = array("Q")
    values.frombytes(numbers.astype(np.uint64, casting="equiv", copy=False).tobytes())
    return BitMap64(values)
