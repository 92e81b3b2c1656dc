"""The layers around all routes: request id, access log, the last error handler, checks of the head and the origin."""

from __future__ import annotations

import ipaddress
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError, LanceNamespaceError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lance_core.hidden_credentials import without_credentials
from lance_core.own_machine import is_loopback
from namespace_server.observability.observation import LoggedRequest
from namespace_server.rest.audit import refused_attempt
from namespace_server.rest.client_address import ClientAddresses
from namespace_server.rest.errors import (
    CLOSING,
    SHOWN_METHOD,
    CodingUnsupported,
    Header,
    HeadTooLarge,
    OriginRefused,
    render_error,
    status_of,
)
from namespace_server.rest.header_names import (
    CATALOG_VERSION,
    CONDITIONS,
    FORWARDED_TO,
    OURS,
    REQUEST_ID,
    SINGLE,
    UNSERVED,
)
from namespace_server.rest.identity import KeyRefused
from namespace_server.rest.principals import TokenRefused
from namespace_server.rest.request.headers import Headers
from namespace_server.rest.request.unread_body import BodyProgress
from namespace_server.rest.service import CatalogService
from namespace_server.rest.wrong_keys import TooManyWrongKeys
from table_data.requests.table_requests import CHANGES, READS

if TYPE_CHECKING:
    from namespace_server.observability.audit.log import RefusedAttemptLog

_log = logging.getLogger(__name__)

_MAX_REQUEST_ID = 128
_SHOWN_ERROR = 300
_OURS = b"x-lance-"
_WITHOUT_EFFECT = ("GET", "HEAD", "OPTIONS")
_SHORT_HEAD = 4096
"""Bytes of the longest request whose names of headers are kept: what clients can fill memory with is bounded."""
_OF_ROWS = CHANGES.keys() | READS.keys()
"""Operations whose errors may hold values of rows."""


class RequestContext:
    """Outermost: gives each request an id, collects its headers, logs the access, measures and traces it.

    A client's `X-Request-Id` of at most 128 printable ASCII characters is kept; it comes back with the answer. So does
    the name of this process with a change that another server handed to it. Of a header that is there more than once
    the last one counts. Leaves in the scope for the others: `header_map`, the headers by their lower-case names,
    `client_address`, `client_scheme` and `request_id`, and once the answer has begun `response_start`, the message that
    began it. The router leaves the `operation`, the `dialect`, and for one that has statuses of its own `status_of`.
    """

    def __init__(self, app: ASGIApp, service: CatalogService, addresses: ClientAddresses) -> None:
        self._app = app
        self._service = service
        self._addresses = addresses
        self._prefix = secrets.token_hex(4).encode()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        began = time.perf_counter()
        headers: Headers = dict(scope["headers"])
        scope["header_map"] = headers
        scope["client_address"] = self._addresses.of(scope)
        scope["client_scheme"] = self._addresses.scheme_of(scope)
        request_id = self._request_id(headers)
        scope["request_id"] = request_id.decode()
        of_peer: Sequence[tuple[bytes, bytes]] = ()
        if FORWARDED_TO in headers:
            of_peer = self._service.answer_to_peer(headers)
            scope["handed_origin"] = self._service.origin_from_peer(headers)

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID, request_id), *of_peer]
                scope["response_start"] = message
            return send(message)

        tracing = self._service.tracing
        if tracing is None:
            await self._app(scope, receive, send_with_id)
        else:
            with tracing.request(scope):
                await self._app(scope, receive, send_with_id)
        seconds = time.perf_counter() - began
        metrics, log = self._service.metrics, self._service.access_log
        if metrics is not None:
            metrics.request(scope.get("operation", "unmatched"), _status(scope), seconds)
        if log is not None:
            log.add(_access(scope, seconds))

    def _request_id(self, headers: Headers) -> bytes:
        given = headers.get(REQUEST_ID)
        if given is not None and 0 < len(given) <= _MAX_REQUEST_ID and given.isascii() and given.decode().isprintable():
            return given
        return b"%b-%x" % (self._prefix, next(self._numbers))


def _status(scope: Scope) -> int:
    """The status of the answer; 0 where none has begun."""
    status: int = scope["response_start"]["status"] if "response_start" in scope else 0
    return status


