"""Thirty-two clients for ten minutes: half of them read, a quarter inserts, a quarter commits batches."""

from __future__ import annotations

import io
import json
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import ARROW, JSON, Server, serve_ours, serve_peer

READERS, INSERTERS, BATCHERS = 16, 8, 8
SECONDS = 600.0
PEER_SECONDS = 120.0
SAMPLE_SECONDS = 5.0
TABLES = 8
ROWS = 1_000
INSERTED = 100
REPLACED = 50
"""A client replaces the rows of its table with every so many inserts, as a pipeline compacts."""
NAMESPACE = "load"


@dataclass
class Run:
    """What the clients of one server did; times in seconds."""

    seconds: float = 0.0
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, dict[str, int]]] = field(default_factory=list)


class Client:
    """One connection that sends one request after the other until the end."""

    def __init__(self, server: Server, number: int, run: Run, *, batches: bool) -> None:
        self._connection = server.connect()
        self._number = number
        self._run = run
        self._batches = batches
        self._random = np.random.default_rng(number)

    def read(self, turn: int) -> None:
        """A describe, a count or a filtered query, in turn."""
        route = f"/v1/table/{NAMESPACE}$read_{self._random.integers(TABLES)}"
        match turn % 3:
            case 0:
                self._post("describe", f"{route}/describe", {})
            case 1:
                self._post("count", f"{route}/count_rows", {"predicate": f"id % 7 = {turn % 7}"})
            case _:
                first = int(self._random.integers(ROWS))
                query = {"k": 10, "vector": {}, "filter": f"id >= {first}", "columns": {"column_names": ["id", "name"]}}
                self._post("query", f"{route}/query", query)

    def insert(self, turn: int) -> None:
        """Rows into the table of this client."""
        mode = "overwrite" if turn % REPLACED == REPLACED - 1 else "append"
        self._insert("insert", f"own_{self._number}", mode)

    def batch(self, turn: int) -> None:
        """Rows into the two tables of this client, in one batch; two inserts where there are no batches."""
        mode = "overwrite" if turn % REPLACED == REPLACED - 1 else "append"
        tables = [f"own_{self._number}", f"other_{self._number}"]
        if not self._batches:
            for table in tables:
                self._insert("half of a pair", table, mode)
            return
        began = time.perf_counter()
        operations: list[Any] = []
        for table in tables:
            path = f"/v1/table/{NAMESPACE}${table}/stage?mode={mode}"
            operations += json.loads(self._send(path, self._rows(), ARROW) or b'{"operations": []}')["operations"]
        if self._send("/v1/table/batch-commit", json.dumps({"operations": operations}).encode(), JSON) is not None:
            self._run.times["batch of two tables"].append(time.perf_counter() - began)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _insert(self, kind: str, table: str, mode: str) -> None:
        began = time.perf_counter()
        if self._send(f"/v1/table/{NAMESPACE}${table}/insert?mode={mode}", self._rows(), ARROW) is not None:
            self._run.times[kind].append(time.perf_counter() - began)

    def _post(self, kind: str, path: str, body: object) -> None:
        began = time.perf_counter()
        if self._send(path, json.dumps(body).encode(), JSON) is not None:
            self._run.times[kind].append(time.perf_counter() - began)

    def _send(self, path: str, body: bytes, media_type: str) -> bytes | None:
        try:
            return self._connection.send(path, body, media_type)
        except RuntimeError as error:
            self._run.errors[str(error)[:200]] += 1
            return None

    def _rows(self) -> bytes:
        return rows(INSERTED, int(self._random.integers(1 << 40)))


def run(directory: Path) -> Report:
    """Load our server, and for a shorter time the peer."""
    with serve_ours(directory / "ours") as server:
        ours = load(server, SECONDS, batches=True)
    with serve_peer(directory / "peer") as server:
        peer = load(server, PEER_SECONDS, batches=False)
    return report(ours, peer)


