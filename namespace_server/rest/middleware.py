"""ASGI middleware: request ids, the last error handler, hosts and origins, and undecoded paths."""

from __future__ import annotations

import ipaddress
import itertools
import secrets
import time
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from lance_namespace.errors import InvalidInputError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from namespace_server.rest.access_log import Access
from namespace_server.rest.errors import SHOWN_METHOD, OriginRefused, render_error
from namespace_server.rest.headers import CATALOG_VERSION
from namespace_server.rest.service import CatalogService

REQUEST_ID = b"x-request-id"
_MAX_REQUEST_ID = 128


class RequestContext:
    """Outermost: gives each request an id, and logs the access.

    A client's `X-Request-Id` of at most 128 printable ASCII characters is kept; it comes back with the answer.
    """

    def __init__(self, app: ASGIApp, service: CatalogService) -> None:
        self._app = app
        self._service = service
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        began = time.perf_counter()
        log = self._service.access_log
        request_id = self._request_id(scope)
        status = 0
        version: bytes | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status, version
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"] = [*message.get("headers", ()), (REQUEST_ID, request_id)]
                if log is not None:
                    version = next((value for name, value in headers if name == CATALOG_VERSION), None)
            await send(message)

        await self._app(scope, receive, send_with_id)
        if log is not None:
            log.add(
                Access(
                    time.time(),
                    scope["method"][:SHOWN_METHOD],
                    scope.get("route_path") or scope["raw_path"][:200].decode("latin-1"),
                    status,
                    time.perf_counter() - began,
                    scope.get("principal"),
                    None if version is None else version.decode(),
                    request_id.decode(),
                )
            )

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == REQUEST_ID:
                given: bytes = value
                if 0 < len(given) <= _MAX_REQUEST_ID and given.isascii() and given.decode().isprintable():
                    return given
        return f"{self._prefix}-{next(self._numbers):x}".encode()


class ErrorHandler:
    """Answers every exception with an ErrorResponse."""

    def __init__(self, app: ASGIApp, service: CatalogService) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. An exception after the answer has begun is raised: the connection is then closed."""
        has_begun = False

        async def send_noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        except Exception as error:
            if not has_begun:
                status, headers, body = render_error(
                    error,
                    self._service.version_for(scope),
                    method=scope["method"],
                    path=scope["raw_path"].decode("latin-1"),
                )
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
            elif scope.get("answered_error") is not error:
                raise


class HostGuard:
    """Refuses requests that a web page of another site could send.

    Args:
        app: the application behind it.
        hosts: names that `Host` may have, without port; `*.example.org` stands for all names below. Empty: any.
        origins: origins (`https://host:port`) that may send requests, besides the server's own.

    A request whose `Host` is not allowed is refused: another name that resolves to this address (DNS rebinding) must
    not reach a server that trusts its local clients. A request that a browser sends for a page of another origin names
    it in `Origin` or says so in `Sec-Fetch-Site`, and is refused unless that origin is allowed.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._suffixes = tuple(host[1:] for host in self._hosts if host.startswith("*."))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed. Raises `OriginRefused`, `InvalidInputError`."""
        if scope["type"] == "http":
            host = origin = site = None
            for name, value in scope["headers"]:
                if name == b"host":
                    if host is not None:
                        raise InvalidInputError("Host: expected one, found several")
                    host = value
                elif name == b"origin":
                    origin = value
                elif name == b"sec-fetch-site":
                    site = value
            if self._hosts:
                self._check_host(host)
            if origin is not None or site is not None:
                self._check_origin(scope, host, origin, site)
        await self._app(scope, receive, send)

    def _check_host(self, host: bytes | None) -> None:
        name = host_name(host or b"")
        if name not in self._hosts and not (self._suffixes and name.endswith(self._suffixes)):
            raise OriginRefused(f"Host: expected one of {', '.join(sorted(self._hosts))}, found {name[:80]!r}")

    def _check_origin(self, scope: Scope, host: bytes | None, origin: bytes | None, site: bytes | None) -> None:
        if origin is None:
            if site in {b"cross-site", b"same-site"} and scope["method"] not in {"GET", "HEAD"}:
                raise OriginRefused("Sec-Fetch-Site: expected a request of this origin, found one of another")
            return
        named = origin.decode("latin-1").lower()
        own = f"{scope['scheme']}://{(host or b'').decode('latin-1').lower()}"
        if named != own and named not in self._origins:
            raise OriginRefused(f"Origin: expected {own} or one that is allowed, found {named[:80]!r}")


class RawPath:
    """Matches routes against the path as it was sent, without trailing slashes.

    A decoded path would turn a name that holds `%2F` into two segments, and reach the route of another table.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            scope["path"] = scope["raw_path"].decode("latin-1").rstrip("/") or "/"
        await self._app(scope, receive, send)


@lru_cache(256)
def host_name(host: bytes) -> str:
    """The name in a `Host` header, in lower case, without port and brackets."""
    if set(host) & set(b"@/\\?# "):
        return ""
    try:
        return (urlsplit(f"//{host.decode('latin-1')}").hostname or "").lower()
    except ValueError:
        return ""


def local_hosts(host: str) -> frozenset[str]:
    """The names under which a server that listens on `host` is reached from its own machine; empty if it is exposed."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return frozenset()
    return frozenset({"localhost", "127.0.0.1", "::1", host.lower()}) if address.is_loopback else frozenset()
