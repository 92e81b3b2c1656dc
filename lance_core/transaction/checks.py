"""Fields of a transaction that contradict each other or the head, and that no step of applying it would notice.

A version with such a field could be committed, and not be opened or scanned. Nothing is read from storage: the content
of files is compared with the statements about it before (S1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np

from lance_core.errors import CorruptFile, InvalidTransaction
from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.columns import Columns, live_fields
from lance_core.transaction.fields import check_schema
from lance_core.transaction.fragments import file_key
from lance_core.transaction.heads import LAST_FRAGMENT_ID
from lance_core.transaction.indices import FRAGMENT_REUSE, MEM_WAL, SYSTEM_INDICES, covered_fragments
from lance_core.transaction.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    Rewrite,
    Update,
    UpdateConfig,
    UpdateMemWalState,
    fragment_ids,
)
from lance_core.transaction.row_ids import Numbers, check_versions, other_row_ids, row_ids
from lance_core.transaction.schema_checks import check_field_update, check_fields, check_kept_fields

_SEQUENCES: Final = ("row_ids", "created_at_versions", "last_updated_at_versions")
_UUID_BYTES: Final = 16
_LAST_MILLISECOND: Final = 253_402_300_799_999
_DETAILS: Final = {FRAGMENT_REUSE: "FragmentReuseIndexDetails", MEM_WAL: "MemWalIndexDetails"}


def check_operation(operation: Operation, head: ManifestFile | None, *, rebased: bool) -> None:
    """Raise `InvalidTransaction` for an operation whose version could not be opened, or would not have its rows.

    `rebased`: there are versions above the one that was read. Columns may have been dropped by these, so new files may
    have fields that the head does not have.
    """
    schema = operation.schema if isinstance(operation, Overwrite | Merge | Project) else ()
    if schema:
        check_schema(schema)
        check_fields(schema, () if head is None or isinstance(operation, Overwrite) else head.outline.fields)
    if isinstance(operation, Overwrite):
        _check_new_fragments(operation.fragments, Columns(schema), exact=True)
    elif head is not None:
        _check_on_head(operation, head, exact=not rebased)


def _check_on_head(operation: Operation, head: ManifestFile, *, exact: bool) -> None:
    fields = head.outline.fields
    match operation:
        case Append():
            _check_new_fragments(operation.fragments, Columns(fields), exact=exact)
        case Delete():
            _check_updated(operation.updated, head)
        case Update():
            _check_update(operation, head, exact=exact)
        case Merge():
            _check_merge(operation, head)
        case Project():
            check_kept_fields(operation.schema, fields)
        case DataReplacement():
            for group in operation.replacements:
                Columns(fields).check([group.new_file], f"fragment {group.fragment_id}", exact=False)
        case Rewrite():
            _check_rewrite(operation, head, exact=exact)
        case CreateIndex():
            _check_indices(operation, head)
        case UpdateConfig():
            known = {field.id: field for field in fields}
            for number, update in operation.field_metadata.items():
                if number in known:
                    check_field_update(known[number], update, fields)
        case UpdateMemWalState():
            _check_shards(operation.compacted_sstables)


def _check_new_fragments(fragments: Iterable[pb.DataFragment], columns: Columns, *, exact: bool) -> None:
    for fragment in fragments:
        if fragment.overlays:
            raise InvalidTransaction("a new fragment has overlays: expected its rows in its data files")
        columns.check(fragment.files, "a new fragment", exact=exact)
        if exact:
            columns.require(fragment.files, "a new fragment")


def _check_update(operation: Update, head: ManifestFile, *, exact: bool) -> None:
    columns = Columns(head.outline.fields)
    _check_new_fragments(operation.new, columns, exact=exact)
    _check_shards(operation.compacted_sstables)
    if operation.rewrites_columns:
        before = _check_sequences(operation.updated, head, *_SEQUENCES[:2])
        for fragment in operation.updated:
            _check_columns_kept(before, fragment, columns, columns, exact=exact)
            check_versions(fragment)
    else:
        _check_updated(operation.updated, head)
    _check_moved_rows(operation, head)


def _check_updated(updated: Sequence[pb.DataFragment], head: ManifestFile) -> None:
    """The updated fragments of an operation that only deletes rows of them."""
    before = _check_sequences(updated, head, *_SEQUENCES)
    for fragment in updated:
        current = before.get(fragment.id)
        if current is None:
            continue
        if [_described(file) for file in fragment.files] != [_described(file) for file in current.files] or any(
            file.file_size_bytes not in {0, old.file_size_bytes} and old.file_size_bytes
            for file, old in zip(fragment.files, current.files, strict=True)
        ):
            raise InvalidTransaction(f"fragment {fragment.id} has other data files than in the table")
        if list(fragment.overlays) != list(current.overlays):
            raise InvalidTransaction(f"fragment {fragment.id} has other overlays than in the table")


def _described(file: pb.DataFile) -> tuple[object, ...]:
    version = (file.file_major_version, file.file_minor_version)
    return file_key(file), tuple(file.fields), tuple(file.column_indices), version


def _check_sequences(
    updated: Iterable[pb.DataFragment], head: ManifestFile, *names: str
) -> Mapping[int, pb.DataFragment]:
    """Compare row ids and row versions with those of the table; returns the fragments of the table by id."""
    fragments = list(updated)
    before = find_fragments(head.outline, fragment_ids(fragments))
    for fragment in fragments:
        current = before.get(fragment.id)
        for name in names:
            for form in (f"inline_{name}", f"external_{name}"):
                if current is not None and getattr(fragment, form) != getattr(current, form):
                    raise InvalidTransaction(f"fragment {fragment.id}: {form} are not those of the table")
    return before


def _check_columns_kept(
    before: Mapping[int, pb.DataFragment], fragment: pb.DataFragment, old: Columns, new: Columns, *, exact: bool
) -> None:
    """A fragment whose columns were written again: it has files, and still has each column of the schema."""
    new.check(fragment.files, f"fragment {fragment.id}", exact=exact, dead=True)
    current = before.get(fragment.id)
    if current is None:
        return
    lost = (live_fields(current.files) & old.ids & new.ids) - live_fields(fragment.files)
    if lost or not live_fields(fragment.files):
        raise InvalidTransaction(f"fragment {fragment.id} has no data file with field {min(lost, default=None)} left")
    if list(fragment.overlays) != list(current.overlays):
        raise InvalidTransaction(f"fragment {fragment.id} has other overlays than in the table")


def _check_moved_rows(operation: Update, head: ManifestFile) -> None:
    """Row ids that new fragments bring are of rows that the update takes from the fragments that it names, each once.

    Whether such a row is among the deleted ones of its fragment is not known without the deletion file.
    """
    carrying = [fragment for fragment in operation.new if fragment.inline_row_ids]
    if not head.outline.next_row_id or not carrying:  # without stable row ids they are dropped
        return
    named = fragment_ids(operation.updated) | frozenset(operation.removed_ids)
    before = find_fragments(head.outline, named)
    gone = sum(fragment.deletion_file.num_deleted_rows for fragment in operation.updated)
    gone += sum(before[number].physical_rows for number in before.keys() & operation.removed_ids)
    gone -= sum(fragment.deletion_file.num_deleted_rows for fragment in before.values())
    moved = _distinct(carrying, before.values(), "a new fragment")
    if moved > gone:
        raise InvalidTransaction(f"new fragments bring {moved} row ids: expected those of the {gone} rows that moved")


def _distinct(brought: Iterable[pb.DataFragment], sources: Iterable[pb.DataFragment], what: str) -> int:
    """The number of row ids that fragments bring: each once, and each of a row of the `sources`."""
    parts: list[Numbers] = []
    for fragment in brought:
        try:
            parts.append(row_ids(fragment))
        except CorruptFile as error:
            raise InvalidTransaction(f"{what}: inline_row_ids: {error}") from error
    ids = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    is_ascending = bool(np.all(ids[1:] > ids[:-1]))
    if not is_ascending and len(np.unique(ids)) < len(ids):
        raise InvalidTransaction(f"{what} brings a row id twice")
    strange = reduce(other_row_ids, sources, ids)
    if len(strange):
        raise InvalidTransaction(f"{what} brings row id {strange[0]}: expected ids of the fragments that it replaces")
    return len(ids)


def _check_merge(operation: Merge, head: ManifestFile) -> None:
    current = {fragment.id: fragment for fragment in head.manifest.fragments}
    named = fragment_ids(operation.fragments)
    missing = current.keys() - named
    if missing and named <= current.keys():
        raise InvalidTransaction(f"fragment {min(missing)} is left out: expected all fragments of the table")
    old, new = Columns(head.outline.fields), Columns(operation.schema)
    _check_sequences(operation.fragments, head, *_SEQUENCES)
    files = {key for fragment in current.values() for key in map(_described, fragment.files)}
    kept: set[int] = set()
    for fragment in operation.fragments:
        listed = [file for file in fragment.files if _described(file) not in files]
        new.check(listed, f"fragment {fragment.id}", exact=True, dead=True)
        _check_columns_kept(current, fragment, old, new, exact=False)
        new.require(fragment.files, f"fragment {fragment.id}", known=old.ids)
        kept |= live_fields(file for file in fragment.files if _described(file) in files)
    check_kept_fields(operation.schema, head.outline.fields, rewritten=old.leaves - kept if current else old.ids)


def _check_rewrite(operation: Rewrite, head: ManifestFile, *, exact: bool) -> None:
    columns = Columns(head.outline.fields)
    paths = {file.path for group in operation.groups for new in group.new_fragments for file in new.files}
    fragments = head.manifest.fragments
    used = {file_key(file) for fragment in fragments for file in fragment.files if file.path in paths}
    for group in operation.groups:
        for fragment in group.new_fragments:
            what = f"compacted fragment {fragment.id}"
            _check_new_fragments([fragment], columns, exact=exact)
            if not fragment.files or not fragment.physical_rows:
                raise InvalidTransaction(f"{what} has {len(fragment.files)} data files: expected some, with rows")
            for file in fragment.files:
                if file_key(file) in used:
                    raise InvalidTransaction(f"{what}: data file {file.path} belongs to another fragment")
                used.add(file_key(file))
            check_versions(fragment)
        if head.outline.next_row_id:
            before = find_fragments(head.outline, fragment_ids(group.old_fragments))
            _distinct(group.new_fragments, before.values(), "a compaction")
    for entry in operation.rewritten_indices:
        if len(entry.new_id.uuid) != _UUID_BYTES:
            raise InvalidTransaction(f"a rewritten index has a uuid of {len(entry.new_id.uuid)} bytes, expected 16")


def _check_indices(operation: CreateIndex, head: ManifestFile) -> None:
    gone = {index.uuid.uuid for index in (*operation.removed, *operation.new)}
    segments: defaultdict[str, list[pb.IndexMetadata]] = defaultdict(list)
    for index in head.indices.indices if head.indices is not None else ():
        if index.uuid.uuid not in gone:
            segments[index.name].append(index)
    seen: set[bytes] = set()
    known = {field.id for field in head.outline.fields}
    for index in operation.new:
        what = f"index {index.name!r}"
        if index.uuid.uuid in seen:
            raise InvalidTransaction(f"{what} has a uuid that another one of the transaction has")
        seen.add(index.uuid.uuid)
        if index.dataset_version > head.version:
            raise InvalidTransaction(f"{what} is of version {index.dataset_version}, the head is {head.version}")
        if index.created_at > _LAST_MILLISECOND:
            raise InvalidTransaction(f"{what} was created at millisecond {index.created_at}: expected a time")
        if index.name in SYSTEM_INDICES:
            details = index.index_details.type_url
            if details and not details.endswith(_DETAILS[index.name]):
                raise InvalidTransaction(f"{what} has details {details!r}, which are not its own")
            continue
        if known.issuperset(index.fields) and len(index.uuid.uuid) == _UUID_BYTES and index.name:
            _check_segment(index, segments[index.name], head)
        segments[index.name].append(index)


def _check_segment(index: pb.IndexMetadata, others: Iterable[pb.IndexMetadata], head: ManifestFile) -> None:
    what = f"index {index.name!r}"
    if not index.fields or len(set(index.fields)) < len(index.fields):
        raise InvalidTransaction(f"{what} is over fields {list(index.fields)}: expected some, each once")
    outside = set(index.covering_fields) - set(index.fields)
    if outside:
        raise InvalidTransaction(f"{what} covers field {min(outside)}, which is not among its fields")
    if not index.fragment_bitmap:
        raise InvalidTransaction(f"{what}: fragment_bitmap is missing: expected the fragments that it covers")
    try:
        covered = covered_fragments(index)
    except CorruptFile as error:
        raise InvalidTransaction(f"{what}: fragment_bitmap: {error}") from error
    mark = min(max(head.outline.max_fragment_id, head.facts.highest), LAST_FRAGMENT_ID)
    if covered and covered.max() > mark:
        raise InvalidTransaction(f"{what} covers fragment {covered.max()}: expected fragments up to {mark}")
    for other in others:
        if list(other.fields) != list(index.fields):
            raise InvalidTransaction(f"{what} is over fields {list(index.fields)}, and one of that name over others")
        if both := covered & covered_fragments(other):
            raise InvalidTransaction(f"{what}: fragment {both.min()} is covered by another segment of it already")


def _check_shards(sstables: Iterable[pb.CompactedSsTable]) -> None:
    for sstable in sstables:
        if len(sstable.shard_id.uuid) != _UUID_BYTES:
            raise InvalidTransaction(f"a log shard has an id of {len(sstable.shard_id.uuid)} bytes, expected 16")
