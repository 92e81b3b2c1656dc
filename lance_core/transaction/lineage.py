"""Checks whether a proposed manifest descends from a given head (rule P3).

A version number is not an identity: two manifests numbered N + 1 may be built on different versions N. Their content
shows the difference. Every commit keeps all that its transaction does not name, and adds only named parts, so the
proposed manifest must have the fragments, the schema, the config and the indices of the head and of its transaction,
and no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import AnyManifest, encoded_fragments, find_fragments, fragments_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOMBSTONE, TOP_LEVEL, descriptions
from lance_core.transaction.fragments import file_key
from lance_core.transaction.indices import SYSTEM_INDICES
from lance_core.transaction.operations import decode_config_update

_DISCARDING = frozenset({"overwrite", "restore"})
_CHANGING_SCHEMA = frozenset({"merge", "project"})
_CHANGING_BASES = frozenset({"update_bases"})
_CHANGING_CONFIG = frozenset({"overwrite", "update_config"})
_NOTHING: frozenset[int] = frozenset()
_FileKeys = tuple[tuple[str, int | None], ...]


def lineage_break(head: ManifestFile, proposed: ManifestFile) -> str | None:
    """The reason why `proposed` does not descend from `head`, in words; None if it does.

    For Overwrite and Restore, which discard fragments by design, only the high-water marks, the branch, and the config
    that an Overwrite keeps are checked. For every other operation:

    * Every fragment of the head is in the proposed manifest, unless the transaction removes it.
    * A fragment that the transaction does not name is unchanged: same data files, same deletion file. Data files
      without a live column may be missing, because writers drop them.
    * A fragment that the transaction names is in the head, and changes only as its operation allows: deletions grow,
      and a data file is missing only if its columns were rewritten or dropped.
    * A fragment that the head does not have is one of the new ones of the transaction, with the same data files, and
      its id is above the head's high-water mark unless the transaction chose it.
    * Schema, config, metadata and base paths are those of the head unless the operation changes them, and every index
      is one of the head or of the transaction.

    The numbers of the two versions are not compared. A Delete or Update names a removed fragment by its id alone: that
    its writer saw the same fragment is another question (see `readings`). A manifest without a transaction adds
    nothing that is named, so only high-water marks show its new fragments.

    Raises `CorruptFile` if a fragment of a lazily parsed file cannot be decoded.
    """
    before, after = head.outline, proposed.outline
    operation = proposed.operation
    if operation == "clone":
        return "a Clone can only be the first version of a branch or table"
    if before.branch != after.branch:
        return f"it belongs to branch {after.branch or 'main'}, the head to {before.branch or 'main'}"
    reason = _mark_gone_back(before, after)
    if reason is None and operation not in _DISCARDING and not (operation == "append" and _continues(head, proposed)):
        reason = _fragment_break(head.manifest, proposed.manifest, _scope(proposed.transaction, operation))
    return reason or _other_content(head, proposed, operation)


@dataclass(slots=True)
class _Scope:
    """The changes that a transaction may make, by fragment id."""

    deletions: frozenset[int] = _NOTHING
    """Fragments whose deletion file may be replaced by a larger one."""
    columns: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Fragments that may gain data files, with the field ids that these replace."""
    overlays: frozenset[int] = _NOTHING
    removed: frozenset[int] = _NOTHING
    added: frozenset[int] = _NOTHING
    """Ids that the transaction chose for new fragments."""
    new: tuple[pb.DataFragment, ...] | None = ()
    """The new fragments as the transaction names them; None where it cannot be read."""
    rewritten: tuple[pb.DataFragment, ...] = ()
    """Removed fragments, as the transaction read them."""
    lists_all: bool = False
    """Whether the transaction lists the fragments that it adds beside those that it changes."""

    @property
    def changed(self) -> frozenset[int]:
        """Fragments that must be there."""
        return _NOTHING if self.lists_all else self.deletions | self.columns.keys() | self.overlays


@dataclass(frozen=True, slots=True)
class _Schema:
    """`live` holds the field ids of the proposed manifest, `parents` the parent of each field of the head."""

    live: frozenset[int]
    parents: Mapping[int, int]

    def is_within(self, field_id: int, fields: frozenset[int] | None) -> bool:
        """Whether the field is one of `fields` or a descendant of one."""
        if not fields:
            return False
        current: int | None = field_id
        for _ in range(len(self.parents) + 1):  # bounded, because a corrupt schema may contain a cycle
            if current is None or current == TOP_LEVEL:
                break
            if current in fields:
                return True
            current = self.parents.get(current)
        return False


def _schema(before: pb.Manifest, after: pb.Manifest) -> _Schema:
    return _Schema(
        frozenset(entry.id for entry in after.fields), {entry.id: entry.parent_id for entry in before.fields}
    )


