"""Failures as HTTP: the status of each error code, and the ErrorResponse body.

Clients go by `code` and look at the status last; the table of statuses is the one of the published namespace API.
"""

from __future__ import annotations

from typing import Any

import orjson
from lance_namespace.errors import ErrorCode, LanceNamespaceError

STATUS: dict[int, int] = {
    ErrorCode.UNSUPPORTED: 406,
    ErrorCode.NAMESPACE_NOT_FOUND: 404,
    ErrorCode.NAMESPACE_ALREADY_EXISTS: 409,
    ErrorCode.NAMESPACE_NOT_EMPTY: 409,
    ErrorCode.TABLE_NOT_FOUND: 404,
    ErrorCode.TABLE_ALREADY_EXISTS: 409,
    ErrorCode.TABLE_INDEX_NOT_FOUND: 404,
    ErrorCode.TABLE_INDEX_ALREADY_EXISTS: 409,
    ErrorCode.TABLE_TAG_NOT_FOUND: 404,
    ErrorCode.TABLE_TAG_ALREADY_EXISTS: 409,
    ErrorCode.TRANSACTION_NOT_FOUND: 404,
    ErrorCode.TABLE_VERSION_NOT_FOUND: 404,
    ErrorCode.TABLE_COLUMN_NOT_FOUND: 404,
    ErrorCode.INVALID_INPUT: 400,
    ErrorCode.CONCURRENT_MODIFICATION: 409,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.INTERNAL: 500,
    ErrorCode.INVALID_TABLE_STATE: 409,
    ErrorCode.TABLE_SCHEMA_VALIDATION_ERROR: 400,
    ErrorCode.THROTTLING: 429,
    ErrorCode.TABLE_BRANCH_NOT_FOUND: 404,
    ErrorCode.TABLE_BRANCH_ALREADY_EXISTS: 409,
}


class RouteNotFound(LanceNamespaceError):
    """No endpoint has this path (404). The code is 0, unsupported: clients look at nothing else."""

    code = ErrorCode.UNSUPPORTED
    status = 404


class MethodNotAllowed(LanceNamespaceError):
    """The path has endpoints, but none with this method (405). `allowed` are the methods that it has."""

    code = ErrorCode.UNSUPPORTED
    status = 405

    def __init__(self, message: str, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class BodyTooLarge(LanceNamespaceError):
    """The request body is longer than this server accepts (413)."""

    code = ErrorCode.INVALID_INPUT
    status = 413


def status_of(error: LanceNamespaceError) -> int:
    """The HTTP status of an error: its own if it has one, else the one of its code, else 500."""
    own = getattr(error, "status", None)
    return own if isinstance(own, int) else STATUS.get(int(error.code), 500)


def body_of(error: LanceNamespaceError, *, instance: str | None = None) -> bytes:
    """The ErrorResponse of an error, as JSON. Absent fields are left out, in `failures` too."""
    body: dict[str, Any] = {"error": str(error), "code": int(error.code)}
    detail = getattr(error, "detail", None)
    if detail is not None:
        body["detail"] = str(detail)
    if instance is not None:
        body["instance"] = instance
    failures = getattr(error, "failures", None)
    if failures:
        body["failures"] = [{key: item for key, item in entry.items() if item is not None} for entry in failures]
    return orjson.dumps(body)
