"""ALTER TABLE: columns, comments and properties, as operations of one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Merge, Operation, Project
from spark_catalog.sql.errors import InvalidStatement, Unsupported
from spark_catalog.sql.schemas import COMMENT, parse_schema, stored_schema
from spark_catalog.sql.sessions import Statement
from spark_catalog.sql.tables import MANAGED_LOCATION, STABLE_ROW_IDS, check_property
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.tables.types import check_name
from table_data import staging
from table_data.batch_operations import Json, TableId
from table_data.errors import InvalidCall
from table_data.staging import Alteration
from table_data.table_changes import TableChanges

_TOP_LEVEL = -1
_RESERVED = frozenset({"location", "provider", "owner", "external", MANAGED_LOCATION})


def alter(statement: Statement, table: TableId, changes: Sequence[Json]) -> None:
    """Apply the changes in order.

    Raises:
        NoSuchTable: There is no such table.
        InvalidStatement: There is no such column, or a name is taken.
        Unsupported: A change cannot be made.
    """
    altered = statement.transaction.require(table)
    altered.require_head()
    for change in changes:
        kind = change["change"]
        if kind in ("set_property", "remove_property"):
            _change_property(statement.transaction, altered, change)
            continue
        operation = _OPERATIONS[kind](altered, change)
        if operation is not None:
            what = f"{kind.replace('_', ' ').upper()} {'.'.join(change['column'])}"
            call = f"statement {statement.number}: ALTER TABLE {what}"
            statement.transaction.take(altered, operation, call=call)


def _change_property(transaction: SqlTransaction, changes: TableChanges, change: Json) -> None:
    name = change["property"]
    if name in _RESERVED:
        raise Unsupported(f"{changes.name}: property {name!r} is set by the catalog")
    if name == STABLE_ROW_IDS:
        raise Unsupported(f"{changes.name}: {name} is decided when a table is created")
    value = change["value"] if change["change"] == "set_property" else None
    if value is not None:
        check_property(changes.name, name, value)
    transaction.change_property(changes, name, value)


def _add_column(changes: TableChanges, change: Json) -> Operation:
    _top_level(changes, change)
    [field] = stored_schema(parse_schema(change["schema"]), changes.name)
    if not field.nullable:
        raise Unsupported(f"{changes.name}: ADD COLUMN {field.name} NOT NULL: the rows that there are have no value")
    if change["comment"] is not None:
        field = field.with_metadata({COMMENT: change["comment"].encode()})
    head = changes.require_head()
    return staging.stage_columns(changes.dataset(), head.manifest, pa.schema([field]), None)


def _drop_column(changes: TableChanges, change: Json) -> Operation | None:
    field = _find(changes, change["column"], missing_ok=change["if_exists"])
    if field is None:
        return None
    return staging.stage_removal(changes.require_head().manifest, {field.id})


def _rename_column(changes: TableChanges, change: Json) -> Operation | None:
    if len(change["column"]) == 1:
        try:
            check_name(changes.name, change["name"])
        except InvalidCall as error:
            raise Unsupported(str(error)) from error
    return _altered(changes, Alteration(_require(changes, change).id, rename=change["name"]))


def _nullability(changes: TableChanges, change: Json) -> Operation | None:
    return _altered(changes, Alteration(_require(changes, change).id, nullable=change["nullable"]))


def _cast_column(changes: TableChanges, change: Json) -> Operation | None:
    field = _require(changes, change)
    [wanted] = stored_schema(parse_schema(change["schema"]), changes.name)
    return _altered(changes, Alteration(field.id, data_type=wanted.type))


def _comment_column(changes: TableChanges, change: Json) -> Operation:
    """A comment is metadata of a field. A projection onto all fields stores it."""
    wanted = _require(changes, change).id
    fields = []
    for field in changes.require_head().manifest.fields:
        copy = pb.Field()
        copy.CopyFrom(field)
        if field.id == wanted:
            copy.metadata[COMMENT.decode()] = (change["comment"] or "").encode()
        fields.append(copy)
    return Project(tuple(fields), preserves_nullability=True)


def _altered(changes: TableChanges, alteration: Alteration) -> Project | Merge | None:
    head = changes.require_head()
    return staging.stage_alterations(changes.dataset(), head.manifest, head.indices, [alteration])


def _require(changes: TableChanges, change: Json) -> pb.Field:
    field = _find(changes, change["column"], missing_ok=False)
    assert field is not None
    return field


def _find(changes: TableChanges, column: Sequence[str], *, missing_ok: bool) -> pb.Field | None:
    """The field of a column, or of a field in structs."""
    fields = changes.require_head().manifest.fields
    parent = _TOP_LEVEL
    found: pb.Field | None = None
    for name in column:
        found = next((field for field in fields if field.parent_id == parent and field.name == name), None)
        if found is None:
            if missing_ok:
                return None
            raise InvalidStatement(f"{changes.name}: no column {'.'.join(column)}")
        parent = found.id
    return found


def _top_level(changes: TableChanges, change: Json) -> None:
    if len(change["column"]) > 1:
        raise Unsupported(
            f"{changes.name}: ADD COLUMN {'.'.join(change['column'])}: fields of a struct cannot be added"
        )


_OPERATIONS: Mapping[str, Callable[[TableChanges, Json], Operation | None]] = {
    "add_column": _add_column,
    "drop_column": _drop_column,
    "rename_column": _rename_column,
    "nullability": _nullability,
    "cast_column": _cast_column,
    "comment_column": _comment_column,
}
