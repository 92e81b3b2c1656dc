"""Conflict rules for UpdateConfig: maps are compared by key, field metadata by field."""

from __future__ import annotations

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, reset, retryable
from lance_core.transaction.operations import MapUpdate, UpdateConfig, decode_config_update


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
