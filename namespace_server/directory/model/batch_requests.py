"""Requests of calls that commit a batch, made into its operations; form is checked, nothing else.

Errors are those of `requests`, with the place of the operation in front.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

import orjson
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from namespace_server.directory.model import grant_requests, intent_requests, requests
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.operations import (
    AdvanceCursor,
    AssertTableVersion,
    CommitTransaction,
    CreateBranch,
    CreateNamespace,
    CreateTableVersion,
    DeclareTable,
    DeleteCursor,
    DeleteTableVersions,
    DeregisterTable,
    DropNamespace,
    DropTable,
    EndIntent,
    RegisterIntent,
    RegisterTable,
    RemovePin,
    RenameTable,
    RequestedOperation,
    SetPin,
    SetTableProperties,
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.request_fields import (
    OBJECTS,
    Request,
    check_common,
    check_fields,
    located,
    names,
    objects,
)
from namespace_server.directory.model.requests import RequestRules

_Reader = Callable[[Request, RequestRules], RequestedOperation]


def _by_name(readers: Mapping[type[RequestedOperation], _Reader]) -> dict[str, _Reader]:
    return {kind.name: read for kind, read in readers.items()}


IN_BATCHES: Final = _by_name(
    {
        DeclareTable: requests.declare_table,
        CreateTableVersion: requests.create_table_version,
        DeleteTableVersions: requests.delete_table_versions,
        DeregisterTable: requests.deregister_table,
        CommitTransaction: requests.commit_transaction,
        AssertTableVersion: requests.assert_table_version,
        SetTableProperties: requests.set_table_properties,
        UndropTable: requests.undrop_table,
        DropTable: requests.drop_table,
        RenameTable: requests.rename_table,
        SetPin: requests.pin_catalog_version,
        RemovePin: requests.unpin_catalog_version,
        AdvanceCursor: requests.advance_cursor,
        DeleteCursor: requests.delete_cursor,
        RegisterIntent: intent_requests.register_intent,
        EndIntent: intent_requests.end_intent,
        EnableGrants: grant_requests.enable_grants,
        GrantPrivileges: grant_requests.grant_privileges,
        RevokePrivileges: grant_requests.revoke_privileges,
        GrantRole: grant_requests.grant_role,
        RevokeRole: grant_requests.revoke_role,
    }
)
"""The readers of the operations of a batch, by name."""
_ALONE: Final = {"batch_delete_table_versions": requests.delete_table_versions} | _by_name(
    {
        CreateNamespace: requests.create_namespace,
        DropNamespace: requests.drop_namespace,
        DeclareTable: requests.declare_table,
        RegisterTable: requests.register_table,
        DeregisterTable: requests.deregister_table,
        DropTable: requests.drop_table,
        UndropTable: requests.undrop_table,
        UndropNamespace: requests.undrop_namespace,
        SetPin: requests.pin_catalog_version,
        RemovePin: requests.unpin_catalog_version,
        AdvanceCursor: requests.advance_cursor,
        DeleteCursor: requests.delete_cursor,
        RegisterIntent: intent_requests.register_intent,
        EndIntent: intent_requests.end_intent,
        RenameTable: requests.rename_table,
        CreateTableVersion: requests.create_table_version,
        CreateBranch: requests.create_branch,
        EnableGrants: grant_requests.enable_grants,
    }
)


def read_operations(call: str, request: Request, rules: RequestRules) -> tuple[RequestedOperation, ...]:
    """The operations of a call, one of `CALLS`. Raises InvalidInputError (13), UnsupportedOperationError (0)."""
    check_fields(call, request)
    many = _MANY.get(call)
    return (_ALONE[call](request, rules),) if many is None else many(request, rules)


def batch_operations(request: Request, rules: RequestRules) -> tuple[RequestedOperation, ...]:
    """BatchCommitTablesRequest: exactly one operation field in each element."""
    operations = objects(request, "operations")
    rules.limits.check_operations(len(operations), "operations")
    parsed: list[RequestedOperation] = []
    for index, item in enumerate(operations):
        given = [name for name, value in item.items() if value is not None]
        if len(given) != 1 or given[0] not in IN_BATCHES:
            known = ", ".join(IN_BATCHES)
            raise InvalidInputError(f"operations[{index}]: expected exactly one of {known}; found {names(given)}")
        body = item[given[0]]
        if not isinstance(body, OBJECTS):
            raise InvalidInputError(f"operations[{index}].{given[0]}: expected an object, found {shown(body)}")
        try:
            check_common(body, rules.limits)
            check_fields(given[0], body)
            parsed.append(IN_BATCHES[given[0]](body, rules))
        except (InvalidInputError, UnsupportedOperationError) as error:
            raise located(f"operations[{index}].{given[0]}", error) from None
    return tuple(parsed)


def version_entries(request: Request, rules: RequestRules) -> tuple[RequestedOperation, ...]:
    """BatchCreateTableVersionsRequest."""
    entries = objects(request, "entries")
    rules.limits.check_operations(len(entries), "entries")
    parsed: list[RequestedOperation] = []
    for index, entry in enumerate(entries):
        try:
            check_fields("create_table_version", entry)
            parsed.append(requests.create_table_version(entry, rules))
        except (InvalidInputError, UnsupportedOperationError) as error:
            raise located(f"entries[{index}]", error) from None
    return tuple(parsed)


def request_hash(operation: str, request: Request) -> str:
    """SHA-256 (hex) of a request, without identity and context. Raises InvalidInputError (13) for what is no JSON."""
    asked = {key: value for key, value in request.items() if key not in {"identity", "context"} and value is not None}
    try:
        encoded = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)
    except (TypeError, RecursionError) as error:  # nested too deeply, or no JSON
        raise InvalidInputError(f"{operation}: the request cannot be written as JSON ({error})") from error
    return hashlib.sha256(operation.encode() + b"\0" + encoded).hexdigest()


_MANY: Final[Mapping[str, Callable[[Request, RequestRules], tuple[RequestedOperation, ...]]]] = {
    "batch_commit_tables": batch_operations,
    "batch_create_table_versions": version_entries,
    "change_grants": grant_requests.change_grants,
}

CALLS: Final = frozenset(_ALONE) | frozenset(_MANY)
"""The names of the calls that commit a batch."""