def _scope(transaction: pb.Transaction | None, operation: str | None) -> _Scope:
    if transaction is None or operation is None:
        return _Scope(new=None)
    match operation:
        case "append":
            return _Scope(new=tuple(transaction.append.fragments))
        case "delete":
            delete = transaction.delete
            return _Scope(deletions=_ids(delete.updated_fragments), removed=frozenset(delete.deleted_fragment_ids))
        case "update":
            update = transaction.update
            updated = _ids(update.updated_fragments)
            rewritten_fields = frozenset(update.fields_modified)
            columns = dict.fromkeys(updated, rewritten_fields) if rewritten_fields else {}
            removed = frozenset(update.removed_fragment_ids)
            return _Scope(updated, columns, updated, removed=removed, new=tuple(update.new_fragments))
        case "merge":
            listed = _ids(transaction.merge.fragments)
            new = tuple(transaction.merge.fragments)
            return _Scope(listed, dict.fromkeys(listed, _NOTHING), listed, new=new, lists_all=True)
        case "rewrite":
            return _rewrite_scope(transaction.rewrite)
        case "data_replacement":
            replaced: dict[int, frozenset[int]] = {}
            for group in transaction.data_replacement.replacements:
                replaced[group.fragment_id] = replaced.get(group.fragment_id, _NOTHING) | set(group.new_file.fields)
            return _Scope(columns=replaced, overlays=frozenset(replaced))
        case "data_overlay":
            return _Scope(overlays=frozenset(group.fragment_id for group in transaction.data_overlay.groups))
    return _Scope()


def _rewrite_scope(rewrite: pb.Transaction.Rewrite) -> _Scope:
    old = [fragment for group in rewrite.groups for fragment in group.old_fragments] + list(rewrite.old_fragments)
    new = [fragment for group in rewrite.groups for fragment in group.new_fragments] + list(rewrite.new_fragments)
    # Ids of new fragments were reserved by an earlier commit and are below the mark. Id 0 means not assigned.
    return _Scope(removed=_ids(old), added=_ids(new) - {0}, new=tuple(new), rewritten=tuple(old))


def _ids(fragments: Iterable[pb.DataFragment]) -> frozenset[int]:
    return frozenset(fragment.id for fragment in fragments)


def _mark_gone_back(before: AnyManifest, after: AnyManifest) -> str | None:
    mark = before.max_fragment_id if before.HasField("max_fragment_id") else -1
    found = after.max_fragment_id if after.HasField("max_fragment_id") else -1
    if found < mark:
        return f"its highest fragment id went back from {mark} to {found}"
    if after.next_row_id < before.next_row_id:
        return f"its next row id went back from {before.next_row_id} to {after.next_row_id}"
    return None


def _other_content(head: ManifestFile, proposed: ManifestFile, operation: str | None) -> str | None:
    """The first difference, in words, besides fragments, from both the head and the transaction."""
    if operation == "restore":
        return None
    before, after, transaction = head.outline, proposed.outline, proposed.transaction
    if operation in _CHANGING_CONFIG or _has_settings(before) or _has_settings(after):
        reason = _other_settings(before, after, transaction, operation)
        if reason is not None:
            return reason
    if operation == "overwrite":
        return None
    if operation not in _CHANGING_SCHEMA and not _have_same_schema(before, after):
        return "its schema is not that of the head"
    if transaction is not None and operation == "create_index" and _replaced_indices(transaction) - _indices(head):
        return "it replaces a segment of an index that the head does not have"
    strange = _indices(proposed) - _indices(head) if proposed.indices is not None else None
    if strange and transaction is not None:
        strange -= _named_indices(transaction)
    return "it has an index that neither the head has nor the transaction makes" if strange else None


def _has_settings(manifest: AnyManifest) -> bool:
    return bool(manifest.config or manifest.table_metadata or manifest.base_paths)


def _other_settings(
    before: AnyManifest, after: AnyManifest, transaction: pb.Transaction | None, operation: str | None
) -> str | None:
    """The difference of config, metadata and base paths from both the head and the transaction, in words."""
    config, metadata = dict(before.config), dict(before.table_metadata)
    if transaction is not None and operation == "overwrite":
        config.update(transaction.overwrite.config_upsert_values)
    elif transaction is not None and operation == "update_config":
        update = decode_config_update(transaction.update_config)
        for changed, target in ((update.config, config), (update.table_metadata, metadata)):
            if changed is not None:
                changed.apply_to(target)
    if config != after.config:
        return "its config is not that of the head with the changes of the transaction"
    if operation == "overwrite":
        return None
    if metadata != after.table_metadata:
        return "its table metadata is not that of the head with the changes of the transaction"
    bases, found = (frozenset((base.id, base.path) for base in each.base_paths) for each in (before, after))
    if not bases <= found or (found != bases and operation not in _CHANGING_BASES):
        return "its base paths are not those of the head"
    return None


