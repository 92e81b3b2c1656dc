"""Columns of a table: new, altered and dropped ones."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall, NotSupported
from table_data.requests.arrow_types import arrow_type
from table_data.requests.schema_paths import field_at
from table_data.staging import Alteration
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import AddColumns, AlterColumns, DropColumns

_ENDS: Final = frozenset({b"", b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0"})
"""What follows the schema of a stream without rows."""


def alter_table_add_columns(changes: TableChanges, request: AddColumns, _rows: ArrowBody | None) -> Result:
    """Add columns with the values of SQL expressions over the other columns, or columns of nulls."""
    head = changes.require_head()
    encoded = request.get("arrow_schema")
    if encoded is not None:
        if request["new_columns"]:
            raise InvalidCall("arrow_schema: expected no new_columns beside it, found some")
        nulls = _schema(encoded)
        changes.take("add_columns", staging.stage_columns(changes.dataset(), head.manifest, nulls, None), message=None)
        return {}
    columns: dict[str, str] = {}
    for entry in request["new_columns"]:
        name = entry["name"]
        if name in columns or not name or "." in name:
            raise InvalidCall(f"new column {name[:80]!r}: expected a name of its own, without a dot")
        columns[name] = _expression(entry)
    if columns:
        operation = staging.stage_columns(changes.dataset(), head.manifest, columns, None)
        changes.take("add_columns", operation, message=None)
    return {}


def alter_table_alter_columns(changes: TableChanges, request: AlterColumns, _rows: ArrowBody | None) -> Result:
    """Rename columns, change whether they may be null, and cast them. Paths are those before the change."""
    head = changes.require_head()
    fields = head.outline.fields
    alterations = []
    for entry in request["alterations"]:
        if entry.get("virtual_column") is not None:
            raise NotSupported("virtual_column: functions of clients are not run here")
        field = field_at(fields, entry["path"], "alter_columns")
        described = entry.get("data_type")
        kind = None if described is None else arrow_type(described, f"data_type of {entry['path'][:80]!r}")
        alterations.append(Alteration(field.id, entry.get("rename"), entry.get("nullable"), kind))
    operation = staging.stage_alterations(changes.dataset(), head.manifest, head.indices, alterations)
    if operation is not None:
        changes.take("alter_columns", operation, message=None)
    return {}


def alter_table_drop_columns(changes: TableChanges, request: DropColumns, _rows: ArrowBody | None) -> Result:
    """Drop columns, or fields in them."""
    head = changes.require_head()
    fields = head.outline.fields
    dropped = {field_at(fields, path, "drop_columns").id for path in request["columns"]}
    if dropped:
        changes.take("drop_columns", staging.stage_removal(head.manifest, dropped), message=None)
    return {}


def _schema(encoded: str) -> pa.Schema:
    """The fields of columns of nulls, each with a name of its own. Raises `InvalidCall`."""
    try:
        source = pa.BufferReader(base64.b64decode(encoded, validate=True))
        with pa.ipc.open_stream(source) as stream:
            found, rest = stream.schema, source.read()
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InvalidCall(f"arrow_schema: expected an Arrow IPC stream, found another value ({error})") from error
    if rest not in _ENDS:
        raise InvalidCall(f"arrow_schema: expected a stream without rows, found {len(rest)} bytes behind the schema")
    for name in found.names:
        if not name or "." in name or found.names.count(name) > 1:
            raise InvalidCall(f"new column {name[:80]!r}: expected a name of its own, without a dot")
    required = [field.name for field in found if not field.nullable]
    if required:
        raise InvalidCall(f"new column {required[0][:80]!r}: expected one that may be null, found one that may not")
    return found


def _expression(entry: Mapping[str, Any]) -> str:
    for other in ("computed", "virtual_column"):
        if entry.get(other) is not None:
            raise NotSupported(
                f"column {entry['name'][:80]!r}: {other} needs a service that fills it; give an expression alone"
            )
    expression = entry.get("expression")
    if isinstance(expression, str):
        return expression
    raise InvalidCall(f"column {entry['name'][:80]!r}: expected an expression, found none")
