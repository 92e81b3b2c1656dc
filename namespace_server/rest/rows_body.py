"""Rows in the body of a request: read whole if they are few, passed on as they come otherwise."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Final

from starlette.types import Receive

from namespace_server.data.worker_process import ready
from namespace_server.rest.errors import BodyTooLarge, ClientDisconnected, RequestTimeout
from namespace_server.rest.headers import Headers
from namespace_server.rest.limits import DataLimits
from table_data.frames import END, frame_head
from table_data.pipes import PipeEnd

_SHORT: Final = 1 << 20
_SHORT_DIGITS: Final = len(str(_SHORT))


class RowsBody:
    """An Arrow IPC stream or file that a client sends.

    `short` is whether its declared length is at most 1 MiB.
    """

    def __init__(self, receive: Receive, headers: Headers) -> None:
        declared = headers.get(b"content-length", b"")
        self.short = 0 < len(declared) <= _SHORT_DIGITS and int(declared) <= _SHORT
        self._receive = receive

    async def read(self, limits: DataLimits) -> bytes:
        """All of it, within the time for one piece. Raises `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`."""
        pieces: list[bytes] = []
        length, more = 0, True
        try:
            async with asyncio.timeout(limits.chunk_timeout):
                while more:
                    piece, more = await self._piece()
                    pieces.append(piece)
                    length += len(piece)
                    _check(length, limits)
        except TimeoutError:
            raise RequestTimeout(
                f"request body: expected its end within {limits.chunk_timeout:g} s, found nothing"
            ) from None
        return b"".join(pieces)

    async def pass_on(self, sink: PipeEnd, limits: DataLimits) -> None:
        """Write it to a pipe as it comes, in frames. Closes the pipe; without an end frame if the body has no end.

        Raises `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`.
        """
        length, more = 0, True
        os.set_blocking(sink.fileno(), False)
        with sink, suppress(BrokenPipeError):  # the worker wants no more; what it answers says why
            while more:
                try:
                    async with asyncio.timeout(limits.chunk_timeout):
                        piece, more = await self._piece()
                except TimeoutError:
                    raise RequestTimeout(
                        f"request body: expected more within {limits.chunk_timeout:g} s, found nothing"
                    ) from None
                length += len(piece)
                _check(length, limits)
                if piece:
                    await _write(sink, frame_head(len(piece)) + piece)
            await _write(sink, END)

    async def _piece(self) -> tuple[bytes, bool]:
        """The next bytes, and whether more follow."""
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientDisconnected("request body: expected its end, found a closed connection")
        return message.get("body", b""), message.get("more_body", False)


def _check(length: int, limits: DataLimits) -> None:
    if length > limits.body:
        raise BodyTooLarge(f"request body: expected at most {limits.body} bytes, found more")


async def _write(sink: PipeEnd, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink.fileno(), view) :]
        except BlockingIOError:
            await ready(sink.fileno(), to_write=True)
