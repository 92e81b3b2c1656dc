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
from namespace_server.directory.model.operations import RequestedOperation
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


def _by_name(*readers: _Reader) -> dict[str, _Reader]:
    """The readers by their names, which are those of what they read."""
    return {read.__name__: read for read in readers}


IN_BATCHES: Final = _by_name(
    requests.declare_table,
    requests.create_table_version,
    requests.delete_table_versions,
    requests.deregister_table,
    requests.commit_transaction,
    requests.assert_table_version,
    requests.set_table_properties,
    requests.undrop_table,
    requests.drop_table,
    requests.rename_table,
    requests.pin_catalog_version,
    requests.unpin_catalog_version,
    requests.advance_cursor,
    requests.delete_cursor,
    intent_requests.register_intent,
    intent_requests.end_intent,
    grant_requests.enable_grants,
    grant_requests.grant_privileges,
    grant_requests.revoke_privileges,
    grant_requests.grant_role,
    grant_requests.revoke_role,
)
"""The readers of the operations of a batch, by name."""
_IN_BATCHES_ONLY: Final = {
    "delete_table_versions",  # alone it has another name
    "commit_transaction",
    "assert_table_version",
    "set_table_properties",
    "grant_privileges",
    "revoke_privileges",
    "grant_role",
    "revoke_role",
}
_ALONE: Final = {
    **{name: read for name, read in IN_BATCHES.items() if name not in _IN_BATCHES_ONLY},
    **_by_name(
        requests.create_namespace,
        requests.drop_namespace,
        requests.register_table,
        requests.undrop_namespace,
        requests.create_table_branch,
    ),
    "batch_delete_table_versions": requests.delete_table_versions,
}


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
