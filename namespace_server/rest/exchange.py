"""One request, from its ASGI scope to its response.

Raw ASGI, and orjson both ways: a describe takes tens of microseconds, and a framework's request object takes as many.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus, unquote_to_bytes

import orjson
from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    UnauthenticatedError,
)
from starlette.types import Receive, Send

from lance_core.errors import ManifestNotSynchronized, OutcomeUnknown, StorageError
from namespace_server.repeats import Header
from namespace_server.rest.endpoints import Body, Endpoint
from namespace_server.rest.errors import BodyTooLarge, MethodNotAllowed, body_of, status_of
from namespace_server.rest.port import Answer

_log = logging.getLogger(__name__)

CATALOG_VERSION = b"x-lance-catalog-version"
DELIMITER = "$"
MAX_KEY_LENGTH = 255
_MAX_VERSION = 2**63 - 1
_JSON = (b"content-type", b"application/json")
_EMPTY = (b"content-length", b"0")

Headers = Mapping[bytes, bytes]


class ClientGone(Exception):
    """The client closed the connection before it had sent its request, or before it had its answer."""


@lru_cache(maxsize=1024)
def _query(query_string: bytes) -> Mapping[str, str]:
    try:
        pairs = [part.partition("=") for part in query_string.decode("ascii").split("&") if part]
        return {unquote_plus(name, errors="strict"): unquote_plus(value, errors="strict") for name, _, value in pairs}
    except ValueError as error:
        raise InvalidInputError(f"query: expected percent-encoded UTF-8 ({error})") from None


def read_id(segment: bytes, delimiter: str) -> list[str]:
    """The names in a path segment as it was sent. Empty names are dropped; the delimiter alone is the root."""
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"path: expected percent-encoded UTF-8 ({error})") from None
    return [] if text == delimiter else [name for name in text.split(delimiter) if name]


def read_pin(headers: Headers) -> int | None:
    """The catalog version that the request is to be answered at, if it names one."""
    value = headers.get(CATALOG_VERSION)
    if value is None:
        return None
    if value.isdigit() and len(value) <= 19 and int(value) <= _MAX_VERSION:
        return int(value)
    raise InvalidInputError(
        f"{CATALOG_VERSION.decode()}: expected a catalog version, found {value.decode('latin-1')!r}"
    )


def read_key(headers: Headers) -> str | None:
    """The idempotency key, if there is one: 1 to 255 printable ASCII characters."""
    value = headers.get(b"idempotency-key")
    if value is None:
        return None
    key = value.decode("latin-1")
    if 0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable():
        return key
    raise InvalidInputError(f"Idempotency-Key: expected 1 to {MAX_KEY_LENGTH} printable characters, found {len(key)}")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """An operation that reads, and its request. Compared by identity: the same object is the same question."""

    operation: str
    request: Mapping[str, Any]


class Questions:
    """What requests ask, remembered by their bytes: a client that asks again asks in the same ones.

    What bytes ask depends on nothing else. At most `count` are remembered, and none longer than `longest` bytes. Who
    asks is no part of a question, so whatever answers one has to be the same for everybody.
    """

    def __init__(self, *, count: int = 8192, longest: int = 1024) -> None:
        self._longest = longest
        self._remembered = lru_cache(count)(_read_question)

    def read(self, endpoint: Endpoint, segment: bytes, query_string: bytes, media_type: bytes, body: bytes) -> Question:
        """The question of a request. Raises `InvalidInputError`."""
        if len(segment) + len(query_string) + len(media_type) + len(body) > self._longest:
            return _read_question(endpoint, segment, query_string, media_type, body)
        return self._remembered(endpoint, segment, query_string, media_type, body)


def _read_question(endpoint: Endpoint, segment: bytes, query_string: bytes, media_type: bytes, body: bytes) -> Question:
    return Question(endpoint.operation, read_request(endpoint, segment, query_string, media_type, body))


def read_request(
    endpoint: Endpoint, segment: bytes, query_string: bytes, media_type: bytes, body: bytes
) -> dict[str, Any]:
    """The request as the namespace wants it: the body, the query parameters over it, and the id of the path.

    Raises `InvalidInputError`.
    """
    query = _query(query_string)
    delimiter = query.get("delimiter", DELIMITER)
    if not delimiter:
        raise InvalidInputError("delimiter: expected at least one character, found none")
    request: dict[str, Any] = {}
    if endpoint.body is not Body.NONE:
        request = _read_object(body, media_type, endpoint.body)
        request.pop("identity", None)  # credentials: they have been looked at, in the headers, and go no further
    for name, parameter in endpoint.parameters.items():
        given = query.get(name)
        if given is not None:
            request[name] = parameter.parse(name, given)
        elif request.get(name) is not None:
            parameter.check(name, request[name])
    if "{id}" in endpoint.path:
        _set_id(request, read_id(segment, delimiter))
    elif "{version}" in endpoint.path:
        request["version"] = _read_version(segment)
    elif "delimiter" in query:
        request["delimiter"] = delimiter
    return request


def _set_id(request: dict[str, Any], route: list[str]) -> None:
    named = request.get("id")
    if named is not None and named != route:
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise InvalidInputError(f"id: expected a list of names, found {orjson.dumps(named).decode()[:80]}")
        raise InvalidInputError(
            f"request body names {orjson.dumps(named).decode()}, the route names {orjson.dumps(route).decode()}"
        )
    request["id"] = route


def _read_version(segment: bytes) -> int:
    if segment.isdigit() and len(segment) <= 19 and int(segment) <= _MAX_VERSION:
        return int(segment)
    raise InvalidInputError(f"path: expected a catalog version, found {segment.decode('latin-1')!r}")


async def read_body(receive: Receive, headers: Headers, max_body: int) -> bytes:
    """The body of a request. Raises `BodyTooLarge` or `ClientGone`."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > max_body:
        raise BodyTooLarge(f"request body: expected at most {max_body} bytes, found {int(declared)}")
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        data: bytes = message.get("body", b"")
        if len(data) > max_body:
            raise BodyTooLarge(f"request body: expected at most {max_body} bytes, found {len(data)}")
        return data
    chunks = bytearray()
    while message["type"] == "http.request":
        chunks += message.get("body", b"")
        if len(chunks) > max_body:
            raise BodyTooLarge(f"request body: expected at most {max_body} bytes, found more")
        if not message.get("more_body", False):
            return bytes(chunks)
        message = await receive()
    raise ClientGone


