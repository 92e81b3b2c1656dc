"""Plan the operations on namespaces and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotEmptyError,
)

from namespace_server.directory.model.entries import (
    DEREGISTERED,
    DROPPED,
    Entry,
    NamespaceEntry,
    RecordEntry,
    TableEntry,
)
from namespace_server.directory.model.errors import namespace_exists, namespace_not_found, table_exists
from namespace_server.directory.model.naming_rules import is_managed_location
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import (
    CreateMode,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    DropTable,
    RegisterTable,
    RenameTable,
    SetTableProperties,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.chains import table_at_location
from namespace_server.directory.planning.plan_builder import PlanBuilder

_Object = CreateNamespace | DropNamespace | DeregisterTable | DropTable | RenameTable | SetTableProperties


def plan_object(builder: PlanBuilder, operation: _Object) -> OperationResult:
    """Plan an operation on a namespace or table for which storage is not asked."""
    match operation:
        case CreateNamespace():
            return create_namespace(builder, operation)
        case DropNamespace():
            return drop_namespace(builder, operation)
        case DeregisterTable() | DropTable():
            return remove_table(builder, operation)
        case RenameTable():
            return rename_table(builder, operation)
        case SetTableProperties():
            return set_table_properties(builder, operation)


def create_namespace(builder: PlanBuilder, operation: CreateNamespace) -> OperationResult:
    """Create a namespace; its parent must exist. An existing name is error 2."""
    existing = builder.work.namespace(operation.id)
    if existing is not None:
        if operation.mode is CreateMode.EXIST_OK:
            return {"properties": dict(existing.properties)}
        if operation.mode is CreateMode.CREATE or not operation.id:
            raise namespace_exists(operation.id)
        _drop_below(builder, operation.id, purge=False)
    elif builder.work.table(operation.id) is not None:
        raise table_exists(operation.id)
    builder.require_parent(operation.id)
    builder.create("namespace", NamespaceEntry(operation.id, operation.properties))
    return {"properties": dict(operation.properties)}


def drop_namespace(builder: PlanBuilder, operation: DropNamespace) -> OperationResult:
    """With `cascade` all that lies below goes in the same flip; otherwise 3 when anything does."""
    existing = builder.work.namespace(operation.id)
    if existing is None:
        if operation.skip_missing:
            return {}
        raise namespace_not_found(operation.id)
    held = len(builder.work.child_namespaces(operation.id)) + len(builder.work.child_tables(operation.id))
    if held and not operation.cascade:
        raise NamespaceNotEmptyError(f"Namespace not empty: {join(operation.id)} holds {held} namespaces and tables")
    _drop_below(builder, operation.id, purge=operation.purge)
    builder.end_grants([operation.id])
    builder.change(removes=[join(operation.id)])
    return with_properties({}, existing.properties)


def _drop_below(builder: PlanBuilder, namespace_id: ObjectId, *, purge: bool) -> None:
    """Drop all that lies below a namespace, with a tombstone for each table."""
    work = builder.work
    removed: list[str] = []
    namespaces: list[ObjectId] = []
    tables: list[TableEntry] = []
    parents = [namespace_id]
    while parents:
        parent = parents.pop()
        for name in work.child_tables(parent):
            table = work.table((*parent, name))
            if table is not None:
                tables.append(table)
                removed += work.object_ids(table.id)
        for name in work.child_namespaces(parent):
            parents.append((*parent, name))
            namespaces.append((*parent, name))
            removed.append(join((*parent, name)))
    builder.require_in_catalog(tables)
    builder.put_tombstones(tables, DROPPED, purge=purge)
    builder.end_grants(namespaces)
    builder.change(removes=removed)


def declare_table(builder: PlanBuilder, index: int, operation: DeclareTable) -> OperationResult:
    """Name and location are the table's from the flip on."""
    if operation.implicit_namespaces:
        _create_namespaces_above(builder, operation.id)
    require_vacant(builder, operation.id)
    require_unused_location(builder, operation.id, operation.location)
    tombstone = builder.tombstone_at(operation.location)
    if tombstone is not None:
        raise _used(operation.id, operation.location, tombstone)
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    builder.declare(TableEntry(operation.id, operation.location, operation.properties))
    return with_properties({"location": operation.location, "managed_versioning": True}, operation.properties)


def _create_namespaces_above(builder: PlanBuilder, table_id: ObjectId) -> None:
    """The namespaces above a table that do not exist; where a table is in the way, declaring it is refused later."""
    for depth in range(1, len(table_id)):
        holder = builder.holder(table_id[:depth])
        if isinstance(holder, TableEntry):
            return
        if holder is None:
            builder.create("namespace", NamespaceEntry(table_id[:depth]))


def register_table(builder: PlanBuilder, index: int, operation: RegisterTable) -> OperationResult:
    """The versions found on storage become rows in the same flip."""
    if operation.overwrite and builder.work.table(operation.id) is not None:
        builder.require_promoted(builder.rows_of(operation.id))
        _remove(builder, builder.table(operation.id), DEREGISTERED)
    require_vacant(builder, operation.id)
    require_unused_location(builder, operation.id, operation.location)
    _require_own_location(builder, operation.id, operation.location)
    tombstone = builder.work.tombstone_at(operation.location)
    if tombstone is not None and tombstone.state != DEREGISTERED:
        raise _used(operation.id, operation.location, tombstone)
    versions = builder.findings.get(index, ())
    if isinstance(versions, LanceNamespaceError):
        raise versions
    if not isinstance(versions, tuple):
        raise TypeError("a registration was verified as something else")
    removes = [] if tombstone is None else [tombstone.object_id]  # it names this table alone
    builder.create("table", TableEntry(operation.id, operation.location, operation.properties), *versions)
    if removes:
        builder.change(removes=removes)
    return with_properties({"location": operation.location}, operation.properties)


