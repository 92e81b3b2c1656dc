"""Requests of a thread to the ASGI application of its own process: what `HttpClient` sends goes over no network.

The application answers them as those of any client: it judges the caller, counts, limits and logs.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
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
_RUNNING: Final[set[asyncio.Task[None]]] = set()
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
        path, _, query = request.url.raw_path.partition(b"?")
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        timeout = request.extensions.get("timeout", {}).get("read")
        return self.answer(request.method, path, query, headers, request.read(), timeout)

    def answer(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        timeout: float | None,
    ) -> httpx.Response:
        """The answer to a request, whose body is not read: without a request of `httpx`, which takes longer than it.

        Args:
            method: HTTP method.
            path: Path, percent-encoded.
            query: Query, percent-encoded.
            headers: Headers by their names in lower case.
            body: Body.
            timeout: Seconds to wait for each message of the answer.
        """
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the public one raises where there is none
            raise RuntimeError("a request to the own server: expected a thread beside its event loop")
        exchange = _OwnExchange(self._loop, body, timeout, self._forget)
        with self._lock:
            if self._is_closed:
                raise httpx.ConnectError("the transport to the own server is closed")
            self._open.add(exchange)
        try:
            exchange.begin(self._application, self._source.scope(method, path, query, headers))
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


class _OwnExchange(httpx.SyncByteStream):
    """A request and its answer, whose messages go from the event loop to the thread that waits.

    What the application sends without a pause goes over together, as most answers do as a whole: each step between
    the threads takes longer than many routes.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        body: bytes,
        timeout: float | None,
        forget: Callable[[_OwnExchange], None],
    ) -> None:
        self._loop = loop
        self._timeout = timeout
        self._forget = forget
        self._sent: queue.SimpleQueue[Sequence[AsgiMessage | None]] = queue.SimpleQueue()
        # Of the thread.
        self._taken: deque[AsgiMessage | None] = deque()
        self._to_release = 0
        self._is_read = False
        # Of the event loop.
        self._body: bytes | None = body
        self._collected: list[AsgiMessage] = []
        self._room = asyncio.Semaphore(_AHEAD)
        self._is_given_up = False
        self._ended = asyncio.Event()

    def begin(self, application: ServerApplication, scope: MutableMapping[str, Any]) -> None:
        """Have the application answer."""
        try:
            self._loop.call_soon_threadsafe(self._begin, application, scope)
        except RuntimeError as error:
            raise httpx.ConnectError("the event loop of the own server has ended") from error

    def _begin(self, application: ServerApplication, scope: MutableMapping[str, Any]) -> None:
        running = self._loop.create_task(self._answer(application, scope))
        _RUNNING.add(running)
        running.add_done_callback(_RUNNING.discard)

    async def _answer(self, application: ServerApplication, scope: MutableMapping[str, Any]) -> None:
        try:
            await application(scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 - the thread that waits is told that there is no more
            if not self._is_given_up:
                _log.exception("%s %s of the own server ended with an error", scope["method"], scope["path"])
        finally:
            self._hand_over()
            self._sent.put((None,))

    async def _receive(self) -> AsgiMessage:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._ended.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if not self._ended.is_set():
            await self._room.acquire()
        if self._ended.is_set():
            raise OSError("the client of the own server has gone")
        self._collected.append(message)
        if _is_last(message):
            self._ended.set()
            self._hand_over()
        elif len(self._collected) == 1:
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if self._collected:
            self._sent.put(self._collected)
            self._collected = []

    def next_message(self) -> AsgiMessage:
        """The next message of the application."""
        if not self._taken:
            try:
                self._taken.extend(self._sent.get(timeout=self._timeout))
            except queue.Empty:
                raise httpx.ReadTimeout(f"the own server: no answer within {self._timeout:g} seconds") from None
            self._to_release = len(self._taken)
        message = self._taken.popleft()
        if message is None:
            raise httpx.RemoteProtocolError("the own server ended without the end of an answer")
        if _is_last(message):
            self._is_read = True
        elif not self._taken:
            self._on_loop(self._release, self._to_release)
        return message

    def __iter__(self) -> Iterator[bytes]:
        while not self._is_read:
            yield self.next_message().get("body", b"")

    def close(self) -> None:
        """The answer is read, or will not be."""
        self._forget(self)
        if not self._is_read:
            self._on_loop(self._give_up)

    def give_up(self) -> None:
        """As `close`, beside the thread that waits: its next message is the end."""
        self.close()
        self._sent.put((None,))

    def _release(self, messages: int) -> None:
        for _ in range(messages):
            self._room.release()

    def _give_up(self) -> None:
        self._is_given_up = not self._ended.is_set()
        self._ended.set()
        self._room.release()

    def _on_loop(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # it has ended, and nothing waits there
            return


def _is_last(message: AsgiMessage) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)
