"""The rows of a version that a change replaces or deletes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_core.format.bitmaps import bitmap_of

_OFFSET_BITS: Final = np.uint64(32)


class RowSet:
    """Rows by their addresses. Takes a few bits for each, where rows follow one another."""

    def __init__(self) -> None:
        self._rows: dict[int, BitMap] = {}

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    @property
    def by_fragment(self) -> Mapping[int, BitMap]:
        """The offsets of the rows in their fragments, by the id of the fragment."""
        return self._rows

    def add(self, addresses: npt.NDArray[np.uint64]) -> None:
        """Add rows. Pylance's scanner gives the rows of one fragment together, most of the time."""
        if not len(addresses):
            return
        fragments = addresses >> _OFFSET_BITS
        offsets = addresses.astype(np.uint32)
        if fragments.min() == fragments.max():
            self._add(int(fragments[0]), offsets)
            return
        for fragment in np.unique(fragments).tolist():
            self._add(fragment, offsets[fragments == fragment])

    def _add(self, fragment: int, offsets: npt.NDArray[np.uint32]) -> None:
        found = bitmap_of(offsets)
        known = self._rows.get(fragment)
        self._rows[fragment] = found if known is None else known | found
