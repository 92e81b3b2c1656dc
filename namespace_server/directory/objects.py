"""Plan the operations on namespaces and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
)

from namespace_server.directory.draft import Draft, Result
from namespace_server.directory.names import join
from namespace_server.directory.operations import (
    CreateMode,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    DropTable,
    ObjectId,
    RegisterTable,
    RenameTable,
)
from namespace_server.directory.rows import NamespaceEntry, TableEntry


def create_namespace(draft: Draft, operation: CreateNamespace) -> Result:
    """Parents are not made along the way. Losing to an existing name is 2, whoever made it."""
    existing = draft.work.namespace(operation.id)
    if existing is not None:
        if operation.mode is CreateMode.EXIST_OK:
            return _with_properties({}, existing.properties)
        if operation.mode is CreateMode.CREATE or not operation.id:
            raise NamespaceAlreadyExistsError(f"namespace {join(operation.id) or 'root'} exists")
        draft.change(removes=_below(draft, operation.id))
    elif draft.work.table(operation.id) is not None:
        raise TableAlreadyExistsError(f"namespace {join(operation.id)}: a table has that name")
    draft.require_parent(operation.id)
    draft.change([NamespaceEntry(operation.id, operation.properties)])
    return _with_properties({}, operation.properties)


def drop_namespace(draft: Draft, operation: DropNamespace) -> Result:
    """With `cascade` all that lies below goes in the same flip; otherwise 3 when anything does."""
    existing = draft.work.namespace(operation.id)
    if existing is None:
        if operation.skip_missing:
            return {}
        raise NamespaceNotFoundError(f"namespace {join(operation.id)} does not exist")
    held = len(draft.work.child_namespaces(operation.id)) + len(draft.work.child_tables(operation.id))
    if held and not operation.cascade:
        raise NamespaceNotEmptyError(f"namespace {join(operation.id)} holds {held} objects")
    below = _below(draft, operation.id)
    draft.change(removes=[*below, join(operation.id)])
    return _with_properties({}, existing.properties)


def _below(draft: Draft, namespace_id: ObjectId) -> list[str]:
    removed: list[str] = []
    for name in draft.work.child_tables(namespace_id):
        removed += draft.work.object_ids((*namespace_id, name))
    for name in draft.work.child_namespaces(namespace_id):
        child = (*namespace_id, name)
        removed += [*_below(draft, child), join(child)]
    return removed


def declare_table(draft: Draft, operation: DeclareTable) -> Result:
    """Name and location are the table's from the flip on."""
    _require_vacant(draft, operation.id)
    _require_unused_location(draft, operation.id, operation.location)
    draft.declare(TableEntry(operation.id, operation.location, operation.properties))
    return _with_properties({"location": operation.location, "managed_versioning": True}, operation.properties)


def register_table(draft: Draft, index: int, operation: RegisterTable) -> Result:
    """The versions found on storage become rows in the same flip."""
    if operation.overwrite and draft.work.table(operation.id) is not None:
        draft.require_promoted(draft.rows_of(operation.id))
        draft.change(removes=list(draft.work.object_ids(operation.id)))
    _require_vacant(draft, operation.id)
    _require_unused_location(draft, operation.id, operation.location)
    versions = draft.findings.get(index, ())
    if isinstance(versions, LanceNamespaceError):
        raise versions
    if not isinstance(versions, tuple):
        raise TypeError("a registration was verified as something else")
    draft.change([TableEntry(operation.id, operation.location, operation.properties), *versions])
    return _with_properties({"location": operation.location}, operation.properties)


def remove_table(draft: Draft, operation: DeregisterTable | DropTable) -> Result:
    """Drop and deregister differ in what may happen to the files later; deregister promotes first (P6)."""
    table = draft.table(operation.id)
    if isinstance(operation, DeregisterTable):
        draft.require_promoted(draft.rows_of(operation.id))
    draft.change(removes=list(draft.work.object_ids(operation.id)))
    return _with_properties({"id": list(operation.id), "location": table.location}, table.properties)


def rename_table(draft: Draft, operation: RenameTable) -> Result:
    """Rewrites the ids of all rows of the table; the location stays (N3)."""
    table = draft.table(operation.id)
    if operation.new_id == operation.id:
        return {}
    _require_vacant(draft, operation.new_id)
    rows = draft.rows_of(operation.id)
    draft.require_promoted(rows)
    removed = list(draft.work.object_ids(operation.id))
    draft.change(removes=removed)
    draft.change([replace(table, id=operation.new_id), *(replace(row, table_id=operation.new_id) for row in rows)])
    return {}


def _require_vacant(draft: Draft, table_id: ObjectId) -> None:
    draft.require_parent(table_id)
    holder = draft.holder(table_id)
    if isinstance(holder, TableEntry):
        raise TableAlreadyExistsError(f"table {join(table_id)} exists")
    if holder is not None:
        raise NamespaceAlreadyExistsError(f"table {join(table_id)}: a namespace has that name")


def _require_unused_location(draft: Draft, table_id: ObjectId, location: str) -> None:
    holder = draft.table_at(location)
    if holder is not None:
        raise InvalidInputError(f"table {join(table_id)}: location {location!r} belongs to table {join(holder)}")


def _with_properties(result: Result, properties: Mapping[str, str]) -> Result:
    if properties:
        result["properties"] = dict(properties)
    return result
