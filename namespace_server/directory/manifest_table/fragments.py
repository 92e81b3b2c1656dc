"""Fragments of `__manifest`: their files, their deletions, and the serials of their rows.

Every row has a *serial*: rows are numbered as their fragments are first read, and keep their number when fragments are
merged (see `fragment_merge`). Fragments stay in the order of their serials, so the row of a serial is found by two
bisections.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.manifest_table.rows import Rows, batch_of, count_rows, join_rows

KEPT_ROWS: Final = 8_192
"""Fragments of at most this many rows keep them in memory, to be merged without reading them."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment, its deletions, and the serials of its rows.

    `serials` has one ascending number per physical row, or is None when they count up from `start`. `deleted` holds
    physical offsets. `rows` are the physical rows, if they are kept in memory. Nothing in it is ever changed.
    """

    message: pb.DataFragment
    start: int
    serials: NDArray[np.int64] | None
    deleted: BitMap
    rows: Rows | None

    @property
    def live(self) -> int:
        """The number of rows that are not deleted."""
        return self.message.physical_rows - len(self.deleted)

    def offset(self, serial: int) -> int:
        """The physical offset of a row that is in this fragment."""
        if self.serials is None:
            return serial - self.start
        return int(np.searchsorted(self.serials, serial))

    def all_serials(self) -> NDArray[np.int64]:
        """The serial of every physical row."""
        if self.serials is not None:
            return self.serials
        return np.arange(self.start, self.start + self.message.physical_rows, dtype=np.int64)

    def live_serials(self) -> list[int]:
        """The serials of the rows that are there, ascending."""
        end = self.start + self.message.physical_rows
        serials = list(range(self.start, end)) if self.serials is None else self.serials.tolist()
        return [serial for at, serial in enumerate(serials) if at not in self.deleted] if self.deleted else serials

    def live_mask(self) -> NDArray[np.bool_]:
        """Whether each physical row is there."""
        mask = np.ones(self.message.physical_rows, np.bool_)
        if self.deleted:
            mask[np.asarray(self.deleted.to_array())] = False
        return mask


def new_fragment(message: pb.DataFragment, serials: Sequence[int], rows: Rows | None) -> Fragment:
    """A fragment without deletions whose rows have these serials, ascending."""
    start = serials[0] if serials else 0
    dense = not serials or serials[-1] - start + 1 == len(serials)
    kept = rows if rows is not None and count_rows(rows) <= KEPT_ROWS else None
    return Fragment(message, start, None if dense else np.array(serials, np.int64), BitMap(), kept)


def live_rows(fragments: Sequence[Fragment], rows: Sequence[Rows]) -> Rows:
    """Of the physical `rows` of each fragment, those that are there, in order."""
    few = [part for part in rows if isinstance(part, tuple)]
    if len(few) == len(rows):
        there = [
            row
            for fragment, part in zip(fragments, few, strict=True)
            for at, row in enumerate(part)
            if at not in fragment.deleted
        ]
        return join_rows([tuple(there)])
    # A batch is filtered in this thread, a table by a pool of them: for a few rows that costs ten times as much.
    batch = batch_of(join_rows(rows))
    if not any(fragment.deleted for fragment in fragments):
        return batch
    return batch.filter(pa.array(np.concatenate([fragment.live_mask() for fragment in fragments])))


@dataclass(frozen=True, slots=True)
class Layout:
    """The fragments of one version, in the order of their serials; `next_serial` was never given to a row."""

    fragments: tuple[Fragment, ...] = ()
    next_serial: int = 0

    def deletions(self, serials: Iterable[int]) -> dict[int, BitMap]:
        """For each fragment (by index) that holds some of these rows, its deletions with them."""
        starts = [fragment.start for fragment in self.fragments]
        offsets: defaultdict[int, list[int]] = defaultdict(list)
        for serial in serials:
            at = bisect_right(starts, serial) - 1
            offsets[at].append(self.fragments[at].offset(serial))
        return {at: self.fragments[at].deleted | BitMap(found) for at, found in offsets.items()}
