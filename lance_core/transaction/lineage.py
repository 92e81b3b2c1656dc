"""Checks whether a proposed manifest descends from a given head (rule P3).

A version number is not an identity: two manifests numbered N + 1 may be built on different versions N. Their content
shows the difference. Every commit keeps the fragments that its transaction does not name, so the fragments of the head
must be in the proposed manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lance_core.format.manifest import ManifestFile
from lance_core.format.outline import AnyManifest, encoded_fragments, fragments_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOMBSTONE, TOP_LEVEL

_DISCARDING = frozenset({"overwrite", "restore"})
_NOTHING: frozenset[int] = frozenset()


def lineage_break(head: ManifestFile, proposed: ManifestFile) -> str | None:
    """The reason why `proposed` does not descend from `head`, in words; None if it does.

    For Overwrite and Restore, which discard fragments by design, only the high-water marks and the branch are checked.
    For every other operation:

    * Every fragment of the head is in the proposed manifest, unless the transaction removes it.
    * A fragment that the transaction does not name is unchanged: same data files, same deletion file. Data files
      without a live column may be missing, because writers drop them.
    * A fragment that the transaction names changes only as its operation allows: deletions grow, and a data file is
      missing only if its columns were rewritten or dropped.
    * A fragment that the head does not have is named by the transaction, or its id is above the head's high-water mark.

    The numbers of the two versions are not compared. A Delete or Update names a removed fragment by its id alone, so
    it is not checked whether the writer saw the same fragment.

    Raises `CorruptFile` if a fragment of a lazily parsed file cannot be decoded.
    """
    before, after = head.outline, proposed.outline
    operation = proposed.operation
    if operation == "clone":
        return "a Clone can only be the first version of a branch or table"
    if before.branch != after.branch:
        return f"it belongs to branch {after.branch or 'main'}, the head to {before.branch or 'main'}"
    reason = _mark_gone_back(before, after)
    if reason is not None or operation in _DISCARDING:
        return reason
    if operation == "append" and _continues(head, proposed):
        return None
    return _fragment_break(head.manifest, proposed.manifest, _scope(proposed.transaction, operation))


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
    rewritten: tuple[pb.DataFragment, ...] = ()
    """Removed fragments, as the transaction read them."""


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
    if transaction is None:
        return _Scope()
    match operation:
        case "delete":
            delete = transaction.delete
            return _Scope(deletions=_ids(delete.updated_fragments), removed=frozenset(delete.deleted_fragment_ids))
        case "update":
            update = transaction.update
            updated = _ids(update.updated_fragments)
            rewritten_fields = frozenset(update.fields_modified)
            columns = dict.fromkeys(updated, rewritten_fields) if rewritten_fields else {}
            return _Scope(updated, columns, updated, removed=frozenset(update.removed_fragment_ids))
        case "merge":
            listed = _ids(transaction.merge.fragments)
            return _Scope(deletions=listed, columns=dict.fromkeys(listed, _NOTHING), overlays=listed)
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
    return _Scope(removed=_ids(old), added=_ids(new) - {0}, rewritten=tuple(old))


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
    proposed.note_facts(head.facts.followed_by(new))
    return True


def _fragment_break(before: pb.Manifest, after: pb.Manifest, scope: _Scope) -> str | None:
    known = {fragment.id: fragment for fragment in before.fragments}
    for removed in scope.removed:
        if removed not in known:
            return f"it removes fragment {removed}, which version {before.version} does not have"
    for seen in scope.rewritten:
        if not _same_content(known[seen.id], seen):
            return f"it rewrites another fragment {seen.id} than that of version {before.version}"
    mark = max(before.max_fragment_id if before.HasField("max_fragment_id") else -1, max(known, default=-1))
    found: set[int] = set()
    schema: _Schema | None = None
    for fragment in after.fragments:
        identifier = fragment.id
        if identifier in found:
            return f"it has fragment {identifier} twice"
        found.add(identifier)
        parent = known.get(identifier)
        if parent is None:
            if identifier <= mark and identifier not in scope.added:
                return f"fragment {identifier} is neither in version {before.version} nor new nor named"
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
    kept = {_file_key(file): file for file in fragment.files}
    for file in parent.files:
        heir = kept.pop(_file_key(file), None)
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


def _file_key(file: pb.DataFile) -> tuple[str, int]:
    return file.path, file.base_id if file.HasField("base_id") else -1


def _same_content(parent: pb.DataFragment, seen: pb.DataFragment) -> bool:
    return [_file_key(file) for file in parent.files] == [_file_key(file) for file in seen.files] and _same_deletions(
        parent, seen
    )


def _same_deletions(parent: pb.DataFragment, fragment: pb.DataFragment) -> bool:
    if parent.HasField("deletion_file") != fragment.HasField("deletion_file"):
        return False
    ours, theirs = parent.deletion_file, fragment.deletion_file
    return (ours.read_version, ours.id, ours.file_type) == (theirs.read_version, theirs.id, theirs.file_type)
