"""What a writer brings into a chain of a version that it has read and that was never committed there (rule P16).

A stock writer that looks for the newest version among the names on storage may read a manifest that is in quarantine by
then, and go on from it. Nearly all that such a manifest has, and the head has not, breaks the lineage of what is built
on it. Deletions do not: a deletion file has all deleted rows of its fragment, those of the writer and those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import covered_fragments
from lance_core.transaction.readings import DeletedRows, has_same_values, is_same_fragment, named_by

_CHANGING_DELETIONS = frozenset({"delete", "update", "merge", "create_index"})
"""Operations that state deleted rows, or that an index is made of those that are left."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The numbers of versions that the writer of a transaction may have read.

    Attributes:
        exact: Those that it names as read.
        below: Any below this one may have been read before stock pylance rebased the transaction; 0 for none.
    """

    exact: frozenset[int]
    below: int = 0


def readings_to_check(head: ManifestFile, proposed: ManifestFile) -> Readings | None:
    """The versions with whose quarantined namesakes `proposed` is to be compared; None if there can be nothing of one.

    By the metadata of fragments alone: deletions of one row in each, of fragments without deletions, are the writer's.
    """
    transaction = proposed.transaction
    if transaction is None or proposed.operation not in _CHANGING_DELETIONS:
        return None
    if proposed.operation == "create_index":
        versions = {index.dataset_version for index in transaction.create_index.new_indices if index.fragment_bitmap}
        return Readings(frozenset(versions)) if versions else None
    change = _change(head, proposed, transaction)
    if proposed.operation == "merge":
        return Readings(frozenset({transaction.read_version})) if change.after else None
    first = (
        not before.HasField("deletion_file") and after.deletion_file.num_deleted_rows == 1 for before, after in change
    )
    if not change.removed and not change.writes_columns and all(first):
        return None
    found_at = (after.deletion_file.read_version for _, after in change if after.HasField("deletion_file"))
    return Readings(frozenset({transaction.read_version, *found_at}), transaction.read_version)


def dirty_read(
    head: ManifestFile,
    proposed: ManifestFile,
    view: ManifestFile,
    namesake: ManifestFile | None,
    deleted_rows: DeletedRows,
) -> str | None:
    """What `proposed` has of `view`, a manifest in quarantine, and `head` has not, in words; None if it has nothing.

    `proposed` descends from `head` by its content (`lineage_break`). It has the deletions of `view` if each fragment
    that it changes has all of them, and others: a writer changes no fragment in which it finds no row. So a deletion
    of exactly those rows is its writer's own; one of them and others may be. A deletion file names the version over
    which it was made: that of `view`, unless the table has other deletions of the fragment than in `namesake`, its own
    version of that number (None if that is gone), over which the writer was rebased. Fragments that it removes are
    named by id alone: they may be others of `view` if it names that version as read. A new index that covers a fragment
    lacks the rows that were deleted when it was made. Where rows would be back that the head has deleted, the writer
    has seen some other version than the head in any case.

    Raises:
        CorruptFile, NotFound, UnsupportedFeature: Files that decide it cannot be read.
    """
    transaction = proposed.transaction
    if transaction is None or proposed.operation not in _CHANGING_DELETIONS:
        return None
    if proposed.operation == "create_index":
        return _indexed(head, transaction, view, deleted_rows)
    change, quarantined = _change(head, proposed, transaction), f"version {view.version}, which is in quarantine"
    for old, new in change:
        if deleted_rows(head.outline, old) - deleted_rows(proposed.outline, new):
            return f"deleted rows of fragment {old.id} would be back, which may be there in {quarantined}"
    seen = find_fragments(view.outline, change.before.keys())
    reason = None
    for number, before in sorted(change.before.items()):
        there, after = seen.get(number), change.after.get(number)
        if there is None or not is_same_fragment(before, there):
            if there is None or after is not None or view.version != transaction.read_version:
                return None
            reason = f"it removes fragment {number}, which may be that of {quarantined}, with other rows"
            continue
        if after is not None and not change.writes_columns and after.deletion_file.read_version != view.version:
            then = {} if namesake is None else find_fragments(namesake.outline, {number})
            if number in then and then[number].deletion_file == before.deletion_file:
                return None
        known, unseen = deleted_rows(head.outline, before), deleted_rows(view.outline, there)
        foreign = unseen - known
        if after is not None:
            deleted = deleted_rows(proposed.outline, after)
            is_own = known != deleted == unseen | known and not change.writes_columns
            if foreign - deleted or is_own:
                return None
        if foreign:
            reason = f"it deletes rows of fragment {number} that only {quarantined}, had deleted"
    return reason


@dataclass(frozen=True, slots=True)
class _Deletions:
    """The fragments of the head in which a transaction may delete rows, as they are before and after it.

    `removed` are those that it removes. One that `writes_columns` in place may delete nothing of its own.
    """

    before: dict[int, pb.DataFragment]
    after: dict[int, pb.DataFragment]
    removed: frozenset[int]
    writes_columns: bool

    def __iter__(self) -> Iterator[tuple[pb.DataFragment, pb.DataFragment]]:
        return ((self.before[number], after) for number, after in self.after.items())


def _change(head: ManifestFile, proposed: ManifestFile, transaction: pb.Transaction) -> _Deletions:
    if proposed.operation == "merge":
        listed = {fragment.id for fragment in transaction.merge.fragments}
        before, after = find_fragments(head.outline, listed), find_fragments(proposed.outline, listed)
        changed = {
            number
            for number in before.keys() & after.keys()
            if before[number].deletion_file != after[number].deletion_file
        }
        before, after = ({number: each[number] for number in changed} for each in (before, after))
        return _Deletions(before, after, frozenset(), writes_columns=True)
    operation = transaction.delete if proposed.operation == "delete" else transaction.update
    updated = frozenset(fragment.id for fragment in operation.updated_fragments)
    named = named_by(transaction)
    removed = (named.ids | named.seen.keys()) - updated
    before = find_fragments(head.outline, updated | removed)
    after = find_fragments(proposed.outline, updated & before.keys())
    return _Deletions(before, after, removed & before.keys(), writes_columns=bool(updated & named.ids))


def _indexed(
    head: ManifestFile, transaction: pb.Transaction, view: ManifestFile, deleted_rows: DeletedRows
) -> str | None:
    """How the fragments differ in `view` that new segments of that version cover, in words; None if they do not."""
    quarantined = f"version {view.version}, which is in quarantine"
    for index in transaction.create_index.new_indices:
        if index.dataset_version != view.version:
            continue
        covered = frozenset(covered_fragments(index))
        fields = frozenset({*index.fields, *index.covering_fields})
        before, seen = find_fragments(head.outline, covered), find_fragments(view.outline, covered)
        for number in sorted(before.keys() & seen.keys()):
            here, there = before[number], seen[number]
            if not is_same_fragment(here, there) or not has_same_values(here, there, fields, head.outline.fields):
                return f"index {index.name!r} may be made of other values, of fragment {number} of {quarantined}"
            if there.deletion_file == here.deletion_file:
                continue
            if deleted_rows(view.outline, there) - deleted_rows(head.outline, here):
                return f"index {index.name!r} may lack rows of fragment {number}, which {quarantined}, had deleted"
    return None
