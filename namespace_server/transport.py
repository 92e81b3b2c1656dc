"""uvicorn's protocol with two short cuts: answers leave in one piece, and repeated requests are not parsed again.

uvicorn writes the head and the body of an answer apart, and uvloop hands every write to the kernel at once: two system
calls and two packets for each answer, and a client that is woken twice.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from namespace_server.repeats import REMEMBER, REPEAT, Repeats


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

    def write_whole(self, *parts: bytes) -> None:
        """Send a whole answer, behind what was kept back."""
        self._send_held()
        self._inner.writelines(parts)

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


class RepeatingProtocol(HttpToolsProtocol):
    """uvicorn's protocol on httptools over a `JoiningTransport`, with a short way for requests that came before.

    The short way is open to one whole request that arrives in one piece while nothing else is under way.
    """

    def __init__(self, *arguments: Any, repeats: Repeats, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._repeats = repeats
        self._repeated = False
        self._joining: JoiningTransport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        self._joining = JoiningTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._joining))

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        before = self.cycle
        at_rest = self._is_received() and before.response_complete if before else self.scope is None
        if at_rest and self._repeat(data):
            return
        super().data_received(data)
        if at_rest and self.cycle is not before and self._is_received() and self._may_repeat():
            self.scope["extensions"] = {REPEAT: {REMEMBER: partial(self._repeats.remember, data)}}

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection: one without any request since the timer was set."""
        if not self._repeated:
            super().timeout_keep_alive_handler()
            return
        self._wait_for_more()

    def _wait_for_more(self) -> None:
        self._repeated = False
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _is_received(self) -> bool:
        """Whether the last request came in whole, and no other has begun."""
        return self.cycle.scope is self.scope and not self.cycle.more_body

    def _may_repeat(self) -> bool:
        """Whether the request that came in was alone, and wants no more than an answer."""
        cycle = self.cycle
        return (
            not self.pipeline and cycle.keep_alive and not self.expect_100_continue and not self.parser.should_upgrade()
        )

    def _repeat(self, data: bytes) -> bool:
        if self.flow.write_paused:
            return False
        answer = self._repeats.answer(data, self.server_state.default_headers)
        if answer is None:
            return False
        self._joining.write_whole(*answer)
        self.server_state.total_requests += 1
        if self.timeout_keep_alive_task is None:
            self._wait_for_more()
        self._repeated = True
        return True
