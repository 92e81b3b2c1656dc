"""Rebases a Delete, Update or CreateIndex onto a newer version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction
from lance_core.format.deletion import FragmentDeletions, delete_rows
from lance_core.format.outline import AnyManifest, find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import uncover
from lance_core.transaction.operations import CreateIndex, Delete, Update, fragment_ids


@dataclass(frozen=True, slots=True)
class Rebased:
    """`operation` in terms of the new version; `files` must be written before it is published."""

    operation: Delete | Update | CreateIndex
    files: tuple[FragmentDeletions, ...]


def rebase_deletions(
    operation: Delete | Update,
    head: AnyManifest,
    ours: Mapping[int, BitMap],
    theirs: Mapping[int, BitMap],
) -> Rebased:
    """Express `operation` in terms of the fragments of `head`.

    The operation must have been judged to be rebasable. In fragments that both changed, the deletions are merged into
    a new deletion file with the head's version as read version and a fresh id; a fragment without remaining rows is
    removed. Every other updated fragment is the head's, with the operation's deletion file. An Update that rewrites
    columns shares no fragment with a concurrent transaction and is unchanged.

    Args:
        operation: The operation.
        head: The manifest to rebase onto.
        ours: By fragment id, all deleted rows in the operation's deletion file, for fragments that both changed.
        theirs: By fragment id, all deleted rows in the head's deletion file, for the same fragments.

    Raises:
        InvalidTransaction: The head does not have an updated fragment.
    """
    if isinstance(operation, Update) and operation.rewrites_columns:
        return Rebased(operation, ())
    current = find_fragments(head, fragment_ids(operation.updated))
    updated: list[pb.DataFragment] = []
    removed = list(operation.removed_ids)
    files: list[FragmentDeletions] = []
    for fragment in operation.updated:
        if fragment.id not in current:
            raise InvalidTransaction(f"fragment {fragment.id} is not in the table (version {head.version})")
        if fragment.id not in theirs:
            moved = pb.DataFragment()
            moved.CopyFrom(current[fragment.id])
            moved.deletion_file.CopyFrom(fragment.deletion_file)
            updated.append(moved)
            continue
        union = ours[fragment.id] | theirs[fragment.id]
        merged = delete_rows(current[fragment.id], union, read_version=head.version)
        if merged is None:
            removed.append(fragment.id)
        else:
            updated.append(merged.fragment)
            files.append(merged)
    return Rebased(replace(operation, updated=tuple(updated), removed_ids=tuple(removed)), tuple(files))


def rebase_coverage(operation: CreateIndex, head: AnyManifest, committed: Iterable[pb.Transaction]) -> Rebased:
    """The operation, with index coverage reduced by the fragments in which `committed` rewrote an indexed column."""
    indices: pb.IndexSection | None = pb.IndexSection(indices=operation.new)
    for transaction in committed:
        modified = frozenset(transaction.update.fields_modified)
        fragments = fragment_ids(transaction.update.updated_fragments)
        indices = uncover(head, indices, dict.fromkeys(fragments, modified))
    assert indices is not None
    return Rebased(replace(operation, new=tuple(indices.indices)), ())
