"""From a request in a dialect to one of the published API, and from its answer back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import orjson
from lance_namespace.errors import InvalidInputError, NamespaceNotFoundError
from starlette.responses import Response
from starlette.types import Message, Receive

from namespace_server.answer import json_bytes
from namespace_server.rest.dialects.time_limits import answer_in_time, read_end
from namespace_server.rest.errors import Header
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.header_names import (
    IDEMPOTENCY_KEY,
    LEAST_VERSION,
    REQUEST_ID,
    TABLE_VERSION,
    TIMEOUT_MILLIS,
)
from namespace_server.rest.request.body import JsonObject, check_arrow, check_media_type, decode_object
from namespace_server.rest.request.headers import Headers
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import Handler, Work, handler_of

_ARROW: Final = b"application/vnd.apache.arrow"
_LENGTHS: Final = frozenset({b"content-length", b"content-type"})
Query = list[tuple[str, str]]
"""Parameters of a query, in order."""


def present(body: JsonObject) -> JsonObject:
    """The fields of a body that are given: null is absent."""
    return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Translation:
    """How one operation is said in a dialect.

    Attributes:
        body: From the JSON of a body to that of the published API; no body at all is an empty object. None: the body
            stays as it is, since it is rows, or there is none.
        rows: From rows in the place of a JSON body, and the query, to the JSON; None: rows are refused.
        query: From parameters of the query and the headers to the parameters of the published API.
        answer: From the JSON of the answer to that of the dialect.
        status: The status of an answer, by its JSON before that; None: that of the published API.
        work: Work in the place of that of the route.
        is_keyed: Whether the request id is the idempotency key: clients repeat the request under the same one.
        is_large: Whether the body may hold long vectors and filters.
        is_timed: Whether it is a read that ends when the time is over that its client gives it.
        creates_database: Whether the database may be missing, and is created.
        nothing: The answer where the database is missing; None: an error.
    """

    body: Callable[[JsonObject], JsonObject] | None = None
    rows: Callable[[bytes, Query], JsonObject] | None = None
    query: Callable[[Query, Headers], Query] | None = None
    answer: Callable[[Any], object] | None = None
    status: Callable[[Any], int] | None = None
    work: Work | None = None
    is_keyed: bool = False
    is_large: bool = False
    is_timed: bool = False
    creates_database: bool = False
    nothing: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Translated:
    """The work of a route for requests in a dialect, whose answers have these `headers`."""

    work: Work
    translation: Translation
    headers: tuple[Header, ...]

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        translation = self.translation
        answer_published = handler_of(translation.work or self.work, operation, path)

        async def answer(exchange: Exchange) -> Response:
            scope, end = exchange.scope, None
            if TIMEOUT_MILLIS in exchange.headers and translation.query is None:  # which has it among the parameters
                end = read_end(exchange.headers[TIMEOUT_MILLIS], served=translation.is_timed)
            scope["raw_path"] = scope["raw_path"].rstrip(b"/")
            exchange.headers = _headers(exchange.headers, keyed=translation.is_keyed)
            if translation.creates_database:
                exchange.implicit = exchange.place.database
            if translation.query is not None:
                parameters = translation.query(_parameters(scope["query_string"]), exchange.headers)
                scope["query_string"] = urlencode(parameters).encode()
            if translation.body is not None:
                await _translate_body(exchange, translation)
            try:
                if end is None:
                    response = await answer_published(exchange)
                else:
                    response = await answer_in_time(end, answer_published, exchange)
            except NamespaceNotFoundError:
                place = exchange.place
                if translation.nothing is None or exchange.segment.strip("$") or not place.database:
                    raise
                response = Success(json_bytes(translation.nothing), exchange.service.catalog_version)
            return self._translated(response)

        return answer

    def _translated(self, response: Response) -> Response:
        if not isinstance(response, Success):
            return response
        body: bytes = bytes(response.body)
        value = orjson.loads(body) if body else None
        status = HTTPStatus.OK if self.translation.status is None else self.translation.status(value)
        if self.translation.answer is not None:
            value = self.translation.answer(value)
            body = json_bytes(value)
        translated = Success(body, None)
        translated.status_code = status
        kept = [header for header in response.raw_headers if header[0] not in _LENGTHS]
        version = value.get("version") if isinstance(value, dict) else None
        if isinstance(version, int) and all(name != TABLE_VERSION for name, _ in kept):
            kept.append((TABLE_VERSION, b"%d" % version))
        translated.raw_headers += [*kept, *self.headers]
        return translated


def _parameters(query_string: bytes) -> Query:
    try:
        return parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise InvalidInputError(f"query: expected percent-encoded UTF-8 ({error})") from None


def _headers(given: Headers, *, keyed: bool) -> dict[bytes, bytes]:
    """The headers of the published request.

    Freshness that a client asks for holds without a look at its headers: storage is asked for the newest version by
    every read. Its least version is of a table that may have been dropped and created again, of which it hears nothing.
    """
    headers = {name: value for name, value in given.items() if name != LEAST_VERSION}
    if keyed and REQUEST_ID in headers:
        headers.setdefault(IDEMPOTENCY_KEY, headers[REQUEST_ID])
    return headers


async def _translate_body(exchange: Exchange, translation: Translation) -> None:
    """Put the JSON of the published API in the place of the body. Raises as `BodyReader.read`, `InvalidInputError`."""
    headers, service = exchange.headers, exchange.service
    are_rows = translation.rows is not None and headers.get(b"content-type", b"").startswith(_ARROW)
    (check_arrow if are_rows else check_media_type)(headers)
    limits = service.limits
    bound = limits.data.query if translation.is_large else limits.read_body
    data = await service.bodies.read(exchange.receive, headers, bound)
    with service.bodies.hold(len(data)):
        if are_rows:
            read = partial(_of_rows, translation, data, _parameters(exchange.scope["query_string"]))
            exchange.scope["query_string"] = b""
        else:
            read = partial(_of_json, translation, data, exchange)
        encoded = await service.decoded(read, len(data))
    kept = {name: value for name, value in headers.items() if name != b"transfer-encoding"}
    exchange.headers = kept | {b"content-type": b"application/json", b"content-length": b"%d" % len(encoded)}
    exchange.receive = _first(encoded, exchange.receive)


def _of_json(translation: Translation, data: bytes, exchange: Exchange) -> bytes:
    assert translation.body is not None
    limits = exchange.service.limits
    body = decode_object(data, limits, values=limits.values, optional=True)
    return _encoded(translation.body(body))


def _of_rows(translation: Translation, data: bytes, query: Query) -> bytes:
    assert translation.rows is not None
    return _encoded(translation.rows(data, query))


def _encoded(body: JsonObject) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise InvalidInputError(f"request body: expected a JSON object, found one that is none ({error})") from None


def _first(body: bytes, receive: Receive) -> Receive:
    """A `receive` whose first message is this body; later ones are those of the client."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message
