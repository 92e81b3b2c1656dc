"""Describes of tables while other clients insert and search rows through the same server."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx
import numpy as np
import pyarrow as pa

from benchmarks.load import Load, Request, drive, object_path
from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import Server, serve_ours

NAMESPACE = "rows"
TABLES = 1_000
CONNECTIONS = 8
SECONDS = 10.0
INSERTS = 4
INSERT_BYTES = 1 << 30
CHUNK_BYTES = 8 << 20
QUERIES = 8
VECTORS = 100_000
WIDTH = 128
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


class Work:
    """Clients that insert and search until the block ends, and what they did."""

    def __init__(self, server: Server) -> None:
        self._url = f"http://127.0.0.1:{server.port}/v1/table"
        self._numbers = np.random.default_rng(5).random(CHUNK_BYTES // 8 + 4096)
        self.stop = threading.Event()
        self.inserted = 0
        self.searched = 0
        self.failed: list[Exception] = []

    def create_vectors(self) -> None:
        """The table that is searched."""
        values = np.random.default_rng(7).random(VECTORS * WIDTH, np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH)
        body = _stream(pa.table({"id": np.arange(VECTORS), "vector": vectors}))
        httpx.post(
            f"{self._url}/{NAMESPACE}$vectors/create", content=body, headers=ARROW, timeout=600
        ).raise_for_status()

    def insert(self, number: int) -> None:
        """Create a table of `INSERT_BYTES`."""
        with self._noting():
            path = f"{self._url}/{NAMESPACE}$large_{number}_{time.monotonic_ns()}/create"
            httpx.post(path, content=self._chunks(), headers=ARROW, timeout=600).raise_for_status()

    def search(self, number: int) -> None:
        """Search for other vectors until the end."""
        random = np.random.default_rng(number)
        with self._noting(), httpx.Client(timeout=600) as client:
            while not self.stop.is_set():
                query = {"k": 10, "vector": {"single_vector": random.random(WIDTH, np.float32).tolist()}}
                client.post(f"{self._url}/{NAMESPACE}$vectors/query", json=query).raise_for_status()
                self.searched += 1

    def _chunks(self) -> Iterator[bytes]:
        """A stream of record batches, each with other numbers."""
        schema = pa.schema([("x", pa.float64())])
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, schema) as writer:
            for chunk in range(INSERT_BYTES // CHUNK_BYTES):
                numbers = self._numbers[chunk : chunk + CHUNK_BYTES // 8]
                writer.write_batch(pa.record_batch([pa.array(numbers)], schema=schema))
                yield sink.getvalue()
                self.inserted += CHUNK_BYTES
                sink.seek(0)
                sink.truncate()
        yield sink.getvalue()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised by the caller
            self.failed.append(error)


def run(directory: Path) -> Report:
    """Measure describes alone, beside inserts, beside searches, and beside both."""
    with serve_ours(directory / "catalog") as server:
        server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {})
        names = [f"small_{number}" for number in range(TABLES)]
        declared = [{"declare_table": {"id": [NAMESPACE, name]}} for name in names]
        server.call("POST", "/v1/table/batch-commit", {"operations": declared})
        Work(server).create_vectors()
        chosen = Random(5).choices(names, k=2_000)
        requests = [_describe((NAMESPACE, name), number) for number, name in enumerate(chosen)]
        drive(server.port, CONNECTIONS, requests, directory, 1.0)
        found: list[tuple[str, Load, Work]] = []
        kinds: dict[str, tuple[int, int]] = {
            "nothing": (0, 0),
            f"{INSERTS} inserts of {INSERT_BYTES >> 30} GiB": (INSERTS, 0),
            f"{QUERIES} vector searches": (0, QUERIES),
            "both": (INSERTS, QUERIES),
        }
        for kind, (inserts, queries) in kinds.items():
            work = Work(server)
            with _beside(work, inserts, queries):
                load = drive(server.port, CONNECTIONS, requests, directory, SECONDS)
            found.append((kind, load, work))
        memory = _high_water(server.pid)
    table = Table(
        f"Describes over {CONNECTIONS} connections while other clients send …",
        ("other clients", "describes/s", "p50 ms", "p99 ms", "inserted MiB/s", "searches/s"),
    )
    for kind, load, work in found:
        table.add(
            kind,
            count(load.per_second),
            milliseconds(load.p50),
            milliseconds(load.p99),
            count(work.inserted / SECONDS / (1 << 20)) if work.inserted else "",
            count(work.searched / SECONDS) if work.searched else "",
        )
    table.notes.append(f"Each search compares {count(VECTORS)} vectors of {WIDTH} numbers: there is no index.")
    table.notes.append("Inserts and searches run on for some time after the describes; rates are over the describes.")
    processes = Table("Most memory of each process", ("process", "MiB"))
    for name, size in memory:
        processes.add(name, count(size / (1 << 20)))
    return Report(
        "beside_rows",
        "Latency beside operations on rows",
        f"Describes for {SECONDS:.0f} s. Worker processes, which give way to the server, do the other operations.",
        [table, processes],
    )


def _describe(name: tuple[str, str], number: int) -> Request:
    path = f"/v1/table/{object_path(name)}/describe?delimiter=%24"
    return Request(number % CONNECTIONS, "POST", path, {"id": list(name)})


def _stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


@contextmanager
def _beside(work: Work, inserts: int, queries: int) -> Iterator[None]:
    """Insert and search during the block. Raises what went wrong."""
    tasks: list[tuple[Callable[[int], None], int]] = [(work.insert, number) for number in range(inserts)]
    tasks += [(work.search, number) for number in range(queries)]
    with ThreadPoolExecutor(max(1, len(tasks))) as pool:
        for task, number in tasks:
            pool.submit(task, number)
        if tasks:
            time.sleep(2.0)  # the workers have started
        work.inserted = work.searched = 0
        yield
        inserted, searched = work.inserted, work.searched
        work.stop.set()
    work.inserted, work.searched = inserted, searched
    if work.failed:
        raise work.failed[0]


def _high_water(pid: int) -> list[tuple[str, int]]:
    """The name and the most resident bytes of a server, of the process that forks its workers, and of these."""
    workers = [each for child in _children(pid) for each in (child, *_children(child))]
    return [
        ("server", _peak(pid)),
        *((f"worker {place}", _peak(each)) for place, each in enumerate(sorted(workers), 1)),
    ]


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(text) for task in tasks for text in (task / "children").read_text().split()]


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} reports no resident memory")
