"""A request that is refused before its body came leaves a connection that can be used, or that is said to be closed."""

from __future__ import annotations

import socket
import time
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.rest.conftest import EchoCatalog, RunningServer

KEY = "a-key-of-sixteen-characters"
DESCRIBE, KNOWN = "/v1/table/t/describe", f"x-api-key: {KEY}\r\n"
JSON = "content-type: application/json\r\n"


@pytest.fixture
def guarded(serve: Any, echo_catalog: EchoCatalog) -> RunningServer:
    return serve(echo_catalog, keys={KEY: "alice"})


def head(path: str, headers: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n".encode()


def answer(connection: socket.socket) -> tuple[int, str | None]:
    response = HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status, response.headers["connection"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (DESCRIBE, JSON, 401),
        (DESCRIBE, KNOWN + "content-type: text/plain\r\n", 400),
        (DESCRIBE, KNOWN + JSON + "origin: https://evil.example\r\n", 403),
        ("/v1/nothing", KNOWN + JSON, 404),
        ("/health/live", KNOWN + JSON, 405),
    ],
)
def test_the_next_request_on_the_connection_is_answered(
    guarded: RunningServer, path: str, headers: str, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(head(path, headers, 2))
            time.sleep(0.05)  # the body comes later than the answer would
            connection.sendall(b"{}")
            assert answer(connection) == (status, None)
        connection.sendall(head(DESCRIBE, KNOWN + JSON, 2) + b"{}")
        assert answer(connection)[0] == 200


@pytest.mark.parametrize("length", [1 << 20, 2])
def test_a_connection_is_said_to_be_closed_if_a_body_is_long_or_does_not_come(
    guarded: RunningServer, length: int
) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as connection:
        connection.sendall(head(DESCRIBE, JSON, length))
        assert answer(connection) == (401, "close")
        assert connection.recv(1) == b""
