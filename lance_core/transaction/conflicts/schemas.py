"""Conflict rules for operations that replace the schema: Project and Merge."""

from __future__ import annotations

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, log_changed, reset, retryable
from lance_core.transaction.operations import Project, decode_config_update


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
