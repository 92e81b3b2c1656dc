"""Changes of rows: new ones, those that match a predicate, and merges by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lance_core.transaction.operations import Append
from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall
from table_data.requests.field_paths import column_of
from table_data.requests.merging import MergeClauses
from table_data.requests.table_requests import mode_of
from table_data.sql.expressions import sql_expression
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import CreateTable, DeleteRows, Insert, MergeInsert, UpdateRows

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


def update_table(changes: TableChanges, request: UpdateRows, _rows: ArrowBody | None) -> Result:
    """Set columns to SQL expressions in the rows that match `predicate`, in all rows without one.

    Without a match nothing is committed. Raises `ColumnNotFound`, `InvalidCall`.
    """
    if request.get("properties"):
        raise InvalidCall("properties: an update changes rows; expected none, found some")
    assignments = assignments_of(request["updates"])
    head = changes.require_head()
    operation, rows = staging.stage_update(
        changes.dataset(), changes.files, head, assignments, request.get("predicate")
    )
    if rows:
        changes.take(f"update {', '.join(assignments)}", operation, message=None)
    return {"updated_rows": rows}


def delete_from_table(changes: TableChanges, request: DeleteRows, _rows: ArrowBody | None) -> Result:
    """Delete the rows that match `predicate`. Without a match nothing is committed. Raises `InvalidCall`."""
    predicate = request["predicate"]
    head = changes.require_head()
    operation, rows = staging.stage_delete(changes.dataset(), changes.files, head, predicate)
    if rows:
        changes.take(f"delete where {predicate}", operation, message=None)
    return {"num_deleted_rows": rows}


def assignments_of(updates: list[list[str]]) -> dict[str, str]:
    """The expressions by column, from a list of pairs. Raises `InvalidCall`."""
    if not updates:
        raise InvalidCall("updates: expected at least one pair of column and expression, found none")
    found: dict[str, str] = {}
    for number, (name, expression) in enumerate(updates):
        column = column_of(name, f"updates[{number}]")
        if column in found:
            raise InvalidCall(f"updates: expected each column once, found {column!r} twice")
        found[column] = expression
    return found


def merge_insert_into_table(changes: TableChanges, request: MergeInsert, rows: ArrowBody | None) -> Result:
    """Merge rows by key. If nothing changes nothing is committed.

    Rows that are merged into a table without a version become its first version. Raises `InvalidCall`.
    """
    clauses = clauses_of(request)
    body = given(rows)
    if not changes.has_version and clauses.inserts:
        inserted = replace_rows(changes, body, "merge")
        return {"num_updated_rows": 0, "num_inserted_rows": inserted, "num_deleted_rows": 0}
    head = changes.require_head()
    merged = staging.stage_merge(changes.dataset(), head.outline, body.rows(), clauses, checked=True)
    body.check()
    counts = {
        "num_updated_rows": merged.updated,
        "num_inserted_rows": merged.inserted,
        "num_deleted_rows": merged.deleted,
    }
    if any(counts.values()):
        changes.take(f"merge on {', '.join(clauses.on)}", merged.operation, message=None, guard=merged.guard)
    return counts


def clauses_of(request: MergeInsert) -> MergeClauses:
    """The clauses of a request. A condition without its flag counts as the flag, as for the stock server.

    New rows are inserted unless `when_not_matched_insert_all` is false. Raises `InvalidCall`.
    """
    keys = request.get("on")
    if not keys:
        raise InvalidCall("on: expected at least one column, found none")
    on = tuple(column_of(key, "on") for key in keys)
    if len(set(on)) < len(on):
        raise InvalidCall(f"on: expected each column once, found {list(on)}")
    condition = _condition(request.get("when_matched_update_all_filt"), "when_matched_update_all_filt")
    removed = "when_not_matched_by_source_delete_filt"
    delete_condition = _condition(request.get("when_not_matched_by_source_delete_filt"), removed)
    updates = bool(request.get("when_matched_update_all")) or condition is not None
    deletes = bool(request.get("when_not_matched_by_source_delete")) or delete_condition is not None
    inserts = request.get("when_not_matched_insert_all") is not False
    if not (updates or inserts or deletes):
        raise InvalidCall("merge: expected at least one of update, insert and delete, found none")
    return MergeClauses(
        on,
        matched="update" if updates else "keep",
        condition=condition,
        not_matched="insert" if inserts else "ignore",
        not_matched_by_source="delete" if deletes else "keep",
        delete_condition=delete_condition,
        use_index=request.get("use_index"),
    )


def _condition(given: str | None, name: str) -> str | None:
    """A condition of a clause. An empty one, as a variable that is not set gives, must not mean all rows."""
    if given is not None:
        sql_expression(given, name)
    return given
