"""How answers leave the server."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any

import pytest

from namespace_server.transport import JoiningTransport

DATA_SEGMENTS_IN = 152
"""Where `tcp_info` counts the segments with data that came in (Linux)."""


@pytest.fixture
def connection(echo_server: Any) -> Iterator[socket.socket]:
    host, port = echo_server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connected:
        yield connected


def read_answer(connection: socket.socket, received: bytes = b"") -> tuple[bytes, bytes, bytes]:
    """Head and body of the next answer, and what came behind it."""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, rest = received.partition(b"\r\n\r\n")
    length = next(int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: "))
    while len(rest) < length:
        rest += connection.recv(65536)
    return head, rest[:length], rest[length:]


def segments(connection: socket.socket) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    count: int = struct.unpack_from("I", info, DATA_SEGMENTS_IN)[0]
    return count


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def test_an_answer_is_one_packet(connection: socket.socket) -> None:
    for number in range(1, 6):
        connection.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: x\r\n\r\n")
        head, body, rest = read_answer(connection)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body.startswith(b'{"operation":"describe_catalog"')
        assert not rest
        assert segments(connection) == number


def test_answers_to_requests_sent_at_once_come_whole_and_in_order(connection: socket.socket) -> None:
    wanted = [b"n%d" % number for number in range(20)]
    connection.sendall(b"".join(b"GET /v1/namespace/%s/list HTTP/1.1\r\nhost: x\r\n\r\n" % name for name in wanted))
    rest = b""
    for name in wanted:
        _, body, rest = read_answer(connection, rest)
        assert b'"id":["%s"]' % name in body
    assert not rest


def test_a_client_that_waits_to_be_told_to_continue_is_told(connection: socket.socket) -> None:
    connection.sendall(
        b"POST /v1/table/t/describe HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
        b"content-type: application/json\r\ncontent-length: 2\r\n\r\n"
    )
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"  # alone: there is no answer yet to join it to
    connection.sendall(b"{}")
    head, body, _ = read_answer(connection)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b'"id":["t"]' in body


def test_the_last_answer_before_the_connection_closes_is_whole(connection: socket.socket) -> None:
    connection.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    _, body, _ = read_answer(connection)
    assert body.endswith(b"}")
    assert connection.recv(1) == b""


class RecordingTransport(asyncio.Transport):
    """Keeps each call that hands something to the kernel."""

    def __init__(self) -> None:
        super().__init__({"peername": ("198.51.100.1", 1)})
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


@on_a_loop
async def test_two_writes_become_one() -> None:
    inner = RecordingTransport()
    transport = JoiningTransport(inner, asyncio.get_running_loop())
    for part in (b"head1 ", b"body1", b"head2 ", b"body2"):
        transport.write(part)
    assert inner.sent == [b"head1 body1", b"head2 body2"]
    await asyncio.sleep(0)
    assert inner.sent == [b"head1 body1", b"head2 body2"]


@on_a_loop
async def test_a_write_that_stays_alone_leaves_with_the_next_round_of_the_loop() -> None:
    inner = RecordingTransport()
    transport = JoiningTransport(inner, asyncio.get_running_loop())
    for _ in range(2):
        inner.sent.clear()
        transport.write(b"alone")
        assert inner.sent == []
        await asyncio.sleep(0)
        assert inner.sent == [b"alone"]


@on_a_loop
async def test_what_is_kept_back_goes_out_before_the_end() -> None:
    inner = RecordingTransport()
    transport = JoiningTransport(inner, asyncio.get_running_loop())
    transport.write(b"alone")
    transport.close()
    assert (inner.sent, inner.closed, transport.is_closing()) == ([b"alone"], True, True)
    await asyncio.sleep(0)


@on_a_loop
async def test_nothing_is_written_to_a_connection_that_was_lost() -> None:
    inner = RecordingTransport()
    transport = JoiningTransport(inner, asyncio.get_running_loop())
    transport.write(b"alone")
    inner.closed = True
    await asyncio.sleep(0)
    assert inner.sent == []


@on_a_loop
async def test_everything_else_is_the_transports_own() -> None:
    transport = JoiningTransport(RecordingTransport(), asyncio.get_running_loop())
    assert transport.get_extra_info("peername") == ("198.51.100.1", 1)
