"""Batches of a quiet client while another principal sends as many as it can."""

from __future__ import annotations

import json
import re
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count as numbers
from pathlib import Path

import orjson

from benchmarks.load import Load, Request, drive
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import Connection, Server, free_port, serve_ours
from benchmarks.support.staging import flush_files

CONNECTIONS = 64
ROUNDS = 5
SECONDS = 1.5
LEAD = 0.5
"""Seconds for which the noise is there before, and after, what is measured beside it."""
KINDS = {2: 2_500, 200: 130}
"""Operations in a batch of the noisy principal -> how many such batches a second there are to be sent, at most."""
PATH = "/v1/table/batch-commit"
QUIET, NOISY = "the-key-of-a-quiet-principal", "the-key-of-a-noisy-principal"
ENVIRONMENT = {
    "LANCE_NAMESPACE_API_KEYS": json.dumps({QUIET: "quiet", NOISY: "noisy"}),
    "LANCE_NAMESPACE_PEER_SECRET": "a secret of two servers",
}


class Quiet:
    """One connection that sends batches of two operations, one after the other."""

    def __init__(self, server: Server, name: str = "quiet") -> None:
        self._connection = Connection(server.port, {"x-api-key": QUIET})
        self._name = name
        self._numbers = numbers()
        self.others: list[int] = []

    def send(self, seconds: float) -> list[float]:
        """Send batches for so long; the seconds that each of them took.

        `others` are the flips between two of them that others made.
        """
        found: list[float] = []
        self.others = []
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            before = self._connection.catalog_version
            self._connection.send(PATH, orjson.dumps(_batch(f"{self._name}_{next(self._numbers)}", 2)))
            found.append(time.perf_counter() - began)
            self.others.append(max(0, self._connection.catalog_version - before - 1))
        return found

    def handed_on(self) -> int:
        """How many changes the server has handed to another one."""
        metrics = self._connection.send("/metrics", None, method="GET").decode()
        found = re.search(r'forwarded_seconds_count\{outcome="answered"\} (\d+)', metrics)
        return int(found[1]) if found else 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def run(directory: Path) -> Report:
    """Measure one server, and two of which one hands changes to the other, for each kind of noise."""
    tables = [_measure(directory, servers, size) for servers in (1, 2) for size in KINDS]
    table = Table(
        f"Batches of 2 operations of a client on one connection; another principal sends on {CONNECTIONS}",
        (
            "servers",
            "operations in a batch of the other one",
            "p50 ms alone",
            "p50 ms beside",
            "p99 ms alone",
            "p99 ms beside",
            "p99 beside against alone",
            "flips without the client between two of its own, p50; p99",
            "batches/s of the other one",
        ),
    )
    for row in tables:
        table.add(*row)
    table.notes.append(
        f"Alone and beside by turns, {ROUNDS} of each, of {SECONDS:g} s; all batches of a kind together."
    )
    table.notes.append("Of two servers both principals call the one that hands its changes to the other one.")
    return Report(
        "fairness",
        "A quiet client beside a noisy one",
        "Batches declare tables, in a directory, without fsync. The noisy principal has a batch under way on each of "
        "its connections all the time.",
        [table],
    )


def _measure(directory: Path, servers: int, size: int) -> tuple[object, ...]:
    alone: list[float] = []
    beside: list[float] = []
    flips: list[int] = []
    loads: list[Load] = []
    with _serve(directory / f"{servers}-{size}", servers) as server:
        quiet = Quiet(server)
        flush_files()
        quiet.send(SECONDS)
        for number in range(ROUNDS):
            alone += quiet.send(SECONDS)
            with _noise(server, directory, f"noisy_{number}", size, loads):
                beside += quiet.send(SECONDS)
                flips += quiet.others[1:]
        if servers > 1 and quiet.handed_on() < len(alone + beside):
            raise RuntimeError(f"expected a server that hands its changes on, found {quiet.handed_on()} of them")
        quiet.close()
    p50, p99 = (statistics.median, _p99)
    return (
        servers,
        size,
        *(milliseconds(of(found)) for of in (p50, p99) for found in (alone, beside)),
        ratio(_p99(beside), _p99(alone)),
        f"{statistics.median(flips):g}; {_p99(flips):.0f}",
        count(statistics.median(load.per_second for load in loads)),
    )


@contextmanager
def _serve(root: Path, servers: int) -> Iterator[Server]:
    """The server that is called. The other one, if there are two, commits: its URL is the lower one."""
    with ExitStack() as stack:
        ports = sorted((free_port() for _ in range(servers)), key=str)
        found = [stack.enter_context(serve_ours(root, environment=ENVIRONMENT, port=port)) for port in ports]
        if servers > 1:
            first = Quiet(found[0], "first")
            first.send(SECONDS)
            first.close()
        yield found[-1]


@contextmanager
def _noise(server: Server, directory: Path, name: str, size: int, loads: list[Load]) -> Iterator[None]:
    seconds = SECONDS + 2 * LEAD
    requests = [
        Request(number % CONNECTIONS, "POST", PATH, _batch(f"{name}_{number}", size), {"x-api-key": NOISY})
        for number in range(int(KINDS[size] * seconds))
    ]

    def send() -> None:
        loads.append(drive(server.port, CONNECTIONS, requests, directory, seconds))

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(LEAD)
    yield
    thread.join()


def _batch(name: str, size: int) -> dict[str, object]:
    return {"operations": [{"declare_table": {"id": [f"{name}_{number}"]}} for number in range(size)]}


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100)[-1]
