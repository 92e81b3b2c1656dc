"""The rest of a request's body when the request is refused before the body was read.

The HTTP server closes a connection on which an answer was sent before the body had come, sometimes without having said
so: the client's next request on it then gets no answer. So a short rest is read first, and else the closing is said.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.types import Message, Receive

from namespace_server.rest.request.body import is_last
from namespace_server.rest.request.headers import Headers, declared_length, has_no_body

_LONGEST: Final = 64 << 10
_SECONDS: Final = 1.0


class BodyProgress:
    """Receives the messages of one request, and notes whether its body has ended."""

    __slots__ = ("_headers", "_last", "_length", "_receive")

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._headers = headers
        self._last: Message | None = None
        self._length = 0

    async def receive(self) -> Message:
        """The next message."""
        message = self._last = await self._receive()
        self._length += len(message.get("body", b""))
        return message

    async def end(self) -> bool:
        """Read a short body to its end, within a second; False if it has not ended then. Nobody else receives now."""
        declared = declared_length(self._headers)
        if has_no_body(self._headers, declared):
            return True
        if (declared or 0) <= _LONGEST:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    while not self._has_ended(declared) and self._length <= _LONGEST:
                        await self.receive()
        return self._has_ended(declared)

    def _has_ended(self, declared: int | None) -> bool:
        last = self._last
        return last is not None and (last["type"] != "http.request" or is_last(last, declared, self._length))
