"""New rows: appended, or in the place of all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lance_core.transaction.operations import Append
from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall
from table_data.operations.kinds import ChangeKind, Changes
from table_data.requests.table_requests import mode_of
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import CreateTable, Insert

_MODES: Final = ("append", "overwrite")


def insert_into_table(changes: TableChanges, request: Insert, rows: ArrowBody | None) -> Result:
    """Append rows, or replace all rows (mode `overwrite`).

    Rows for a table without a version become its first version. Appending no rows commits nothing.
    """
    body = given(rows)
    mode = mode_of(request.get("mode"), _MODES)
    if mode == "overwrite" or not changes.has_version:
        return {"num_inserted_rows": replace_rows(changes, body, f"insert ({mode})")}
    fragments = staging.stage_rows(changes.dataset_of_layout(), body.rows(), checked=True)
    body.check()
    if fragments:
        changes.take("insert (append)", Append(fragments), message=None)
    return {"num_inserted_rows": sum(fragment.physical_rows for fragment in fragments)}


def replace_rows(changes: TableChanges, body: ArrowBody, call: str, data_version: str | None = None) -> int:
    """Make rows and their schema the whole table, in this version of the data format; the number of rows."""
    operation = staging.stage_table(
        changes.uri,
        body.rows(),
        None,
        data_version or changes.data_version,
        changes.options,
        exists=changes.has_version,
        checked=True,
    )
    body.check()
    if data_version is not None and not operation.fragments:
        changes.new_data_version = staging.data_format(data_version)
    changes.take(call, operation, message=None)
    return sum(fragment.physical_rows for fragment in operation.fragments)


def create_table(changes: TableChanges, request: CreateTable, rows: ArrowBody | None) -> Result:
    """Write rows as the first version of a table, or as a version that replaces rows and schema."""
    options = request.get("storage_options") or {}
    data_version = None
    if not changes.has_version:
        changes.stable_row_ids = _is_on(options, "new_table_enable_stable_row_ids")
        data_version = options.get("new_table_data_storage_version")
    written = replace_rows(changes, given(rows), "create", data_version)
    return {"properties": request.get("properties") or {}, "num_inserted_rows": written}


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def given(rows: ArrowBody | None) -> ArrowBody:
    """The rows of an operation that has rows."""
    if rows is None:
        raise InvalidCall("request body: expected rows as an Arrow IPC stream, found nothing")
    return rows


CHANGES: Changes = {
    "create_table": ChangeKind(create_table, repeatable=False),
    "insert_into_table": ChangeKind(insert_into_table, repeatable=True),
}
