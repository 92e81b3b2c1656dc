"""Errors as HTTP: the status of each error code, the ErrorResponse body, and the errors that only HTTP has.

Clients go by `code` and look at the status last; the table of statuses is the one of the published namespace API.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import orjson
from lance_namespace.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    UnauthenticatedError,
)
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from lance_core.errors import CorruptFile, ManifestNotSynchronized, StorageError, StorageUnknown, system_reason
from lance_core.hidden_credentials import without_credentials
from namespace_server.data.request_checks import describe_validation_error
from namespace_server.directory.model.errors import RequestUnknown, file_damaged
from namespace_server.outcomes import NOTHING_DONE, Outcome, outcome_of
from namespace_server.rest.header_names import CATALOG_VERSION
from namespace_server.rest.principals import TokenNotJudged, TokenRefused
from namespace_server.rest.wrong_keys import TooManyWrongKeys
from namespace_server.throttling import LimitReached

_log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]

CLOSING: Final[Header] = (b"connection", b"close")

SHOWN_METHOD = 16
_SHOWN_PATH = 400
"""Characters of a method and of a path that errors and log lines show."""

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
    """No route has this path (404). The code is 0, unsupported: clients look at nothing else."""

    code = ErrorCode.UNSUPPORTED
    status = 404


class MethodNotAllowed(LanceNamespaceError):
    """The path has routes, but none with this method (405). `allowed` lists those that it has, for `Allow`."""

    code = ErrorCode.UNSUPPORTED
    status = 405

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class HeadTooLarge(LanceNamespaceError):
    """The path and the headers are longer than this server accepts (431)."""

    code = ErrorCode.INVALID_INPUT
    status = 431


class BodyTooLarge(LanceNamespaceError):
    """The request body is longer than this server accepts (413)."""

    code = ErrorCode.INVALID_INPUT
    status = 413


class RequestTimeout(LanceNamespaceError):
    """The request body did not arrive in time (408)."""

    code = ErrorCode.INVALID_INPUT
    status = 408


class TimeOver(LanceNamespaceError):
    """A read did not end in the time that its client gave it (408)."""

    code = ErrorCode.SERVICE_UNAVAILABLE
    status = 408
    outcome = NOTHING_DONE


class ClientDisconnected(LanceNamespaceError):
    """The client closed the connection before it had sent its request (499 in the access log)."""

    code = ErrorCode.INVALID_INPUT
    status = 499


class ChunksBroken(ClientDisconnected):
    """The chunks of a body break off (400). To the HTTP server a malformed one is like a closed connection."""

    status = 400


class ForwardingUnknown(RequestUnknown):
    """A change would be refused here, but another server, to which it was handed, may commit it yet (503).

    `refused` says how, by a number. `detail` is the idempotency key of the change.
    """

    def __init__(self, key: str | None, refused: str) -> None:
        super().__init__(
            "the outcome is unknown: the change was handed to another server, which may commit it yet; expected an "
            f"answer of that, found none; here it would be refused ({refused}); look, or repeat it unchanged"
        )
        self.detail = key


class ServerReadOnly(ServiceUnavailableError):
    """The server takes no changes for now (503). Clients may repeat them after `retry_after` seconds."""

    outcome = NOTHING_DONE
    retry_after = 60

    def __init__(self) -> None:
        super().__init__("the server is read-only; nothing was done, try again later")


class OriginRefused(LanceNamespaceError):
    """The request names a host or an origin that this server does not answer (403)."""

    code = ErrorCode.PERMISSION_DENIED
    status = 403


class CodingUnsupported(LanceNamespaceError):
    """The body has a transfer coding that this server does not read (501)."""

    code = ErrorCode.UNSUPPORTED
    status = 501


class Misdirected(LanceNamespaceError):
    """The change was handed to another process than this one, which did nothing (421)."""

    code = ErrorCode.INVALID_INPUT
    status = 421


class RowNotFound(LanceNamespaceError):
    """The version of the table has no such row (404)."""

    code = ErrorCode.INVALID_INPUT
    status = 404


class RowNotUnique(LanceNamespaceError):
    """Several rows match where one is asked for (409)."""

    code = ErrorCode.INVALID_INPUT
    status = 409


class RangeNotSatisfiable(LanceNamespaceError):
    """No byte of a value lies in the range that is asked for (416). `headers` say how long it is, and of what."""

    code = ErrorCode.INVALID_INPUT
    status = 416

    def __init__(self, message: str, headers: Iterable[Header]) -> None:
        super().__init__(message)
        self.headers = tuple(headers)


def status_of(error: LanceNamespaceError) -> int:
    """The HTTP status of an error: its own if it has one, else the one of its code, else 500."""
    own = getattr(error, "status", None)
    return own if isinstance(own, int) else STATUS.get(int(error.code), 500)


def body_of(error: LanceNamespaceError, outcome: Outcome, *, instance: str | None = None) -> bytes:
    """The ErrorResponse of an error, as JSON. Absent fields are left out, in `failures` too; so are credentials."""
    body: dict[str, Any] = {"error": without_credentials(str(error)), "code": int(error.code), "outcome": outcome}
    detail = getattr(error, "detail", None)
    if detail is not None:
        body["detail"] = without_credentials(str(detail))
    if instance is not None:
        body["instance"] = instance
    failures = getattr(error, "failures", None)
    if failures:
        body["failures"] = [{key: item for key, item in entry.items() if item is not None} for entry in failures]
    return orjson.dumps(body)


def namespace_error(error: Exception, *, instance: str, method: str, path: str) -> LanceNamespaceError:
    """The namespace error that answers any exception.

    What is neither a namespace error nor one of the framework is logged in full, with `instance`, and answered without
    its text: as 503/17 if the store did not answer, else as 500/18. A damaged file is named by its key in the root.
    """
    if isinstance(error, LanceNamespaceError):
        return error
    if isinstance(error, ValidationError):
        return InvalidInputError(describe_validation_error(error))
    if isinstance(error, HTTPException):
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
            return MethodNotAllowed(f"{method} {path}: expected {allowed}", allowed)
        if error.status_code == HTTPStatus.NOT_FOUND:
            return RouteNotFound(f"{method} {path}: no such route")
        return InvalidInputError(f"{method} {path}: {error.detail}")
    if isinstance(error, MemoryError):
        _log.error("%s %s: out of memory", method, path)
        return ServiceUnavailableError("the server is out of memory; look before repeating a change")
    if isinstance(error, CorruptFile):
        _log.error("%s %s: a damaged file: %s", method, path, error)
        return file_damaged(error)
    _log.error("unhandled error, instance %s", instance, exc_info=error)
    where = f"the server's log has it as instance {instance}"
    if type(error) in {StorageError, StorageUnknown, ManifestNotSynchronized}:
        reason = system_reason(error)
        problem = "did not answer" if reason is None else f"cannot be used: {reason}"
        return ServiceUnavailableError(f"the catalog's storage {problem}; {where}")
    return InternalError(f"internal error; {where}")


def render_error(
    error: Exception, catalog_version: int | None, *, method: str = "", path: str = "", changes: bool = True
) -> tuple[LanceNamespaceError, Outcome, list[Header], bytes]:
    """The error that answers any exception, its outcome, and headers and body of its ErrorResponse.

    An error that knows the catalog version it was found at says so in its `catalog_version`; else it is the one given.
    A failed authentication and a refused origin state no catalog version, and `None` stands for a request that was
    refused before its authentication. `changes`: whether the request may have changed anything.
    """
    instance = uuid.uuid4().hex
    answered = namespace_error(
        error, instance=instance, method=method[:SHOWN_METHOD], path=without_credentials(path)[:_SHOWN_PATH]
    )
    is_unexpected = answered is not error and isinstance(answered, InternalError | ServiceUnavailableError)
    outcome = outcome_of(error if hasattr(error, "outcome") else answered, changes=changes)
    body = body_of(answered, outcome, instance=instance if is_unexpected else None)
    headers: list[Header] = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if not isinstance(answered, UnauthenticatedError | OriginRefused | TooManyWrongKeys):
        own = getattr(answered, "catalog_version", None)
        known = own if isinstance(own, int) else catalog_version
        if known is not None:
            headers.append((CATALOG_VERSION, b"%d" % known))
    if isinstance(answered, MethodNotAllowed):
        headers.append((b"allow", answered.allowed.encode()))
    elif isinstance(answered, TokenRefused):
        headers.append((b"www-authenticate", b'Bearer error="invalid_token"'))
    elif isinstance(answered, UnauthenticatedError):
        headers.append((b"www-authenticate", b"Bearer"))
    elif isinstance(answered, LimitReached | ServerReadOnly | TokenNotJudged | TooManyWrongKeys):
        headers.append((b"retry-after", b"%d" % answered.retry_after))
    elif isinstance(answered, RangeNotSatisfiable):
        headers += answered.headers
    elif isinstance(answered, BodyTooLarge | RequestTimeout):
        headers.append(CLOSING)  # the rest of the body is not worth reading
    return answered, outcome, headers, body
