"""Rows that differ between two consecutive versions of a table with stable row ids.

A row is known by its id. A compaction or an update moves rows to other fragments, where they keep their ids; an update
also changes the version that a row was last changed at. No transaction is needed to find these changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_core.format.bitmaps import bitmap_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.row_ids import row_id_bounds, row_ids, update_versions
from table_data.errors import InvalidCall

ChangeType = Literal["insert", "delete", "update_preimage", "update_postimage"]
DeletedRows = Callable[[pb.DataFragment], BitMap]
"""The offsets of the deleted rows of a fragment."""

_Numbers = npt.NDArray[np.uint64]
_Mask = npt.NDArray[np.bool_]
_Offsets = npt.NDArray[np.uint32]
_Rows = tuple[_Numbers, _Numbers]

_UNKNOWN: Final = 0
"""The version of a row whose writer did not record it. A row that was moved then counts as updated."""


@dataclass(frozen=True, slots=True)
class DifferentRows:
    """Rows of one fragment with one type of change.

    Attributes:
        type: Type of the change. Deleted rows and preimages are in a fragment of the version before.
        fragment: The fragment.
        ids: Ids of the rows; None for all rows of the fragment that are not deleted.
    """

    type: ChangeType
    fragment: pb.DataFragment
    ids: _Numbers | None


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two versions: `deleted` reads its deletion files."""

    manifest: pb.Manifest
    deleted: DeletedRows


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a fragment that the other version does not have there. All of them if `offsets` is None."""

    fragment: pb.DataFragment
    offsets: _Offsets | None = None


def differences(
    name: str,
    after: pb.Manifest,
    before: pb.Manifest | None,
    deleted_after: DeletedRows,
    deleted_before: DeletedRows,
    *,
    fields: frozenset[int] | None = None,
    updates_all: bool = False,
) -> list[DifferentRows]:
    """The rows that a version inserted, deleted or updated.

    Args:
        name: Name of the version, for messages.
        after: Manifest of the version.
        before: Manifest of the version before it, None for the first one.
        deleted_after: Deleted rows of the fragments of `after`.
        deleted_before: Deleted rows of the fragments of `before`.
        fields: Ids of the fields whose values count, of all if None.
        updates_all: Whether every row that both versions have is an updated one.

    Returns:
        The rows. Those of `after` in the order of its fragments, behind those of `before`. A row that was only moved is
        not among them.

    Raises:
        InvalidCall: Values were replaced without a record of the rows, or rows have no ids.
    """
    new = _Side(after, deleted_after)
    old = _Side(before or pb.Manifest(), deleted_before)
    if updates_all:
        removed, added = ([_Part(each) for each in side.manifest.fragments] for side in (old, new))
    else:
        removed, added = _parts(name, new, old, fields)
    if not removed or not added or not _may_share_ids(removed, added):
        return [*_alone("delete", name, removed, old), *_alone("insert", name, added, new)]
    return _matched(name, removed, added, old, new, updates_all=updates_all)


def _parts(name: str, new: _Side, old: _Side, fields: frozenset[int] | None) -> tuple[list[_Part], list[_Part]]:
    """Rows that are no longer in their fragment, and rows that were not in theirs before."""
    left = {fragment.id: fragment for fragment in old.manifest.fragments}
    removed: list[_Part] = []
    added: list[_Part] = []
    for fragment in new.manifest.fragments:
        known = left.get(fragment.id)
        if known is None or known.inline_row_ids != fragment.inline_row_ids:
            added.append(_Part(fragment))
            continue
        del left[fragment.id]
        if known != fragment:
            gone, back = _changed_offsets(name, known, fragment, old, new, fields)
            removed += [_Part(known, gone)] if len(gone) else []
            added += [_Part(fragment, back)] if len(back) else []
    return [*map(_Part, left.values()), *removed], added


def _changed_offsets(
    name: str,
    known: pb.DataFragment,
    fragment: pb.DataFragment,
    old: _Side,
    new: _Side,
    fields: frozenset[int] | None,
) -> tuple[_Offsets, _Offsets]:
    """Offsets of the rows that a fragment lost or got, rows with values that were replaced among both."""
    was, now = old.deleted(known), new.deleted(fragment)
    gone, back = now - was, was - now
    if _files(known, fields) != _files(fragment, fields):
        changed = np.flatnonzero(update_versions(known) != update_versions(fragment))
        replaced = bitmap_of(changed.astype(np.uint32)) - was - now
        if not replaced and len(was | now) < fragment.physical_rows:
            raise InvalidCall(
                f"{name}: replaces values of fragment {fragment.id} in place: expected a record of the rows that it "
                "changed, found none"
            )
        gone, back = gone | replaced, back | replaced
    return _array(gone), _array(back)


def _files(fragment: pb.DataFragment, counting: frozenset[int] | None) -> list[tuple[str, tuple[int, ...]]]:
    """The data files with the fields of each that count."""
    found = [
        (file.path, tuple(field for field in file.fields if counting is None or field in counting))
        for file in fragment.files
    ]
    return [each for each in found if each[1]]


def _may_share_ids(removed: Sequence[_Part], added: Sequence[_Part]) -> bool:
    """Whether the ranges of the ids overlap. Those of an overwrite and of appended rows do not."""
    (first, last), (start, end) = (_bounds(removed), _bounds(added))
    return first <= end and start <= last


def _bounds(parts: Sequence[_Part]) -> tuple[int, int]:
    bounds = [row_id_bounds(part.fragment) for part in parts]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _alone(kind: ChangeType, name: str, parts: Sequence[_Part], side: _Side) -> Iterator[DifferentRows]:
    for part in parts:
        ids = None if part.offsets is None else _rows(name, part, side)[0]
        yield DifferentRows(kind, part.fragment, ids)


def _matched(
    name: str, removed: Sequence[_Part], added: Sequence[_Part], old: _Side, new: _Side, *, updates_all: bool
) -> list[DifferentRows]:
    were = [_rows(name, part, old) for part in removed]
    are = [_rows(name, part, new) for part in added]
    old_ids, old_versions = (np.concatenate(columns) for columns in zip(*were, strict=True))
    new_ids, new_versions = (np.concatenate(columns) for columns in zip(*are, strict=True))
    _, first, second = np.intersect1d(old_ids, new_ids, assume_unique=True, return_indices=True)
    changed = (old_versions[first] != new_versions[second]) | (new_versions[second] == _UNKNOWN) | updates_all
    return [
        *_typed("delete", removed, were, ~_mask(len(old_ids), first)),
        *_typed("update_preimage", removed, were, _mask(len(old_ids), first[changed])),
        *_typed("update_postimage", added, are, _mask(len(new_ids), second[changed])),
        *_typed("insert", added, are, ~_mask(len(new_ids), second)),
    ]


def _typed(kind: ChangeType, parts: Sequence[_Part], rows: Sequence[_Rows], chosen: _Mask) -> Iterator[DifferentRows]:
    start = 0
    for part, (ids, _) in zip(parts, rows, strict=True):
        mask = chosen[start : start + len(ids)]
        start += len(ids)
        if mask.all() and part.offsets is None:
            yield DifferentRows(kind, part.fragment, None)
        elif mask.any():
            yield DifferentRows(kind, part.fragment, ids[mask])


def _rows(name: str, part: _Part, side: _Side) -> _Rows:
    """The ids of the rows of a part, and the versions that they were last changed at, `_UNKNOWN` without a record."""
    fragment = part.fragment
    ids = row_ids(fragment)
    if len(ids) != fragment.physical_rows:
        raise InvalidCall(
            f"{name}: fragment {fragment.id}: expected {fragment.physical_rows} row ids, found {len(ids)}"
        )
    offsets = part.offsets
    if offsets is None:
        offsets = _array(BitMap(range(len(ids))) - side.deleted(fragment))
    has_versions = bool(fragment.inline_last_updated_at_versions)
    versions = update_versions(fragment) if has_versions else np.full(len(ids), _UNKNOWN, np.uint64)
    return ids[offsets], versions[offsets]


def _mask(size: int, places: npt.NDArray[np.intp]) -> _Mask:
    mask = np.zeros(size, np.bool_)
    mask[places] = True
    return mask


def _array(offsets: BitMap) -> _Offsets:
    return np.array(offsets.to_array(), np.uint32)
