"""Going back to an earlier version."""

from __future__ import annotations

from collections.abc import Mapping

from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Json
from table_data.operations.kinds import ChangeKind
from table_data.table_changes import TableChanges


def restore_table(changes: TableChanges, request: Json, _rows: ArrowBody | None) -> Json:
    """Make a new version with the rows, schema, metadata and indices of an earlier one."""
    changes.require_head()
    changes.restore(request["version"], message=None)
    return {}


CHANGES: Mapping[str, ChangeKind] = {"restore_table": ChangeKind(restore_table, repeatable=True, independent=True)}
