"""`Console`: the console as an ASGI application that a server mounts at `/console`.

A page is made in a thread beside the event loop, of which there are few: what the console may take from commits is
bounded. All that it knows of the catalog it asks the server for, as the visitor: so what a visitor may see and do, what
is counted, limited and recorded, is decided in one place, for programs and for the console alike.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from lance_core.byte_ranges import ByteRange
from namespace_client.call_threads import CallThreads, TooManyCalls
from namespace_client.catalog import Catalog
from namespace_client.errors import AccessRefused, ClientError, CommitUnknown, InvalidCall
from namespace_client.explanations import explain_error, status_of_error
from namespace_client.http import CatalogServer
from namespace_client.own_server import AsgiMessage, OwnServerTransport, ServerApplication
from namespace_console.files import by_address
from namespace_console.pages import render
from namespace_console.requests import ConsoleRequest, Receive, RequestRefused
from namespace_console.screens import SCREENS
from namespace_console.sessions import Session
from namespace_console.visits import (
    PLACE,
    Content,
    Links,
    Onward,
    Page,
    Screen,
    Visit,
    refusal,
    told_fragment,
    told_page,
    whole_number,
)

_log = logging.getLogger(__name__)

Send = Callable[[AsgiMessage], Awaitable[None]]
Header = tuple[bytes, bytes]

THREADS: Final = 4
"""Pages that are made at once."""
WAITING: Final = 32
"""Pages that wait for that, at most."""
_API_SECONDS: Final = 30.0
"""Of each request to the server."""

_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final[Sequence[Header]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # of a form on a page with `no-referrer` browsers send `Origin: null`
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
)
_HTML: Final = "text/html; charset=utf-8"
_STATIC: Final = "/static/"
_UNAUTHENTICATED: Final = 401
_LONGEST_WHOLE: Final = 32 << 20
"""Bytes of a value that is sent whole."""
_LONGEST_PART: Final = 4 << 20
"""Bytes of a part of one: a browser asks for the next one."""


@dataclass(frozen=True, slots=True)
class _Response:
    """An answer: its status, type and body, and further headers."""

    status: int
    media_type: str
    body: bytes
    headers: Sequence[Header] = field(default=(), repr=False)
    policy: bytes = _POLICY
    caching: bytes = b"no-store"


class Console:
    """The console. Requests come within its `lifespan`.

    Args:
        screens: What there is to show.
    """

    def __init__(self, screens: Sequence[Screen] = SCREENS) -> None:
        self._screens = tuple(screens)
        self._paths = {screen.name: screen.path for screen in screens}
        self._parts = {screen.name: screen.part_of for screen in screens}
        self._server: ServerApplication | None = None
        self._threads: CallThreads | None = None

    @asynccontextmanager
    async def lifespan(self, server: ServerApplication) -> AsyncIterator[None]:
        """Answer requests within, asking this server, which answers on the running event loop."""
        self._server = server
        self._threads = CallThreads(THREADS, WAITING, "console")
        try:
            yield
        finally:
            self._threads.close()
            self._threads = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["path"].removeprefix(PLACE)
        if path.startswith(_STATIC):
            response: _Response | None = self._file(path.removeprefix(_STATIC))
        else:
            response = await self._page(scope, path, receive)
        if response is not None:  # else the visitor has gone
            await _send(response, scope["method"], send)

    def _file(self, address: str) -> _Response:
        file = by_address().get(address)
        if file is None:
            return self._rendered(refusal(404, f"{address[:80]}: expected a file of this console, found none"), None)
        return _Response(200, file.media_type, file.content, caching=b"public, max-age=31536000, immutable")

    async def _page(self, scope: Any, path: str, receive: Receive) -> _Response | None:
        request = ConsoleRequest.of(scope)
        cookies: list[Header] = []
        if not request.session.nonce:
            nonce, cookie = request.cookies.nonce()
            request = replace(request, session=replace(request.session, nonce=nonce))
            cookies.append((b"set-cookie", cookie.encode("ascii")))
        try:
            screen, parts = self._find(path)
            if request.method not in {"GET", "HEAD", *(["POST"] if screen.change else [])}:
                allowed = "GET or POST" if screen.change else "GET"
                raise RequestRefused(refusal(405, f"{request.method[:20]}: expected {allowed}, found another method"))
            form = await request.form(receive) if request.is_change else {}
            response = await self._in_thread(request, screen, parts, form, receive)
        except RequestRefused as refused:
            response = self._rendered(refused.page, None, request.session)
        return None if response is None else replace(response, headers=[*response.headers, *cookies])

    def _find(self, path: str) -> tuple[Screen, dict[str, str]]:
        """The screen of a path, with the parameters. Raises `RequestRefused`."""
        segments = path.split("/")
        for screen in self._screens:
            pairs = list(zip(screen.path.split("/"), segments, strict=False))
            if len(pairs) == len(segments) == len(screen.path.split("/")) and all(
                part == segment or (part.startswith("{") and segment) for part, segment in pairs
            ):
                return screen, {part[1:-1]: unquote(segment) for part, segment in pairs if part.startswith("{")}
        raise RequestRefused(refusal(404, f"{PLACE}{unquote(path)[:80]}: expected a page of this console, found none"))

    async def _in_thread(
        self,
        request: ConsoleRequest,
        screen: Screen,
        parts: Mapping[str, str],
        form: Mapping[str, str],
        receive: Receive,
    ) -> _Response | None:
        """What a screen shows, None once the visitor has gone. Raises `RequestRefused` where too many wait."""
        threads, server = self._threads, self._server
        if threads is None or server is None:
            raise _too_many(0)
        transport = OwnServerTransport(server, asyncio.get_running_loop(), request.source)
        work = partial(self._visited, request, transport, screen, parts, form)
        made = asyncio.ensure_future(threads.call(work, transport.close))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({made, gone}, return_when=asyncio.FIRST_COMPLETED)
            return made.result() if made.done() else None
        except TooManyCalls:
            raise _too_many(THREADS + WAITING) from None
        finally:
            gone.cancel()
            made.cancel()

    # -- in a thread

    def _visited(
        self,
        request: ConsoleRequest,
        transport: OwnServerTransport,
        screen: Screen,
        parts: Mapping[str, str],
        form: Mapping[str, str],
    ) -> _Response:
        """What a screen shows to a visitor, or why it does not."""
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        server = _connected(request.session, transport)
        visit: Visit | None = None
        with Catalog(server) as catalog:
            try:
                visit = Visit(
                    screen=screen.name,
                    catalog=catalog,
                    client=server.client,
                    session=request.session,
                    cookies=request.cookies,
                    path=parts,
                    query=query,
                    form=form,
                    links=Links(self._paths, whole_number("at", query.get("at", ""))),
                    address=request.address,
                    connect=lambda session: _connected(session, transport.another()),
                    is_fragment=request.is_of_script,
                )
                shown = screen.show(visit) if screen.change is None or not request.is_change else screen.change(visit)
                return _sent(shown, request.byte_range) if isinstance(shown, Content) else self._rendered(shown, visit)
            except ClientError as error:
                instead = self._refused(request, screen, error)
            except Exception:  # noqa: BLE001 - a fault of a screen has a page, and its whole in the log
                _log.exception("%s of the console could not be shown", request.path)
                instead = refusal(500, "this page: expected that it can be shown; the log of the server says why not")
            return self._rendered(instead, visit, request.session)

    def _refused(self, request: ConsoleRequest, screen: Screen, error: ClientError) -> Page | Onward:
        """What is shown for an error. One who is not known to the server is led to the sign-in.

        With a link of another site browsers send no cookies: then the page is opened again by a page of this one.
        """
        status = status_of_error(error)
        if request.is_of_script:
            return told_fragment(status, explain_error(error))
        if isinstance(error, AccessRefused) and status == _UNAUTHENTICATED and not screen.open:
            if request.session.means is None and request.lacks_cookies_of_a_link:
                return Page("again.html", "One moment", {"address": request.address})
            return Onward(Links(self._paths)("sign-in", next=None if request.is_change else request.address))
        unknown = "It is not known whether this was done" if isinstance(error, CommitUnknown) else None
        return told_page(status, explain_error(error), unknown)

    def _rendered(self, shown: Page | Onward, visit: Visit | None, session: Session | None = None) -> _Response:
        if isinstance(shown, Onward):
            headers = [(b"location", shown.address.encode("ascii"))]
            headers += [(b"set-cookie", cookie.encode("ascii")) for cookie in shown.cookies]
            return _Response(303, _HTML, b"", headers)
        frame = {
            "page": shown,
            "visit": visit,
            "session": session if visit is None else visit.session,
            "links": Links(self._paths) if visit is None else visit.links,
            "navigation": [screen for screen in self._screens if screen.label is not None],
            "part_of": None if visit is None else self._parts.get(visit.screen),
        }
        return _Response(shown.status, _HTML, render(shown.template, {**frame, **shown.shown}).encode())


def _sent(content: Content, asked: ByteRange | None) -> _Response:
    """A value, or the part of it that a browser asks for (RFC 9110, section 14); of a long part its beginning."""
    response = _Response(200, content.media_type, b"", [(b"accept-ranges", b"bytes")], b"default-src 'none'; sandbox")
    if asked is None:
        if content.size > _LONGEST_WHOLE:
            expected = f"at most {_LONGEST_WHOLE:,} bytes, or a request for a range of them"
            raise InvalidCall(f"{content.name}: expected {expected}, found {content.size:,} bytes")
        return replace(response, body=content.read(0, content.size))
    span = asked.within(content.size)
    if span is None:
        return replace(response, status=416, headers=[(b"content-range", b"bytes */%d" % content.size)])
    first, length = span[0], min(span[1] - span[0] + 1, _LONGEST_PART)
    part = (b"content-range", b"bytes %d-%d/%d" % (first, first + length - 1, content.size))
    return replace(response, status=206, body=content.read(first, length), headers=[*response.headers, part])


def _too_many(found: int) -> RequestRefused:
    return RequestRefused(
        refusal(503, f"the console: expected at most {THREADS + WAITING} pages under way, found {found}")
    )


def _connected(session: Session, transport: OwnServerTransport) -> CatalogServer:
    return CatalogServer("http://own", headers=session.headers, timeout=_API_SECONDS, transport=transport)


async def _send(response: _Response, method: str, send: Send) -> None:
    headers = [
        (b"content-type", response.media_type.encode("ascii")),
        (b"content-length", b"%d" % len(response.body)),
        (b"content-security-policy", response.policy),
        (b"cache-control", response.caching),
        *_HEADERS,
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else response.body})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
