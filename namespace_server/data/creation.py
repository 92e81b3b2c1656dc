"""Tables made from rows: name, properties and first version in one flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Generic, TypeVar

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    PermissionDeniedError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from namespace_server.access.subjects import Privilege
from namespace_server.answer import Answer
from namespace_server.data.change_request import OPERATOR, Caller, ChangeRequest, RowsDigest
from namespace_server.data.operations import DataOperations, namespace_errors, require_overwrite
from namespace_server.data.port import Tables
from namespace_server.outcomes import before_commit
from table_data.batch_operations import (
    DELIMITER,
    PropertyChange,
    Result,
    StagedOperation,
    TableDeclaration,
    TableState,
)
from table_data.jobs.job import Staged
from table_data.requests.table_requests import CreateTable, mode_of

Rows = TypeVar("Rows")

_MODES: Final = ("create", "exist_ok", "overwrite")


class TableCreation(Generic[Rows]):
    """Creates tables of one catalog."""

    def __init__(self, tables: Tables, operations: DataOperations[Rows]) -> None:
        self._tables = tables
        self._operations = operations

    async def create(
        self,
        request: CreateTable,
        rows: Rows,
        digest: RowsDigest | None = None,
        *,
        caller: Caller = OPERATOR,
        implicit: tuple[str, ...] = (),
    ) -> Answer:
        """CreateTableRequest, with rows. The namespace `implicit` and those above it are created with it if missing.

        A table that does not exist is declared in the batch that commits its first version: of several creations of one
        name, one succeeds. With mode `overwrite` an existing table gets a new version with these rows and this schema;
        its history stays, and its properties are replaced.

        Raises:
            TableAlreadyExistsError: there is one, and the mode is `create`.
            NamespaceNotFoundError: the namespace of the table does not exist.
            ConcurrentModificationError: another commit was in the way.
            InvalidInputError: properties for a table that was declared with its own, or an unknown mode.
        """
        requested = ChangeRequest("create_table", request, caller, digest)
        return await self._operations.once(requested, partial(self._create, requested, request, rows, implicit))

    async def _create(
        self, requested: ChangeRequest, request: CreateTable, rows: Rows, implicit: tuple[str, ...]
    ) -> Answer:
        with namespace_errors():
            mode = mode_of(request.get("mode"), _MODES)
        try:
            with before_commit():
                table, catalog_version = await self._tables.find_table(
                    {"id": request.get("id")}, subject=requested.caller.subject
                )
        except TableNotFoundError:
            return await self._create_new(requested, request, mode, rows, implicit)
        with before_commit():
            require_mode(self._tables, requested.caller, mode, table)
        name = DELIMITER.join(table.id)
        if table.version is None:
            if request.get("properties"):
                raise InvalidInputError(
                    f"table {name}: cannot set properties for already declared table, which has its own"
                )
        elif mode == "create":
            raise TableAlreadyExistsError(f"Table already exists: {name}")
        elif mode == "exist_ok":
            return await self._operations.keep_answer(requested, _existing(table), catalog_version)
        answer = _described(table, request)
        return await self._operations.commit_once(requested, table, rows, partial(with_properties, request), answer)

    async def _create_new(
        self, requested: ChangeRequest, request: CreateTable, mode: str, rows: Rows, implicit: tuple[str, ...]
    ) -> Answer:
        with before_commit():
            table, _ = await self._tables.new_table(request, requested.caller.subject, implicit)
        answer = _described(table, request)
        is_within = bool(implicit) and table.id[:-1] == implicit[: len(table.id) - 1]
        compose = partial(_with_namespaces if is_within else with_properties, request)
        try:
            return await self._operations.commit_once(requested, table, rows, compose, answer, new=True)
        except TableAlreadyExistsError as error:  # created by another client meanwhile
            if mode == "create":
                raise
            if mode == "overwrite":
                name = DELIMITER.join(table.id)
                raise ConcurrentModificationError(f"table {name} was created meanwhile; nothing was done") from error
            try:
                found = await _found(self._tables, request, requested.caller)
            except (TableNotFoundError, PermissionDeniedError):  # it has the name, and that is all the caller may know
                raise error from None
            return await self._operations.keep_answer(requested, *found)


def with_properties(request: CreateTable, staged: Staged, table: TableState) -> Sequence[StagedOperation]:
    """The operations that commit a table made from rows. Properties of one that exists are replaced."""
    if table.version is None:
        return staged.operations
    return [*staged.operations, PropertyChange(table.id, request.get("properties") or {}, replace=True)]


def _with_namespaces(request: CreateTable, staged: Staged, table: TableState) -> Sequence[StagedOperation]:
    """Likewise of a new table, with the namespaces above it that are missing."""
    return [
        replace(each, implicit_namespaces=True) if isinstance(each, TableDeclaration) else each
        for each in with_properties(request, staged, table)
    ]


def require_mode(tables: Tables, caller: Caller, mode: str, table: TableState) -> None:
    """Raise PermissionDeniedError (15) if a caller may not do with a table that exists what a mode of creation does.

    The first version of a declared table is a change of its rows.
    """
    if table.version is None:
        tables.require(caller.subject, {Privilege.WRITE}, table.id)
    elif mode == "overwrite":
        require_overwrite(tables, caller, table)
    elif mode == "exist_ok":  # the answer has its version
        tables.require(caller.subject, {Privilege.READ}, table.id)


async def _found(tables: Tables, request: CreateTable, caller: Caller) -> tuple[Result, int]:
    """A table that was created meanwhile. One that the caller may not see is not told; see `require_mode`."""
    with before_commit():
        table, catalog_version = await tables.find_table(
            {"id": request.get("id")}, subject=caller.subject, privileges={Privilege.READ}
        )
    return _existing(table), catalog_version


def _existing(table: TableState) -> Result:
    return {"location": table.uri, "version": table.version, "properties": dict(table.properties)}


def _described(table: TableState, request: CreateTable) -> Result:
    properties = request.get("properties") or (table.properties if table.version is None else {})
    return {"location": table.uri, "properties": dict(properties)}
