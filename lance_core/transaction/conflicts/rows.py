"""Conflict rules for operations that add, change or remove rows: Append, Overwrite, Delete and Update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import (
    COMPATIBLE,
    Outcome,
    Verdict,
    incompatible,
    judge_nullability,
    log_changed,
    reset,
    retryable,
    rewritten_fragments,
)
from lance_core.transaction.conflicts.whole_tables import judge_sstables, map_clash
from lance_core.transaction.fields import TOMBSTONE
from lance_core.transaction.operations import (
    Append,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Update,
    decode_config_update,
    fragment_ids,
)


@dataclass(frozen=True, slots=True)
class Context:
    """The facts that a verdict may depend on besides the two transactions.

    Rows are needed only for the fragments of `shared_fragments`. A missing entry means that the rows are unknown.

    Attributes:
        our_rows: By fragment id, the rows that the judged operation deletes and that its read version still had.
        their_rows: By fragment id, all rows in the deletion files of the committed transaction.
        fields: The table's schema.
    """

    our_rows: Mapping[int, BitMap] = field(default_factory=dict)
    their_rows: Mapping[int, BitMap] = field(default_factory=dict)
    fields: Sequence[pb.Field] = ()


_NOTHING: frozenset[int] = frozenset()


def shared_fragments(ours: Operation, theirs: pb.Transaction | None) -> frozenset[int]:
    """Ids of the fragments in which both delete rows, so that a verdict needs the rows themselves."""
    if theirs is None or not isinstance(ours, (Delete, Update)):
        return _NOTHING
    match theirs.WhichOneof("operation"):
        case "delete":
            return _touched(ours) & fragment_ids(theirs.delete.updated_fragments)
        case "update":
            return _touched(ours) & fragment_ids(theirs.update.updated_fragments)
    return _NOTHING


def judge_append(ours: Append, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an Append."""
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "update_mem_wal_state":
            return log_changed()
        case "merge" if not _written_fields(ours) <= {field.id for field in theirs.merge.schema}:
            return retryable("it replaced columns (merge) of which the new rows have values")
        case "merge" | "project":
            return judge_nullability(name, theirs)
    return COMPATIBLE


def _written_fields(ours: Append) -> set[int]:
    files = (file for fragment in ours.fragments for file in fragment.files)
    return {field for file in files for field in file.fields} - {TOMBSTONE}