def _have_same_schema(before: AnyManifest, after: AnyManifest) -> bool:
    """Equal messages, as nearly all are, are compared quickly."""
    return before.fields == after.fields or descriptions(before.fields) == descriptions(after.fields)


def _indices(file: ManifestFile) -> set[bytes]:
    listed = () if file.indices is None else file.indices.indices
    return {index.uuid.uuid for index in listed if index.name not in SYSTEM_INDICES}


def misplaced_index(head: ManifestFile, proposed: ManifestFile) -> str | None:
    """The name of an index whose segment `proposed`, which descends from `head`, looks for below another root; or None.

    A segment stays where it was, and one that a Rewrite makes lies below the root of the table. Stock writers that
    compact a branch or a clone go on to name the root of the old segment, where the new one is not: no query by the
    index works from then on.
    """
    if proposed.indices is None:
        return None
    expected = {} if head.indices is None else {index.uuid.uuid: _root(index) for index in head.indices.indices}
    if proposed.transaction is not None:
        expected |= {index.uuid.uuid: _root(index) for index in proposed.transaction.create_index.new_indices}
        expected |= {entry.new_id.uuid: None for entry in proposed.transaction.rewrite.rewritten_indices}
    for index in proposed.indices.indices:
        if _root(index) != expected.get(index.uuid.uuid, _root(index)):
            return index.name
    return None


def _root(index: pb.IndexMetadata) -> int | None:
    return index.base_id if index.HasField("base_id") else None


def _replaced_indices(transaction: pb.Transaction) -> set[bytes]:
    """The segments that a CreateIndex replaces. Beside one that it did not see its own would cover fragments twice."""
    removed = transaction.create_index.removed_indices
    return {index.uuid.uuid for index in removed if index.name not in SYSTEM_INDICES}


def _named_indices(transaction: pb.Transaction) -> set[bytes]:
    made = {index.uuid.uuid for index in transaction.create_index.new_indices}
    return made | {entry.new_id.uuid for entry in transaction.rewrite.rewritten_indices}


def unseen_deletions(
    head: ManifestFile, proposed: ManifestFile, at: Callable[[int], ManifestFile | None]
) -> str | None:
    """The reason why deletions of `proposed` do not follow those of `head`, in words; None if they do.

    `proposed` descends from `head` by its content, of which `lineage_break` compares the numbers of deleted rows. A
    deletion file holds all deleted rows of a fragment, and says at which version its writer found them; stock writers
    that rebase a Delete or Update over deletions of others write another one. If the fragment had other deletions in
    the head than at that version, rows would be back, or be updated although they are gone: the writer has looked at
    the versions between under names that were those of others then, and does not look again.

    `at` gives a version of the chain of the head by its number; None for one that is not known, at which nothing can
    have been found. Raises `CorruptFile`.
    """
    transaction = proposed.transaction
    if transaction is None or proposed.operation not in {"delete", "update"}:
        return None
    operation = transaction.delete if proposed.operation == "delete" else transaction.update
    named = _ids(operation.updated_fragments)
    before, after = find_fragments(head.outline, named), find_fragments(proposed.outline, named)
    for number in sorted(before.keys() & after.keys()):
        parent, fragment = before[number], after[number]
        found_at = fragment.deletion_file.read_version
        if not parent.HasField("deletion_file") or _same_deletions(parent, fragment) or found_at == head.version:
            continue
        seen = at(found_at)
        found = {} if seen is None else find_fragments(seen.outline, {number})
        if number not in found or not _same_deletions(parent, found[number]):
            return (
                f"rows of fragment {number} were deleted since version {found_at}, at which it found those it deletes"
            )
    return None


def _continues(head: ManifestFile, proposed: ManifestFile) -> bool:
    """Whether `proposed` has the fragments of `head`, in the same order, followed by new ones, as most appends have.

    A fast path that compares encoded fragments. False means that the fragments must be compared one by one.
    """
    before, after = head.outline, proposed.outline
    kept = len(before.fragments)
    if encoded_fragments(before, kept) != encoded_fragments(after, kept):
        return False
    highest = head.facts.highest
    mark = max(highest, before.max_fragment_id) if before.HasField("max_fragment_id") else highest
    new = fragments_of(after, kept)
    added = [fragment.id for fragment in new]
    if added and (min(added) <= mark or len(set(added)) < len(added)):
        return False
    assert proposed.transaction is not None
    if list(map(_files, new)) != list(map(_files, proposed.transaction.append.fragments)):
        return False
    proposed.note_facts(head.facts.followed_by(new))
    return True


