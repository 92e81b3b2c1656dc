"""What is left of a request's body when it is refused before the body was read.

The HTTP server closes a connection on which an answer was sent before the body had come, sometimes without having said
so: the client's next request on it then gets no answer. So a short rest is read first, and else the closing is said.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Message, Receive

from namespace_server.rest.request.body import is_last
from namespace_server.rest.request.headers import Headers, declared_length

_LONGEST: Final = 64 << 10
_SECONDS: Final = 1.0


class BodyProgress:
    """Receives the messages of one request, and knows whether its body has ended."""

    __slots__ = ("_ended", "_headers", "_length", "_receive")

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._headers = headers
        self._length = 0
        self._ended = False

    async def receive(self) -> Message:
        """The next message."""
        message = await self._receive()
        if not self._ended:
            self._note(message)
        return message

    async def end(self) -> bool:
        """Read a short body to its end, within a second; False if it has not ended then. No other task receives now."""
        declared = declared_length(self._headers)
        if declared == 0 or (declared is None and b"transfer-encoding" not in self._headers):
            return True
        if (declared or 0) > _LONGEST:
            return self._ended
        try:
            async with asyncio.timeout(_SECONDS):
                while not self._ended and self._length <= _LONGEST:
                    await self.receive()
        except TimeoutError:
            return False
        return self._ended

    def _note(self, message: Message) -> None:
        if message["type"] != "http.request":
            self._ended = True
            return
        self._length += len(message.get("body", b""))
        self._ended = is_last(message, declared_length(self._headers), self._length)
