"""An HTTP server on a free port that does with every request what a test says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def listen(answer: Callable[[BaseHTTPRequestHandler], None], context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Call `answer` with each request, in a thread of its connection; the URL. With a context it speaks TLS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # the body follows the headers, and would wait 40 ms for their acknowledgement

        def do_POST(self) -> None:
            answer(self)

        def do_GET(self) -> None:
            answer(self)

        def do_PUT(self) -> None:
            answer(self)

        def do_HEAD(self) -> None:
            answer(self)

        def do_DELETE(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            return

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    if context is not None:
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{listener.server_address[1]}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    """The body of a request, whole or in chunks."""
    if request.headers.get("transfer-encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("content-length") or 0))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body