def judge_overwrite(ours: Overwrite, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an Overwrite."""
    match name:
        case "overwrite":
            return retryable("both overwrite the table")
        case "update_mem_wal_state":
            return log_changed()
        case "update_config" if ours.config_upserts:
            config = decode_config_update(theirs.update_config).config
            reason = map_clash("config", MapUpdate(ours.config_upserts), config)
            return incompatible(reason) if reason is not None else COMPATIBLE
    return COMPATIBLE


def judge_row_change(ours: Delete | Update, name: str, theirs: pb.Transaction, context: Context) -> Verdict:
    """The verdict on a Delete or Update."""
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "merge":
            return retryable("it rewrote the fragment list (merge)")
        case "rewrite":
            return _judge_overlap(ours, rewritten_fragments(theirs.rewrite), "compacted")
        case "data_replacement":
            replaced = frozenset(group.fragment_id for group in theirs.data_replacement.replacements)
            return _judge_overlap(ours, replaced, "replaced a data file of")
        case "delete":
            removed = frozenset(theirs.delete.deleted_fragment_ids)
            return _judge_deletions(ours, removed, _NOTHING, shared_fragments(ours, theirs), context)
        case "update":
            return _judge_update(ours, theirs, context)
        case "update_mem_wal_state" if isinstance(ours, Delete):
            return log_changed()
    return _judge_rewritten_rows(ours, name, theirs) if isinstance(ours, Update) else COMPATIBLE


def _judge_rewritten_rows(ours: Update, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an Update by the rules that do not apply to a Delete."""
    match name:
        case "append" if ours.inserted_keys is not None:
            return retryable("it added rows, which may have the keys that this update inserts")
        case "project":
            lost = set(ours.fields_modified) - {entry.id for entry in theirs.project.schema}
            if lost:
                return retryable(f"it dropped field {min(lost)}, which this update rewrites")
            return judge_nullability(name, theirs)
        case "data_overlay":
            return _judge_overlay(ours, theirs.data_overlay)
        case "update_mem_wal_state":
            return judge_sstables(ours.compacted_sstables, theirs.update_mem_wal_state.compacted_sstables)
    return COMPATIBLE


def _judge_overlay(ours: Update, theirs: pb.Transaction.DataOverlay) -> Verdict:
    overlaid = frozenset(
        group.fragment_id
        for group in theirs.groups
        if not ours.rewrites_columns
        or any(set(overlay.data_file.fields) & set(ours.fields_modified) for overlay in group.overlays)
    )
    return _judge_overlap(ours, overlaid, "overlaid rows of")


def _judge_update(ours: Delete | Update, theirs: pb.Transaction, context: Context) -> Verdict:
    update = theirs.update
    if isinstance(ours, Update):
        verdict = judge_sstables(ours.compacted_sstables, update.compacted_sstables)
        if verdict.outcome is not Outcome.COMPATIBLE:
            return verdict
        theirs_inserted = update.inserted_rows if update.HasField("inserted_rows") else None
        reason = _key_clash(ours.inserted_keys, theirs_inserted)
        if reason is not None:
            return retryable(reason)
    columns = update.update_mode == pb.Transaction.REWRITE_COLUMNS or bool(update.fields_modified)
    rewritten = fragment_ids(update.updated_fragments) if columns else _NOTHING
    removed = frozenset(update.removed_fragment_ids)
    return _judge_deletions(ours, removed, rewritten, shared_fragments(ours, theirs), context)


def _judge_deletions(
    ours: Delete | Update,
    removed: frozenset[int],
    rewritten: frozenset[int],
    shared: frozenset[int],
    context: Context,
) -> Verdict:
    touched = _touched(ours)
    for fragments, action in ((removed, "removed"), (rewritten, "rewrote columns of")):
        if touched & fragments:
            return retryable(f"it {action} fragment {min(touched & fragments)}")
    if not shared:
        return COMPATIBLE
    if isinstance(ours, Update) and ours.rewrites_columns:
        return retryable(f"it changed rows of fragment {min(shared)}, whose columns this update rewrites")
    gone = shared & frozenset(ours.removed_ids)
    if gone:
        return retryable(f"it changed rows of fragment {min(gone)}, which this transaction removes")
    for fragment in sorted(shared):
        mine, other = context.our_rows.get(fragment), context.their_rows.get(fragment)
        if mine is None or other is None:
            return retryable(f"it changed fragment {fragment}, and the changed rows are unknown")
        common = mine & other
        if common:
            return retryable(f"it changed row {common.min()} of fragment {fragment} as well")
    return Verdict(Outcome.REBASE, f"it changed other rows of fragment {min(shared)}")


def _judge_overlap(ours: Delete | Update, fragments: frozenset[int], action: str) -> Verdict:
    common = _touched(ours) & fragments
    return retryable(f"it {action} fragment {min(common)}") if common else COMPATIBLE


def _touched(ours: Delete | Update) -> frozenset[int]:
    return fragment_ids(ours.updated) | frozenset(ours.removed_ids)


def _key_clash(
    ours: pb.Transaction.KeyExistenceFilter | None, theirs: pb.Transaction.KeyExistenceFilter | None
) -> str | None:
    """The reason why two sets of inserted keys may share a key; None if they cannot, or if ours is absent."""
    if ours is None:
        return None
    if theirs is None:
        return "it wrote rows, which may have the keys that this update inserts"
    if list(ours.field_ids) != list(theirs.field_ids):
        return "both insert keys, over different fields"
    kinds = (ours.WhichOneof("data"), theirs.WhichOneof("data"))
    if kinds == ("exact", "exact"):
        shared = bool(set(ours.exact.key_hashes) & set(theirs.exact.key_hashes))
    elif kinds == ("bloom", "bloom") and len(ours.bloom.bitmap) == len(theirs.bloom.bitmap):
        mine, other = (int.from_bytes(side.bloom.bitmap, "little") for side in (ours, theirs))
        shared = bool(mine & other)
    else:
        shared = True
    return "both may insert the same key" if shared else None
