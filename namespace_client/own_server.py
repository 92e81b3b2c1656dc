"""Requests of a thread to the ASGI application of its own process: what `HttpClient` sends goes over no network.

The application answers them as those of any client: it judges the caller, counts, limits and logs.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import httpx

_log = logging.getLogger(__name__)

AsgiMessage = MutableMapping[str, Any]
ServerApplication = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application."""

_AHEAD: Final = 2
"""Messages of an answer that the application may be ahead of the reader."""
_RUNNING: Final[set[Future[None]]] = set()
"""What is answered now: the event loop itself would not hold it."""


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Where the requests come from, as the application is to see it.

    Attributes:
        address: Address of the client, None if it has none.
        host: The `Host` that the client addressed, which the application may judge.
        scheme: `http` or `https`.
        headers: Further headers of all requests, by their names in lower case: what the client said of itself.
    """

    address: str | None = None
    host: bytes = b"localhost"
    scheme: str = "http"
    headers: Sequence[tuple[bytes, bytes]] = ()

    def scope(
        self, method: str, path: bytes, query: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> MutableMapping[str, Any]:
        """The ASGI scope of a request from there, which says more of itself in `headers`, with names in lower case."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": self.scheme,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list((dict(headers) | dict(self.headers) | {b"host": self.host}).items()),
            "client": None if self.address is None else (self.address, 0),
            "server": None,
        }


class OwnServerTransport(httpx.BaseTransport):
    """Hands requests to an ASGI application on its event loop, and waits for the answers. For threads beside that loop.

    An answer is read as it comes: the application waits for a reader that is slow. Once its reader closes it before the
    end, a timeout of the request is over, or the transport is closed, the application sees a client that went away
    (`http.disconnect`, and `OSError` of `send`), as over a network; what it does with that is its own affair.

    Its requests raise `httpx.ConnectError` if the event loop has ended or the transport is closed (nothing was sent),
    `httpx.ReadTimeout` if no message of the answer came within the timeout for reading, `httpx.RemoteProtocolError` if
    the application ended without the end of an answer, or the transport was closed meanwhile, and `RuntimeError` on the
    event loop itself, where they would wait for ever.

    Args:
        application: The application.
        loop: The event loop that it runs on.
        source: Where the requests come from.
    """

    def __init__(
        self, application: ServerApplication, loop: asyncio.AbstractEventLoop, source: RequestSource | None = None
    ) -> None:
        self._application = application
        self._loop = loop
        self._source = source or RequestSource()
        self._lock = threading.Lock()
        self._open: set[_OwnExchange] = set()
        self._is_closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.BaseTransport`."""
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the public one raises where there is none
            raise RuntimeError("a request to the own server: expected a thread beside its event loop")
        timeout = request.extensions.get("timeout", {}).get("read")
        exchange = _OwnExchange(self._loop, request.read(), timeout, self._forget)
        with self._lock:
            if self._is_closed:
                raise httpx.ConnectError("the transport to the own server is closed")
            self._open.add(exchange)
        try:
            exchange.begin(self._application, self._scope(request))
            start = exchange.next_message()
        except BaseException:
            exchange.close()
            raise
        return httpx.Response(start["status"], headers=start.get("headers", ()), stream=exchange)

    def another(self) -> OwnServerTransport:
        """A transport to the same application from the same source, which is closed by itself."""
        return OwnServerTransport(self._application, self._loop, self._source)

    def close(self) -> None:
        """Give up the requests that are under way, and make no more. Thread-safe."""
        with self._lock:
            self._is_closed = True
            found = list(self._open)
        for exchange in found:
            exchange.give_up()

    def _forget(self, exchange: _OwnExchange) -> None:
        with self._lock:
            self._open.discard(exchange)

    def _scope(self, request: httpx.Request) -> MutableMapping[str, Any]:
        path, _, query = request.url.raw_path.partition(b"?")
        given = [(name.lower(), value) for name, value in request.headers.raw]
        return self._source.scope(request.method, path, query, given)


class _OwnExchange(httpx.SyncByteStream):
    """A request and its answer, whose messages go from the event loop to the thread that waits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        body: bytes,
        timeout: float | None,
        forget: Callable[[_OwnExchange], None],
    ) -> None:
        self._loop = loop
        self._body: bytes | None = body
        self._timeout = timeout
        self._forget = forget
        self._messages: queue.SimpleQueue[AsgiMessage | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_AHEAD)
        self._gone = asyncio.Event()

    def begin(self, application: ServerApplication, scope: MutableMapping[str, Any]) -> None:
        """Have the application answer."""
        answering = self._answer(application, scope)
        try:
            running = asyncio.run_coroutine_threadsafe(answering, self._loop)
        except RuntimeError as error:
            answering.close()
            raise httpx.ConnectError("the event loop of the own server has ended") from error
        _RUNNING.add(running)
        running.add_done_callback(_RUNNING.discard)

    async def _answer(self, application: ServerApplication, scope: MutableMapping[str, Any]) -> None:
        try:
            await application(scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 - the thread that waits is told that there is no more
            if not self._gone.is_set():
                _log.exception("%s %s of the own server has no whole answer", scope["method"], scope["path"])
        finally:
            self._messages.put(None)

    async def _receive(self) -> AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if not self._gone.is_set():
            await self._room.acquire()
        if self._gone.is_set():
            raise OSError("the client of the own server has gone")
        self._messages.put(message)

    def next_message(self) -> AsgiMessage:
        """The next message of the application."""
        try:
            message = self._messages.get(timeout=self._timeout)
        except queue.Empty:
            raise httpx.ReadTimeout(f"the own server: no answer within {self._timeout:g} seconds") from None
        if message is None:
            raise httpx.RemoteProtocolError("the own server ended without the end of an answer")
        self._on_loop(self._room.release)
        return message

    def __iter__(self) -> Iterator[bytes]:
        has_more = True
        while has_more:
            message = self.next_message()
            has_more = message.get("more_body", False)
            yield message.get("body", b"")

    def close(self) -> None:
        """The answer is read, or will not be."""
        self._forget(self)
        self._on_loop(self._leave)

    def give_up(self) -> None:
        """As `close`, beside the thread that waits: its next message is the end."""
        self.close()
        self._messages.put(None)

    def _leave(self) -> None:
        self._gone.set()
        self._room.release()

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # it has ended, and nothing waits there
            return
