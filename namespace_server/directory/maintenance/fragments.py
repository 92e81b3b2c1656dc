"""Which fragments of a version are worth rewriting. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from numpy import float32

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import FRAGMENT_REUSE, SYSTEM_INDICES, covered_fragments
from namespace_server.directory.maintenance.policy import Policy

_FEW: Final = 2
"""Fragments that can be joined."""


@dataclass(frozen=True, slots=True)
class FragmentPlan:
    """The fragments that a compaction of a version would rewrite.

    Attributes:
        small: Fragments that it joins with neighbours.
        deleted: Fragments that it rewrites because many of their rows are deleted.
        size: Bytes of their data files, as far as the manifest states them.
        target_rows: Rows of a new fragment.
        reserved: Fragment ids that the new fragments may take, if an index covers some of the old ones; else 0.
    """

    small: int
    deleted: int
    size: int
    target_rows: int
    reserved: int


@dataclass(frozen=True, slots=True)
class _Fragment:
    message: pb.DataFragment
    is_deleted: bool
    coverage: tuple[int, ...]


def plan_fragments(file: ManifestFile, policy: Policy) -> FragmentPlan | None:
    """The fragments of a version that are worth rewriting; None if there are too few.

    Pylance decides in the end. As it does, this joins neighbours only, and only those that the same index segments
    cover. A version whose indices refer to fragments from before a compaction is left alone. Raises `CorruptFile` for a
    manifest that cannot be decoded.
    """
    if not policy.compact or (len(file.outline.fragments) < policy.min_fragments and not file.facts.deletion_files):
        return None
    if file.indices is not None and any(index.name == FRAGMENT_REUSE for index in file.indices.indices):
        return None
    target = _target_rows(file.manifest.fragments, policy)
    small = deleted = size = new = 0
    is_covered = False
    for run in _runs(file, target, policy):
        if len(run) < _FEW and not run[0].is_deleted:
            continue
        deleted += sum(fragment.is_deleted for fragment in run)
        small += sum(not fragment.is_deleted for fragment in run)
        size += sum(_size(fragment.message) for fragment in run)
        new += sum(fragment.message.physical_rows // target + 1 for fragment in run)
        is_covered |= bool(run[0].coverage)
    if small < policy.min_fragments and not deleted:
        return None
    # One Rewrite has all runs. If it rewrites an index, the new fragments of all of them need an id before.
    return FragmentPlan(small, deleted, size, target, new if is_covered else 0)


def _runs(file: ManifestFile, target: int, policy: Policy) -> Iterator[list[_Fragment]]:
    """Neighbouring candidates that the same index segments cover."""
    segments = [
        covered_fragments(index)
        for index in (file.indices.indices if file.indices is not None else ())
        if index.name not in SYSTEM_INDICES
    ]

    def candidate(message: pb.DataFragment) -> _Fragment | None:
        rows = message.physical_rows
        is_deleted = _is_above(message.deletion_file.num_deleted_rows, rows, policy.deleted_share)
        if not rows or not (is_deleted or rows < target):
            return None
        coverage = tuple(number for number, covered in enumerate(segments) if message.id in covered)
        return _Fragment(message, is_deleted, coverage)

    candidates = map(candidate, file.manifest.fragments)
    for coverage, run in groupby(candidates, lambda found: None if found is None else found.coverage):
        if coverage is not None:
            yield [fragment for fragment in run if fragment is not None]


def _is_above(deleted: int, rows: int, share: float) -> bool:
    """Whether a share of the rows is deleted, in numbers of 32 bits as Lance compares them."""
    return bool(deleted) and bool(rows) and bool(float32(deleted) / float32(rows) > float32(share))


def _target_rows(fragments: Sequence[pb.DataFragment], policy: Policy) -> int:
    """Rows of a new fragment, a power of two where bytes bound it.

    So the bound does not move with the average size of a row, and fragments that were joined once stay large enough.
    """
    rows, size = sum(fragment.physical_rows for fragment in fragments), sum(map(_size, fragments))
    if not size:
        return policy.target_rows
    fitting = max(1, policy.target_bytes * rows // size)
    return policy.target_rows if fitting >= policy.target_rows else 1 << (fitting.bit_length() - 1)


def _size(fragment: pb.DataFragment) -> int:
    return sum(file.file_size_bytes for file in fragment.files)
