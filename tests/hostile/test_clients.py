"""Clients that send or read slowly, go away, or ask for too much: none of them keeps the others from their rows."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.request.limits import DataLimits
from tests.data.arrow import ARROW, stream
from tests.data.queried import served

ROW = stream(pa.table({"id": [1], "v": ["x"]}))
BOMB = "array_length(generate_series(1, 100000000)) > 1"
"""It takes 800 MB."""
LARGE_BOMB = "array_length(generate_series(1, 1000000000)) > 1"
"""It takes 8 GB, at once."""
MANY = 64
SECONDS = 60.0
"""Far more than a request takes, also on a busy machine and where a process has to load pylance, and far less than a
client of this server is given that sends or reads nothing."""
MEMORY = 400 << 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the tables `one` and `big`, of 24 MiB."""
    root = str(tmp_path_factory.mktemp("root"))
    with served(
        DirectoryNamespace(root=root, durability="none"), DataLimits(worker_memory=MEMORY, chunk_timeout=600)
    ) as found:
        big = pa.table({"id": range(24_000), "v": [os.urandom(500).hex() for _ in range(24_000)]})
        for name, rows in (("one", ROW), ("big", stream(big))):
            httpx.post(f"{found}/v1/table/{name}/create", content=rows, headers=ARROW, timeout=60).raise_for_status()
        yield found


def send(url: str, route: str, body: bytes, length: int | None = None, kind: str = "application/json") -> socket.socket:
    """A connection that has sent a request, or the begin of one that has `length` bytes, and reads nothing."""
    place = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    connection.connect((place.hostname, place.port))
    head = f"POST /v1/table/{route} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: {kind}\r\n"
    connection.sendall(f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body)
    return connection


def serves(url: str) -> None:
    """A row is inserted and rows are counted, while others wait."""
    for _ in range(3):
        began = time.monotonic()
        inserted = httpx.post(f"{url}/v1/table/one/insert", content=ROW, headers=ARROW, timeout=60)
        assert inserted.status_code == 200, inserted.text
        counted = httpx.post(f"{url}/v1/table/one/count_rows", json={"predicate": "id = 1"}, timeout=60)
        assert counted.status_code == 200, counted.text
        assert time.monotonic() - began < SECONDS


def attack(url: str, kind: str, held: ExitStack) -> None:
    arrow = "application/vnd.apache.arrow.stream"
    match kind:
        case "half bodies":
            for _ in range(MANY):
                held.enter_context(send(url, "one/insert", ROW[:50], 9_000, arrow))
        case "long half bodies":
            for _ in range(MANY):
                held.enter_context(send(url, "one/insert", ROW[:50] * 100, 9_000_000, arrow))
        case "readers":
            for _ in range(4):
                connection = held.enter_context(send(url, "big/query", b'{"k": 0}'))
                connection.settimeout(60)
                assert connection.recv(1 << 10).startswith(b"HTTP/1.1 200 OK")
        case _:
            for route in ("count_rows", "update"):
                body = json.dumps({"predicate": BOMB, "updates": [["v", "'y'"]]}).encode()
                for _ in range(2):
                    held.enter_context(send(url, f"one/{route}", body))


@pytest.mark.parametrize("kind", ["half bodies", "long half bodies", "readers", "bombs"])
def test_others_are_served(url: str, kind: str) -> None:
    serves(url)
    with ExitStack() as held:
        attack(url, kind, held)
        serves(url)


def test_others_are_served_beside_all_of_them(url: str) -> None:
    with ExitStack() as held:
        for kind in ("half bodies", "long half bodies", "readers", "bombs"):
            attack(url, kind, held)
        serves(url)


@pytest.mark.parametrize("route", ["count_rows", "update", "delete", "query", "analyze_plan"])
def test_work_without_a_client_ends(url: str, route: str) -> None:
    slow = " or ".join(f"regexp_like(repeat(v, 2000), '(a|b|{n}).*{n}c.*d{n}$')" for n in range(200))
    updates = {"updates": [["v", "'y'"]]} if route == "update" else {}
    expression = {"filter": slow, "k": 0} if route in {"query", "analyze_plan"} else {"predicate": slow}
    for _ in range(8):  # more than there are processes
        with send(url, f"big/{route}", json.dumps({**updates, **expression}).encode()):
            time.sleep(0.05)
    serves(url)


@pytest.mark.parametrize(
    ("route", "field"), [("count_rows", "predicate"), ("update", "predicate"), ("query", "filter")]
)
@pytest.mark.parametrize("bomb", [BOMB, LARGE_BOMB], ids=["bit by bit", "at once"])
def test_an_expression_that_needs_too_much_memory_is_refused(url: str, route: str, field: str, bomb: str) -> None:
    request = {field: bomb, **({"updates": [["v", "'y'"]]} if route == "update" else {})}
    answer = httpx.post(f"{url}/v1/table/one/{route}", json=request, timeout=120)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "worker_memory_bytes" in answer.json()["error"]
    serves(url)


def compressed(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def nulls(rows: int) -> bytes:
    few = pa.table({"id": pa.nulls(12_345_677), "v": pa.nulls(12_345_677)})
    return stream(few).replace(struct.pack("<q", 12_345_677), struct.pack("<q", rows))


@pytest.mark.parametrize(
    "body",
    [compressed(pa.table({"id": np.zeros(40_000_000, np.int64)})), nulls(1 << 31)],
    ids=["compressed", "nulls"],
)
def test_a_few_bytes_for_many_rows_are_refused(url: str, body: bytes) -> None:
    assert len(body) < 100_000
    began = time.monotonic()
    answer = httpx.post(f"{url}/v1/table/bomb/create", content=body, headers=ARROW, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "expected" in answer.json()["error"]
    assert time.monotonic() - began < SECONDS


def test_a_slow_reader_gets_all_rows(url: str) -> None:
    whole = httpx.post(f"{url}/v1/table/big/query", json={"k": 0}, timeout=60).content
    found = bytearray()
    with httpx.stream("POST", f"{url}/v1/table/big/query", json={"k": 0}, timeout=60) as response:
        for number, piece in enumerate(response.iter_raw(1 << 20)):
            found += piece
            if number < 10:
                time.sleep(0.1)
    assert len(found) == len(whole)
    assert pa.ipc.open_file(bytes(found)).read_all() == pa.ipc.open_file(whole).read_all()
