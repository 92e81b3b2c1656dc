"""Rows in the body of a request: read whole if they are few, passed on as they come otherwise."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.types import Receive

from namespace_server.rest.errors import BodyTooLarge, RequestTimeout
from namespace_server.rest.request.body import broken_off, is_last
from namespace_server.rest.request.headers import Headers, declared_length
from namespace_server.rest.request.limits import DataLimits
from namespace_server.workers.frames import END, frame_head
from namespace_server.workers.pipes import PipeEnd
from namespace_server.workers.worker_process import ready

_SHORT: Final = 1 << 20


class RowsBody:
    """An Arrow IPC stream or file that a client sends.

    `short` is whether its declared length is at most 1 MiB. A `digested` one is read to its end, also where nobody
    takes its rows.
    """

    def __init__(self, receive: Receive, headers: Headers, *, digested: bool = False) -> None:
        self._declared = declared_length(headers)
        self.short = self._declared is not None and self._declared <= _SHORT
        self._receive = receive
        self._length = 0
        self._sha256 = hashlib.sha256() if digested else None

    async def digest(self) -> str:
        """The SHA-256 of a `digested` body that was read to its end, in hexadecimal digits."""
        if self._sha256 is None:
            raise ValueError("the body is not digested")
        return self._sha256.hexdigest()

    async def read(self, limits: DataLimits) -> bytes:
        """All of it, within the time for one piece. Raises `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`."""
        pieces: list[bytes] = []
        more = True
        try:
            async with asyncio.timeout(limits.chunk_timeout):
                while more:
                    piece, more = await self._piece(limits)
                    pieces.append(piece)
        except TimeoutError:
            raise RequestTimeout(
                f"request body: expected its end within {limits.chunk_timeout:g} s, found nothing"
            ) from None
        return b"".join(pieces)

    async def pass_on(self, sink: PipeEnd, limits: DataLimits) -> None:
        """Write it to a pipe as it comes, in frames. Closes the pipe; without an end frame if the body has no end.

        Raises `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`.
        """
        os.set_blocking(sink.fileno(), False)
        pieces = self._pieces(limits)
        with sink, suppress(BrokenPipeError):  # the worker wants no more; what it answers says why
            async for piece in pieces:
                if piece:
                    await _write(sink, frame_head(len(piece)) + piece)
            await _write(sink, END)
            return
        if self._sha256 is not None:
            async for _ in pieces:
                pass

    async def _pieces(self, limits: DataLimits) -> AsyncIterator[bytes]:
        """The body as it comes."""
        more = True
        while more:
            try:
                async with asyncio.timeout(limits.chunk_timeout):
                    piece, more = await self._piece(limits)
            except TimeoutError:
                raise RequestTimeout(
                    f"request body: expected more within {limits.chunk_timeout:g} s, found nothing"
                ) from None
            yield piece

    async def _piece(self, limits: DataLimits) -> tuple[bytes, bool]:
        """The next bytes, and whether more follow."""
        message = await self._receive()
        if message["type"] != "http.request":
            raise broken_off(self._declared)
        piece: bytes = message.get("body", b"")
        self._length += len(piece)
        if self._length > limits.body:
            raise BodyTooLarge(f"request body: expected at most {limits.body} bytes, found more")
        if self._sha256 is not None:
            self._sha256.update(piece)
        return piece, not is_last(message, self._declared, self._length)


async def _write(sink: PipeEnd, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(sink.fileno(), view) :]
        except BlockingIOError:
            await ready(sink.fileno(), to_write=True)