def _read_object(data: bytes, media_type: bytes, rule: Body) -> dict[str, Any]:
    if not data and rule is Body.OPTIONAL:
        return {}
    if media_type != b"application/json" and media_type.partition(b";")[0].strip().lower() != b"application/json":
        raise InvalidInputError("Expected request with `Content-Type: application/json`")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"request body: expected a JSON object, found invalid JSON ({error})") from None
    if isinstance(value, dict):
        return value
    if value is None and rule is Body.OPTIONAL:
        return {}
    raise InvalidInputError(f"request body: expected a JSON object, found {orjson.dumps(value).decode()[:80]}")


async def wait_for_the_end(receive: Receive) -> None:
    """Wait until the server has noticed that the client has gone; to end before would be logged as our error."""
    while (await receive())["type"] != "http.disconnect":
        continue


def render_success(answer: Answer, *, silent: bool) -> tuple[list[Header], bytes]:
    """Headers and body of a success; a silent one has no body."""
    if silent:
        return [_EMPTY, (CATALOG_VERSION, b"%d" % answer.catalog_version)], b""
    body = answer.json
    return _json_headers(body, answer.catalog_version), body


async def send_success(send: Send, headers: list[Header], body: bytes) -> None:
    """Send a success."""
    await _send(send, 200, headers, body)


def render_error(error: Exception, catalog_version: int) -> tuple[int, list[Header], bytes]:
    """Status, headers and body of the ErrorResponse for any exception.

    What is not a namespace error is logged in full and answered without its text: as 503/17 if the store could not
    answer, else as 500/18. An error that knows the catalog version it was found at says so in its `catalog_version`;
    else it is the one given.
    """
    instance = None
    if not isinstance(error, LanceNamespaceError):
        instance = uuid.uuid4().hex
        _log.error("unhandled error, instance %s", instance, exc_info=error)
        where = f"the server's log has it as instance {instance}"
        if type(error) in {StorageError, OutcomeUnknown, ManifestNotSynchronized}:
            error = ServiceUnavailableError(f"the catalog's storage did not answer; {where}")
        else:
            error = InternalError(f"internal error; {where}")
    version = getattr(error, "catalog_version", None)
    body = body_of(error, instance=instance)
    headers = _json_headers(body, version if isinstance(version, int) else catalog_version)
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    elif isinstance(error, UnauthenticatedError):
        headers.append((b"www-authenticate", b"Bearer"))
    elif isinstance(error, BodyTooLarge):
        headers.append((b"connection", b"close"))  # the rest of the body is not worth reading
    return status_of(error), headers, body


async def send_error(send: Send, error: Exception, catalog_version: int) -> None:
    """Send the ErrorResponse for any exception."""
    await _send(send, *render_error(error, catalog_version))


def _json_headers(body: bytes, catalog_version: int) -> list[Header]:
    return [_JSON, (b"content-length", b"%d" % len(body)), (CATALOG_VERSION, b"%d" % catalog_version)]


async def _send(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    try:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except (OSError, RuntimeError):  # uvloop raises RuntimeError on a connection that the client has closed
        raise ClientGone from None
