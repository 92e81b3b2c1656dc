"""Conflict rules for operations on the table as a whole: Restore, ReserveFragments and UpdateBases."""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, log_changed, reset
from lance_core.transaction.operations import ReserveFragments, Restore, UpdateBases, decode_config_update


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
