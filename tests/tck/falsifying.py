"""A proxy in front of a server that answers something else than the server did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import orjson

from tests.listener import listen

_HOP = {"host", "connection", "content-length"}


@dataclass
class Exchanged:
    """A request, and the answer that a test may change."""

    method: str
    path: str
    sent: bytes
    status: int
    content: bytes
    upstream: str
    lost: bool = False

    @property
    def operation(self) -> str:
        """The end of the route: `version/list` of `/v1/table/a%24t/version/list?limit=1`."""
        return "/".join(self.path.partition("?")[0].split("/")[4:])

    @property
    def json(self) -> Any:
        return orjson.loads(self.content) if self.content else None

    def answer(self, status: int, body: Any) -> None:
        """Answer this instead."""
        self.status, self.content = status, b"" if body is None else orjson.dumps(body)

    def ask(self, path: str, body: Any) -> httpx.Response:
        """Send the server another request."""
        return httpx.post(self.upstream + path, json=body)


Falsify = Callable[[Exchanged], None]


@contextmanager
def falsifying(upstream: str, falsify: Falsify) -> Iterator[str]:
    """The URL of a proxy on a free port."""
    client = httpx.Client(timeout=60)

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        found = client.request(request.command, upstream + request.path, content=body, headers=headers)
        exchanged = Exchanged(request.command, request.path, body, found.status_code, found.content, upstream)
        falsify(exchanged)
        if exchanged.lost:
            request.close_connection = True
            return
        request.send_response(exchanged.status)
        request.send_header("content-type", found.headers.get("content-type", "application/json"))
        request.send_header("content-length", str(len(exchanged.content)))
        request.end_headers()
        request.wfile.write(exchanged.content)

    with client, listen(answer) as url:
        yield url
