"""Rows, and changes of rows, whose files are written before the batch that commits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from lance_namespace.errors import TableAlreadyExistsError, TableNotFoundError

from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege
from namespace_server.answer import Answer
from namespace_server.data.change_request import OPERATOR, Caller, ChangeRequest
from namespace_server.data.creation import require_mode, with_properties
from namespace_server.data.operations import DataOperations, namespace_errors
from namespace_server.data.port import Tables
from namespace_server.outcomes import before_commit
from table_data.batch_operations import DELIMITER, StagedOperation, operation_json
from table_data.jobs.job import Staged
from table_data.requests.table_requests import CreateTable, Insert, TableRequest, mode_of

Rows = TypeVar("Rows")

_MODES: Final = ("create", "append", "overwrite")
STAGED_CHANGES: Final = {
    "stage_update": "update_table",
    "stage_delete": "delete_from_table",
    "stage_merge": "merge_insert_into_table",
}
"""The changes of a table that are staged, each with the operation that also commits it."""


class StagedUploads(Generic[Rows]):
    """Writes rows of tables, and leaves it to the client to commit them."""

    def __init__(self, tables: Tables, operations: DataOperations[Rows]) -> None:
        self._tables = tables
        self._operations = operations

    async def stage(self, request: CreateTable, rows: Rows, *, caller: Caller = OPERATOR) -> Answer:
        """Write the files of a new table (mode `create`), or of rows to append or to replace all rows with.

        The answer has the `operations` of a batch that commits them, `num_rows` and the table's `location`. Nothing
        refers to the files before. A batch without these operations leaves them to the cleanup of the table.

        Raises:
            TableAlreadyExistsError: the table has a version, and the mode is `create`.
            TableNotFoundError: there is no table, and the mode is `append`.
            InvalidInputError: an unknown mode.
        """
        with before_commit():  # nothing is committed here
            return await self._stage(request, rows, caller)

    async def stage_change(
        self, operation: str, request: TableRequest, rows: Rows | None = None, *, caller: Caller = OPERATOR
    ) -> Answer:
        """Write the files of a change, one of `STAGED_CHANGES`, on the newest version of the table.

        A merge has `rows`. The answer has the `operations` of a batch that commits it, none if it changes no row, and
        its numbers of rows. A batch with two of one table conflicts, unless they change different fragments.

        Raises:
            TableNotFoundError: there is no table.
        """
        change = STAGED_CHANGES[operation]
        with before_commit():  # nothing is committed here
            table, catalog_version = await self._tables.find_table(
                {"id": request.get("id"), "branch": request.get("branch")},
                subject=caller.subject,
                privileges=REQUIREMENTS[operation].privileges,
            )
            staged = await self._operations.stage(ChangeRequest(change, request, caller), table, rows)
            sent = [operation_json(each) for each in staged.operations]
            return Answer({"operations": sent, **staged.result}, catalog_version)

    async def _stage(self, request: CreateTable, rows: Rows, caller: Caller) -> Answer:
        with namespace_errors():
            mode = mode_of(request.get("mode"), _MODES)
        if mode == "append":
            table, catalog_version = await self._tables.find_table(
                {"id": request.get("id"), "branch": request.get("branch")},
                layout=True,
                subject=caller.subject,
                privileges={Privilege.WRITE},
            )
            insert: Insert = {
                "id": request.get("id"),
                "branch": request.get("branch"),
                "context": request.get("context"),
                "mode": mode,
            }
            staged = await self._operations.stage(ChangeRequest("insert_into_table", insert, caller), table, rows)
            return _answer(staged, staged.operations, table.uri, catalog_version)
        new = False
        try:
            table, catalog_version = await self._tables.find_table({"id": request.get("id")}, subject=caller.subject)
        except TableNotFoundError:
            table, catalog_version = await self._tables.new_table(request, caller.subject)
            new = True
        else:
            require_mode(self._tables, caller, mode, table)
        if table.version is not None and mode == "create":
            raise TableAlreadyExistsError(f"Table already exists: {DELIMITER.join(table.id)}")
        staged = await self._operations.stage(ChangeRequest("create_table", request, caller), table, rows, new=new)
        return _answer(staged, with_properties(request, staged, table), table.uri, catalog_version)


def _answer(staged: Staged, operations: Sequence[StagedOperation], location: str, catalog_version: int) -> Answer:
    sent = [operation_json(operation) for operation in operations]
    return Answer(
        {"operations": sent, "num_rows": staged.result["num_inserted_rows"], "location": location}, catalog_version
    )
