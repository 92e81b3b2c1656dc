"""Rows in the body of a request: read to their end before they are worked on."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import Receive

from namespace_server.rest.errors import BodyTooLarge, RequestTimeout
from namespace_server.rest.request.body import broken_off, count_upload, is_last, uncounted
from namespace_server.rest.request.headers import Headers, declared_length
from namespace_server.rest.request.limits import DataLimits
from namespace_server.throttling import Upload
from namespace_server.workers.change_pool import Rows
from namespace_server.workers.spool import SpooledBody, SpoolSpace

_SHORT: Final = 1 << 20
"""Bytes up to which a body stays in memory."""


class RowsBody:
    """An Arrow IPC stream or file that a client sends."""

    def __init__(
        self, receive: Receive, headers: Headers, *, digested: bool = False, upload: Upload | None = None
    ) -> None:
        self.receive = receive
        self._upload = upload or uncounted()
        self._declared = declared_length(headers)
        self._sha256 = hashlib.sha256() if digested else None

    async def digest(self) -> str:
        """The SHA-256 of a `digested` body that was read to its end, in hexadecimal digits."""
        if self._sha256 is None:
            raise ValueError("the body is not digested")
        return self._sha256.hexdigest()

    @asynccontextmanager
    async def read(self, limits: DataLimits, space: SpoolSpace) -> AsyncIterator[Rows]:
        """All of it, for the block, in which it counts as an upload; in a temporary file if it is long.

        Raises `BodyTooLarge`, `RequestTimeout`, `ClientDisconnected`, `ThrottlingError` if there is no room for it.
        """
        if (self._declared or 0) > limits.body:
            raise BodyTooLarge(f"request body: expected at most {limits.body} bytes, found {self._declared}")
        count_upload(self._upload, self._declared or 0)
        body = SpooledBody(space, _SHORT)
        try:
            await self._read(body, limits)
            yield await body.end()
        finally:
            await body.close()
            self._upload.close()

    async def _read(self, body: SpooledBody, limits: DataLimits) -> None:
        """Read to the end, within a time that grows with the bytes that are there."""
        clock = asyncio.get_running_loop().time
        began, length, more = clock(), 0, True
        try:
            async with asyncio.timeout(limits.chunk_timeout) as deadline:
                while more:
                    message = await self.receive()
                    if message["type"] != "http.request":
                        raise broken_off(self._declared)
                    piece: bytes = message.get("body", b"")
                    length += len(piece)
                    if length > limits.body:
                        raise BodyTooLarge(f"request body: expected at most {limits.body} bytes, found more")
                    count_upload(self._upload, length)
                    if self._sha256 is not None:
                        self._sha256.update(piece)
                    more = not is_last(message, self._declared, length)
                    if piece:
                        await body.append(piece)
                    if more:
                        last = began + limits.chunk_timeout + length / limits.rate
                        deadline.reschedule(min(last, clock() + limits.chunk_timeout))
        except TimeoutError:
            raise RequestTimeout(
                f"request body: expected its end within {limits.chunk_timeout:g} s and a second for each "
                f"{limits.rate} bytes, and more bytes within {limits.chunk_timeout:g} s; found {length} bytes"
            ) from None
