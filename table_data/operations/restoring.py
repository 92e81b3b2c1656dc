"""Going back to an earlier version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.operations.kinds import ChangeKind, Changes
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import RestoreTable


def restore_table(changes: TableChanges, request: RestoreTable, _rows: ArrowBody | None) -> Result:
    """Make a new version with the rows, schema, metadata and indices of an earlier one."""
    changes.require_head()
    changes.restore(request["version"], message=None)
    return {}


CHANGES: Changes = {"restore_table": ChangeKind(restore_table, repeatable=True, independent=True)}
