"""Conflict rules for CreateIndex: by index name, by indexed field, and by the fragments that a segment covers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import (
    COMPATIBLE,
    Outcome,
    Verdict,
    log_changed,
    reset,
    retryable,
    rewritten_fragments,
)
from lance_core.transaction.fields import descendants
from lance_core.transaction.indices import MEM_WAL, coverage, covered_fragments, indexed_fields
from lance_core.transaction.operations import CreateIndex, fragment_ids


def judge_create_index(ours: CreateIndex, name: str, theirs: pb.Transaction, fields: Sequence[pb.Field]) -> Verdict:
    """The verdict on a CreateIndex; `fields` is the schema with the indexed fields."""
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "update_mem_wal_state":
            return log_changed()
        case "create_index":
            return _judge_names(ours, theirs.create_index)
        case "rewrite":
            return _judge_rewrite(ours, rewritten_fragments(theirs.rewrite))
        case "merge":
            return _judge_schema(ours, theirs.merge.schema, name)
        case "project":
            return _judge_schema(ours, theirs.project.schema, name)
        case "data_replacement":
            replaced = {field for group in theirs.data_replacement.replacements for field in group.new_file.fields}
            return _judge_replacement(ours, replaced, fields)
        case "update":
            return _judge_columns(ours, theirs.update, fields)
    return COMPATIBLE


def _judge_names(ours: CreateIndex, theirs: pb.Transaction.CreateIndex) -> Verdict:
    added = _names(ours.new)
    common = added & (_names(theirs.new_indices) | _names(theirs.removed_indices))
    common |= _names(ours.removed) & _names(theirs.new_indices)
    if common:
        return retryable(f"both change index {min(common)!r}")
    if ours.new and _uuids(ours.removed) & _uuids(theirs.removed_indices):
        return retryable("it removed an index segment that this transaction replaces")
    return COMPATIBLE


def _names(indices: Iterable[pb.IndexMetadata]) -> set[str]:
    return {index.name for index in indices}


def _uuids(indices: Iterable[pb.IndexMetadata]) -> set[bytes]:
    return {index.uuid.uuid for index in indices}


def _judge_rewrite(ours: CreateIndex, rewritten: frozenset[int]) -> Verdict:
    for index in ours.new:
        if index.name == MEM_WAL:
            continue
        if not index.fragment_bitmap:
            return retryable(f"it compacted fragments, and index {index.name!r} does not say which it covers")
        common = covered_fragments(index) & coverage(rewritten)
        if common:
            return retryable(f"it compacted fragment {common.min()}, which index {index.name!r} covers")
    return COMPATIBLE


def _judge_schema(ours: CreateIndex, schema: Iterable[pb.Field], name: str) -> Verdict:
    live = {field.id for field in schema}
    for index in ours.new:
        lost = {*index.fields, *index.covering_fields} - live
        if lost:
            return retryable(f"it dropped field {min(lost)} ({name}), which index {index.name!r} is over")
    return COMPATIBLE


def _judge_replacement(ours: CreateIndex, replaced: set[int], fields: Sequence[pb.Field]) -> Verdict:
    for index in ours.new:
        common = indexed_fields(fields, index) & descendants(fields, replaced)
        if common:
            return retryable(f"it replaced data of field {min(common)}, which index {index.name!r} is over")
    return COMPATIBLE


def _judge_columns(ours: CreateIndex, update: pb.Transaction.Update, fields: Sequence[pb.Field]) -> Verdict:
    """The verdict against an Update of columns: a segment over a rewritten column stays valid for other fragments."""
    for index in ours.new:
        stale = covered_fragments(index) & coverage(fragment_ids(update.updated_fragments))
        if stale and indexed_fields(fields, index) & set(update.fields_modified):
            return Verdict(Outcome.REBASE, f"it rewrote fragment {stale.min()} under index {index.name!r}")
    return COMPATIBLE
