"""The bounds of operations on rows: of bodies, of what waits, of time and of memory."""

from __future__ import annotations

import gc
import io
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.limits import DataLimits, RequestLimits
from namespace_server.serving import Server, ServingOptions
from namespace_server.settings import Settings
from namespace_server.workers import process_pool
from tests.data.arrow import ARROW, stream

ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
INSERT = "/v1/table/t/insert"


@contextmanager
def served(root: Path, limits: RequestLimits, apps: list[Application] | None = None) -> Iterator[httpx.Client]:
    namespace = DirectoryNamespace(root=str(root), durability="none")
    app = create_app(namespace, Authenticator({}), limits=limits)
    if apps is not None:
        apps.append(app)
    server = Server(app, ServingOptions(port=0))
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,))
    thread.start()
    assert started.wait(30)
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.post("/v1/table/t/declare", json={}).raise_for_status()
            yield client
    finally:
        server.stop()
        thread.join()


def test_a_body_of_rows(tmp_path: Path) -> None:
    with served(tmp_path, RequestLimits(data=DataLimits(body=100_000))) as client:
        large = stream(pa.table({"a": list(range(20_000))}))
        answer = client.post(INSERT, content=large, headers=ARROW)
        assert (answer.status_code, answer.json()["code"]) == (413, 13)
        assert "100000" in answer.json()["error"]
        chunked = client.post(INSERT, content=iter([large]), headers=ARROW)
        assert (chunked.status_code, chunked.json()["code"]) == (413, 13)
        assert client.post(INSERT, content=stream(ROWS), headers=ARROW).json()["version"] == 1


@contextmanager
def stopped(app: Application) -> Iterator[None]:
    """The workers do nothing in the block."""
    data = app.service.data
    processes = [process._process.number for pool in (data._changes, data._reads) for process in pool._started]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def under_way(app: Application, count: int) -> None:
    """Wait until so many changes are under way."""
    deadline = time.monotonic() + 30
    while len(app.service.data._under_way) < count:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "RELIEF", 0)
    limits = RequestLimits(data=DataLimits(change_workers=1, waiting=1))
    apps: list[Application] = []
    with served(tmp_path, limits, apps) as client:
        client.post(INSERT, content=stream(ROWS), headers=ARROW).raise_for_status()
        with ThreadPoolExecutor(2) as pool:
            with stopped(apps[0]):
                first = [pool.submit(client.post, INSERT, content=stream(ROWS), headers=ARROW) for _ in range(2)]
                under_way(apps[0], 2)
                answer = client.post(INSERT, content=stream(ROWS), headers=ARROW)
                assert (answer.status_code, answer.json()["code"]) == (429, 21)
                assert client.post("/v1/table/t/count_rows", json={}).json() == 2
            assert sorted(each.result().json()["version"] for each in first) == [2, 3]
        assert client.post(INSERT, content=stream(ROWS), headers=ARROW).json()["version"] == 4


