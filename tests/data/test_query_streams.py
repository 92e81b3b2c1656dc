"""Answers of queries are streamed: bounded memory, clients that go away, errors on the way, deadlines, free workers."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.request.limits import DataLimits
from namespace_server.workers import process_pool
from tests.data.queried import answered, served

ROWS = 120_000
PART = 10_000
WIDTH = 1_500
QUERY = "/v1/table/w$big/query"
LATE_ERROR = {"k": 0, "filter": f"1000 / (id - {ROWS - 1}) < 5000"}
CHUNK_TIMEOUT = 2.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def url(root: str) -> Iterator[str]:
    """A server with one worker for reads, which waits two seconds for its clients."""
    with over(root, DataLimits(read_workers=1, chunk_timeout=CHUNK_TIMEOUT)) as found:
        httpx.post(f"{found}/v1/namespace/w/create", json={}).raise_for_status()
        client = lance_namespace.connect("rest", {"uri": found})
        schema = pa.schema({"id": pa.int64(), "payload": pa.binary()})

        def parts() -> Iterator[pa.RecordBatch]:
            for first in range(0, ROWS, PART):
                payload = [os.urandom(WIDTH) for _ in range(PART)]
                yield pa.record_batch([pa.array(range(first, first + PART)), pa.array(payload)], schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, parts())
        lance.write_dataset(
            reader, namespace_client=client, table_id=["w", "big"], mode="create", max_rows_per_file=4 * PART
        )
        yield found


@contextlib.contextmanager
def over(root: str, limits: DataLimits) -> Iterator[str]:
    """A server over the root."""
    with served(DirectoryNamespace(root=root, durability="none"), limits) as found:
        yield found


def workers() -> list[int]:
    """The worker processes of this one, which are children of the process that forks them.

    Those of other servers are among them, that this process has beside.
    """
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            [parent] = re.findall(r"PPid:\t(\d+)\n", status.read_text())
            # The arguments of a process need not be text.
            if b"namespace_server.workers.fork_server" in (status.parent / "cmdline").read_bytes():
                parents[int(status.parent.name)] = int(parent)
    return [process for process, parent in parents.items() if parents.get(parent) == os.getpid()]


def peak(process: int | str) -> int:
    """The most memory that a process has had, in MiB."""
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(kilobytes) >> 10


def free_within(url: str, seconds: float) -> None:
    """The only worker takes another job within so many seconds."""
    began = time.monotonic()
    found = answered(httpx.post(f"{url}{QUERY}", json={"filter": "id = 7"}, timeout=60))
    assert found["id"].to_pylist() == [7]
    assert time.monotonic() - began < seconds


def send(url: str, body: bytes) -> socket.socket:
    """A connection that has sent a query and read nothing."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname, place.port))
    head = f"POST {QUERY} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def test_a_long_answer_takes_bounded_memory_of_server_and_worker(url: str) -> None:
    free_within(url, 60)
    before = peak("self"), {worker: peak(worker) for worker in workers()}
    assert before[1]
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    at_begin = peak("self")
    length = 0
    with httpx.stream("POST", f"{url}{QUERY}", json={"k": 0}, timeout=60) as response:
        for chunk in response.iter_raw(1 << 20):
            length += len(chunk)
    assert length > ROWS * WIDTH
    total = length >> 20
    assert peak("self") - at_begin < total // 2, (before, total)
    # The worker reads ahead, and as much for a long answer as for this one.
    grown = [peak(worker) - most for worker, most in before[1].items()]
    assert max(grown) < 400


def test_rows_that_are_streamed_are_whole(url: str) -> None:
    with httpx.stream("POST", f"{url}{QUERY}", json={"k": 0, "columns": {"column_names": ["id"]}}) as response:
        found = answered(httpx.Response(200, headers=response.headers, content=response.read()))
    assert found["id"].to_pylist() == list(range(ROWS))


def test_a_client_that_goes_away_frees_its_worker(url: str) -> None:
    with httpx.stream("POST", f"{url}{QUERY}", json={"k": 0}, timeout=60) as response:
        next(response.iter_raw(1 << 16))
    free_within(url, 15)


def test_a_client_that_stops_reading_frees_its_worker(url: str) -> None:
    with send(url, b'{"k": 0}') as connection:
        assert connection.recv(1 << 10).startswith(b"HTTP/1.1 200 OK")
        time.sleep(CHUNK_TIMEOUT)
        free_within(url, 15)


def test_a_client_that_reads_slowly_holds_no_worker(root: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del url  # the table is there
    monkeypatch.setattr(process_pool, "RELIEF", 0)
    with over(root, DataLimits(read_workers=1)) as alone, send(alone, b'{"k": 0}') as connection:
        assert connection.recv(1 << 10).startswith(b"HTTP/1.1 200 OK")
        free_within(alone, 15)
        left = ROWS * WIDTH
        while left > 0 and (found := connection.recv(1 << 20)):
            left -= len(found)
    assert left <= 0


def test_an_error_on_the_way_breaks_the_connection(url: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{url}{QUERY}", json=LATE_ERROR, timeout=60)
    with send(url, httpx.Request("POST", url, json=LATE_ERROR).content) as connection:
        data = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert not data.endswith(b"0\r\n\r\n")
    assert not data.endswith(b"ARROW1\r\n")
    free_within(url, 15)


def test_work_that_takes_too_long_is_ended(root: str, url: str) -> None:
    del url  # the table is there
    slow = {"filter": " or ".join(f"regexp_like(encode(payload, 'hex'), '(a|b|{n}).*{n}c.*d{n}$')" for n in range(400))}
    with over(root, DataLimits(read_workers=1, query_timeout=1.0)) as quick:
        httpx.post(f"{quick}{QUERY}", json={"filter": "id = 7"}, timeout=60)
        response = httpx.post(f"{quick}{QUERY}", json=slow, timeout=60)
        assert (response.status_code, response.json()["code"]) == (503, 17), response.text
        assert "expected its end within 1 s (query_timeout)" in response.json()["error"]
