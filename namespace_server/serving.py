"""granian, as this server uses it: one process, deadlines, bounds, and a shutdown that ends.

granian is built on hyper: it bounds the bytes and the number of headers, closes connections that are idle or send their
headers too slowly, and bounds the number of connections. Bodies have their deadline in `rest.request_body`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvloop
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.server.embed import Server as GranianServer

from namespace_server.app import Application

_log = logging.getLogger(__name__)

_BACKLOG = 1024
_OTHER_DESCRIPTORS = 256
"""Files that a server has open beside its connections, with room to spare."""
_LOOK = 1.0
"""Seconds between two looks whether the certificate was changed."""
_LAST_WORK = 10.0
"""Seconds beyond `shutdown_timeout` after which the process ends, whatever holds it."""

READ_BUFFER = 408 << 10
"""Of a short body of rows this is most or all: each piece costs a turn of the event loop."""

_NO_LOGGING_CHANGES: dict[str, Any] = {
    "incremental": True,
    "formatters": {},
    "handlers": {},
    "root": {},
    "loggers": {},
}
"""granian configures the logging of the whole process; an incremental configuration of nothing leaves it alone."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How to listen, and the bounds of connections. Times in seconds, sizes in bytes; port 0 takes a free one.

    `idle_timeout` bounds the time from the end of one request, or from the opening of a connection, to the end of the
    next request's headers. `read_buffer` bounds what is read of a connection at once, and so a request's head: a longer
    one is refused.
    """

    host: str = "127.0.0.1"
    port: int = 2333
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_key_password: str | None = None
    tls_client_ca: Path | None = None
    read_buffer: int = READ_BUFFER
    max_connections: int = 1024
    idle_timeout: float = 120.0
    shutdown_timeout: float = 30.0


class Server:
    """An application on a listening socket.

    The socket is bound by the constructor, which raises `OSError` if the address is taken, and `ValueError` if the
    certificates or keys cannot be used.
    """

    def __init__(self, app: Application, options: ServingOptions) -> None:
        self._app = app
        _check_tls(options)
        self._options = replace(options, max_connections=_raise_descriptor_limit(options.max_connections))
        self._socket = _listen(options)
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._stamps = _stamps(options)

    @property
    def url(self) -> str:
        """The URL at which the server listens."""
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._options.tls_certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop` is called, or SIGINT or SIGTERM arrives in the main thread.

        `started` is called once connections are accepted. After the stop new connections are refused, and requests in
        progress are answered, for at most `shutdown_timeout` seconds. Then the application's lifespan ends.
        """
        try:
            uvloop.run(self._serve(started))
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End `run`. Thread-safe, and may be called more than once."""
        self._is_stopped = True
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self, started: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._is_stopped:
            self._stop.set()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._loop.add_signal_handler(number, self._on_signal)
        async with self._app.lifespan():
            serving, retired = self._begin(), set[asyncio.Task[None]]()
            stopping, renewing = asyncio.create_task(self._stop.wait()), asyncio.create_task(self._renewed())
            started()
            while True:
                await asyncio.wait({serving.task, stopping, renewing}, return_when=asyncio.FIRST_COMPLETED)
                if serving.task.done() or stopping.done():
                    break
                # Connections are accepted all the time; the requests of the old ones are answered.
                successor = self._begin()
                self._app.end_streams()  # else their connections would go on with the old certificate
                serving.stop()
                retired = {each for each in (*retired, serving.task) if not each.done()}
                serving, renewing = successor, asyncio.create_task(self._renewed())
            renewing.cancel()
            if serving.task.done():
                stopping.cancel()
                serving.task.result()
                return
            self._app.close_streams()
            serving.stop()
            _, pending = await asyncio.wait({serving.task, *retired}, timeout=self._options.shutdown_timeout)
            if pending:
                _log.warning("some requests were not complete %g s after the shutdown", self._options.shutdown_timeout)
                for task in pending:
                    task.cancel()

    def _begin(self) -> _Serving:
        """Accept connections, with the certificate that is in the files now."""
        server = _Granian(self._app, self._options, self._socket)
        return _Serving(server, asyncio.create_task(server.serve()))

    async def _renewed(self) -> None:
        """Return once the files of the certificate have changed, and can be used. Those that cannot are logged once."""
        while True:
            await asyncio.sleep(_LOOK)
            found = await asyncio.to_thread(_stamps, self._options)
            if found == self._stamps:
                continue
            self._stamps = found
            try:
                await asyncio.to_thread(_check_tls, self._options)
            except ValueError as error:
                _log.error("the TLS certificate in force stays: %s", error)
                continue
            _log.info("the TLS certificate %s has changed, and is in force", self._options.tls_certificate)
            return

    def _on_signal(self) -> None:
        if self._stop is not None and self._stop.is_set():
            _log.warning("second signal: ending at once")
            os._exit(1)
        self.stop()
        deadline = threading.Timer(self._options.shutdown_timeout + _LAST_WORK, self._give_up)
        deadline.daemon = True
        deadline.start()

    def _give_up(self) -> None:
        """End a process that something holds. Safe: every change is durable before it is acknowledged."""
        _log.error("the shutdown did not end within %g s: ending at once", self._options.shutdown_timeout + _LAST_WORK)
        os._exit(1)


@dataclass(frozen=True, slots=True)
class _Serving:
    """granian, and the task that ends when it has."""

    server: _Granian
    task: asyncio.Task[None]

    def stop(self) -> None:
        """Accept no more connections, and end once the requests in progress are answered."""
        self.server.stop()  # type: ignore[no-untyped-call]


class _Granian(GranianServer):
    """granian in this process and event loop, on a socket that is bound already.

    granian itself binds with SO_REUSEPORT, which would let a second server start on the same port unnoticed.
    """

    def __init__(self, app: Application, options: ServingOptions, bound: socket.socket) -> None:
        self._bound = bound
        super().__init__(
            app,
            address=options.host,
            port=bound.getsockname()[1],
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=_BACKLOG,
            backpressure=options.max_connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(options.idle_timeout * 1000),
                max_buffer_size=options.read_buffer,
            ),
            log_enabled=False,
            log_dictconfig=_NO_LOGGING_CHANGES,
            ssl_cert=options.tls_certificate,
            ssl_key=options.tls_key,
            ssl_key_password=options.tls_key_password,
            ssl_protocol_min=SSLProtocols.tls12,
            ssl_ca=options.tls_client_ca,
            ssl_client_verify=options.tls_client_ca is not None,
        )

    def _init_shared_socket(self) -> None:
        self._ssp: None = None
        duplicate = os.dup(self._bound.fileno())  # granian closes it
        self._sfd = duplicate  # type: ignore[assignment]
        self._shd = SocketHolder(duplicate, False, _BACKLOG)  # type: ignore[assignment, call-arg]


def _stamps(options: ServingOptions) -> tuple[tuple[int, ...] | None, ...]:
    """A value that changes when the files of the certificate are replaced or changed; links are followed."""

    def stamp(file: Path) -> tuple[int, ...] | None:
        try:
            found = file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    return tuple(stamp(file) for file in (options.tls_certificate, options.tls_key, options.tls_client_ca) if file)


def _check_tls(options: ServingOptions) -> None:
    if options.tls_certificate is None or options.tls_key is None:
        return
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.tls_certificate, options.tls_key, options.tls_key_password or "")
        if options.tls_client_ca is not None:
            context.load_verify_locations(options.tls_client_ca)
            if not context.get_ca_certs():
                raise ValueError(f"{options.tls_client_ca}: expected the certificate of an authority, found none")
    except OSError as error:  # ssl.SSLError too
        raise ValueError(f"TLS certificate {options.tls_certificate}, key {options.tls_key}: {error}") from error


def _raise_descriptor_limit(connections: int) -> int:
    """Let the process open as many files as the connections need; the connections that it then can serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    served = max(1, soft - _OTHER_DESCRIPTORS)
    _log.warning("at most %d connections: the process may open %d files only", served, soft)
    return served


def _listen(options: ServingOptions) -> socket.socket:
    found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Connections inherit it: one whose client does not read its answer for so long is closed by the system.
            milliseconds = int(options.idle_timeout * 1000)
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
