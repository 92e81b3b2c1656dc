"""Where the rows of `__manifest` lie, and how a flip rearranges them.

Every row has a *serial*: rows are numbered as their fragments are first met, and keep their number when fragments are
merged. A merge always takes the newest fragments together, so fragments stay in the order of their serials, the row
of a serial is found by two bisections, and a merge changes nothing in the snapshot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb

FAN_IN: Final = 8
TIERS: Final = (128, 1_024, 8_192, 65_536)
"""A fragment with fewer live rows than the first number is in tier 0, and so on; the rest are left to maintenance."""
ABSORBED_ROWS: Final = 16
"""A flip takes the rows of the newest fragments into its own row file while they stay within so many together."""
MAX_SMALL_FRAGMENTS: Final = 31
KEPT_ROWS: Final = 8_192
"""Fragments of up to so many rows keep them in memory, to be merged without reading them."""


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
    rows: pa.RecordBatch | None

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

    def live_mask(self) -> NDArray[np.bool_]:
        """Whether each physical row is there."""
        mask = np.ones(self.message.physical_rows, np.bool_)
        if self.deleted:
            mask[np.asarray(self.deleted.to_array())] = False
        return mask

    def live_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Of all physical rows, those that are there."""
        # A batch is filtered in this thread, a table by a pool of them: for a few rows that costs ten times as much.
        return rows.filter(pa.array(self.live_mask())) if self.deleted else rows


def new_fragment(message: pb.DataFragment, serials: NDArray[np.int64], rows: pa.RecordBatch | None) -> Fragment:
    """A fragment without deletions whose rows have these serials, ascending."""
    start = int(serials[0]) if len(serials) else 0
    dense = not len(serials) or int(serials[-1]) - start + 1 == len(serials)
    kept = rows if rows is not None and rows.num_rows <= KEPT_ROWS else None
    return Fragment(message, start, None if dense else serials, BitMap(), kept)


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


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """What a flip does to the fragments, before anything is encoded.

    Fragments from index `merged_from` on are replaced by the new one. `deleted` has the new deletions of those before
    it that lose rows but not all of them; `emptied` are the indices of those that lose all.
    """

    layout: Layout
    merged_from: int
    deleted: dict[int, BitMap]
    emptied: frozenset[int]
    moved: tuple[Fragment, ...]
    """The fragments that are merged, with their new deletions."""

    @property
    def removed_ids(self) -> list[int]:
        """The ids of the fragments that the next version does not have."""
        fragments = self.layout.fragments
        indices = [*self.emptied, *range(self.merged_from, len(fragments))]
        return sorted(fragments[at].message.id for at in indices)

    def moved_serials(self) -> NDArray[np.int64]:
        """The serials of the rows that move into the new fragment, in order."""
        parts = [fragment.all_serials()[fragment.live_mask()] for fragment in self.moved]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def moved_rows(self, read: Callable[[Fragment], pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The rows that move, in the same order. `read` fetches the rows of a fragment that does not keep them."""
        return [
            fragment.live_rows(fragment.rows if fragment.rows is not None else read(fragment))
            for fragment in self.moved
            if fragment.live
        ]

    def next_layout(self, new: Fragment | None, messages: Callable[[int], pb.DataFragment], new_rows: int) -> Layout:
        """The layout of the next version. `messages(index)` is the new message of a fragment with new deletions."""
        fragments = list(self.layout.fragments[: self.merged_from])
        for at, deleted in self.deleted.items():
            old = fragments[at]
            fragments[at] = Fragment(messages(at), old.start, old.serials, deleted, old.rows)
        if self.emptied:
            fragments = [fragment for at, fragment in enumerate(fragments) if at not in self.emptied]
        if new is not None:
            fragments.append(new)
        return Layout(tuple(fragments), self.layout.next_serial + new_rows)


def rearrange(layout: Layout, gone: Iterable[int], new_rows: int) -> Rearrangement:
    """Decide where deletions are recorded and which fragments the new row file takes over.

    `gone` are the serials of rows that are removed or replaced, `new_rows` the number of rows put. Many flips keep
    the number of small fragments below 32, at a constant cost per row (each is copied once per tier).
    """
    deleted = layout.deletions(gone)
    live = [fragment.live for fragment in layout.fragments]
    for at, offsets in deleted.items():
        live[at] = layout.fragments[at].message.physical_rows - len(offsets)
    merged_from = choose_merge(live, new_rows) if deleted or new_rows else len(live)
    return _arrange(layout, deleted, live, merged_from)


def follow(layout: Layout, gone: Iterable[int], removed_ids: Sequence[int]) -> Rearrangement | None:
    """The rearrangement that another server made, from the ids of the fragments that it removed.

    None if those are not what `rearrange` could have removed.
    """
    deleted = layout.deletions(gone)
    removed = set(removed_ids)
    merged_from = len(layout.fragments)
    while merged_from and layout.fragments[merged_from - 1].message.id in removed:
        merged_from -= 1
    live = [fragment.live for fragment in layout.fragments]
    for at, offsets in deleted.items():
        live[at] = layout.fragments[at].message.physical_rows - len(offsets)
    found = _arrange(layout, deleted, live, merged_from)
    return found if found.removed_ids == sorted(removed) else None


def choose_merge(live: Sequence[int], new_rows: int) -> int:
    """The index from which on fragments are merged into a new one of `new_rows` rows; `len(live)` for none.

    `live` are the row counts of the fragments, oldest first. They are kept in the order of their tiers: the new
    fragment takes what is newest and of a lower tier than itself, and eight of one tier become one.
    """
    first, total = len(live), new_rows
    while first and total + live[first - 1] <= ABSORBED_ROWS:
        first -= 1
        total += live[first]
    settled = False
    while not settled:
        begin = _merge_once(live, first, total)
        settled = begin == first
        total += sum(live[begin:first])
        first = begin
    return first


def _merge_once(live: Sequence[int], first: int, total: int) -> int:
    """Where the merged fragments begin when those before `first` are looked at, `total` rows being merged already."""
    tier = bisect_right(TIERS, total)
    begin = first
    while begin and bisect_right(TIERS, live[begin - 1]) < tier:
        begin -= 1
    if begin < first or tier == len(TIERS):
        return begin
    for level in range(tier, len(TIERS)):
        peers = int(level == tier)
        while begin and bisect_right(TIERS, live[begin - 1]) <= level:
            begin -= 1
            peers += bisect_right(TIERS, live[begin]) == level
        if peers >= FAN_IN:
            return begin
    # Deletions shrink fragments, which may then stand before larger ones and wait with them.
    return begin + MAX_SMALL_FRAGMENTS // 2 if first - begin >= MAX_SMALL_FRAGMENTS else first


def _arrange(layout: Layout, deleted: dict[int, BitMap], live: Sequence[int], merged_from: int) -> Rearrangement:
    fragments = layout.fragments
    moved = [
        Fragment(old.message, old.start, old.serials, deleted.get(at, old.deleted), old.rows)
        for at, old in enumerate(fragments[merged_from:], merged_from)
    ]
    kept = {at: offsets for at, offsets in deleted.items() if at < merged_from and live[at]}
    emptied = frozenset(at for at in range(merged_from) if not live[at])
    return Rearrangement(layout, merged_from, kept, emptied, tuple(moved))
