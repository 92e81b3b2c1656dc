"""A Delete, Update or CreateIndex, moved onto a newer version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction
from lance_core.format.deletion import encode_deletion_file
from lance_core.format.outline import AnyManifest, find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import uncover
from lance_core.transaction.operations import CreateIndex, Delete, Update, fragment_ids


@dataclass(frozen=True, slots=True)
class MergedDeletions:
    """A deletion file that the rebase calls for, still to be written."""

    fragment_id: int
    message: pb.DeletionFile
    data: bytes


@dataclass(frozen=True, slots=True)
class Rebased:
    """`operation` in terms of the new version; `files` must be written before it is published."""

    operation: Delete | Update | CreateIndex
    files: tuple[MergedDeletions, ...]


def rebase_deletions(
    operation: Delete | Update,
    head: AnyManifest,
    ours: Mapping[int, BitMap],
    theirs: Mapping[int, BitMap],
) -> Rebased:
    """Say `operation` again in terms of the fragments of `head`.

    `ours` and `theirs` hold, by fragment id, the complete sets of rows that are deleted in the operation's deletion
    file and in the head's, for the fragments of which both changed. Their union goes into a new deletion file, read
    at the head's version, under a fresh id; a fragment of which no row is left is removed. Every other updated
    fragment is the head's with the operation's deletion file. Raises `InvalidTransaction` for one that the head does
    not have, whatever became of it. The operation must have been judged to be rebasable;
    an Update that rewrites columns shares no fragment with anything and stays as it is.
    """
    if isinstance(operation, Update) and operation.rewrites_columns:
        return Rebased(operation, ())
    current = find_fragments(head, fragment_ids(operation.updated))
    updated: list[pb.DataFragment] = []
    removed = list(operation.removed_ids)
    files: list[MergedDeletions] = []
    for fragment in operation.updated:
        if fragment.id not in current:
            raise InvalidTransaction(f"fragment {fragment.id} is not in the table (version {head.version})")
        moved = pb.DataFragment()
        moved.CopyFrom(current[fragment.id])
        if fragment.id not in theirs:
            moved.deletion_file.CopyFrom(fragment.deletion_file)
            updated.append(moved)
            continue
        union = ours[fragment.id] | theirs[fragment.id]
        if len(union) >= moved.physical_rows:
            removed.append(fragment.id)
            continue
        message, data = encode_deletion_file(union, read_version=head.version)
        moved.deletion_file.CopyFrom(message)
        updated.append(moved)
        files.append(MergedDeletions(fragment.id, message, data))
    return Rebased(replace(operation, updated=tuple(updated), removed_ids=tuple(removed)), tuple(files))


def rebase_coverage(operation: CreateIndex, head: AnyManifest, committed: Iterable[pb.Transaction]) -> Rebased:
    """The operation without the fragments in which one of `committed` rewrote a column that it indexes."""
    indices: pb.IndexSection | None = pb.IndexSection(indices=operation.new)
    for transaction in committed:
        modified = frozenset(transaction.update.fields_modified)
        fragments = fragment_ids(transaction.update.updated_fragments)
        indices = uncover(head, indices, dict.fromkeys(fragments, modified))
    assert indices is not None
    return Rebased(replace(operation, new=tuple(indices.indices)), ())
