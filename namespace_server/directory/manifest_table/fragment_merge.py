"""Which old fragments of `__manifest` a flip merges into its new one, and where it records deletions.

A merge always takes the newest fragments together, so that fragments stay in the order of their serials and a merge
changes nothing in the snapshot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.manifest_table.fragments import Fragment, Layout, live_rows
from namespace_server.directory.manifest_table.rows import Rows

FAN_IN: Final = 8
TIERS: Final = (128, 1_024, 8_192, 65_536)
"""A fragment with fewer live rows than the first number is in tier 0, and so on; the largest are not merged."""
ABSORBED_ROWS: Final = 16
"""A flip takes the rows of the newest fragments into its own row file, up to this number together."""
MAX_SMALL_FRAGMENTS: Final = 31


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """The effect of a flip on the fragments, before anything is encoded.

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

    def moved_serials(self) -> list[int]:
        """The serials of the rows that move into the new fragment, in order."""
        return [serial for fragment in self.moved for serial in fragment.live_serials()]

    def moved_rows(self, read: Callable[[Fragment], pa.RecordBatch]) -> Rows:
        """The rows that move, in the same order. `read` fetches the rows of a fragment that does not keep them."""
        moved = [fragment for fragment in self.moved if fragment.live]
        rows = [fragment.rows if fragment.rows is not None else read(fragment) for fragment in moved]
        return live_rows(moved, rows)

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


def match_rearrangement(layout: Layout, gone: Iterable[int], removed_ids: Sequence[int]) -> Rearrangement | None:
    """The rearrangement that another server's flip made, from the ids of the fragments that it removed.

    None if `rearrange` could not have removed exactly these.
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
    fragment takes the newest ones of lower tiers than its own, and eight of one tier become one.
    """
    first, total = len(live), new_rows
    while first and total + live[first - 1] <= ABSORBED_ROWS:
        first -= 1
        total += live[first]
    stable = False
    while not stable:
        begin = _merge_once(live, first, total)
        stable = begin == first
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
