"""Row ids and row versions for the fragments of one commit, on a table with stable row ids.

They depend on the version being built, so every attempt computes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lance_core.errors import CorruptFile, InvalidTransaction, UnsupportedFeature
from lance_core.format.bitmaps import decode_bitmap
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Update
from lance_core.transaction.row_ids import (
    MAX_ROWS,
    Numbers,
    creation_versions,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
    encode_versions,
    row_id_bounds,
    row_ids,
    update_versions,
)


def stamp_new_rows(added: Sequence[pb.DataFragment], next_row_id: int, version: int) -> int:
    """Set row ids and versions of fragments with new rows, in place. Returns the next free row id."""
    for fragment in added:
        _stamp_fresh(fragment, next_row_id, version)
        next_row_id += fragment.physical_rows
    return next_row_id


def stamp_moved_rows(
    added: Sequence[pb.DataFragment], existing: Iterable[pb.DataFragment], next_row_id: int, version: int
) -> int:
    """Set row ids and versions of the new fragments of an Update, in place. Returns the next free row id.

    Row ids that a fragment already carries belong to moved rows, which keep the creation version that `existing` (the
    fragments of the previous version) records. Further rows are new. Raises `InvalidTransaction` for more ids than
    rows.
    """
    moved = [row_ids(fragment) for fragment in added]
    origins = _Origins(existing, moved)
    used = next_row_id
    for fragment, old in zip(added, moved, strict=True):
        rows = fragment.physical_rows
        if len(old) and int(old.max()) >= used:
            raise InvalidTransaction(
                f"a new fragment brings row id {old.max()}: expected ids of rows that moved, below {used}"
            )
        if len(old) > rows:
            raise InvalidTransaction(f"a new fragment of {rows} rows brings {len(old)} row ids")
        if len(old) == 0:
            _stamp_fresh(fragment, next_row_id, version)
            next_row_id += rows
            continue
        if rows > MAX_ROWS:
            raise UnsupportedFeature(f"a new fragment of {rows} rows, some of which moved: expected at most {MAX_ROWS}")
        fresh = np.arange(next_row_id, next_row_id + rows - len(old), dtype=np.uint64)
        if len(fresh):
            fragment.inline_row_ids = encode_row_ids(np.concatenate((old, fresh)))
            next_row_id += len(fresh)
        created = np.concatenate((origins.creation_versions(old, version), np.full(len(fresh), version, np.uint64)))
        fragment.inline_created_at_versions = encode_versions(created)
        fragment.inline_last_updated_at_versions = encode_uniform_versions(rows, version)
    return next_row_id


def stamp_rewritten_columns(fragment: pb.DataFragment, operation: Update, version: int) -> pb.DataFragment:
    """A copy of an updated fragment whose rewritten rows (all, if the operation lists none) carry this version."""
    stamped = pb.DataFragment()
    stamped.CopyFrom(fragment)
    encoded = operation.rewritten_offsets.get(fragment.id)
    if encoded is None:
        stamped.inline_last_updated_at_versions = encode_uniform_versions(fragment.physical_rows, version)
        return stamped
    versions = update_versions(fragment)
    offsets = decode_bitmap(encoded, f"rewritten rows of fragment {fragment.id}")
    if offsets and offsets.max() >= fragment.physical_rows:
        raise InvalidTransaction(f"fragment {fragment.id} has no row {offsets.max()}, which was rewritten")
    versions[offsets.to_array()] = version
    stamped.inline_last_updated_at_versions = encode_versions(versions)
    return stamped


def _stamp_fresh(fragment: pb.DataFragment, next_row_id: int, version: int) -> None:
    rows = fragment.physical_rows
    fragment.inline_row_ids = encode_row_id_range(next_row_id, next_row_id + rows)
    fragment.inline_created_at_versions = encode_uniform_versions(rows, version)
    fragment.inline_last_updated_at_versions = encode_uniform_versions(rows, version)


class _Origins:
    """The creation versions of moved rows, from the fragments they were moved out of."""

    def __init__(self, existing: Iterable[pb.DataFragment], moved: Sequence[Numbers]) -> None:
        wanted = np.unique(np.concatenate(moved)) if moved else np.empty(0, np.uint64)
        self._created: dict[int, int] = {}
        if len(wanted) == 0:
            return
        low, high = int(wanted[0]), int(wanted[-1])
        # An id occurs in every fragment that held its row; the oldest fragment has the true creation version.
        for fragment in sorted(existing, key=lambda entry: entry.id):
            first, last = row_id_bounds(fragment)
            if last < low or first > high:
                continue
            ids = row_ids(fragment)
            if len(ids) > fragment.physical_rows:
                raise CorruptFile(f"fragment {fragment.id} of {fragment.physical_rows} rows has {len(ids)} row ids")
            hits = np.flatnonzero(np.isin(ids, wanted))
            created = creation_versions(fragment)
            for hit in hits:
                self._created.setdefault(int(ids[hit]), int(created[hit]))

    def creation_versions(self, ids: Numbers, version: int) -> Numbers:
        """The version that created each row; `version` for a row that was in no fragment."""
        return np.array([self._created.get(int(identifier), version) for identifier in ids], np.uint64)
