"""Applies a Rewrite to a manifest being built: other fragments for the same rows, and updated index coverage."""

from __future__ import annotations

from collections.abc import Iterable

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction
from lance_core.format.deletion import live_row_count
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from lance_core.transaction.fragments import check_files, file_key, file_version, next_fragment_id
from lance_core.transaction.heads import LAST_FRAGMENT_ID
from lance_core.transaction.indices import coverage, covered_fragments, holds_row_ids
from lance_core.transaction.operations import Rewrite
from lance_core.transaction.row_ids import row_ids

_LAST_INDEX_VERSION = (1 << 31) - 1

_Groups = list[tuple[BitMap, BitMap]]
"""Ids of the old and of the new fragments, group by group."""


def rewrite_fragments(
    manifest: pb.Manifest, indices: pb.IndexSection | None, operation: Rewrite
) -> pb.IndexSection | None:
    """Replace the old fragments of each group by the new ones. Returns the resulting index list.

    Raises `InvalidTransaction` if an old fragment changed since the transaction read it, if a group has another number
    of rows than before, or if an index would cover a part of a group.
    """
    current = {fragment.id: fragment for fragment in manifest.fragments}
    groups: _Groups = []
    for group in operation.groups:
        live = 0
        for seen in group.old_fragments:
            fragment = current.pop(seen.id, None)
            if fragment is None or _content(fragment) != _content(seen):
                raise InvalidTransaction(
                    f"fragment {seen.id} is not in the table (version {manifest.version - 1}) as it was compacted"
                )
            live += live_row_count(fragment)
        found = sum(live_row_count(fragment) for fragment in group.new_fragments)
        if found != live:
            raise InvalidTransaction(f"a group of compacted fragments has {found} rows, expected {live}")
        new = _number(manifest, group.new_fragments)
        taken = {fragment.id for fragment in new} & current.keys()
        if taken:
            raise InvalidTransaction(f"compacted fragment {min(taken)} has an id that is in use")
        current.update((fragment.id, fragment) for fragment in new)
        groups.append((coverage(seen.id for seen in group.old_fragments), coverage(fragment.id for fragment in new)))
    del manifest.fragments[:]
    manifest.fragments.extend(current[identifier] for identifier in sorted(current))
    return _follow(indices, operation, groups, stable=has_stable_row_ids(manifest))


def _content(fragment: pb.DataFragment) -> tuple[list[tuple[str, int | None]], bytes]:
    return [file_key(file) for file in fragment.files], fragment.deletion_file.SerializeToString(deterministic=True)


def _number(manifest: pb.Manifest, fragments: Iterable[pb.DataFragment]) -> list[pb.DataFragment]:
    numbered: list[pb.DataFragment] = []
    for fragment in fragments:
        check_files(fragment.files, file_version(manifest))
        copy = pb.DataFragment()
        copy.CopyFrom(fragment)
        if copy.id > LAST_FRAGMENT_ID or next_fragment_id(manifest) > LAST_FRAGMENT_ID:
            raise InvalidTransaction(f"compacted fragment {copy.id}: expected an id up to {LAST_FRAGMENT_ID}")
        if not copy.id:
            copy.id = next_fragment_id(manifest)
        manifest.max_fragment_id = max(copy.id, next_fragment_id(manifest) - 1)
        if has_stable_row_ids(manifest) and len(row_ids(copy)) != copy.physical_rows:
            raise InvalidTransaction(
                f"compacted fragment {copy.id} of {copy.physical_rows} rows brings {len(row_ids(copy))} row ids"
            )
        numbered.append(copy)
    return numbered


def _follow(
    indices: pb.IndexSection | None, operation: Rewrite, groups: _Groups, *, stable: bool
) -> pb.IndexSection | None:
    """The index list after the Rewrite.

    Rewritten segments, and segments that hold stable row ids, cover the new fragments. Other segments keep covering
    the removed fragments only, and the new fragments are searched without an index.
    """
    if indices is None:
        return None
    moved = {entry.old_id.uuid: entry for entry in operation.rewritten_indices}
    if len(moved) < len(operation.rewritten_indices):
        raise InvalidTransaction("an index segment is rewritten twice by one transaction")
    followed = pb.IndexSection()
    followed.CopyFrom(indices)
    for index in followed.indices:
        entry = moved.get(index.uuid.uuid)
        if index.fragment_bitmap and (entry is not None or (stable and holds_row_ids(index))):
            index.fragment_bitmap = _translate(index, groups).serialize()
        if entry is not None:
            if entry.new_index_version > _LAST_INDEX_VERSION:
                raise InvalidTransaction(f"index {index.name!r} is rewritten to version {entry.new_index_version}")
            index.uuid.CopyFrom(entry.new_id)
            index.index_details.CopyFrom(entry.new_index_details)
            index.index_version = entry.new_index_version
            # The old segment may be below another root (of a branch or clone); the new one is below this root.
            index.ClearField("base_id")
            del index.files[:]
            index.files.extend(entry.new_index_files)
    return followed


def _translate(index: pb.IndexMetadata, groups: _Groups) -> BitMap:
    before = covered_fragments(index)
    after = before.copy()
    for old, new in groups:
        covered = before & old
        if not covered:
            continue
        if covered != old:
            raise InvalidTransaction(
                f"index {index.name!r} covers fragment {covered.min()} and not {(old - covered).min()}, which are "
                "compacted together"
            )
        after = (after - old) | new
    return after
