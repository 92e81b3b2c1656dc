"""Send the head and the body of an answer as one.

uvicorn writes them apart, and uvloop hands every write to the kernel at once: two system calls and two packets for each
answer, and a client that is woken twice.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class JoiningTransport:
    """A transport that keeps a first write back until there is a second, at the longest until the loop's next round.

    Order and content of what is sent stay as they are. Everything else is the own affair of `inner`.
    """

    __slots__ = ("_held", "_inner", "_loop", "_waiting")

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop
        self._held: bytes | None = None
        self._waiting = False

    def write(self, data: bytes) -> None:
        """Send `data`, with what was kept back, or keep it back."""
        held = self._held
        if held is not None:
            self._held = None
            self._inner.writelines((held, data))
            return
        self._held = data
        if not self._waiting:
            self._waiting = True
            self._loop.call_soon(self._give_up_waiting)

    def close(self) -> None:
        """Send what is left, then close."""
        self._send_held()
        self._inner.close()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._inner.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _give_up_waiting(self) -> None:
        self._waiting = False
        self._send_held()

    def _send_held(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._inner.is_closing():
            self._inner.write(held)


class JoiningProtocol(HttpToolsProtocol):
    """uvicorn's protocol on httptools, over a `JoiningTransport`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport, self.loop)))
