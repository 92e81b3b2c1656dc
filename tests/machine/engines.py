"""Stock pylance and this engine behind one interface: an operation is begun on a read version and finished later."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from lance.optimize import Compaction, CompactionOptions

from lance_core.commit.loop import commit_transaction
from lance_core.data import schema_fields
from lance_core.errors import IncompatibleTransaction, RetryableTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import (
    Append,
    MapUpdate,
    Operation,
    Overwrite,
    Project,
    Restore,
    UpdateConfig,
    decode_operation,
    encode_transaction,
)
from tests.machine.model import COMMITTED, INCOMPATIBLE, RETRYABLE
from tests.staged_fragments import stage_fragments
from tests.transaction.tables import Table, borrow, delete_rows, merge_rows

Finish = Callable[[], str]
"""Commits what was begun; returns the verdict."""


@dataclass(frozen=True)
class Step:
    """What to do, in terms that both engines understand."""

    kind: str
    table: pa.Table | None = None
    predicate: str = ""
    column: str = ""
    key: str = ""
    version: int = 0


def begin(engine: str, place: Table, branch: str | None, read_version: int, step: Step) -> Finish:
    """Prepare `step` on the head of a branch, version `read_version`; `place` is the branch as a table."""
    if engine == "stock":
        return lambda: _stock(place, read_version, step)
    operation = _operation(place, read_version, step)
    return lambda: _ours(place, branch, read_version, operation)


def compacted_fragments(place: Table) -> frozenset[int]:
    """What a compaction of the head would take away; nothing when there is nothing to do."""
    plan = Compaction.plan(place.open(), CompactionOptions())
    return frozenset(fragment.id for task in plan.tasks for fragment in task.fragments)


def fragments_of_rows(place: Table, ids: Collection[int]) -> frozenset[int]:
    """The fragments of the head that hold rows."""
    found = place.open().to_table(columns=["id"], with_row_address=True).to_pydict()
    return frozenset(address >> 32 for key, address in zip(found["id"], found["_rowaddr"], strict=True) if key in ids)


def _ours(place: Table, branch: str | None, read_version: int, operation: Operation) -> str:
    transaction = encode_transaction(operation, read_version=read_version)
    try:
        commit_transaction(place.store, "t", transaction, branch=branch)
    except RetryableTransaction:
        return RETRYABLE
    except IncompatibleTransaction:
        return INCOMPATIBLE
    return COMMITTED


def _operation(place: Table, read_version: int, step: Step) -> Operation:
    read = place.open(read_version)
    match step.kind:
        case "append":
            return Append(tuple(stage_fragments(step.table, place.uri, mode="append")))
        case "overwrite":
            assert step.table is not None
            fragments = stage_fragments(step.table, place.uri, mode="overwrite")
            return Overwrite(tuple(fragments), tuple(schema_fields(step.table.schema)))
        case "delete":
            return delete_rows(read, step.predicate)
        case "update":
            return merge_rows(read, step.table)
        case "rewrite":
            return _with_fresh_ids(borrow(place, lambda head: head.optimize.compact_files()))
        case "merge":
            return borrow(place, lambda head: head.add_columns({step.column: "x * 2"}))
        case "project":
            manifest = place.manifests()[read_version].manifest
            kept = tuple(entry for entry in manifest.fields if entry.name != step.column)
            return Project(kept, preserves_nullability=True)
        case "config":
            return UpdateConfig(MapUpdate({step.key: "ours"}))
        case "restore":
            return Restore(step.version)
    raise AssertionError(step.kind)


def _with_fresh_ids(operation: Operation) -> Operation:
    transaction = encode_transaction(operation, read_version=1)
    for group in transaction.rewrite.groups:
        for fragment in group.new_fragments:
            fragment.id = 0
    return decode_operation(transaction)


def _stock(place: Table, read_version: int, step: Step) -> str:
    read = place.open(read_version)
    actions: dict[str, Callable[[], Any]] = {
        "append": lambda: lance.write_dataset(step.table, read, mode="append"),
        "overwrite": lambda: lance.write_dataset(step.table, read, mode="overwrite"),
        "delete": lambda: read.delete(step.predicate, conflict_retries=0),
        "update": lambda: read.merge_insert("id").when_matched_update_all().conflict_retries(0).execute(step.table),
        "rewrite": lambda: read.optimize.compact_files(),
        "merge": lambda: read.add_columns({step.column: "x * 2"}),
        "project": lambda: read.drop_columns([step.column]),
        "config": lambda: read.update_config({step.key: "stock"}),
        "restore": lambda: place.open(step.version).restore(),
    }
    try:
        actions[step.kind]()
    except OSError as error:
        text = str(error)
        if "Too many concurrent writers" in text or "Retryable commit conflict" in text:
            return RETRYABLE
        assert "ncompatible" in text, text
        return INCOMPATIBLE
    return COMMITTED


def touched(transaction: pb.Transaction) -> frozenset[int]:
    """Ids of the fragments that a committed transaction changed or took away."""
    update, delete = transaction.update, transaction.delete
    changed = [*update.updated_fragments, *delete.updated_fragments]
    changed += [fragment for group in transaction.rewrite.groups for fragment in group.old_fragments]
    gone = [*update.removed_fragment_ids, *delete.deleted_fragment_ids]
    return frozenset(fragment.id for fragment in changed) | frozenset(gone)
