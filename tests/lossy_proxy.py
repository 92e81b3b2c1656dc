"""A proxy in front of a server that loses answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

import httpx

from tests.listener import listen

_OURS = {"host", "connection", "content-length"}


@dataclass
class LossyProxy:
    """Stands between a client and the server, and loses the answers to the next `lose` requests with `lossy_path`.

    With `forward` the server gets them all the same. `keys` and `traces` are what these requests have in their headers.
    """

    upstream: str
    lose: int = 0
    forward: bool = True
    lossy_path: str = "/v1/table/batch-commit"
    keys: list[str | None] = field(default_factory=list)
    traces: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        may_be_lost = self.lossy_path in request.path
        lost = may_be_lost and self.lose > 0
        if may_be_lost:
            self.keys.append(request.headers.get("Idempotency-Key"))
            self.traces.append(request.headers.get("traceparent"))
            self.lose -= lost
        if not lost or self.forward:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
            answer = httpx.request(request.command, self.upstream + request.path, content=body, headers=headers)
        if lost:
            request.close_connection = True
            return
        request.send_response(answer.status_code)
        for name in ("content-type", "x-lance-catalog-version", "x-lance-answered-by", "x-lance-peer-response"):
            if name in answer.headers:
                request.send_header(name, answer.headers[name])
        request.send_header("content-length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)


@contextmanager
def serve_lossily(upstream: str) -> Iterator[LossyProxy]:
    """A proxy on a free port; its `url` says where."""
    proxy = LossyProxy(upstream)
    with listen(proxy.answer) as proxy.url:
        yield proxy