def _access(scope: Scope, seconds: float) -> LoggedRequest:
    start = scope.get("response_start", {})
    version = dict(start.get("headers", ())).get(CATALOG_VERSION)
    return LoggedRequest(
        time.time(),
        scope["method"][:SHOWN_METHOD],
        scope.get("route_path") or without_credentials(scope["raw_path"].decode("latin-1"))[:200],
        _status(scope),
        seconds,
        scope.get("principal"),
        None if version is None else version.decode(),
        scope["request_id"],
        scope["client_address"],
        scope.get("key_digest"),
        *scope.get("problem", ()),
    )


class ErrorHandler:
    """Answers every exception with an ErrorResponse."""

    def __init__(self, app: ASGIApp, service: CatalogService) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. An exception after the answer has begun is raised: the connection is then closed."""
        body = BodyProgress(receive, scope["header_map"])
        try:
            await self._app(scope, body.receive, send)
        except Exception as error:
            if "response_start" not in scope:
                status, headers, text = self._rendered(error, scope)
                if CLOSING not in headers and not await body.end():
                    headers.append(CLOSING)
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": text})
            else:
                raise

    def _rendered(self, error: Exception, scope: Scope) -> tuple[int, list[Header], bytes]:
        """Status, headers and body of the answer.

        No frame of the error's traceback may have a variable for the error: until a garbage collection the cycle would
        keep the request, and its connection would stay open for as long as the client sends.
        """
        if isinstance(error, KeyRefused | TokenRefused | TooManyWrongKeys):
            scope["key_digest"] = error.key_digest
        answered, outcome, headers, text = render_error(
            error,
            self._service.version_for(scope),
            method=scope["method"],
            path=scope["raw_path"].decode("latin-1"),
            changes=scope.get("is_change", False),
        )
        shown = None if scope.get("operation") in _OF_ROWS else without_credentials(str(answered))[:_SHOWN_ERROR]
        if isinstance(error, TokenRefused):  # why is for the log alone
            shown = f"{answered}: {error.reason}"
            if self._service.metrics is not None:
                self._service.metrics.token_refused(error.reason)
        scope["problem"] = (int(answered.code), shown)
        of_dialect = scope.get("status_of")
        status: int = status_of(answered) if of_dialect is None else of_dialect(answered, outcome)
        if self._service.attempts is not None:
            self._record(self._service.attempts, error, answered, status, scope)
        return status, headers, text

    def _record(
        self, log: RefusedAttemptLog, error: Exception, answered: LanceNamespaceError, status: int, scope: Scope
    ) -> None:
        """Hand what was refused to the log of refused attempts. The answer does not depend on it."""
        try:
            shows_text = scope.get("operation") not in _OF_ROWS
            attempt = refused_attempt(error, answered, status, scope, self._service.place_of, shows_text=shows_text)
            if attempt is not None:
                log.add(attempt)
        except Exception:  # noqa: BLE001 - the request has its answer, whatever is wrong here
            _log.exception("a refused attempt could not be described")


def check_head(scope: Scope, limit: int) -> None:
    """Raise `HeadTooLarge` for a request whose path, query and headers have more than `limit` bytes.

    Raises `InvalidInputError` without a `Host`, for two values of a header that has one, and for a header that asks for
    what is not done, unless another server of the root sends it, which may be of a later release; and
    `CodingUnsupported` for a transfer coding beside `chunked`, of which a proxy might see another end (RFC 9112,
    sections 3.2 and 6.1).
    """
    headers: Headers = scope["header_map"]
    if not headers.get(b"host") and scope["http_version"] == "1.1":  # granian makes an empty one of none
        raise InvalidInputError("Host: expected one, found none")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and coding.strip().lower() != b"chunked":
        raise CodingUnsupported(f"Transfer-Encoding: expected chunked, found {coding.decode('latin-1')[:80]!r}")
    if len(headers) != len(scope["headers"]):
        _check_single(scope["headers"])
    found = len(scope["raw_path"]) + len(scope["query_string"])
    for name, value in scope["headers"]:
        found += len(name) + len(value)
    if found > limit:
        raise HeadTooLarge(f"path and headers: expected at most {limit} bytes, found {found}")
    judge = _refused_names if found <= _SHORT_HEAD else _refused_names.__wrapped__
    always, conditions = judge(tuple(headers))
    if always or (conditions and scope["method"] not in _WITHOUT_EFFECT):
        raise _unserved(*(always or conditions))


@lru_cache(1024)
def _refused_names(names: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Of the names of a request's headers those that are always refused, and those that are in a change.

    Clients send the same names with each request, so that the answer for them is kept.
    """
    of_peer = FORWARDED_TO in names
    always = [
        name for name in names if name in UNSERVED or (name.startswith(_OURS) and name not in OURS and not of_peer)
    ]
    return tuple(always), tuple(name for name in names if name in CONDITIONS)


