"""The versions of a chain: columns for the many, values for the newest few."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.version_columns import (
    NOT_STORED,
    VersionBlock,
    columns_of,
    join_columns,
)

PACK_AT: Final = 256
"""From so many newer entries on, a chain moves them to columns."""
_MERGE_BELOW: Final = 1 << 16


class Segment(NamedTuple):
    """A slice of a block that belongs to one chain; `holes` are rows that were removed since."""

    block: VersionBlock
    start: int
    stop: int
    holes: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """The number of versions that are there."""
        return self.stop - self.start - len(self.holes)

    def find(self, version: int) -> int | None:
        """The row of a version."""
        versions = self.block.versions
        row = self.start + version - versions[self.start]
        if not (self.start <= row < self.stop and versions[row] == version):
            row = bisect_left(versions, version, self.start, self.stop)
            if row == self.stop or versions[row] != version:
                return None
        return None if row in self.holes else row

    def rows(self, *, descending: bool, start: int | None = None) -> Iterator[int]:
        """Rows in order, from version `start` on (inclusive)."""
        first, last = self.start, self.stop
        if start is not None and descending:
            last = bisect_left(self.block.versions, start + 1, first, last)
        elif start is not None:
            first = bisect_left(self.block.versions, start, first, last)
        rows = range(last - 1, first - 1, -1) if descending else range(first, last)
        return (row for row in rows if row not in self.holes) if self.holes else iter(rows)

    def without(self, versions: Collection[int]) -> Segment | None:
        """The slice without these versions; None when nothing is left."""
        if len(versions) * 8 < self.stop - self.start:
            gone = {row for row in map(self.find, versions) if row is not None}
        else:
            gone = {row for row in self.rows(descending=False) if self.block.versions[row] in versions}
        if not gone:
            return self
        if len(gone) == self.size:
            return None
        holes = gone.union(self.holes)
        start, stop = self.start, self.stop
        while start in holes:
            holes.discard(start)
            start += 1
        while stop - 1 in holes:
            stop -= 1
            holes.discard(stop)
        return Segment(self.block, start, stop, frozenset(holes))


class Chain:
    """The committed versions of one branch of a table (None is main). Never empty. Immutable.

    `newer` are entries put since the snapshot was loaded, ascending, with their serials beside them.
    """

    __slots__ = ("branch", "newer", "segments", "serials")

    def __init__(
        self,
        branch: str | None,
        segments: tuple[Segment, ...],
        newer: tuple[VersionEntry, ...] = (),
        serials: tuple[int, ...] = (),
    ) -> None:
        self.branch = branch
        self.segments = segments
        self.newer = newer
        self.serials = serials

    def __len__(self) -> int:
        return len(self.newer) + sum(segment.size for segment in self.segments)

    def head(self, table_id: ObjectId, location: str) -> VersionEntry:
        """The newest version."""
        if not self.segments:
            return self.newer[-1]
        block, _, stop, _ = self.segments[-1]
        if self.newer and self.newer[-1].version > block.versions[stop - 1]:
            return self.newer[-1]
        return block.entry(stop - 1, table_id, self.branch, location)

    def top(self) -> tuple[int, str]:
        """Version and naming scheme of the head, without making its entry."""
        newest = self.newer[-1] if self.newer else None
        if self.segments:
            block, _, stop, _ = self.segments[-1]
            version = block.versions[stop - 1]
            if newest is None or newest.version < version:
                return version, block.scheme(stop - 1)
        if newest is None:
            raise ValueError("a chain is never empty")
        return newest.version, newest.naming_scheme

    def find(self, version: int, table_id: ObjectId, location: str) -> VersionEntry | None:
        """The entry of a version."""
        at = self._find_newer(version)
        if at is not None:
            return self.newer[at]
        for segment in self.segments:
            row = segment.find(version)
            if row is not None:
                return segment.block.entry(row, table_id, self.branch, location)
        return None

    def serial(self, version: int) -> int | None:
        """The serial of a version; `NOT_STORED` for one that is not on disk yet, None for one that does not exist."""
        at = self._find_newer(version)
        if at is not None:
            return self.serials[at]
        for segment in self.segments:
            row = segment.find(version)
            if row is not None:
                return int(segment.block.serials[row])
        return None

    def numbers(self) -> Iterator[int]:
        """Version numbers, ascending, without making entries."""
        return (version for version, _ in self._merge(descending=False, start=None, make=lambda _segment, _row: None))

    def entries(
        self, table_id: ObjectId, location: str, *, descending: bool, start: int | None = None
    ) -> Iterator[VersionEntry]:
        """Entries in order, from version `start` on (inclusive, in the direction of travel)."""

        def make(segment: Segment, row: int) -> VersionEntry:
            return segment.block.entry(row, table_id, self.branch, location)

        return (entry for _, entry in self._merge(descending=descending, start=start, make=make))

    def without(self, versions: Collection[int]) -> Chain | None:
        """The chain without these versions; None when nothing is left."""
        kept = [at for at, entry in enumerate(self.newer) if entry.version not in versions]
        segments = tuple(left for segment in self.segments if (left := segment.without(versions)) is not None)
        if not kept and not segments:
            return None
        newer, serials = self.newer, self.serials
        if len(kept) < len(newer):
            newer, serials = tuple(newer[at] for at in kept), tuple(serials[at] for at in kept)
        return Chain(self.branch, segments, newer, serials)

    def with_entries(self, entries: Sequence[VersionEntry], serials: Sequence[int]) -> Chain:
        """The chain with these entries, ascending; each replaces the entry of its version."""
        top = self.newer[-1].version if self.newer else 0
        if self.segments:
            block, _, stop, _ = self.segments[-1]
            top = max(top, block.versions[stop - 1])
        if entries[0].version > top:
            return Chain(self.branch, self.segments, (*self.newer, *entries), (*self.serials, *serials)).packed()
        rest = self.without({entry.version for entry in entries})
        if rest is None:
            return Chain(self.branch, (), tuple(entries), tuple(serials))
        merged = sorted(
            zip((*rest.newer, *entries), (*rest.serials, *serials), strict=True), key=lambda pair: pair[0].version
        )
        return Chain(
            self.branch, rest.segments, tuple(entry for entry, _ in merged), tuple(serial for _, serial in merged)
        )

    def packed(self) -> Chain:
        """The same chain with many newer entries moved to columns, so that a long-lived process stays small."""
        if len(self.newer) < PACK_AT or NOT_STORED in self.serials:
            return self
        if self.segments:
            top = self.segments[-1]
            if self.newer[0].version <= top.block.versions[top.stop - 1]:
                return self
        block = VersionBlock(columns_of(self.newer, self.serials))
        segments = [*self.segments, Segment(block, 0, len(self.newer))]
        while len(segments) > 1 and segments[-2].size < min(2 * segments[-1].size, _MERGE_BELOW):
            segments[-2:] = [_join_segments(segments[-2:])]
        return Chain(self.branch, tuple(segments))

    def _find_newer(self, version: int) -> int | None:
        newer = self.newer
        if not newer or not newer[0].version <= version <= newer[-1].version:
            return None
        at = version - newer[0].version
        if at >= len(newer) or newer[at].version != version:  # some between them are missing
            at = bisect_left(newer, version, key=lambda entry: entry.version)
        return at if newer[at].version == version else None

    def _merge(
        self, *, descending: bool, start: int | None, make: Callable[[Segment, int], Any]
    ) -> Iterator[tuple[int, Any]]:
        """(version, value) in order. Segments ascend and do not overlap, but `newer` may lie among them."""
        sign = -1 if descending else 1
        newer = (
            (entry.version, entry)
            for entry in self.newer[::sign]
            if start is None or (entry.version - start) * sign >= 0
        )
        older = (
            (segment.block.versions[row], make(segment, row))
            for segment in self.segments[::sign]
            for row in segment.rows(descending=descending, start=start)
        )
        return heapq.merge(older, newer, key=itemgetter(0), reverse=descending)


def _join_segments(segments: Sequence[Segment]) -> Segment:
    parts = [
        segment.block.columns.select(np.fromiter(segment.rows(descending=False), np.int64)) for segment in segments
    ]
    joined = join_columns(parts)
    return Segment(VersionBlock(joined), 0, len(joined.versions))
