"""A proxy that sees every call of a client, may act before it, and may lose or spoil its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import orjson

from tests.listener import listen
from tests.server.servers import Answer, send


@dataclass(slots=True)
class Call:
    """One request, and what the server answered to it."""

    path: str
    body: Any
    answer: Answer | None = None

    @property
    def creates_version(self) -> bool:
        return "/version/create" in self.path


Spoiled = bytes | None
"""What the client gets in place of an answer; None: the connection is closed."""


@dataclass
class Proxy:
    """Stands between clients and the server.

    `before` is called with each call before it is passed on. `spoil` decides after the server has answered whether the
    client gets that answer (returns False) or something else.
    """

    upstream: str
    before: Callable[[Call], None] = lambda _: None
    spoil: Callable[[Call], bool] = lambda _: False
    spoiled: Spoiled = None
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    conflicts: list[tuple[Call, Answer]] = field(default_factory=list)
    """Every `version/create` that was answered 409/14, with what describing that version answered at that moment."""

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        data = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        call = Call(request.path, orjson.loads(data) if data else None)
        self.calls.append(call)
        self.before(call)
        kept = {name: request.headers[name] for name in ("content-type", "idempotency-key") if name in request.headers}
        answer = send(self.upstream, request.command, request.path, data, kept)
        call.answer = answer
        if answer.code == 14 and call.creates_version:
            self.conflicts.append((call, self._describe(call)))
        body, status = b"" if answer.body is None else orjson.dumps(answer.body), answer.status
        if self.spoil(call):
            if self.spoiled is None:
                request.close_connection = True
                return
            body, status = self.spoiled, 500
        request.send_response(status)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _describe(self, call: Call) -> Answer:
        asked = {key: call.body[key] for key in ("id", "version", "branch") if call.body.get(key) is not None}
        path = call.path.replace("/version/create", "/version/describe")
        return send(self.upstream, "POST", path, orjson.dumps(asked))


@contextmanager
def stand_before(upstream: str) -> Iterator[Proxy]:
    """A proxy on a free port."""
    proxy = Proxy(upstream)
    with listen(proxy.pass_on) as proxy.url:
        yield proxy
