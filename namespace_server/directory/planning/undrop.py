"""Plan the return of what was dropped (rules G13 and G14)."""

from __future__ import annotations

from dataclasses import replace

from lance_namespace.errors import LanceNamespaceError, TableNotFoundError

from namespace_server.directory.model.entries import DROPPED, TableEntry
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import UndropNamespace, UndropTable
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.objects import require_unused_location, require_vacant, with_properties
from namespace_server.directory.planning.plan_builder import DroppedTables, PlanBuilder, TableBeforeDrop


def undrop(builder: PlanBuilder, index: int, operation: UndropTable | UndropNamespace) -> OperationResult:
    """Bring back a table, or a namespace. Raises TableNotFoundError (4) and NamespaceNotFoundError (1) if it cannot."""
    if isinstance(operation, UndropTable):
        return _undrop_table(builder, index, operation)
    return _undrop_namespace(builder, index, operation)


def _undrop_table(builder: PlanBuilder, index: int, operation: UndropTable) -> OperationResult:
    """The rows come back that the table had before it was dropped, unless its files are being removed (G14)."""
    [dropped] = _dropped(builder, index).tables
    require_vacant(builder, operation.new_id)
    table = _bring_back(builder, dropped, operation.new_id)
    return with_properties({"id": list(table.id), "location": table.location}, table.properties)


def _undrop_namespace(builder: PlanBuilder, index: int, operation: UndropNamespace) -> OperationResult:
    """The namespace comes back with all that was dropped with it, in one flip."""
    found = _dropped(builder, index)
    require_vacant(builder, operation.id)
    builder.change(found.namespaces)
    for dropped in found.tables:
        _bring_back(builder, dropped, dropped.table.id)
    [namespace] = [each for each in found.namespaces if each.id == operation.id]
    return with_properties({"id": list(operation.id)}, namespace.properties)


def _dropped(builder: PlanBuilder, index: int) -> DroppedTables:
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    if not isinstance(finding, DroppedTables):
        raise TypeError(f"operation {index}: no verification result")
    return finding


def _bring_back(builder: PlanBuilder, dropped: TableBeforeDrop, table_id: ObjectId) -> TableEntry:
    """Put the rows of a dropped table under a name, and take it out of its tombstone. Raises TableNotFoundError (4)."""
    location = dropped.table.location
    tombstone = builder.work.record(dropped.tombstone)
    parties = () if tombstone is None or tombstone.state != DROPPED else tombstone.participants
    if tombstone is None or all(each.location != location for each in parties):
        raise TableNotFoundError(
            f"table {join(dropped.table.id)} at {location!r} cannot come back: its files are being removed, or it came "
            "back already"
        )
    require_unused_location(builder, table_id, location)
    table = replace(dropped.table, id=table_id)
    left = tuple(each for each in parties if each.location != location)
    rows = [replace(row, table_id=table_id) for row in dropped.versions]
    if left:
        builder.change([table, *rows, replace(tombstone, participants=left)])
    else:
        builder.change([table, *rows], [tombstone.object_id])
    return table
