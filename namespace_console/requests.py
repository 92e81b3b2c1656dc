"""Requests to the console: what one asks for, of whom, and whether a form is one of the console's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from lance_core.byte_ranges import ByteRange, read_range
from namespace_client.own_server import AsgiMessage, RequestSource
from namespace_console.sessions import Cookies, Session
from namespace_console.visits import Page, refusal

Receive = Callable[[], Awaitable[AsgiMessage]]

LONGEST_FORM: Final = 64 << 10
"""Bytes of a form."""
_FORM_SECONDS: Final = 10.0
_FORM: Final = b"application/x-www-form-urlencoded"
_ELSEWHERE: Final = frozenset({b"cross-site", b"same-site"})


class RequestRefused(Exception):
    """A request that no screen answers; `page` says why."""

    def __init__(self, page: Page) -> None:
        super().__init__(page.title)
        self.page = page


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """A request, as its scope tells it.

    Attributes:
        method: HTTP method.
        path: Its path, as it was sent.
        query: Its query, as it was sent.
        headers: Its headers by their names in lower case.
        scheme: By which scheme the visitor came.
        source: Where it came from, for the requests that are made for it.
        cookies: The names of the cookies.
        session: What the cookies say.
    """

    method: str
    path: str
    query: str
    headers: Mapping[bytes, bytes]
    scheme: str
    source: RequestSource
    cookies: Cookies
    session: Session = field(repr=False)

    @classmethod
    def of(cls, scope: Any) -> ConsoleRequest:
        """The request of a scope."""
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"")
        scheme = scope.get("client_scheme", scope["scheme"])
        cookies = Cookies.at(scheme, host.decode("latin-1"))
        said = [(b"user-agent", headers.get(b"user-agent", b"")), (b"x-request-id", scope["request_id"].encode())]
        source = RequestSource(
            scope["client_address"], host, scope["scheme"], [(name, value) for name, value in said if value]
        )
        session = cookies.read(headers.get(b"cookie", b"").decode("latin-1"))
        query = scope["query_string"].decode("latin-1")
        return cls(scope["method"], scope["path"], query, headers, scheme, source, cookies, session)

    @property
    def address(self) -> str:
        """Path and query."""
        return self.path + (f"?{self.query}" if self.query else "")

    @property
    def is_change(self) -> bool:
        """Whether it is a form that asks for a change."""
        return self.method == "POST"

    @property
    def byte_range(self) -> ByteRange | None:
        """The range of bytes that it asks for. None also where that is none, or depends on a tag: no answer has one."""
        try:
            return None if b"if-range" in self.headers else read_range(self.headers.get(b"range"))
        except ValueError:
            return None

    @property
    def is_of_script(self) -> bool:
        """Whether a script of a page asks, for a part of it."""
        return b"hx-request" in self.headers

    @property
    def lacks_cookies_of_a_link(self) -> bool:
        """Whether its browser keeps the session from a page because a link of another site leads to it."""
        return not self.is_change and self.headers.get(b"sec-fetch-site") in _ELSEWHERE

    async def form(self, receive: Receive) -> dict[str, str]:
        """The fields of its form. Raises `RequestRefused` unless a page of this session sends it."""
        origin, site = self.headers.get(b"origin"), self.headers.get(b"sec-fetch-site")
        own = f"{self.scheme}://{self.source.host.decode('latin-1')}".lower()
        if (origin is not None and origin.decode("latin-1").lower() != own) or site not in {None, b"same-origin"}:
            raise RequestRefused(refusal(403, "this form: expected a page of this console to send it, found another"))
        kind = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != _FORM:
            shown = kind.decode("latin-1")[:80]
            raise RequestRefused(refusal(400, f"content-type: expected {_FORM.decode()}, found {shown!r}"))
        fields = await _fields(receive)
        if not self.session.is_of_form(fields.pop("form", "")):
            raise RequestRefused(
                refusal(
                    403,
                    "this form: expected one that was made for this session, found another",
                    "You have signed in or out since, or the browser keeps no cookies. Open its page again.",
                )
            )
        return fields


async def _fields(receive: Receive) -> dict[str, str]:
    body = bytearray()
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(refusal(400, "this form: expected the whole of it, found its beginning"))
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > LONGEST_FORM:
                    text = f"this form: expected at most {LONGEST_FORM:,} bytes, found more"
                    raise RequestRefused(refusal(413, text))
    except TimeoutError:
        text = f"this form: expected it within {_FORM_SECONDS:g} seconds, found that it was not whole"
        raise RequestRefused(refusal(400, text)) from None
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=200))
    except ValueError:
        raise RequestRefused(refusal(400, "this form: expected names and values, found something else")) from None
