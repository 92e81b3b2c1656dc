"""The versions of a chain, held compactly: shared typed columns for the many, values for the newest few.

A *serial* is the address of a row of `__manifest` within one process: rows are numbered in the order in which their
fragments were met, and a row keeps its number when fragments are merged (see `fragments`).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from namespace_server.directory.model.entries import NO_PROPERTIES, VersionEntry, digest_path
from namespace_server.directory.model.object_ids import ObjectId

NOT_STORED: Final = -1
"""The serial of a row that is not on disk yet."""

HAS_E_TAG: Final = 1
HAS_TRANSACTION: Final = 2
HAS_HASH: Final = 4
NAMED_V1: Final = 8
STAGED_BESIDE: Final = 16
"""The staged path is the canonical one, '-' and a uuid: what stock clients do."""
STAGED_ELSEWHERE: Final = 32
"""The staged path is known by its digest only."""

PACK_AT: Final = 256
_MAX_SIZE: Final = (1 << 32) - 1
_MERGE_BELOW: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class VersionColumns:
    """Values of many version rows, one array element each, in any order. The last axis of the digests is bytes."""

    versions: NDArray[np.integer]
    serials: NDArray[np.integer]
    sizes: NDArray[np.uint32]
    timestamps: NDArray[np.int64]
    transactions: NDArray[np.uint8]
    hashes: NDArray[np.uint8]
    staged: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    e_tag_ends: NDArray[np.integer]
    """Where each e_tag ends in `e_tags`; it begins where the one before ends."""
    e_tags: bytes
    odd: Mapping[int, VersionEntry] = field(default_factory=dict)
    """Rows that hold what columns cannot (client metadata, foreign spellings), as values."""

    def select(self, rows: NDArray[np.int64]) -> VersionColumns:
        """These rows, in this order."""
        ends, e_tags = self._select_e_tags(rows)
        return VersionColumns(
            self.versions[rows],
            self.serials[rows],
            self.sizes[rows],
            self.timestamps[rows],
            self.transactions[rows],
            self.hashes[rows],
            self.staged[rows],
            self.flags[rows],
            ends,
            e_tags,
            {at: self.odd[row] for at, row in enumerate(rows.tolist()) if row in self.odd} if self.odd else {},
        )

    def _select_e_tags(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], bytes]:
        if not len(rows):
            return np.zeros(0, np.int64), b""
        offsets = np.concatenate((np.zeros(1, np.int64), self.e_tag_ends.astype(np.int64)))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.e_tags)]
        taken = pa.Array.from_buffers(pa.large_binary(), len(self.versions), buffers).take(pa.array(rows))
        _, ends, data = taken.buffers()
        ends = np.frombuffer(ends, np.int64)[1 : len(rows) + 1]
        return ends, b"" if data is None else data[: int(ends[-1])].to_pybytes()

    def narrowed(self) -> VersionColumns:
        """The same, with four bytes for numbers that always were small enough for it."""
        return replace(
            self,
            versions=_narrow(self.versions),
            serials=_narrow(self.serials),
            e_tag_ends=_narrow(self.e_tag_ends),
        )


def join_columns(parts: Sequence[VersionColumns]) -> VersionColumns:
    """The rows of all parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.e_tags) for part in parts)])
    firsts = np.cumsum([0, *(len(part.versions) for part in parts)]).tolist()
    return VersionColumns(
        np.concatenate([part.versions for part in parts]),
        np.concatenate([part.serials for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.timestamps for part in parts]),
        np.concatenate([part.transactions for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.staged for part in parts]),
        np.concatenate([part.flags for part in parts]),
        np.concatenate(
            [part.e_tag_ends.astype(np.int64) + start for part, start in zip(parts, starts[:-1], strict=True)]
        ),
        b"".join(part.e_tags for part in parts),
        {first + row: entry for part, first in zip(parts, firsts, strict=False) for row, entry in part.odd.items()},
    )


def columns_of(entries: Sequence[VersionEntry], serials: Sequence[int]) -> VersionColumns:
    """Columns of these entries."""
    odd = {row: entry for row, entry in enumerate(entries) if not _fits(entry)}
    if odd:
        entries = [
            VersionEntry((), None, entry.version, "", 0, "", "", 0) if row in odd else entry
            for row, entry in enumerate(entries)
        ]
    e_tags = [(entry.e_tag or "").encode() for entry in entries]
    staged = [_staged(entry) for entry in entries]
    return VersionColumns(
        np.array([entry.version for entry in entries], np.int64),
        np.array(serials, np.int64),
        np.array([entry.size for entry in entries], np.uint32),
        np.array([entry.timestamp_ms for entry in entries], np.int64),
        _byte_rows([bytes.fromhex(entry.transaction_uuid.replace("-", "")) or bytes(16) for entry in entries], 16),
        _byte_rows([bytes.fromhex(entry.sha256) or bytes(32) for entry in entries], 32),
        _byte_rows([value for _, value in staged], 16),
        np.array([_flags(entry) | flag for entry, (flag, _) in zip(entries, staged, strict=True)], np.uint8),
        np.cumsum([len(e_tag) for e_tag in e_tags], dtype=np.int64),
        b"".join(e_tags),
        odd,
    )


