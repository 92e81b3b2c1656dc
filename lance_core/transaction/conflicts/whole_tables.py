"""Conflict rules for operations on the config, the schema, the log, and the table as a whole.

Maps of the config are compared by key, field metadata by field, and generations of the shards of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, log_changed, reset, retryable
from lance_core.transaction.operations import (
    MapUpdate,
    Project,
    ReserveFragments,
    Restore,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    decode_config_update,
)


def judge_config(ours: UpdateConfig, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an UpdateConfig."""
    touches_schema = ours.schema_metadata is not None or bool(ours.field_metadata)
    match name:
        case "overwrite":
            if touches_schema:
                return reset(name)
            upserts = dict(theirs.overwrite.config_upsert_values)
            reason = map_clash("config", ours.config, MapUpdate(upserts) if upserts else None)
            return incompatible(reason) if reason is not None else COMPATIBLE
        case "restore":
            return reset(name) if touches_schema else COMPATIBLE
        case "merge":
            return retryable("it replaced the schema (merge)") if touches_schema else COMPATIBLE
        case "project":
            lost = set(ours.field_metadata) - {entry.id for entry in theirs.project.schema}
            return incompatible(f"it dropped field {min(lost)}") if lost else COMPATIBLE
        case "update_config":
            reason = _config_clash(ours, decode_config_update(theirs.update_config))
            return incompatible(reason) if reason is not None else COMPATIBLE
    return COMPATIBLE


def _config_clash(ours: UpdateConfig, theirs: UpdateConfig) -> str | None:
    if ours.schema_metadata is not None and theirs.schema_metadata is not None:
        return "both change the schema metadata"
    common = ours.field_metadata.keys() & theirs.field_metadata.keys()
    if common:
        return f"both change the metadata of field {min(common)}"
    return map_clash("config", ours.config, theirs.config) or map_clash(
        "table metadata", ours.table_metadata, theirs.table_metadata
    )


def map_clash(what: str, ours: MapUpdate | None, theirs: MapUpdate | None) -> str | None:
    """The reason why two changes of one map do not commute; None if they do."""
    if ours is None or theirs is None:
        return None
    if ours.replace or theirs.replace:
        return f"one replaces the whole {what}, the other changes it"
    for key in sorted(ours.entries.keys() & theirs.entries.keys()):
        if ours.entries[key] is not None or theirs.entries[key] is not None:
            return f"both change {what} key {key!r}"
    return None


def judge_project(ours: Project, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on a Project.

    A Project replaces the whole list of fields, so it would silently undo a concurrent change of field metadata. That
    is retryable here; stock writers commit it.
    """
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "update_mem_wal_state":
            return log_changed()
        case "merge" | "project":
            return retryable(f"both change the schema ({name})")
        case "append" | "update" | "data_replacement" | "data_overlay" if not ours.preserves_nullability:
            return retryable(f"it wrote values ({name}) that a tightened schema may forbid")
        case "update_config":
            changed = decode_config_update(theirs.update_config).field_metadata
            if changed:
                return retryable(f"it changed the metadata of field {min(changed)}, which this projection would undo")
    return COMPATIBLE


def judge_merge(name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on a Merge, which replaces the whole lists of fragments and of fields."""
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "project":
            return incompatible("it changed the schema (project)")
        case "update_mem_wal_state":
            return log_changed()
        case "append" | "delete" | "update" | "rewrite" | "merge" | "data_replacement" | "data_overlay":
            return retryable(f"it changed fragments ({name}), all of which a merge replaces")
        case "update_config":
            update = decode_config_update(theirs.update_config)
            if update.schema_metadata is not None or update.field_metadata:
                return retryable("it changed metadata of the schema, which a merge replaces")
    return COMPATIBLE


def judge_table_change(ours: Restore | ReserveFragments | UpdateBases, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an operation that names no rows and no columns."""
    match ours:
        case Restore():
            return _judge_restore(name, theirs)
        case ReserveFragments():
            # The ids were reserved above a high-water mark that the other operation may have replaced.
            return reset(name) if name in {"overwrite", "restore"} else COMPATIBLE
        case UpdateBases():
            return _judge_bases(ours, name, theirs)


def _judge_restore(name: str, theirs: pb.Transaction) -> Verdict:
    match name:
        case "update_mem_wal_state":
            return log_changed()
        case "update_config":
            update = decode_config_update(theirs.update_config)
            if update.schema_metadata is not None or update.field_metadata:
                return incompatible("it changed metadata of the schema, which the restored version replaces")
    return COMPATIBLE


def _judge_bases(ours: UpdateBases, name: str, theirs: pb.Transaction) -> Verdict:
    if name != "update_bases":
        return COMPATIBLE
    reason = base_clash(ours.new_bases, theirs.update_bases.new_bases)
    return incompatible(f"it added {reason} as well") if reason is not None else COMPATIBLE


def base_clash(ours: Sequence[pb.BasePath], theirs: Sequence[pb.BasePath]) -> str | None:
    """The first id (0: not assigned yet), name or path that two lists of base paths share, in words; None if none."""
    for mine in ours:
        for other in theirs:
            if mine.id and mine.id == other.id:
                return f"a base path with id {mine.id}"
            if mine.HasField("name") and other.HasField("name") and mine.name == other.name:
                return f"a base path called {mine.name!r}"
            if mine.path == other.path:
                return f"base path {mine.path}"
    return None


_INDEPENDENT = frozenset({"create_index", "update_config", "rewrite", "reserve_fragments", "update_bases"})


def judge_log_state(ours: UpdateMemWalState, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an UpdateMemWalState: rows may have changed only by merging from the log."""
    match name:
        case "update_mem_wal_state":
            return judge_sstables(ours.compacted_sstables, theirs.update_mem_wal_state.compacted_sstables)
        case "update":
            return judge_sstables(ours.compacted_sstables, theirs.update.compacted_sstables)
    return COMPATIBLE if name in _INDEPENDENT else incompatible(f"it changed rows or schema outside the log ({name})")


def judge_sstables(ours: Iterable[pb.CompactedSsTable], theirs: Iterable[pb.CompactedSsTable]) -> Verdict:
    """The verdict on merging `ours` after `theirs`: in a shard only a later generation may follow, and it is redone."""
    committed = {entry.shard_id.uuid: entry.generation for entry in theirs}
    for entry in ours:
        generation = committed.get(entry.shard_id.uuid)
        if generation is not None:
            shard = entry.shard_id.uuid.hex()
            if generation >= entry.generation:
                return incompatible(f"it already merged generation {generation} of log shard {shard}")
            return retryable(f"it merged generation {generation} of log shard {shard}")
    return COMPATIBLE
