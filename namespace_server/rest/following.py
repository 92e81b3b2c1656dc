"""The handler of events: one answer, perhaps after a wait, or a stream of server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from lance_namespace.errors import InvalidInputError, LanceNamespaceError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from namespace_server.answer import Answer
from namespace_server.rest.exchange import Exchange, QueryModel
from namespace_server.rest.header_names import CATALOG_VERSION, LAST_EVENT_ID
from namespace_server.rest.models import EventsQuery
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.request.headers import accepts, read_version
from namespace_server.rest.responses import success

_log = logging.getLogger(__name__)

_STREAM: Final = b"text/event-stream"
_HEARTBEAT: Final = 15.0
"""Seconds without events after which a comment is sent: a proxy or a client sees that the stream is alive."""
_LAST_PIECE: Final = 1.0
"""Seconds that a client has to take what is being sent when its stream has to end."""
_PAUSE: Final = 1.0
_RECONNECT: Final = b"retry: 1000\n\n"
_ALIVE: Final = b": alive\n\n"
_QUERY: Final = QueryModel(EventsQuery)


async def events(exchange: Exchange) -> Response:
    """The events after a catalog version: in one answer, or as a stream if the request accepts that media type.

    `Last-Event-ID` counts before `since`: a client that comes again sends both.
    """
    operation: str = exchange.scope["operation"]
    exchange.require_no_body()
    if exchange.as_of is not None:
        raise InvalidInputError(f"{CATALOG_VERSION.decode()}: expected none, events have `since`")
    _, given = _QUERY.parse(exchange.scope["query_string"])
    seen = exchange.headers.get(LAST_EVENT_ID)
    since = given.get("since") if seen is None else read_version(seen, LAST_EVENT_ID.decode())
    position: JsonObject = {} if since is None else {"since": since}
    if accepts(exchange.headers, _STREAM):
        refused = sorted(given.keys() & {"limit", "wait"})
        if refused:
            raise InvalidInputError(f"{', '.join(refused)}: expected none with {_STREAM.decode()}")
        exchange.scope["operation"] = f"{operation}_stream"
        return _EventStream(exchange, operation, position)
    return await _page(exchange, operation, position, given)


async def _page(exchange: Exchange, operation: str, position: JsonObject, given: Mapping[str, object]) -> Response:
    """One answer; if there are no events yet, and the client waits, once there are.

    A client whose key is valid no more by then is told none; it is refused when it comes again.
    """
    service, seconds = exchange.service, given.get("wait")
    request = {**position, **({"limit": given["limit"]} if "limit" in given else {})}
    answer = await service.read(operation, request, exchange.subject)
    if not _events(answer) and isinstance(seconds, int) and seconds:
        last = _last(answer)
        with service.events.admitted() as ended:
            news = asyncio.ensure_future(service.events.beyond(last, seconds, ended))
            gone = asyncio.ensure_future(_disconnected(exchange.receive))
            await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED)
            is_there = news.done() and news.result() and exchange.is_admitted()
            await _cancel(news, gone)
        if is_there:
            answer = await service.read(operation, {**request, "since": last}, exchange.subject)
    service.events.sent += len(_events(answer))
    return success(service, answer)


class _EventStream(Response):
    """A stream of server-sent events, which ends when the server ends, or the client's key is valid no more.

    Of a client that takes nothing no more is read than one page, and after a while its connection is closed.
    """

    def __init__(self, exchange: Exchange, operation: str, position: JsonObject) -> None:
        super().__init__()
        self._exchange = exchange
        self._operation = operation
        self._position = position
        self._pages: list[Answer] = []  # the one to be sent next: no frame holds it while its text is sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises the namespace errors of the operation, before anything is sent."""
        service = self._exchange.service
        with service.events.admitted() as ended:
            first = await service.read(self._operation, self._position, self._exchange.subject)
            service.saw(first.catalog_version)
            headers = [
                (b"content-type", _STREAM),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),
                (CATALOG_VERSION, b"%d" % first.catalog_version),
            ]
            self._pages.append(first)
            del first
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] == "HEAD" or await self._flow(receive, send, ended):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _flow(self, receive: Receive, send: Send, ended: asyncio.Event) -> bool:
        """Send events until the end; whether the client can be told that the stream is at its end."""
        flow = asyncio.ensure_future(self._send(send, ended))
        gone = asyncio.ensure_future(_disconnected(receive))
        ending = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait({flow, gone, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not (flow.done() or gone.done()):
                await asyncio.wait({flow, gone}, timeout=_LAST_PIECE, return_when=asyncio.FIRST_COMPLETED)
            if not flow.done():
                return False  # the HTTP server closes the connection
            flow.result()
        except TimeoutError:
            return False
        except LanceNamespaceError as error:  # the client asks again from where it is, and is answered the error
            _log.info("a stream of events ends: %s", error)
        finally:
            await _cancel(flow, gone, ending)
        return True

    async def _send(self, send: Send, ended: asyncio.Event) -> None:
        """Send events until the stream ends. Raises `TimeoutError` if the client takes nothing for long.

        While a slow client takes a text, that alone is held, and nothing while there is no news.
        """
        exchange, events = self._exchange, self._exchange.service.events
        text = _RECONNECT
        while True:
            page = self._pages.pop()
            found, last = len(_events(page)), _last(page)
            text += b"".join(map(_as_text, _events(page)))
            del page
            if text:
                async with asyncio.timeout(exchange.service.limits.data.chunk_timeout):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
            events.sent += found
            text = b""
            is_there = await events.beyond(last, _HEARTBEAT, ended)
            if ended.is_set() or not exchange.is_admitted():
                return
            text = b"" if is_there else _ALIVE
            page = await exchange.service.read(self._operation, {"since": last}, exchange.subject)
            self._pages.append(page)
            if is_there and not _events(page):  # what was seen is not in storage (any more): do not ask without a pause
                await asyncio.sleep(_PAUSE)


def _as_text(event: Mapping[str, object]) -> bytes:
    """An event in the form of a stream. JSON in one line has no line breaks."""
    data = event["data"]
    assert isinstance(data, Mapping)
    return b"id: %d\ndata: %b\n\n" % (data["catalog_version"], orjson.dumps(event))


def _events(page: Answer) -> Sequence[Mapping[str, object]]:
    found = page.body["events"]
    assert isinstance(found, list)
    return found


def _last(page: Answer) -> int:
    found = page.body["last"]
    assert isinstance(found, int)
    return found


async def _disconnected(receive: Receive) -> None:
    """Return once the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