def report(ours: Run, peer: Run) -> Report:
    """The tables of two runs."""
    table = Table(
        f"{READERS} clients read, {INSERTERS} insert {INSERTED} rows each time, {BATCHERS} commit batches",
        (
            "request",
            "ours, per second",
            "p50 ms",
            "p99 ms",
            "peer, per second",
            "p50 ms",
            "p99 ms",
            "ours against peer",
        ),
    )
    for kind in ("describe", "count", "query", "insert", "batch of two tables"):
        theirs = "half of a pair" if kind == "batch of two tables" else kind
        pairs = 2 if theirs != kind else 1
        mine, other = len(ours.times[kind]) / ours.seconds, len(peer.times[theirs]) / peer.seconds / pairs
        table.add(
            kind,
            f"{mine:.1f}",
            *_shown(ours.times[kind]),
            f"{other:.1f}",
            *_shown(peer.times[theirs]),
            ratio(mine, other),
        )
    table.notes.append(f"Ours for {ours.seconds:.0f} s, errors: {ours.errors.total()}.")
    table.notes.append(
        f"The peer for {peer.seconds:.0f} s, errors: {peer.errors.total()}. It has no batches: pairs of inserts, with "
        "the times of one insert."
    )
    memory = Table("Memory of our server, MiB", ("after", "server", "workers together"))
    for at in (60.0, ours.seconds / 2, ours.seconds):
        seconds, sizes = min(ours.memory, key=lambda sample: abs(sample[0] - at))
        memory.add(f"{seconds:.0f} s", count(sizes["server"] / (1 << 20)), count(sizes["workers"] / (1 << 20)))
    for kind, number in ours.errors.most_common(5):
        table.notes.append(f"{number} times: {kind}")
    return Report(
        "mixed_load",
        "Mixed load",
        f"Each client has one request under way. Reads are describes, counts with a filter and queries of 10 rows, in "
        f"turn. A client replaces the rows of its tables with every {REPLACED}th change.",
        [table, memory],
    )


def load(server: Server, seconds: float, *, batches: bool) -> Run:
    """Make the tables and let the clients work."""
    server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {"id": [NAMESPACE]})
    found = Run()
    clients = [Client(server, number, found, batches=batches) for number in range(READERS + INSERTERS + BATCHERS)]
    maker = Client(server, -1 % (1 << 31), found, batches=False)
    own = range(READERS, len(clients))
    for name in [*(f"read_{n}" for n in range(TABLES)), *(f"own_{n}" for n in own), *(f"other_{n}" for n in own)]:
        maker._send(f"/v1/table/{NAMESPACE}${name}/create", rows(ROWS, 0), ARROW)  # noqa: SLF001
    maker.close()
    roles = [*["read"] * READERS, *["insert"] * INSERTERS, *["batch"] * BATCHERS]
    began = time.monotonic()
    with _sampling(server, found, began):
        works = [
            threading.Thread(target=_work, args=(client, getattr(client, role), began + seconds))
            for client, role in zip(clients, roles, strict=True)
        ]
        for work in works:
            work.start()
        for work in works:
            work.join()
    found.seconds = time.monotonic() - began
    return found


def _work(client: Client, request: Callable[[int], None], end: float) -> None:
    turn = 0
    while time.monotonic() < end:
        request(turn)
        turn += 1
    client.close()


@contextmanager
def _sampling(server: Server, found: Run, began: float) -> Iterator[None]:
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_SECONDS):
            workers = sum(_resident(pid) for pid in _descendants(server.pid))
            found.memory.append((time.monotonic() - began, {"server": _resident(server.pid), "workers": workers}))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have started."""
    found: list[int] = []
    with suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def _resident(pid: int) -> int:
    with suppress(FileNotFoundError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def rows(size: int, first: int) -> bytes:
    """Rows as an Arrow IPC stream."""
    table = pa.table(
        {
            "id": np.arange(first, first + size),
            "value": np.random.default_rng(first).random(size),
            "name": [f"row {number}" for number in range(first, first + size)],
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _shown(times: list[float]) -> tuple[str, str]:
    if len(times) < 2:
        return "", ""
    return milliseconds(statistics.median(times)), milliseconds(statistics.quantiles(times, n=100)[-1])
