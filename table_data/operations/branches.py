"""Branches beside main: the difference, and main with what a branch changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result, TableState
from table_data.staging.branch_changes import NOT_IMPLEMENTED, PICKED, compare_branch, stage_branch
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import DiffOfBranch, PickOfBranch


def diff_branch(table: TableState, request: DiffOfBranch, options: Mapping[str, str]) -> Result:
    """The difference of a branch from main, of versions that are given. Raises `ReferenceNotFound`, `VersionGone`."""
    found = compare_branch(TableChanges(table, options), TableChanges(request["source"], options))
    return found.body()


def cherry_pick(changes: TableChanges, request: PickOfBranch, _rows: ArrowBody | None) -> Result:
    """Let main have what a branch changed since it began, in one commit. What stands in the way is the result.

    With `dry_run` nothing is written. Raises `InvalidCall` for another line than main.
    """
    found = compare_branch(changes, TableChanges(request["source"], changes.options))
    diff = found.body()
    if found.obstacles:
        is_ours = all(code == NOT_IMPLEMENTED for code, _ in found.obstacles)
        status = NOT_IMPLEMENTED if is_ours else "failed"
        return {"status": status, "diff": diff, "preview": {"promoted_columns": []}}
    if not request.get("dry_run"):
        call = f"cherry-pick of branch {found.name}"
        guard = "another version may take the same branch"
        changes.take(call, stage_branch(found), message=None, guard=guard, properties={PICKED: found.mark})
    return {"status": "cherry_picked" if changes.steps else "ready", "diff": diff, "preview": found.preview()}
