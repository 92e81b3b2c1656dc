"""Merges of rows by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table_data import staging
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall
from table_data.operations.kinds import ChangeKind, Changes
from table_data.operations.rows import given, replace_rows
from table_data.requests.field_paths import column_of
from table_data.requests.merging import MergeClauses
from table_data.sql.expressions import sql_expression
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import MergeInsert


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


CHANGES: Changes = {"merge_insert_into_table": ChangeKind(merge_insert_into_table, repeatable=True)}
