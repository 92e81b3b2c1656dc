"""Changes of the rows that match a predicate."""

from __future__ import annotations

from collections.abc import Mapping

from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Json
from table_data.errors import InvalidCall
from table_data.operations.kinds import ChangeKind
from table_data.requests.expressions import check_expression
from table_data.requests.field_paths import column_of
from table_data.table_changes import TableChanges


def update_table(changes: TableChanges, request: Json, _rows: ArrowBody | None) -> Json:
    """Set columns to SQL expressions in the rows that match `predicate`, in all rows without one.

    Without a match nothing is committed. Raises `ColumnNotFound`, `InvalidCall`.
    """
    if request.get("properties"):
        raise InvalidCall("properties: an update changes rows; expected none, found some")
    assignments = assignments_of(request.get("updates"))
    head = changes.require_head()
    predicate = None if request.get("predicate") is None else _predicate_of(request)
    for what, expression in assignments.items():
        check_expression(expression, what)
    operation, rows = staging.stage_update(changes.dataset(), changes.files, head, assignments, predicate)
    if rows:
        changes.take(f"update {', '.join(assignments)}", operation, message=None)
    return {"updated_rows": rows}


def delete_from_table(changes: TableChanges, request: Json, _rows: ArrowBody | None) -> Json:
    """Delete the rows that match `predicate`. Without a match nothing is committed. Raises `InvalidCall`."""
    predicate = _predicate_of(request)
    head = changes.require_head()
    operation, rows = staging.stage_delete(changes.dataset(), changes.files, head, predicate)
    if rows:
        changes.take(f"delete where {predicate}", operation, message=None)
    return {}


def _predicate_of(request: Json) -> str:
    """The predicate of a change. An empty one is refused: it is more often a mistake than a wish for all rows."""
    predicate = request.get("predicate")
    if not isinstance(predicate, str) or not predicate.strip():
        raise InvalidCall(f"predicate: expected an SQL expression, found {str(predicate)[:80]!r}")
    check_expression(predicate, "predicate")
    return predicate


def assignments_of(updates: object) -> dict[str, str]:
    """The expressions by column, from a list of pairs. Raises `InvalidCall`."""
    if not isinstance(updates, list) or not updates:
        raise InvalidCall(f"updates: expected at least one pair of column and expression, found {str(updates)[:80]}")
    found: dict[str, str] = {}
    for number, pair in enumerate(updates):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise InvalidCall(f"updates[{number}]: expected a pair of column and expression, found {str(pair)[:80]}")
        column = column_of(pair[0], f"updates[{number}]")
        if column in found:
            raise InvalidCall(f"updates: expected each column once, found {column!r} twice")
        found[column] = pair[1]
    return found


CHANGES: Mapping[str, ChangeKind] = {
    "update_table": ChangeKind(update_table, repeatable=True),
    "delete_from_table": ChangeKind(delete_from_table, repeatable=True),
}