def _unknown_fragment(known: Mapping[int, pb.DataFragment], scope: _Scope, version: int) -> str | None:
    """The statement of the transaction about fragments that the head, of this version, does not fulfil, in words."""
    for removed in scope.removed:
        if removed not in known:
            return f"it removes fragment {removed}, which version {version} does not have"
    for changed in scope.changed:
        if changed not in known:
            return f"it changes fragment {changed}, which version {version} does not have"
    for seen in scope.rewritten:
        if not _same_content(known[seen.id], seen):
            return f"it rewrites another fragment {seen.id} than that of version {version}"
    return None


def _fragment_break(before: pb.Manifest, after: pb.Manifest, scope: _Scope) -> str | None:
    known = {fragment.id: fragment for fragment in before.fragments}
    reason = _unknown_fragment(known, scope, before.version)
    if reason is not None:
        return reason
    mark = max(before.max_fragment_id if before.HasField("max_fragment_id") else -1, max(known, default=-1))
    found: set[int] = set()
    unseen = None if scope.new is None else Counter(map(_files, scope.new))
    schema: _Schema | None = None
    for fragment in after.fragments:
        identifier = fragment.id
        if identifier in found:
            return f"it has fragment {identifier} twice"
        found.add(identifier)
        parent = known.get(identifier)
        if parent is None:
            is_new = identifier > mark or identifier in scope.added
            if not is_new or (unseen is not None and not unseen[_files(fragment)]):
                return f"fragment {identifier} is neither in version {before.version} nor new nor named"
            if unseen is not None:
                unseen[_files(fragment)] -= 1
        elif parent != fragment:
            schema = _schema(before, after) if schema is None else schema
            reason = _change_break(parent, fragment, scope, schema)
            if reason is not None:
                return f"fragment {identifier} is not that of version {before.version}: {reason}"
    for identifier in known:
        if identifier not in found and identifier not in scope.removed:
            return f"fragment {identifier} of version {before.version} is missing"
    return None


def _change_break(parent: pb.DataFragment, fragment: pb.DataFragment, scope: _Scope, schema: _Schema) -> str | None:
    identifier = parent.id
    if parent.physical_rows and fragment.physical_rows != parent.physical_rows:
        return f"it has {fragment.physical_rows} rows, not {parent.physical_rows}"
    if not _same_deletions(parent, fragment) and (
        identifier not in scope.deletions
        or fragment.deletion_file.num_deleted_rows < parent.deletion_file.num_deleted_rows
    ):
        return "its deletion file changed"
    if fragment.overlays != parent.overlays and identifier not in scope.overlays:
        return "its overlays changed"
    if fragment.inline_row_ids != parent.inline_row_ids and parent.inline_row_ids:
        return "its row ids changed"
    return _file_break(parent, fragment, scope.columns.get(identifier), schema)


def _file_break(
    parent: pb.DataFragment, fragment: pb.DataFragment, rewritten: frozenset[int] | None, schema: _Schema
) -> str | None:
    """The reason why the data files cannot follow those of `parent`. `rewritten` is None if no file may be added."""
    kept = {file_key(file): file for file in fragment.files}
    for file in parent.files:
        heir = kept.pop(file_key(file), None)
        provided = set(file.fields) - (set(heir.fields) if heir is not None else set())
        # A file that lists a struct beside its children may lose the struct with any one of them.
        containers = {schema.parents.get(entry) for entry in file.fields}
        lost = {entry for entry in (provided & schema.live) - containers if not schema.is_within(entry, rewritten)}
        if lost:
            return f"data file {file.path} no longer provides field {min(lost)}"
        if heir is not None and set(heir.fields) - set(file.fields) - {TOMBSTONE}:
            return f"data file {file.path} provides other fields"
    if kept and rewritten is None:
        return f"data file {next(iter(kept))[0]} was added"
    return None


def _files(fragment: pb.DataFragment) -> _FileKeys:
    return tuple(map(file_key, fragment.files))


def has_fragments_of(one: ManifestFile, other: ManifestFile) -> bool:
    """Whether two versions have the same fragments: ids, data files and deletion files. Raises `CorruptFile`."""
    before, after = one.manifest.fragments, other.manifest.fragments
    return len(before) == len(after) and all(
        mine.id == theirs.id and _same_content(mine, theirs) for mine, theirs in zip(before, after, strict=True)
    )


def _same_content(parent: pb.DataFragment, seen: pb.DataFragment) -> bool:
    return _files(parent) == _files(seen) and _same_deletions(parent, seen)


def _same_deletions(parent: pb.DataFragment, fragment: pb.DataFragment) -> bool:
    if parent.HasField("deletion_file") != fragment.HasField("deletion_file"):
        return False
    ours, theirs = parent.deletion_file, fragment.deletion_file
    return (ours.read_version, ours.id, ours.file_type) == (theirs.read_version, theirs.id, theirs.file_type)
