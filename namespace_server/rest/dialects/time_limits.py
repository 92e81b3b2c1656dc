"""The time that a client of lancedb gives a read: it ends then, with its worker, and is answered or broken off."""

from __future__ import annotations

import asyncio
from typing import Final

from lance_namespace.errors import InvalidInputError
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from namespace_server.rest.errors import TimeOver
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.header_names import TIMEOUT_MILLIS
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import Handler

_DIGITS: Final = 15
_NAME: Final = TIMEOUT_MILLIS.decode()


def read_end(given: bytes, *, served: bool) -> float:
    """The time of the event loop at which a request ends that is given so many milliseconds.

    Raises `InvalidInputError` for what is no number of them, and for a request that does not end so.
    """
    if not served:
        raise InvalidInputError(f"{_NAME}: expected it with a query, a count, a plan or a merge alone")
    if not given.isdigit() or len(given) > _DIGITS:
        raise InvalidInputError(f"{_NAME}: expected a number of milliseconds, found {given[:80].decode('latin-1')!r}")
    return asyncio.get_running_loop().time() + int(given) / 1000


async def answer_in_time(end: float, answer: Handler, exchange: Exchange) -> Response:
    """The answer of a handler. Raises `TimeOver` if it takes longer, and so do its rows when they are sent."""
    try:
        async with asyncio.timeout_at(end) as limit:
            response = await answer(exchange)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _time_over() from None
    return response if isinstance(response, Success) else _InTime(response, end)


class _InTime(Response):
    """A response whose body is made while it is sent, until its time is over. What was begun then breaks off."""

    def __init__(self, response: Response, end: float) -> None:
        super().__init__()
        self._response = response
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises `TimeOver` if its time is over before anything is sent."""
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            async with asyncio.timeout_at(self._end) as limit:
                await self._response(scope, receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
            if not has_begun:
                raise _time_over() from None
            # Without a last message the HTTP server closes the connection.


def _time_over() -> TimeOver:
    return TimeOver(f"{_NAME}: the read did not end in the time that it was given; nothing was changed")