def remove_table(builder: PlanBuilder, operation: DeregisterTable | DropTable) -> OperationResult:
    """Drop or deregister: both remove the rows and write a tombstone, and no file, and promote first (P6, G13).

    `register_table` takes the location of a deregistered table again, nothing else does (G15).
    """
    table = builder.table(operation.id)
    if isinstance(operation, DeregisterTable):
        builder.require_promoted(builder.rows_of(operation.id))
        _remove(builder, table, DEREGISTERED)
    else:
        builder.require_in_catalog([table])
        _remove(builder, table, DROPPED, purge=operation.purge)
    return with_properties({"id": list(operation.id), "location": table.location}, table.properties)


def _remove(
    builder: PlanBuilder, table: TableEntry, state: Literal["dropped", "deregistered"], *, purge: bool = False
) -> None:
    """Remove all rows of a table and put its tombstone."""
    builder.put_tombstones([table], state, purge=purge)
    builder.change(removes=list(builder.work.object_ids(table.id)))


def rename_table(builder: PlanBuilder, operation: RenameTable) -> OperationResult:
    """Rewrites the ids of all rows of the table; the location stays (N3)."""
    table = builder.table(operation.id)
    if operation.new_id == operation.id:
        return {}
    require_vacant(builder, operation.new_id)
    rows = builder.rows_of(operation.id)
    builder.require_promoted(rows)
    since = builder.base.version + 1
    moved: list[Entry] = [replace(row, table_id=operation.new_id) for row in rows]
    moved += [replace(each, on=operation.new_id, since=since) for each in builder.grants_on([operation.id])]
    ended = [each.object_id for each in builder.grants_on([operation.id, operation.new_id])]
    builder.change(removes=[*builder.work.object_ids(operation.id), *ended])
    builder.move(replace(table, id=operation.new_id), *moved)
    return {}


def set_table_properties(builder: PlanBuilder, operation: SetTableProperties) -> OperationResult:
    """Replaces all properties of a table, or changes some."""
    table = table_at_location(builder, operation)
    properties = operation.properties
    if properties is None:
        kept = {key: value for key, value in table.properties.items() if key not in operation.removals}
        properties = kept | dict(operation.updates)
        operation.limits.check_strings(properties, "properties")
    if table.properties != properties:
        builder.change([replace(table, properties=properties)])
    return with_properties({}, properties)


def require_vacant(builder: PlanBuilder, table_id: ObjectId) -> None:
    """Raise unless an id is vacant and its parent a namespace: 1, 2, 5, or 13 (N4)."""
    builder.require_parent(table_id)
    holder = builder.holder(table_id)
    if isinstance(holder, TableEntry):
        raise table_exists(table_id)
    if holder is not None:
        raise namespace_exists(table_id)


def require_unused_location(builder: PlanBuilder, table_id: ObjectId, location: str) -> None:
    """Raise InvalidInputError (13) if a table lives at a location (N1)."""
    holder = builder.table_at(location)
    if holder is not None:
        raise InvalidInputError(f"table {join(table_id)}: location {location!r} belongs to table {join(holder)}")


def _require_own_location(builder: PlanBuilder, table_id: ObjectId, location: str) -> None:
    """A registered table lies in no directory that is, was or may become another table's, and no table lies in its."""
    place = f"table {join(table_id)}: location {location!r}"
    parts = location.split("/")
    if len(parts) > 1 and is_managed_location(parts[0]):
        raise InvalidInputError(f"{place} lies inside {parts[0]!r}, a directory that the catalog made for a table")
    for depth in range(1, len(parts)):
        parent = "/".join(parts[:depth])
        holder, tombstone = builder.work.table_at(parent), builder.work.tombstone_at(parent)
        if holder is not None:
            raise InvalidInputError(f"{place} lies inside that of table {join(holder)}, {parent!r}")
        if tombstone is not None:
            raise InvalidInputError(f"{place} lies inside {parent!r}, that of a table which was {tombstone.state}")
    below = builder.work.table_below(location)
    if below is not None:
        raise InvalidInputError(f"{place} contains that of table {join(below)}")


def _used(table_id: ObjectId, location: str, tombstone: RecordEntry) -> InvalidInputError:
    before = next((join(party.table_id) for party in tombstone.participants if party.location == location), "unknown")
    way_out = "register_table takes it into the catalog again" if tombstone.state == DEREGISTERED else "choose another"
    return InvalidInputError(
        f"table {join(table_id)}: location {location!r} was that of table {before}, which was {tombstone.state}; "
        f"expected a location that no table had before, {way_out}"
    )


def with_properties(result: OperationResult, properties: Mapping[str, str]) -> OperationResult:
    """The result with the properties, if there are any."""
    if properties:
        result["properties"] = dict(properties)
    return result
