"""The meaning of a transaction's numbers, which depends on the version that its writer read (rule P12).

A transaction names fragments and columns by their ids. The version that was read is named by its number alone, and two
manifests may have had that number under one name: one of the catalog, and one of a writer that knows no catalog, which
is in quarantine since. What was a fragment of the one may be another fragment of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pyroaring import BitMap

from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import AnyManifest, find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOMBSTONE, descendants, descriptions
from lance_core.transaction.fragments import file_key
from lance_core.transaction.indices import SYSTEM_INDICES, covered_fragments
from lance_core.transaction.lineage import lineage_break

DeletedRows = Callable[[AnyManifest, pb.DataFragment], BitMap]
"""The deleted rows of a fragment of a manifest; see `TableFiles.deleted_rows`."""

_NUMBERED_ANEW = frozenset({"delete", "update", "restore"})
"""Operations whose read version stock writers set to that which they commit on, when they rebase them."""
CHOOSING_ROWS = frozenset({"delete", "update"})
"""Operations on rows that a condition or a key finds, perhaps by an index."""
_CHANGING_COLUMNS = frozenset({"merge", "project", "overwrite", "restore"})
_NOTHING: frozenset[int] = frozenset()


def read_once(deleted_rows: DeletedRows) -> DeletedRows:
    """The same for manifests of one chain; what a fragment says of its deleted rows is read once."""
    known: dict[bytes, BitMap] = {}

    def read(manifest: AnyManifest, fragment: pb.DataFragment) -> BitMap:
        key = fragment.SerializeToString(deterministic=True)
        if key not in known:
            known[key] = deleted_rows(manifest, fragment)
        return known[key]

    return read


@dataclass(frozen=True, slots=True)
class Named:
    """The objects that a transaction names by ids.

    Attributes:
        seen: Fragments that it describes as well, with files that its writer saw.
        ids: Fragments that it names by id alone, or describes with new files only.
        emptied: Those of both in which it deletes rows.
        covered: Fragments that a new index covers; they need not exist any more.
        fields: Columns that it writes, changes or indexes.
        schema: Whether it replaces the schema as a whole.
    """

    seen: Mapping[int, pb.DataFragment] = field(default_factory=dict)
    ids: frozenset[int] = _NOTHING
    emptied: frozenset[int] = _NOTHING
    covered: frozenset[int] = _NOTHING
    fields: frozenset[int] = _NOTHING
    schema: bool = False


def named_by(transaction: pb.Transaction) -> Named:
    """The objects that a transaction names. Raises `CorruptFile` if the coverage of an index cannot be decoded."""
    match transaction.WhichOneof("operation"):
        case "append":
            return Named(fields=written_fields(transaction.append.fragments))
        case "delete":
            delete = transaction.delete
            seen, removed = _by_id(delete.updated_fragments), frozenset(delete.deleted_fragment_ids)
            return Named(seen, removed, removed | seen.keys())
        case "update":
            return _named_by_update(transaction.update)
        case "merge":
            return Named(ids=frozenset(_by_id(transaction.merge.fragments)), schema=True)
        case "project":
            return Named(schema=True)
        case "rewrite":
            rewrite = transaction.rewrite
            old = [fragment for group in rewrite.groups for fragment in group.old_fragments]
            return Named(_by_id([*old, *rewrite.old_fragments]))
        case "data_replacement":
            groups = transaction.data_replacement.replacements
            fields = frozenset(number for group in groups for number in group.new_file.fields)
            return Named(ids=frozenset(group.fragment_id for group in groups), fields=fields)
        case "data_overlay":
            return Named(ids=frozenset(group.fragment_id for group in transaction.data_overlay.groups))
        case "create_index":
            indices = transaction.create_index.new_indices
            covered = (covered_fragments(index) for index in indices if index.fragment_bitmap)
            fields = frozenset(number for index in indices for number in (*index.fields, *index.covering_fields))
            return Named(covered=frozenset(BitMap.union(BitMap(), *covered)), fields=fields)
        case "update_config":
            config = transaction.update_config
            return Named(fields=frozenset({*config.field_metadata, *config.field_metadata_updates}))
    return Named()


def _named_by_update(update: pb.Transaction.Update) -> Named:
    updated, removed = _by_id(update.updated_fragments), frozenset(update.removed_fragment_ids)
    in_place = bool(update.fields_modified) or update.update_mode == pb.Transaction.REWRITE_COLUMNS
    fields = written_fields(update.new_fragments) | frozenset(update.fields_modified)
    if in_place:  # no file that its writer saw needs to be left
        return Named({}, removed | updated.keys(), removed | updated.keys(), fields=fields)
    return Named(updated, removed, removed | updated.keys(), fields=fields)


def written_fields(fragments: Iterable[pb.DataFragment]) -> frozenset[int]:
    """The columns that the data files of fragments have."""
    return frozenset(number for each in fragments for file in each.files for number in file.fields) - {TOMBSTONE}


def is_same_fragment(one: pb.DataFragment, other: pb.DataFragment) -> bool:
    """Whether two fragments have a data file in common: then they are of the same rows, perhaps at different times."""
    return not {file_key(file) for file in one.files}.isdisjoint(file_key(file) for file in other.files)


def has_same_values(
    one: pb.DataFragment, other: pb.DataFragment, fields: AbstractSet[int], schema: Iterable[pb.Field]
) -> bool:
    """Whether two states of a fragment have the same values in these fields of a schema, by their files."""
    wanted = descendants(schema, fields)
    mine, yours = ({file_key(file) for file in each.files if wanted & set(file.fields)} for each in (one, other))
    return mine == yours and list(one.overlays) == list(other.overlays)


def may_have_read_number(transaction: pb.Transaction | None, number: int) -> bool:
    """Whether the writer of a transaction can have read, or restored, a version of this number.

    Stock writers that rebase a Delete, Update or Restore name the version on which they commit as the one that was
    read. Such a transaction may have read any version up to that.
    """
    operation = None if transaction is None else transaction.WhichOneof("operation")
    if transaction is None or operation is None:
        return True
    if operation in _NUMBERED_ANEW:
        return number <= max(transaction.read_version, transaction.restore.version)
    return number == transaction.read_version


def may_have_read(transaction: pb.Transaction, view: ManifestFile, named: Named | None = None) -> bool:
    """Whether the writer of a transaction can have read this manifest, by its number and its content.

    Raises `CorruptFile`.
    """
    if not may_have_read_number(transaction, view.version) or view.version > transaction.read_version:
        return False
    named = named_by(transaction) if named is None else named
    found = find_fragments(view.outline, named.ids | named.seen.keys())
    if not (named.ids | named.seen.keys()) <= found.keys():
        return False
    if not named.fields <= {each.id for each in view.outline.fields}:
        return False
    return all(is_same_fragment(fragment, found[number]) for number, fragment in named.seen.items())


def other_meaning(
    proposed: ManifestFile, head: ManifestFile, view: ManifestFile, deleted_rows: DeletedRows
) -> str | None:
    """The unintended effect on `head` of the transaction of `proposed`, had its writer read `view`, in words.

    None if it means the same, or if its writer cannot have read `view`, a manifest that is in quarantine. `proposed`
    descends from `head` by its content (`lineage_break`). Rows that an index of `view` alone may have found may be
    others. An Overwrite or a Restore means the same whatever was read, but follows what its writer had committed
    before; so does a version that is built on `view` and lacks an index of the head.

    Raises:
        CorruptFile, NotFound, UnsupportedFeature: Files that decide it cannot be read.
    """
    transaction, quarantined = proposed.transaction, f"version {view.version}, which is in quarantine"
    if transaction is None or transaction.WhichOneof("operation") is None:
        return f"it names no transaction, and may be built on {quarantined}"
    operation = transaction.WhichOneof("operation")
    if operation == "overwrite":
        return f"it follows {quarantined}" if view.version == transaction.read_version else None
    if operation == "restore":
        meant = {transaction.read_version, transaction.restore.version}
        return f"it follows, or restores, {quarantined}" if view.version in meant else None
    named = named_by(transaction)
    if not may_have_read(transaction, view, named):
        return None
    if operation in CHOOSING_ROWS and (index := lone_index(view, head)) is not None:
        return f"its rows may have been found by index {index!r} of {quarantined}"
    if not _has_same_columns(transaction, named, head, view):
        return f"its columns may be those of {quarantined}"
    wanted = named.ids | named.seen.keys() | named.covered
    before, seen = find_fragments(head.outline, wanted), find_fragments(view.outline, wanted)
    after = find_fragments(proposed.outline, named.emptied)
    later = {number for number in named.covered if number > head.facts.highest}
    strange = ((named.ids | later) & seen.keys()) - before.keys()
    if strange:
        return f"its fragment {min(strange)} is that of {quarantined}"
    if (reason := _other_content(proposed, head, view, named, (before, seen, after), deleted_rows)) is not None:
        return reason
    if _may_change_gone_rows(proposed, head, (before, seen, after), view.version, deleted_rows):
        return f"rows that it changes may be gone, and were there in {quarantined}"
    return f"it has the indices of {quarantined}" if _has_indices_of(view, head, proposed) else None


_Fragments = Mapping[int, pb.DataFragment]


def _other_content(
    proposed: ManifestFile,
    head: ManifestFile,
    view: ManifestFile,
    named: Named,
    found: tuple[_Fragments, _Fragments, _Fragments],
    deleted_rows: DeletedRows,
) -> str | None:
    """How the fragments that a transaction names differ in the view from those of the head; None if they may.

    `found` has these fragments as they are in the head, the view and the proposed manifest. A new index has the rows
    and values that the fragments had which it covers.
    """
    (before, seen, after), quarantined = found, f"version {view.version}, which is in quarantine"
    for number in sorted(before.keys() & seen.keys()):
        here, there = before[number], seen[number]
        if not is_same_fragment(here, there):
            return f"its fragment {number} may be that of {quarantined}, which has other rows"
        if number in named.covered and not has_same_values(here, there, named.fields, head.outline.fields):
            return f"fragment {number} may have other values in {quarantined}"
        if number not in named.emptied | named.covered or here.deletion_file == there.deletion_file:
            continue
        deleted = deleted_rows(head.outline, here)
        if deleted_rows(view.outline, there) - deleted:
            return f"rows of fragment {number} may be gone in {quarantined}, and are there"
        if number in after and deleted - deleted_rows(proposed.outline, after[number]):
            return f"rows of fragment {number} would be back, which may be there in {quarantined}"
    return None


def _may_change_gone_rows(
    proposed: ManifestFile,
    head: ManifestFile,
    found: tuple[_Fragments, _Fragments, _Fragments],
    version: int,
    deleted_rows: DeletedRows,
) -> bool:
    """Whether an Update may have found rows in a view of this version that are deleted in the head.

    `found` has the fragments that it names, as they are in the head, the view and the proposed manifest. A deletion
    file states at which version its rows were found, also where a stock writer rebased the Update since. Each row that
    an Update changes is written anew: if it wrote as many as are gone from the head, it found them there.
    """
    assert proposed.transaction is not None
    update, (before, seen, after) = proposed.transaction.update, found
    read = {fragment.deletion_file.read_version for fragment in after.values() if fragment.HasField("deletion_file")}
    if proposed.operation != "update" or (after and version not in read):
        return False
    if all(before[number].deletion_file == seen[number].deletion_file for number in before.keys() & seen.keys()):
        return False
    gone = 0
    for number, fragment in before.items():
        left = len(deleted_rows(proposed.outline, after[number])) if number in after else fragment.physical_rows
        gone += left - len(deleted_rows(head.outline, fragment))
    return gone != sum(fragment.physical_rows for fragment in update.new_fragments)


def _has_same_columns(transaction: pb.Transaction, named: Named, head: ManifestFile, view: ManifestFile) -> bool:
    """Whether the columns that a transaction names are the same in both.

    A view before the version that the transaction names has the names of its own time; a column may have another one
    by now. Only if it changed columns itself they may be others altogether.
    """
    ours, theirs = descriptions(head.outline.fields), descriptions(view.outline.fields)
    if named.schema:
        return ours == theirs
    exact = view.version == transaction.read_version or view.operation in _CHANGING_COLUMNS
    return all(
        number in ours and (ours[number] == theirs[number] if exact else ours[number][::2] == theirs[number][::2])
        for number in named.fields
    )


def lone_index(view: ManifestFile, head: ManifestFile) -> str | None:
    """The name of an index that has a segment in `view`, which is in quarantine, and not in `head`; None without one.

    A stock writer that rebases its new index keeps the ids of fragments, which may be of other rows there: by such an
    index it finds rows that its condition does not mean.
    """
    known = set() if head.indices is None else {index.uuid.uuid for index in head.indices.indices}
    for index in () if view.indices is None else view.indices.indices:
        if index.name not in SYSTEM_INDICES and index.uuid.uuid not in known:
            return index.name
    return None


def _has_indices_of(view: ManifestFile, head: ManifestFile, proposed: ManifestFile) -> bool:
    """Whether a version that lacks an index of the head is built on a view."""
    if view.version != proposed.version - 1 or lineage_break(view, proposed) is not None:
        return False
    return proposed.operation != "create_index" and bool(_lost_indices(head, proposed))


def _lost_indices(head: ManifestFile, proposed: ManifestFile) -> set[bytes]:
    before, after = (
        {index.uuid.uuid for index in each.indices.indices} if each.indices is not None else set()
        for each in (head, proposed)
    )
    return before - after


def _by_id(fragments: Iterable[pb.DataFragment]) -> dict[int, pb.DataFragment]:
    return {fragment.id: fragment for fragment in fragments}
