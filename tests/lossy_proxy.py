"""A proxy in front of a server that loses answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

_OURS = {"host", "connection", "content-length"}


@dataclass
class LossyProxy:
    """Stands between a client and the server, and loses the answers to the next `lose` batches.

    With `forward` the server gets them all the same.
    """

    upstream: str
    lose: int = 0
    forward: bool = True
    keys: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        batch = request.path.startswith("/v1/table/batch-commit")
        lost = batch and self.lose > 0
        if batch:
            self.keys.append(request.headers.get("Idempotency-Key"))
            self.lose -= lost
        if not lost or self.forward:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
            answer = httpx.request(request.command, self.upstream + request.path, content=body, headers=headers)
        if lost:
            request.close_connection = True
            return
        request.send_response(answer.status_code)
        for name in ("content-type", "x-lance-catalog-version"):
            if name in answer.headers:
                request.send_header(name, answer.headers[name])
        request.send_header("content-length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)


@contextmanager
def serve_lossily(upstream: str) -> Iterator[LossyProxy]:
    """Listen on a free port; `url` of the proxy says where."""
    state = LossyProxy(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            state.answer(self)

        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
