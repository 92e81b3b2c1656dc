"""May our transaction follow one that was committed since the version that we read?

The rules are those of the table format's transaction specification as stock writers apply them, with row information
always at hand for Delete and Update. Where stock writers commit what cannot be right, these rules are deliberate:

* a `replace` of the config against any other change of it conflicts (stock writers lose one of them);
* metadata for a field that a Project dropped is incompatible (stock writers fail while building the manifest);
* an operation that is not known, or a transaction that cannot be read, is incompatible with everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import (
    Append,
    Clone,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Update,
    UpdateConfig,
    decode_config_update,
    fragment_ids,
)


class Outcome(Enum):
    """What a committed transaction means for ours."""

    COMPATIBLE = "compatible"
    """Ours may be applied as it is."""
    REBASE = "rebase"
    """Ours may be applied once its deletion files hold the other's deletions as well."""
    RETRYABLE = "retryable"
    """The operation must be done again on the newer version."""
    INCOMPATIBLE = "incompatible"
    """The other transaction removed the ground of ours."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and for all but compatible ones the reason in words."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The rows behind a Delete or Update and the transaction that it is judged against, by fragment id.

    `our_rows` are the rows that ours deletes and that the version it read still had. `their_rows` are all rows that
    the other's deletion files hold. Either is wanted for the fragments of `shared_fragments` only; a missing entry
    means that the rows are not known.
    """

    our_rows: Mapping[int, BitMap] = field(default_factory=dict)
    their_rows: Mapping[int, BitMap] = field(default_factory=dict)


_COMPATIBLE = Verdict(Outcome.COMPATIBLE)
_NOTHING: frozenset[int] = frozenset()


def judge(ours: Operation, theirs: pb.Transaction | None, context: Context | None = None) -> Verdict:
    """The verdict on `ours` against one committed transaction, both made on the same or an earlier version.

    `theirs` is None when the version's transaction cannot be found.
    """
    name = None if theirs is None else theirs.WhichOneof("operation")
    if theirs is None or name is None or name in _OPAQUE:
        return _incompatible(f"its transaction is {_OPAQUE.get(name or '', 'of a kind that is not known')}")
    match ours:
        case Append():
            return _judge_append(name, theirs)
        case Overwrite():
            return _judge_overwrite(ours, name, theirs)
        case Delete() | Update():
            return _judge_row_change(ours, name, theirs, context or Context())
        case UpdateConfig():
            return _judge_config(ours, name, theirs)
        case Clone():
            return _incompatible("a Clone can only be the first version")


_OPAQUE = {
    "clone": "a Clone, which can only be a first version",
    "composite_operation": "a composite operation, which is not understood",
}


def shared_fragments(ours: Operation, theirs: pb.Transaction | None) -> frozenset[int]:
    """Fragments in which both delete rows, so that only the rows can tell whether the two conflict."""
    if theirs is None or not isinstance(ours, (Delete, Update)):
        return _NOTHING
    match theirs.WhichOneof("operation"):
        case "delete":
            return _touched(ours) & fragment_ids(theirs.delete.updated_fragments)
        case "update":
            return _touched(ours) & fragment_ids(theirs.update.updated_fragments)
    return _NOTHING


def _incompatible(reason: str) -> Verdict:
    return Verdict(Outcome.INCOMPATIBLE, reason)


def _retryable(reason: str) -> Verdict:
    return Verdict(Outcome.RETRYABLE, reason)


def _reset(name: str) -> Verdict:
    return _incompatible(f"it replaced the table ({name})")


def _judge_append(name: str, theirs: pb.Transaction) -> Verdict:
    match name:
        case "overwrite" | "restore":
            return _reset(name)
        case "update_mem_wal_state":
            return _incompatible("it changed the state of the write-ahead log")
        case "merge" | "project":
            return _judge_nullability(name, theirs)
    return _COMPATIBLE


def _judge_nullability(name: str, theirs: pb.Transaction) -> Verdict:
    """Rows written for the old schema may hold nulls where the new one forbids them, unless the other says not."""
    keeps = theirs.merge.preserves_nullability if name == "merge" else theirs.project.preserves_nullability
    return _COMPATIBLE if keeps else _retryable(f"it changed the schema ({name}) and may have tightened it")


def _judge_overwrite(ours: Overwrite, name: str, theirs: pb.Transaction) -> Verdict:
    match name:
        case "overwrite":
            return _retryable("both overwrite the table")
        case "update_mem_wal_state":
            return _incompatible("it changed the state of the write-ahead log")
        case "update_config" if ours.config_upserts:
            config = decode_config_update(theirs.update_config).config
            reason = _map_clash("config", MapUpdate(ours.config_upserts), config)
            return _incompatible(reason) if reason is not None else _COMPATIBLE
    return _COMPATIBLE


def _judge_row_change(ours: Delete | Update, name: str, theirs: pb.Transaction, context: Context) -> Verdict:
    match name:
        case "overwrite" | "restore":
            return _reset(name)
        case "merge":
            return _retryable("it rewrote the fragment list (merge)")
        case "rewrite":
            return _judge_overlap(ours, _rewritten(theirs.rewrite), "compacted")
        case "data_replacement":
            replaced = frozenset(group.fragment_id for group in theirs.data_replacement.replacements)
            return _judge_overlap(ours, replaced, "replaced a data file of")
        case "delete":
            removed = frozenset(theirs.delete.deleted_fragment_ids)
            return _judge_deletions(ours, removed, _NOTHING, shared_fragments(ours, theirs), context)
        case "update":
            return _judge_update(ours, theirs, context)
        case "update_mem_wal_state" if isinstance(ours, Delete):
            return _incompatible("it changed the state of the write-ahead log")
    return _judge_rewritten_rows(ours, name, theirs) if isinstance(ours, Update) else _COMPATIBLE


