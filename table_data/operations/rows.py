"""Changes of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_core.transaction.operations import Append, Overwrite
from table_data import staging
from table_data.arrow_body import ArrowBody
from table_data.batch_operations import Json
from table_data.errors import InvalidCall
from table_data.operations.kinds import Change
from table_data.table_changes import TableChanges


def insert_into_table(changes: TableChanges, request: Json, rows: ArrowBody | None) -> Json:
    """Append rows, or replace all rows (mode `overwrite`)."""
    reader = given(rows).reader()
    mode = mode_of(request, "append", ("append", "overwrite"))
    operation: Append | Overwrite
    if mode == "append":
        changes.require_head()
        operation = Append(staging.stage_rows(changes.dataset(), reader))
    else:
        operation = staging.stage_table(
            changes.uri, reader, None, changes.data_version, changes.options, exists=changes.has_version
        )
    given(rows).check()
    if operation.fragments or mode == "overwrite":
        changes.take(f"insert ({mode})", operation, message=None)
    return {"num_inserted_rows": sum(fragment.physical_rows for fragment in operation.fragments)}


def mode_of(request: Json, default: str, modes: Sequence[str]) -> str:
    """The mode of a request, whose name may be in snake or Pascal case. Raises `InvalidCall`."""
    given = request.get("mode") or default
    mode = str(given).replace("_", "").lower()
    if mode not in modes:
        raise InvalidCall(f"mode {str(given)[:80]!r}: expected one of {', '.join(modes)}")
    return mode


def given(rows: ArrowBody | None) -> ArrowBody:
    """The rows of an operation that has rows."""
    if rows is None:
        raise InvalidCall("request body: expected rows as an Arrow IPC stream, found nothing")
    return rows


CHANGES: Mapping[str, Change] = {"insert_into_table": Change(insert_into_table, repeatable=False)}
