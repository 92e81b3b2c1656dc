"""Changes of the rows that match a predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall
from table_data.operations.kinds import ChangeKind, Changes
from table_data.requests.field_paths import column_of
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import DeleteRows, UpdateRows


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


CHANGES: Changes = {
    "update_table": ChangeKind(update_table, repeatable=True),
    "delete_from_table": ChangeKind(delete_from_table, repeatable=True),
}