def test_a_body_that_arrives_is_no_work_that_waits(tmp_path: Path) -> None:
    """Neither a short one nor a long one: others are not refused, and wait for no worker."""
    with served(tmp_path, RequestLimits(data=DataLimits(change_workers=1, waiting=1))) as client, ExitStack() as held:
        client.post(INSERT, content=stream(ROWS), headers=ARROW).raise_for_status()
        place = client.base_url
        for framing in ["Content-Length: 9000", "Content-Length: 9000000", "Transfer-Encoding: chunked"] * 3:
            connection = held.enter_context(socket.create_connection((place.host, place.port)))
            head = f"POST {INSERT} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n"
            connection.sendall(head.encode() + (b"3\r\nabc\r\n" if "chunked" in framing else b"abc"))
        assert client.post(INSERT, content=stream(ROWS), headers=ARROW).json()["version"] == 2


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """What a request holds is released when it ends, not by a collection at some later time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("begun", [0, 1 << 20])
def test_the_time_of_a_body(tmp_path: Path, begun: int) -> None:
    """It grows with the bytes that are there; a byte now and then is not enough. Then the connection is closed."""
    limits = RequestLimits(data=DataLimits(chunk_timeout=0.5, rate=1 << 20))
    with served(tmp_path, limits) as client, no_garbage_collection():
        stop = threading.Event()

        def slow() -> Iterator[bytes]:
            yield b"\1" * begun
            while not stop.wait(0.1):
                yield b"\1"

        began = time.monotonic()
        timer = threading.Timer(20.0, stop.set)
        timer.start()
        answer = client.post(INSERT, content=slow(), headers=ARROW)
        timer.cancel()
        stop.set()
        assert (answer.status_code, answer.json()["code"]) == (408, 13), answer.text
        assert 0.4 + begun / (1 << 20) < time.monotonic() - began < 20


def test_the_time_of_a_worker(tmp_path: Path) -> None:
    apps: list[Application] = []
    with served(tmp_path, RequestLimits(data=DataLimits(work_timeout=5.0)), apps) as client:
        client.post(INSERT, content=stream(ROWS), headers=ARROW).raise_for_status()
        with stopped(apps[0]):
            answer = client.post(INSERT, content=stream(ROWS), headers=ARROW)
        assert (answer.status_code, answer.json()["code"]) == (503, 17), answer.text
        assert client.post(INSERT, content=stream(ROWS), headers=ARROW).json()["version"] == 2


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("count_rows", {"predicate": "a = 1"}),
        ("query", {"filter": "a = 1", "k": 5, "vector": {}}),
        ("update", {"updates": [["s", "'z'"]], "predicate": "a = 1"}),
        ("delete", {"predicate": "a = 9"}),
    ],
)
def test_work_ends_with_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str, body: dict[str, Any]
) -> None:
    """The only worker, which does not come to an end, is replaced for the next client."""
    monkeypatch.setattr(process_pool, "RELIEF", 0)
    apps: list[Application] = []
    with served(tmp_path, RequestLimits(data=DataLimits(change_workers=1, read_workers=1)), apps) as client:
        client.post(INSERT, content=stream(ROWS), headers=ARROW).raise_for_status()
        client.post(f"/v1/table/t/{route}", json=body).raise_for_status()
        with stopped(apps[0]):
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"/v1/table/t/{route}", json=body, timeout=0.5)
            client.post(f"/v1/table/t/{route}", json=body, timeout=20).raise_for_status()


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("count_rows", {"predicate": "array_length(generate_series(1, 1000000000)) > 1"}),
        ("query", {"filter": "array_length(generate_series(1, 1000000000)) > 1", "k": 5, "vector": {}}),
        ("update", {"updates": [["a", "array_length(generate_series(1, 1000000000))"]]}),
    ],
)
def test_the_memory_of_an_expression(tmp_path: Path, route: str, body: dict[str, Any]) -> None:
    with served(tmp_path, RequestLimits(data=DataLimits(worker_memory=1 << 30))) as client:
        client.post(INSERT, content=stream(ROWS), headers=ARROW).raise_for_status()
        answer = client.post(f"/v1/table/t/{route}", json=body, timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
        assert "worker_memory_bytes" in answer.json()["error"]
        assert client.post("/v1/table/t/count_rows", json={"predicate": "a = 1"}).json() == 1


def test_the_memory_of_a_worker(tmp_path: Path) -> None:
    count, size = 3500, 1 << 20
    offsets = np.arange(count + 1, dtype=np.int64) * size
    zeros = map(pa.py_buffer, (offsets, np.zeros(count * size, np.uint8)))  # no memory is touched to make them
    rows = pa.record_batch({"a": pa.Array.from_buffers(pa.large_binary(), count, [None, *zeros])})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(rows)
    with served(tmp_path, RequestLimits(data=DataLimits(worker_memory=3 << 30))) as client:
        answer = client.post(INSERT, content=sink.getvalue(), headers=ARROW)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
        assert "worker_memory_bytes" in answer.json()["error"]
        following = client.post(INSERT, content=stream(ROWS), headers=ARROW)
        assert following.json().get("version") == 1, following.text


def test_the_settings_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_NAMESPACE_PRELOAD_WORKERS", raising=False)  # tests of other things set it
    given = Settings(
        root=str(tmp_path),
        change_workers=3,
        read_workers=4,
        preload_workers=False,
        max_waiting_work=5,
        max_rows_bytes=6,
        work_timeout=7,
        worker_memory_bytes=8,
        body_timeout=9,
        max_spool_bytes=11,
    )
    expected = DataLimits(
        change_workers=3,
        read_workers=4,
        preload=False,
        waiting=5,
        body=6,
        work_timeout=7,
        worker_memory=8,
        chunk_timeout=9,
        spool=11,
    )
    assert given.limits.data == expected
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert Settings(root=str(tmp_path)).limits.data == DataLimits(
        preload=True, worker_memory=max(1 << 30, machine * 3 // 4 // 12)
    )
