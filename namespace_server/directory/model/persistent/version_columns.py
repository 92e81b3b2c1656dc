"""Table versions held compactly: typed columns that many chains share.

A *serial* is the address of a row of `__manifest` within one process (see `manifest_table.fragments`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from namespace_server.directory.model.entries import NO_PROPERTIES, VersionEntry, digest_path
from namespace_server.directory.model.limits import MAX_INT64
from namespace_server.directory.model.object_ids import ObjectId

NOT_STORED: Final = -1
"""The serial of a row that is not on disk yet."""

HAS_E_TAG: Final = 1
HAS_TRANSACTION: Final = 2
HAS_HASH: Final = 4
NAMED_V1: Final = 8
STAGED_BESIDE: Final = 16
"""The staged path is the canonical one, '-' and a uuid, as stock clients choose it."""
STAGED_ELSEWHERE: Final = 32
"""The staged path is known by its digest only."""

_MAX_SIZE: Final = (1 << 32) - 1


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
    unpacked: Mapping[int, VersionEntry] = field(default_factory=dict)
    """Rows with values that columns cannot hold (client metadata, unmanaged spellings), as entries."""

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
            {at: self.unpacked[row] for at, row in enumerate(rows.tolist()) if row in self.unpacked}
            if self.unpacked
            else {},
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
        """The same, with four bytes for numbers that fit."""
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
        {
            first + row: entry
            for part, first in zip(parts, firsts, strict=False)
            for row, entry in part.unpacked.items()
        },
    )


def columns_of(entries: Sequence[VersionEntry], serials: Sequence[int]) -> VersionColumns:
    """Columns of these entries."""
    unpacked = {row: entry for row, entry in enumerate(entries) if not _fits(entry)}
    if unpacked:
        entries = [
            VersionEntry((), None, entry.version, "", 0, "", "", 0) if row in unpacked else entry
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
        unpacked,
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
        unpacked = self.columns.unpacked.get(row)
        if unpacked is not None:
            return unpacked.naming_scheme
        return "V1" if self.flags[row] & NAMED_V1 else "V2"

    def entry(self, row: int, table_id: ObjectId, branch: str | None, location: str) -> VersionEntry:
        """The value of one row."""
        if row in self.columns.unpacked:
            return self.columns.unpacked[row]
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


def _fits(entry: VersionEntry) -> bool:
    return (
        not entry.metadata
        and 0 <= entry.size <= _MAX_SIZE
        and is_digest(entry.sha256)
        and is_uuid(entry.transaction_uuid)
        and entry.timestamp_ms <= MAX_INT64
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
