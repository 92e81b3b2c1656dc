"""Bodies end at their declared length, before the HTTP server says so; without one, when it says so."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError, ThrottlingError
from starlette.types import Message

from namespace_server.rest.errors import BodyTooLarge, ClientDisconnected
from namespace_server.rest.request.body import BodyReader
from namespace_server.rest.request.headers import Headers, declared_length
from namespace_server.rest.request.limits import DataLimits, RequestLimits
from namespace_server.rest.request.rows import RowsBody
from namespace_server.workers.spool import SpoolFile, SpoolSpace

CHUNKED = {b"transfer-encoding": b"chunked"}
Read = Callable[[Sequence[bytes], Headers], bytes]


class Pieces:
    """Pieces of a body, after which nothing comes, not even its end."""

    def __init__(self, pieces: Sequence[bytes], *, ends: bool) -> None:
        self.messages: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        if ends:
            self.messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def __call__(self) -> Message:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)


def read_json(pieces: Sequence[bytes], headers: Headers, *, ends: bool = False) -> bytes:
    reader = BodyReader(RequestLimits(body_timeout=0.2))
    return _run(lambda: reader.read(Pieces(pieces, ends=ends), headers, 1000))


def read_rows(pieces: Sequence[bytes], headers: Headers, *, ends: bool = False) -> bytes:
    body = RowsBody(Pieces(pieces, ends=ends), headers)
    return _run(lambda: _rows(body, DataLimits(body=1000, chunk_timeout=0.2)))


async def _rows(body: RowsBody, limits: DataLimits) -> bytes:
    async with body.read(limits, SpoolSpace(1 << 20)) as rows:
        assert isinstance(rows, bytes)
        return rows


def _run(read: Callable[[], Awaitable[bytes]]) -> bytes:
    async def main() -> bytes:
        return await read()

    return asyncio.run(main())


@pytest.mark.parametrize("read", [read_json, read_rows])
class TestBoth:
    @pytest.mark.parametrize("pieces", [[b"abcdef"], [b"abc", b"def"], [b"", b"abcde", b"f"]])
    def test_the_end_is_not_waited_for(self, read: Read, pieces: list[bytes]) -> None:
        assert read(pieces, {b"content-length": b"6"}) == b"abcdef"
        assert read(pieces, {b"content-length": b"0006"}) == b"abcdef"

    def test_a_chunked_body_has_no_other_length(self, read: Callable[..., bytes]) -> None:
        headers = {**CHUNKED, b"content-length": b"3"}
        assert read([b"abc", b"def"], headers, ends=True) == b"abcdef"

    def test_too_many_bytes(self, read: Read) -> None:
        with pytest.raises(BodyTooLarge):
            read([b"x" * 600, b"x" * 600], CHUNKED)


@pytest.mark.parametrize("headers", [{}, CHUNKED, {**CHUNKED, b"content-length": b"3"}])
def test_no_declared_length(headers: dict[bytes, bytes]) -> None:
    assert declared_length(headers) is None


def test_only_short_bodies_stay_in_memory() -> None:
    async def read(length: int, memory: int) -> object:
        space = SpoolSpace(4 << 20, memory=memory)
        async with RowsBody(Pieces([b"x" * length], ends=True), CHUNKED).read(DataLimits(), space) as rows:
            if isinstance(rows, SpoolFile):
                assert os.pread(rows.fileno(), length + 1, 0) == b"x" * length
                assert not space.reserve((4 << 20) - length + 1)
        assert space.reserve(4 << 20)
        assert space.hold(memory)
        return type(rows)

    assert asyncio.run(read(1 << 20, 2 << 20)) is bytes
    assert asyncio.run(read((1 << 20) + 1, 2 << 20)) is SpoolFile
    assert asyncio.run(read(1 << 20, 1 << 10)) is SpoolFile


def test_rows_without_room_are_refused() -> None:
    body = RowsBody(Pieces([b"x" * (2 << 20)], ends=True), CHUNKED)
    with pytest.raises(ThrottlingError, match="nothing was done"):
        _run(lambda: _rows(body, DataLimits()))


def test_a_directory_that_is_gone_is_no_room(tmp_path: Path) -> None:
    async def read() -> None:
        space = SpoolSpace(4 << 20, str(tmp_path / "gone"), memory=0)
        with pytest.raises(ServiceUnavailableError, match="temporary file"):
            async with RowsBody(Pieces([b"x"], ends=True), CHUNKED).read(DataLimits(), space):
                pass
        assert space.reserve(4 << 20)

    asyncio.run(read())


def test_a_connection_that_ends_early() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnected):
        _run(lambda: _rows(RowsBody(receive, {b"content-length": b"6"}), DataLimits()))
    with pytest.raises(ClientDisconnected):
        _run(lambda: BodyReader(RequestLimits()).read(receive, {b"content-length": b"6"}, 1000))