def _unserved(*names: bytes) -> InvalidInputError:
    shown = ", ".join(sorted(name.decode("latin-1")[:80] for name in names))
    return InvalidInputError(f"{shown}: expected no such header; assert_table_version in a batch makes it conditional")


def _check_single(headers: Iterable[tuple[bytes, bytes]]) -> None:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if found.setdefault(name, value) != value and name in SINGLE:
            raise InvalidInputError(f"{name.decode()}: expected one, found several that differ")


class HostGuard:
    """Refuses requests that a web page of another site could send.

    Args:
        hosts: names that `Host` may have, without port; `*.example.org` stands for all names below. Empty: any, unless
            `near` ones are.
        near: whether `Host` may also be any IP address, or a name without a dot. No page of the web has such a name.
        origins: origins (`https://host:port`) that may send requests, besides the server's own.

    A request whose `Host` is not allowed is refused: another name that resolves to this address (DNS rebinding) must
    not reach a server that trusts its local clients. A request that a browser sends for a page of another origin names
    it in `Origin` or says so in `Sec-Fetch-Site`, and is refused unless that origin is allowed.
    """

    def __init__(self, hosts: Iterable[str], origins: Iterable[str], *, near: bool = False) -> None:
        self._near = near
        self._hosts = frozenset(host.lower() for host in hosts)
        self._suffixes = tuple(host[1:] for host in self._hosts if host.startswith("*."))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, scope: Scope) -> None:
        """Raise `OriginRefused` or `InvalidInputError` unless the request is allowed."""
        headers: Headers = scope["header_map"]
        host = headers.get(b"host")
        if self._hosts or self._near:
            self._check_host(host)
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if origin is not None or site is not None:
            self._check_origin(scope, host, origin, site)

    def _check_host(self, host: bytes | None) -> None:
        name = host_name(host or b"")
        if not self.allows(name):
            expected = ", ".join([*sorted(self._hosts), *(["an IP address", "a name without a dot"] * self._near)])
            raise OriginRefused(f"Host: expected one of {expected}, found {name[:80]!r}")

    def allows(self, name: str) -> bool:
        """Whether requests may address the server by a name, given in lower case."""
        if name in self._hosts or (self._suffixes and name.endswith(self._suffixes)):
            return True
        return self._near and bool(name) and ("." not in name or is_address(name))

    def _check_origin(self, scope: Scope, host: bytes | None, origin: bytes | None, site: bytes | None) -> None:
        if origin is None:
            if site in {b"cross-site", b"same-site"} and scope["method"] not in {"GET", "HEAD"}:
                raise OriginRefused("Sec-Fetch-Site: expected a request of this origin, found one of another")
            return
        named = origin.decode("latin-1").lower()
        own = f"{scope.get('client_scheme', scope['scheme'])}://{(host or b'').decode('latin-1').lower()}"
        if named != own and named not in self._origins:
            raise OriginRefused(f"Origin: expected {own} or one that is allowed, found {named[:80]!r}")


@lru_cache(256)
def host_name(host: bytes) -> str:
    """The name in a `Host` header, in lower case, without port and brackets."""
    if set(host) & set(b"@/\\?# "):
        return ""
    try:
        return (urlsplit(f"//{host.decode('latin-1')}").hostname or "").lower()
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def local_hosts(host: str) -> frozenset[str]:
    """The names under which a server that listens on `host` is reached from its own machine; empty if it is exposed."""
    return frozenset({"localhost", "127.0.0.1", "::1", host.lower()}) if is_loopback(host) else frozenset()