def _judge_rewritten_rows(ours: Update, name: str, theirs: pb.Transaction) -> Verdict:
    """What stands in the way of an Update but not of a Delete."""
    match name:
        case "append" if ours.inserted_keys is not None:
            return _retryable("it added rows, which may have the keys that this update inserts")
        case "project":
            lost = set(ours.fields_modified) - {entry.id for entry in theirs.project.schema}
            if lost:
                return _retryable(f"it dropped field {min(lost)}, which this update rewrites")
            return _judge_nullability(name, theirs)
        case "data_overlay":
            return _judge_overlay(ours, theirs.data_overlay)
        case "update_mem_wal_state":
            return _judge_sstables(ours, theirs.update_mem_wal_state.compacted_sstables)
    return _COMPATIBLE


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
        verdict = _judge_sstables(ours, update.compacted_sstables)
        if verdict.outcome is not Outcome.COMPATIBLE:
            return verdict
        theirs_inserted = update.inserted_rows if update.HasField("inserted_rows") else None
        reason = _key_clash(ours.inserted_keys, theirs_inserted)
        if reason is not None:
            return _retryable(reason)
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
    for fragments, deed in ((removed, "removed"), (rewritten, "rewrote columns of")):
        if touched & fragments:
            return _retryable(f"it {deed} fragment {min(touched & fragments)}")
    if not shared:
        return _COMPATIBLE
    if isinstance(ours, Update) and ours.rewrites_columns:
        return _retryable(f"it changed rows of fragment {min(shared)}, whose columns this update rewrites")
    gone = shared & frozenset(ours.removed_ids)
    if gone:
        return _retryable(f"it changed rows of fragment {min(gone)}, which this transaction removes")
    for fragment in sorted(shared):
        mine, other = context.our_rows.get(fragment), context.their_rows.get(fragment)
        if mine is None or other is None:
            return _retryable(f"it changed fragment {fragment}, and which rows can no longer be told")
        common = mine & other
        if common:
            return _retryable(f"it changed row {common.min()} of fragment {fragment} as well")
    return Verdict(Outcome.REBASE, f"it changed other rows of fragment {min(shared)}")


def _judge_overlap(ours: Delete | Update, fragments: frozenset[int], deed: str) -> Verdict:
    common = _touched(ours) & fragments
    return _retryable(f"it {deed} fragment {min(common)}") if common else _COMPATIBLE


def _touched(ours: Delete | Update) -> frozenset[int]:
    return fragment_ids(ours.updated) | frozenset(ours.removed_ids)


def _rewritten(rewrite: pb.Transaction.Rewrite) -> frozenset[int]:
    groups = frozenset(fragment.id for group in rewrite.groups for fragment in group.old_fragments)
    return groups | fragment_ids(rewrite.old_fragments)


def _judge_sstables(ours: Update, theirs: Sequence[pb.CompactedSsTable]) -> Verdict:
    committed = {entry.shard_id.uuid: entry.generation for entry in theirs}
    for entry in ours.compacted_sstables:
        generation = committed.get(entry.shard_id.uuid)
        if generation is not None:
            shard = entry.shard_id.uuid.hex()
            if generation >= entry.generation:
                return _incompatible(f"it already merged generation {generation} of log shard {shard}")
            return _retryable(f"it merged generation {generation} of log shard {shard}")
    return _COMPATIBLE


def _key_clash(
    ours: pb.Transaction.KeyExistenceFilter | None, theirs: pb.Transaction.KeyExistenceFilter | None
) -> str | None:
    """Why two sets of inserted keys may share one; None if they cannot, or if ours claims nothing."""
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


def _judge_config(ours: UpdateConfig, name: str, theirs: pb.Transaction) -> Verdict:
    touches_schema = ours.schema_metadata is not None or bool(ours.field_metadata)
    match name:
        case "overwrite":
            if touches_schema:
                return _reset(name)
            upserts = dict(theirs.overwrite.config_upsert_values)
            reason = _map_clash("config", ours.config, MapUpdate(upserts) if upserts else None)
            return _incompatible(reason) if reason is not None else _COMPATIBLE
        case "restore":
            return _reset(name) if touches_schema else _COMPATIBLE
        case "merge":
            return _retryable("it replaced the schema (merge)") if touches_schema else _COMPATIBLE
        case "project":
            lost = set(ours.field_metadata) - {entry.id for entry in theirs.project.schema}
            return _incompatible(f"it dropped field {min(lost)}") if lost else _COMPATIBLE
        case "update_config":
            reason = _config_clash(ours, decode_config_update(theirs.update_config))
            return _incompatible(reason) if reason is not None else _COMPATIBLE
    return _COMPATIBLE


def _config_clash(ours: UpdateConfig, theirs: UpdateConfig) -> str | None:
    if ours.schema_metadata is not None and theirs.schema_metadata is not None:
        return "both change the schema metadata"
    common = ours.field_metadata.keys() & theirs.field_metadata.keys()
    if common:
        return f"both change the metadata of field {min(common)}"
    return _map_clash("config", ours.config, theirs.config) or _map_clash(
        "table metadata", ours.table_metadata, theirs.table_metadata
    )


def _map_clash(what: str, ours: MapUpdate | None, theirs: MapUpdate | None) -> str | None:
    if ours is None or theirs is None:
        return None
    if ours.replace or theirs.replace:
        return f"one replaces the whole {what}, the other changes it"
    for key in sorted(ours.entries.keys() & theirs.entries.keys()):
        if ours.entries[key] is not None or theirs.entries[key] is not None:
            return f"both change {what} key {key!r}"
    return None
