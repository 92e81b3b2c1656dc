"""Plan the return of dropped tables and namespaces (rules G13 and G14)."""

from __future__ import annotations

from dataclasses import replace

from lance_namespace.errors import LanceNamespaceError, NamespaceNotFoundError, TableNotFoundError

from namespace_server.directory.model.entries import DROPPED, RecordEntry, TableEntry
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import UndropNamespace, UndropTable
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.namespaces_and_tables import (
    require_unused_location,
    require_vacant,
    with_properties,
)
from namespace_server.directory.planning.plan_builder import DroppedTables, PlanBuilder, TableBeforeDrop


def undrop(builder: PlanBuilder, index: int, operation: UndropTable | UndropNamespace) -> OperationResult:
    """Bring back a table, or a namespace. Raises TableNotFoundError (4) and NamespaceNotFoundError (1) if it cannot."""
    if isinstance(operation, UndropTable):
        return _undrop_table(builder, index, operation)
    return _undrop_namespace(builder, index, operation)


def _undrop_table(builder: PlanBuilder, index: int, operation: UndropTable) -> OperationResult:
    """The rows come back that the table had before it was dropped, unless its files are being removed (G14)."""
    [dropped] = _dropped(builder, index, TableNotFoundError).tables
    require_vacant(builder, operation.new_id)
    table = _bring_back(builder, dropped, operation.new_id)
    return with_properties({"id": list(table.id), "location": table.location}, table.properties)


def _undrop_namespace(builder: PlanBuilder, index: int, operation: UndropNamespace) -> OperationResult:
    """The namespace comes back with all that was dropped with it, in one flip."""
    found = _dropped(builder, index, NamespaceNotFoundError)
    require_vacant(builder, operation.id)
    top, *below = found.namespaces
    builder.create("namespace", top, *below)
    for dropped in found.tables:
        _bring_back(builder, dropped, dropped.table.id)
    [namespace] = [each for each in found.namespaces if each.id == operation.id]
    return with_properties({"id": list(operation.id)}, namespace.properties)


def _dropped(builder: PlanBuilder, index: int, error: type[LanceNamespaceError]) -> DroppedTables:
    """What verification found, if an operation before did not bring it back. This comes before any other check.

    So the answer is the same whether the operation before is in the same flip or in an earlier one.
    """
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    if not isinstance(finding, DroppedTables):
        raise TypeError(f"operation {index}: no verification result")
    for dropped in finding.tables:
        if _tombstone(builder, dropped) is None:
            table = dropped.table
            raise error(
                f"table {join(table.id)} at {table.location!r} cannot come back: its files are being removed, or it "
                "came back already"
            )
    return finding


def _tombstone(builder: PlanBuilder, dropped: TableBeforeDrop) -> RecordEntry | None:
    """The record that holds a dropped table until it is purged or comes back."""
    tombstone = builder.work.record(dropped.tombstone)
    if tombstone is None or tombstone.state != DROPPED:
        return None
    holds = any(each.location == dropped.table.location for each in tombstone.participants)
    return tombstone if holds else None


def _bring_back(builder: PlanBuilder, dropped: TableBeforeDrop, table_id: ObjectId) -> TableEntry:
    """Put the rows of a dropped table under a name, and take it out of its tombstone."""
    tombstone = _tombstone(builder, dropped)
    assert tombstone is not None, "looked at first"
    location = dropped.table.location
    require_unused_location(builder, table_id, location)
    table = replace(dropped.table, id=table_id)
    left = tuple(each for each in tombstone.participants if each.location != location)
    rows = [replace(row, table_id=table_id) for row in dropped.versions]
    stale = [each.object_id for each in builder.grants_on([table_id])]
    since = builder.base.version + 1
    grants = [replace(each, on=table_id, since=since) for each in dropped.grants] if _judges(builder) else []
    if left:
        builder.move(table, *rows, *grants, replace(tombstone, participants=left), removes=stale)
    else:
        builder.move(table, *rows, *grants, removes=[tombstone.object_id, *stale])
    return table


def _judges(builder: PlanBuilder) -> bool:
    """Whether grants are in force."""
    return builder.work.policy is not None
