"""Splits: the fragments and rows that one task reads. Pure.

A split holds whole fragments or ranges of the rows of one. Small fragments share a split, large ones are divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MAX_ROWS: Final = 1_048_576
MAX_BYTES: Final = 64 << 20
MIN_ROWS: Final = 131_072
"""A task of fewer rows costs more than it reads: its start takes as long as to read this number."""


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """A fragment: its number, its rows without the deleted ones, and the bytes that a scan reads of it."""

    id: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a fragment, from `start`, deleted rows not counted. All of them if `rows` is None."""

    fragment: int
    start: int = 0
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """The fragments that one task reads, in this order. `rows` and `bytes` are those before a filter."""

    pieces: tuple[Piece, ...]
    rows: int
    bytes: int


def plan_splits(
    fragments: Iterable[FragmentSize],
    *,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    divisible: bool = True,
    limit: int | None = None,
) -> list[Split]:
    """Divide the rows of fragments into splits of at most `max_rows` rows and `max_bytes` bytes.

    Args:
        fragments: The fragments in order. Those without rows are left out.
        max_rows: Rows of a split; at least 1.
        max_bytes: Bytes of a split; a row may be larger.
        divisible: Whether a fragment may be divided. If not, a larger fragment is a split of its own.
        limit: The splits hold only the first rows up to this number. For divisible fragments.

    Returns:
        Splits in the order of the fragments; none if there are no rows.
    """
    whole = [fragment for fragment in fragments if fragment.rows]
    last: Split | None = None
    if limit is not None:
        whole, last = _first_rows(whole, limit)
    splits: list[Split] = []
    joined: list[FragmentSize] = []
    for fragment in whole:
        parts = max(_ceil(fragment.rows, max_rows), _ceil(fragment.bytes, max_bytes))
        if parts > 1 and divisible:
            splits += [*_join(joined, max_rows, max_bytes), *_divide(fragment, min(parts, fragment.rows))]
            joined = []
        else:
            joined.append(fragment)
    splits += _join(joined, max_rows, max_bytes)
    return [*splits, last] if last is not None else splits


def _first_rows(fragments: Sequence[FragmentSize], limit: int) -> tuple[list[FragmentSize], Split | None]:
    """The fragments that are needed in full, and a split for the rest of the limit."""
    whole: list[FragmentSize] = []
    for fragment in fragments:
        if limit <= 0:
            break
        if fragment.rows > limit:
            share = _ceil(fragment.bytes * limit, fragment.rows)
            return whole, Split((Piece(fragment.id, 0, limit),), limit, share)
        whole.append(fragment)
        limit -= fragment.rows
    return whole, None


def _divide(fragment: FragmentSize, parts: int) -> Iterator[Split]:
    for part in range(parts):
        start, stop = (fragment.rows * edge // parts for edge in (part, part + 1))
        share = _ceil(fragment.bytes * (stop - start), fragment.rows)
        yield Split((Piece(fragment.id, start, stop - start),), stop - start, share)


def _join(fragments: Sequence[FragmentSize], max_rows: int, max_bytes: int) -> Iterator[Split]:
    """Consecutive fragments in as few splits as their order allows."""
    pieces: list[Piece] = []
    rows = size = 0
    for fragment in fragments:
        if pieces and (rows + fragment.rows > max_rows or size + fragment.bytes > max_bytes):
            yield Split(tuple(pieces), rows, size)
            pieces, rows, size = [], 0, 0
        pieces.append(Piece(fragment.id))
        rows += fragment.rows
        size += fragment.bytes
    if pieces:
        yield Split(tuple(pieces), rows, size)


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
