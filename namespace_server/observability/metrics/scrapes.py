"""A listener for metrics alone, for Prometheus: without a key and without TLS, for the names that it is called by."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

_TIMEOUT: Final = 30.0


class ScrapeListener:
    """Serves a registry from the construction on until it is closed.

    `allows` decides by the name in `Host` whether a request is answered: a page of the web must not read metrics under
    a name that it made resolve to this address. Raises `OSError` if the address cannot be had.
    """

    def __init__(self, host: str, port: int, registry: CollectorRegistry, allows: Callable[[str], bool]) -> None:
        exposition: Any = make_wsgi_app(registry)

        def application(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            if allows(environment.get("HTTP_HOST", "")):
                answer: Iterable[bytes] = exposition(environment, start)
                return answer
            start("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"Host: this name is not allowed\n"]

        listener = _ListenerV6 if _is_v6(host, port) else _Listener
        self._server = make_server(host, port, application, listener, _QuietHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def close(self) -> None:
        """End it, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Listener(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _ListenerV6(_Listener):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    timeout = _TIMEOUT

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing: a scrape comes every few seconds."""


def _is_v6(host: str, port: int) -> bool:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] == socket.AF_INET6