class VersionBlock:
    """Versions of one or many chains, each chain a slice in ascending order. Immutable.

    An integer column is read through a memoryview, which is several times faster than an array element by element.
    """

    __slots__ = (
        "columns",
        "e_tag_ends",
        "flags",
        "hashes",
        "serials",
        "sizes",
        "staged",
        "timestamps",
        "transactions",
        "versions",
    )

    def __init__(self, columns: VersionColumns) -> None:
        self.columns = columns
        self.versions = columns.versions.data
        self.serials = columns.serials.data
        self.sizes = columns.sizes.data
        self.timestamps = columns.timestamps.data
        self.flags = columns.flags.data
        self.e_tag_ends = columns.e_tag_ends.data
        self.transactions = np.ascontiguousarray(columns.transactions).reshape(-1).data
        self.hashes = np.ascontiguousarray(columns.hashes).reshape(-1).data
        self.staged = np.ascontiguousarray(columns.staged).reshape(-1).data

    def scheme(self, row: int) -> str:
        """How the manifest of one row is named."""
        odd = self.columns.odd.get(row)
        if odd is not None:
            return odd.naming_scheme
        return "V1" if self.flags[row] & NAMED_V1 else "V2"

    def entry(self, row: int, table_id: ObjectId, branch: str | None, location: str) -> VersionEntry:
        """The value of one row."""
        if row in self.columns.odd:
            return self.columns.odd[row]
        flags = self.flags[row]
        version = self.versions[row]
        e_tag = None
        if flags & HAS_E_TAG:
            begin = self.e_tag_ends[row - 1] if row else 0
            e_tag = self.columns.e_tags[begin : self.e_tag_ends[row]].decode()
        entry = VersionEntry(
            table_id,
            branch,
            version,
            location,
            self.sizes[row],
            self.hashes[32 * row : 32 * row + 32].hex() if flags & HAS_HASH else "",
            _uuid(self.transactions[16 * row : 16 * row + 16]) if flags & HAS_TRANSACTION else "",
            self.timestamps[row],
            e_tag,
            "V1" if flags & NAMED_V1 else "V2",
            None,
            NO_PROPERTIES,
            bytes(self.staged[16 * row : 16 * row + 16]) if flags & STAGED_ELSEWHERE else None,
        )
        if flags & STAGED_BESIDE:
            path = f"{entry.canonical_path}-{_uuid(self.staged[16 * row : 16 * row + 16])}"
            object.__setattr__(entry, "staged_path", path)
        return entry


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
        """The chain with these entries, ascending; each replaces what has its number."""
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


def _fits(entry: VersionEntry) -> bool:
    return (
        not entry.metadata
        and 0 <= entry.size <= _MAX_SIZE
        and is_digest(entry.sha256)
        and is_uuid(entry.transaction_uuid)
        and entry.timestamp_ms < 1 << 63
    )


def is_digest(text: str) -> bool:
    """Whether columns can hold this SHA-256: empty, or 64 lower-case hexadecimal digits."""
    return not text or (len(text) == 64 and _is_hex(text))


def is_uuid(text: str) -> bool:
    """Whether columns can hold this uuid: empty, or in its canonical spelling."""
    if not text:
        return True
    digits = text.replace("-", "")
    return len(digits) == 32 and _is_hex(digits) and _hyphenate(digits) == text


def _is_hex(text: str) -> bool:
    return not set(text).difference("0123456789abcdef")


def _flags(entry: VersionEntry) -> int:
    return (
        (HAS_E_TAG if entry.e_tag is not None else 0)
        | (HAS_TRANSACTION if entry.transaction_uuid else 0)
        | (HAS_HASH if entry.sha256 else 0)
        | (NAMED_V1 if entry.naming_scheme == "V1" else 0)
    )


def _staged(entry: VersionEntry) -> tuple[int, bytes]:
    if entry.staged_path is None:
        return (STAGED_ELSEWHERE, entry.staged_digest) if entry.staged_digest is not None else (0, bytes(16))
    beside = entry.staged_path.removeprefix(entry.canonical_path + "-")
    if beside != entry.staged_path and beside and is_uuid(beside):
        return STAGED_BESIDE, bytes.fromhex(beside.replace("-", ""))
    return STAGED_ELSEWHERE, digest_path(entry.staged_path)


def _uuid(value: memoryview) -> str:
    return _hyphenate(value.hex())


def _hyphenate(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _narrow(values: NDArray[np.integer]) -> NDArray[np.integer]:
    fits = not len(values) or (values.min() >= 0 and values.max() < 1 << 32)
    return values.astype(np.uint32) if fits else values


def _byte_rows(values: Sequence[bytes], width: int) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), width)
