"""Conflict rules for operations that replace data files under the same schema: DataReplacement and Rewrite."""

from __future__ import annotations

from collections.abc import Sequence

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import (
    COMPATIBLE,
    Verdict,
    incompatible,
    judge_nullability,
    log_changed,
    reset,
    retryable,
    rewritten_fragments,
)
from lance_core.transaction.fields import descendants
from lance_core.transaction.indices import MEM_WAL, coverage, covered_fragments, indexed_fields
from lance_core.transaction.operations import DataReplacement, Rewrite, fragment_ids


def judge_data_replacement(
    ours: DataReplacement, name: str, theirs: pb.Transaction, fields: Sequence[pb.Field]
) -> Verdict:
    """The verdict on a DataReplacement; `fields` is the schema with the replaced fields."""
    replaced = {group.fragment_id: set(group.new_file.fields) for group in ours.replacements}
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "update_mem_wal_state":
            return log_changed()
        case "merge":
            return retryable("it rewrote the fragment list (merge)")
        case "delete":
            return _judge_removed(replaced, frozenset(theirs.delete.deleted_fragment_ids))
        case "update":
            return _judge_update(replaced, theirs.update)
        case "rewrite":
            common = replaced.keys() & rewritten_fragments(theirs.rewrite)
            return retryable(f"it compacted fragment {min(common)}") if common else COMPATIBLE
        case "data_replacement":
            return _judge_replacements(replaced, theirs.data_replacement)
        case "create_index":
            return _judge_index(replaced, theirs.create_index, fields)
        case "project":
            return _judge_project(replaced, theirs)
    return COMPATIBLE


def _judge_removed(replaced: dict[int, set[int]], removed: frozenset[int]) -> Verdict:
    common = replaced.keys() & removed
    return incompatible(f"it removed fragment {min(common)}") if common else COMPATIBLE


def _judge_update(replaced: dict[int, set[int]], update: pb.Transaction.Update) -> Verdict:
    removed = _judge_removed(replaced, frozenset(update.removed_fragment_ids))
    if removed != COMPATIBLE:
        return removed
    common = replaced.keys() & fragment_ids(update.updated_fragments)
    if not common:
        return COMPATIBLE
    if not update.fields_modified and update.update_mode != pb.Transaction.REWRITE_COLUMNS:
        return retryable(f"it moved rows out of fragment {min(common)}")
    for fragment in sorted(common):
        both = replaced[fragment] & set(update.fields_modified)
        if both:
            return retryable(f"it rewrote field {min(both)} of fragment {fragment}")
    return COMPATIBLE


def _judge_replacements(replaced: dict[int, set[int]], theirs: pb.Transaction.DataReplacement) -> Verdict:
    for group in theirs.replacements:
        both = replaced.get(group.fragment_id, set()) & set(group.new_file.fields)
        if both:
            return retryable(f"both replace field {min(both)} of fragment {group.fragment_id}")
    return COMPATIBLE


def _judge_index(
    replaced: dict[int, set[int]], theirs: pb.Transaction.CreateIndex, fields: Sequence[pb.Field]
) -> Verdict:
    touched = descendants(fields, set().union(*replaced.values()))
    for index in theirs.new_indices:
        common = touched & indexed_fields(fields, index)
        if common:
            return retryable(f"it made index {index.name!r} over field {min(common)}, whose data is replaced")
    return COMPATIBLE


def _judge_project(replaced: dict[int, set[int]], theirs: pb.Transaction) -> Verdict:
    verdict = judge_nullability("project", theirs)
    if verdict != COMPATIBLE:
        return verdict
    lost = set().union(*replaced.values()) - {field.id for field in theirs.project.schema}
    return incompatible(f"it dropped field {min(lost)}, whose data is replaced") if lost else COMPATIBLE


def judge_rewrite(ours: Rewrite, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on a Rewrite: it would lose any concurrent change of its old fragments."""
    old = frozenset(fragment.id for group in ours.groups for fragment in group.old_fragments)
    match name:
        case "overwrite" | "restore":
            return reset(name)
        case "merge":
            return retryable("it rewrote the fragment list (merge)")
        case "create_index":
            return _judge_coverage(old, theirs.create_index)
    common = old & _changed_fragments(name, theirs)
    return retryable(f"it changed fragment {min(common)} ({name})") if common else COMPATIBLE


def _changed_fragments(name: str, theirs: pb.Transaction) -> frozenset[int]:
    match name:
        case "delete":
            return fragment_ids(theirs.delete.updated_fragments) | frozenset(theirs.delete.deleted_fragment_ids)
        case "update":
            return fragment_ids(theirs.update.updated_fragments) | frozenset(theirs.update.removed_fragment_ids)
        case "rewrite":
            return rewritten_fragments(theirs.rewrite)
        case "data_replacement":
            return frozenset(group.fragment_id for group in theirs.data_replacement.replacements)
        case "data_overlay":
            return frozenset(group.fragment_id for group in theirs.data_overlay.groups)
    return frozenset()


def _judge_coverage(old: frozenset[int], theirs: pb.Transaction.CreateIndex) -> Verdict:
    for index in theirs.new_indices:
        if index.name == MEM_WAL:
            continue
        if not index.fragment_bitmap:
            return retryable(f"it made index {index.name!r}, which does not say which fragments it covers")
        common = covered_fragments(index) & coverage(old)
        if common:
            return retryable(f"it made index {index.name!r}, which covers fragment {common.min()}")
    return COMPATIBLE
