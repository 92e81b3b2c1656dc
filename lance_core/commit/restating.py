"""States a transaction anew in terms of the head, if its writer read a version that is not of this chain (rule P12).

The ids that the transaction names are those of its own version. Fragments are the same where they have a data file in
common, rows where they have the same place in it, columns where id, parent, name and type are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from pyroaring import BitMap

from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.commit.prepare import restate_transaction
from lance_core.errors import CorruptFile, InvalidTransaction, NotFound, UnsupportedFeature
from lance_core.format.deletion import FragmentDeletions, delete_rows
from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import fragments_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.table_files import TableFiles
from lance_core.transaction.conflicts.rules import Context, Outcome, judge, shared_fragments
from lance_core.transaction.fields import descriptions
from lance_core.transaction.fragments import file_key
from lance_core.transaction.indices import SYSTEM_INDICES, covered_fragments
from lance_core.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    decode_operation,
)
from lance_core.transaction.readings import has_same_values, is_same_fragment, lone_index, named_by, written_fields


@dataclass(frozen=True, slots=True)
class Restated:
    """The transaction as one that read the head; `files` are keys and bytes to be written before it is committed."""

    transaction: pb.Transaction
    files: tuple[tuple[str, bytes], ...]


def restate(
    transaction: pb.Transaction,
    view: ManifestFile,
    head: ManifestFile,
    concurrent: Iterable[ConcurrentVersion],
    files: TableFiles,
) -> Restated:
    """State `transaction`, which read `view`, as one that reads `head`, and judge it against `concurrent`.

    `concurrent` are the versions of the chain of `head` that are not in `view`: its transactions have been judged
    against none of them. Writes nothing. The same arguments give the same transaction, except for the random ids of
    deletion files.

    Raises:
        InvalidTransaction: Something that the transaction names is not in the head, or was changed there, or a
            concurrent version conflicts; the message says what.
        CorruptFile, StorageError: A file that states it cannot be read.
    """
    change = _Restating(view, head, files)
    try:
        operation = change.operation(decode_operation(transaction))
    except (NotFound, UnsupportedFeature) as error:
        raise InvalidTransaction(str(error)) from error
    for other in concurrent:
        verdict = judge(operation, other.transaction, change.context(operation, other))
        if verdict.outcome in {Outcome.RETRYABLE, Outcome.INCOMPATIBLE}:
            raise InvalidTransaction(f"it conflicts with version {other.version}: {verdict.reason}")
    made = tuple((each.path(files.base), each.data) for each in change.made)
    return Restated(restate_transaction(transaction, operation, head.version), made)


class _Restating:
    """One transaction on its way from `view` to `head`. `made` are the deletion files that it needs there."""

    def __init__(self, view: ManifestFile, head: ManifestFile, files: TableFiles) -> None:
        self._view = view
        self._head = head
        self._files = files
        self._rows: dict[int, BitMap] = {}
        self.made: list[FragmentDeletions] = []

    def operation(self, operation: Operation) -> Operation:
        """The operation in terms of the head, not judged yet. Raises as `restate`."""
        if isinstance(operation, (Delete, Update)) and (index := lone_index(self._view, self._head)) is not None:
            raise InvalidTransaction(f"its rows may have been found by index {index!r}, which the table does not have")
        match operation:
            case Append():
                self._check_fields(written_fields(operation.fragments))
                return operation
            case Delete():
                updated, removed = self._delete_rows(operation.updated, operation.removed_ids)
                return replace(operation, updated=updated, removed_ids=removed)
            case Update():
                return self._update(operation)
            case Merge():
                self._check_schema()
                return replace(operation, fragments=tuple(map(self._unchanged, operation.fragments)))
            case Rewrite():
                return self._rewrite(operation)
            case DataReplacement():
                return DataReplacement(tuple(map(self._replacement, operation.replacements)))
            case CreateIndex():
                self._check_indices(operation.new)
                return operation
            case Project():
                self._check_schema()
                return operation
            case UpdateConfig():
                self._check_fields(frozenset(operation.field_metadata))
                return operation
            case Overwrite() | Restore() | ReserveFragments() | UpdateBases():
                return operation
        raise InvalidTransaction("its operation cannot be stated in terms of another version")

    def context(self, operation: Operation, other: ConcurrentVersion) -> Context:
        """The rows that a verdict against `other` may depend on."""
        theirs: dict[int, BitMap] = {}
        for fragment in fragments_of(other.outline) if shared_fragments(operation, other.transaction) else ():
            if fragment.id in self._rows:
                try:
                    theirs[fragment.id] = self._files.deleted_rows(other.outline, fragment)
                except (NotFound, CorruptFile, UnsupportedFeature):
                    continue
        return Context(self._rows, theirs, self._head.outline.fields)

    @cached_property
    def _seen(self) -> dict[int, pb.DataFragment]:
        return {fragment.id: fragment for fragment in fragments_of(self._view.outline)}

    @cached_property
    def _holders(self) -> dict[tuple[str, int | None], pb.DataFragment]:
        """The fragments of the head by their data files."""
        return {file_key(file): each for each in fragments_of(self._head.outline) for file in each.files}

    def _target(self, number: int) -> pb.DataFragment:
        """The fragment of the head that has the rows of fragment `number` of the view."""
        seen = self._seen.get(number)
        if seen is None:
            raise InvalidTransaction(f"fragment {number} is not in version {self._view.version}, which it read")
        found = next((held for file in seen.files if (held := self._holders.get(file_key(file))) is not None), None)
        if found is None:
            raise InvalidTransaction(f"no fragment of the table has the files of its fragment {number}")
        return found

    def _delete_rows(
        self, updated: Iterable[pb.DataFragment], removed: Iterable[int]
    ) -> tuple[tuple[pb.DataFragment, ...], tuple[int, ...]]:
        """Fragments of the head with the rows deleted that the transaction deletes, and ids of those without any left.

        Only these: not those that were deleted in the view by a transaction that is not in the head.
        """
        changed: list[pb.DataFragment] = []
        gone: list[int] = []
        for number in removed:
            target = self._target(number)
            before, now = self._deleted(number, target)
            if before != now:
                raise InvalidTransaction(f"fragment {target.id} has other rows than when it was removed as {number}")
            self._rows[target.id] = BitMap(range(target.physical_rows)) - before
            gone.append(target.id)
        for fragment in updated:
            target = self._target(fragment.id)
            before, now = self._deleted(fragment.id, target)
            complete = self._files.deleted_rows(self._view.outline, fragment)
            own = complete - before
            if own & now:
                raise InvalidTransaction(f"rows of fragment {target.id} that it changes are not there any more")
            self._rows[target.id] = own
            if target.id == fragment.id and own | now == complete:
                kept = pb.DataFragment.FromString(target.SerializeToString())
                kept.deletion_file.CopyFrom(fragment.deletion_file)
                changed.append(kept)
            elif (left := delete_rows(target, own | now, read_version=self._head.version)) is None:
                gone.append(target.id)
            elif own:
                self.made.append(left)
                changed.append(left.fragment)
        return tuple(changed), tuple(gone)

    def _deleted(self, number: int, target: pb.DataFragment) -> tuple[BitMap, BitMap]:
        """The deleted rows of a fragment of the view, and of the same one in the head."""
        before = self._files.deleted_rows(self._view.outline, self._seen[number])
        return before, self._files.deleted_rows(self._head.outline, target)

    def _update(self, operation: Update) -> Update:
        self._check_fields(written_fields(operation.new) | frozenset(operation.fields_modified))
        if operation.compacted_sstables:
            raise InvalidTransaction("it merges a log of writes that was read with another version")
        if operation.rewrites_columns:
            updated = tuple(map(self._unchanged, operation.updated))
            _, removed = self._delete_rows((), operation.removed_ids)
        else:
            updated, removed = self._delete_rows(operation.updated, operation.removed_ids)
        touched = {*(fragment.id for fragment in operation.updated), *operation.removed_ids}
        moved = any(self._target(number).id != number for number in touched)
        if moved and any(fragment.inline_row_ids for fragment in operation.new):
            raise InvalidTransaction("it moves rows by stable row ids that they do not have in the table")
        offsets = {self._target(number).id: rows for number, rows in operation.rewritten_offsets.items()}
        return replace(operation, updated=updated, removed_ids=removed, rewritten_offsets=offsets)

    def _unchanged(self, fragment: pb.DataFragment) -> pb.DataFragment:
        """A fragment with new files, under the id that it has in the head, where it is as the view has it."""
        target, seen = self._target(fragment.id), self._seen[fragment.id]
        same_files = list(map(file_key, target.files)) == list(map(file_key, seen.files))
        if not same_files or target.deletion_file != seen.deletion_file:
            raise InvalidTransaction(f"fragment {target.id} was changed")
        if target.id != fragment.id and seen.HasField("deletion_file"):
            raise InvalidTransaction(f"rows of fragment {target.id} are deleted under another id, {fragment.id}")
        moved = pb.DataFragment.FromString(fragment.SerializeToString())
        moved.id = target.id
        return moved

    def _replacement(self, group: pb.Transaction.DataReplacementGroup) -> pb.Transaction.DataReplacementGroup:
        self._check_fields(frozenset(group.new_file.fields))
        number = self._target(group.fragment_id).id
        return pb.Transaction.DataReplacementGroup(fragment_id=number, new_file=group.new_file)

    def _rewrite(self, operation: Rewrite) -> Rewrite:
        if operation.rewritten_indices:
            raise InvalidTransaction("it moves indices to fragments by ids that are others in the table")
        groups = []
        for group in operation.groups:
            moved = pb.Transaction.Rewrite.RewriteGroup(
                old_fragments=map(self._unchanged, group.old_fragments), new_fragments=group.new_fragments
            )
            for fragment in moved.new_fragments:
                fragment.id = 0  # those that it had reserved may be in use
            groups.append(moved)
        return replace(operation, groups=tuple(groups))

    def _check_indices(self, indices: Iterable[pb.IndexMetadata]) -> None:
        here = {fragment.id: fragment for fragment in fragments_of(self._head.outline)}
        for index in indices:
            if index.name in SYSTEM_INDICES:
                raise InvalidTransaction(f"index {index.name} was made for another version")
            fields = frozenset((*index.fields, *index.covering_fields))
            self._check_fields(fields)
            for number in covered_fragments(index) if index.fragment_bitmap else ():
                seen = self._seen.get(number)
                target = here.get(number) if seen is None else self._target(number)
                if target is not None and (seen is None or target.id != number):
                    raise InvalidTransaction(f"index {index.name} holds rows of another fragment {number}")
                if target is not None and not self._is_indexed(number, target, fields):
                    raise InvalidTransaction(
                        f"index {index.name!r} was made of other rows of fragment {number} than the table has"
                    )

    def _is_indexed(self, number: int, target: pb.DataFragment, fields: frozenset[int]) -> bool:
        """Whether an index over fields of the view has each row of a fragment of the head, as it is there."""
        before, now = self._deleted(number, target)
        return before <= now and has_same_values(self._seen[number], target, fields, self._head.outline.fields)

    def _check_fields(self, used: frozenset[int]) -> None:
        ours, theirs = descriptions(self._head.outline.fields), descriptions(self._view.outline.fields)
        for number in sorted(used):
            if number in theirs and ours.get(number) != theirs[number]:
                raise InvalidTransaction(f"the table has no such column as {theirs[number][1]!r}, field {number}")

    def _check_schema(self) -> None:
        if descriptions(self._head.outline.fields) != descriptions(self._view.outline.fields):
            raise InvalidTransaction("the table has other columns than the version that it read")


def names_the_same(transaction: pb.Transaction, one: ManifestFile, other: ManifestFile) -> bool:
    """Whether a transaction names the same fragments and columns, whichever of two versions its writer read.

    Raises `CorruptFile`.
    """
    named = named_by(transaction)
    ours, theirs = descriptions(one.outline.fields), descriptions(other.outline.fields)
    if (named.schema and ours != theirs) or any(ours.get(each) != theirs.get(each) for each in named.fields):
        return False
    wanted = named.ids | named.seen.keys() | named.covered
    here = {each.id: each for each in fragments_of(one.outline) if each.id in wanted}
    there = {each.id: each for each in fragments_of(other.outline) if each.id in wanted}
    return all(
        (mine := here.get(number)) is not None
        and (yours := there.get(number)) is not None
        and is_same_fragment(mine, yours)
        and (number not in named.emptied | named.covered or mine.deletion_file == yours.deletion_file)
        and (number not in named.covered or has_same_values(mine, yours, named.fields, one.outline.fields))
        for number in here.keys() | there.keys()
    )
