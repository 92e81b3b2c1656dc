"""What it costs a server to measure itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count as numbers
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import orjson

from benchmarks.load import Request, drive, object_path
from benchmarks.support.catalogs import WIDE_NAMESPACE, write_wide_catalog
from benchmarks.support.report import Report, Table
from benchmarks.support.servers import serve_ours
from benchmarks.support.staging import flush_files
from namespace_server.app import Application, create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator

CONNECTIONS = 8
TABLES = 2_000
TURNS = 9
ROUNDS = 7
CALLS = 1_000
PER_TURN = {"describe a table": 4_000, "batch of two tables, one client": 400}
Requests = Iterator[Request]


def run(directory: Path) -> Report:
    """Measure describes, and batches of two tables: as a whole over HTTP, and what metrics add in process, by turns."""
    root = directory / "http"
    write_wide_catalog(root, TABLES)
    flush_files()
    with serve_ours(root, environment={"LANCE_NAMESPACE_METRICS": "false"}) as server:
        listed = server.call("GET", f"/v1/namespace/{WIDE_NAMESPACE}/table/list?limit=500")["tables"]
        kinds: dict[str, Requests] = {
            "describe a table": _describes(listed),
            "batch of two tables, one client": _batches(),
        }
        whole = {kind: _whole(server, requests, PER_TURN[kind], directory) for kind, requests in kinds.items()}
    rounds = [asyncio.run(_added(directory / f"round-{number}", kinds)) for number in range(ROUNDS)]
    added = {kind: median(each[kind] for each in rounds) for kind in kinds}
    table = Table(
        "Processor time of the server for a request",
        ("request", "not measured, over HTTP, µs", "added by metrics, in process, µs", "ratio"),
    )
    for kind, seconds in whole.items():
        table.add(kind, f"{seconds * 1e6:,.1f}", f"{added[kind] * 1e6:,.1f}", f"{added[kind] / seconds * 100:+.1f} %")
    table.notes.append(
        f"Over HTTP: the median of {TURNS} turns; {CONNECTIONS} connections for describes, and one for batches."
    )
    table.notes.append(
        f"In process: {CALLS:,} calls of each of two applications by turns, one with metrics and one without; the "
        f"difference of their first quartiles, and of {ROUNDS} pairs of applications the median. Each batch is alone "
        "in its group, whose steps are measured once: of "
        "eight batches that share a group each bears an eighth of most of this."
    )
    return Report(
        "metrics_cost",
        "The cost of metrics",
        f"Each server has a catalog of {TABLES:,} tables in a directory. What metrics add is less than what other work "
        "on a machine changes from one second to the next, so that part is measured call by call in one process.",
        [table],
    )


def _whole(server: Any, requests: Requests, number: int, directory: Path) -> float:
    found: list[float] = []
    for _ in range(TURNS):
        sent = [next(requests) for _ in range(number)]
        before = server.processor_seconds()
        drive(server.port, CONNECTIONS, sent, directory)
        found.append((server.processor_seconds() - before) / number)
    return median(found)


async def _added(directory: Path, kinds: dict[str, Requests]) -> dict[str, float]:
    """The seconds that metrics add to a request of each kind."""
    async with AsyncExitStack() as stack:
        applications: list[Application] = []
        for metrics in (None, ServerMetrics()):
            root = directory / f"in-process-{len(applications)}"
            write_wide_catalog(root, TABLES)
            properties: dict[str, Any] = {} if metrics is None else {"observer": metrics}
            namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0", **properties)
            applications.append(create_app(namespace, Authenticator({}), metrics=metrics))
            await stack.enter_async_context(applications[-1].lifespan())
        return {kind: await _difference(applications, requests) for kind, requests in kinds.items()}


async def _difference(applications: list[Application], requests: Requests) -> float:
    found: list[list[float]] = [[], []]
    for turn in range(CALLS):
        request = next(requests)
        for at in (0, 1) if turn % 2 else (1, 0):
            found[at].append(await _call(applications[at], request))
    without, measured = (quantiles(seconds, n=4)[0] for seconds in found)
    return measured - without


async def _call(application: Application, request: Request) -> float:
    """Make a request; the seconds of processor time that this process took for it."""
    body = orjson.dumps(request.body)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    path = request.path.encode()
    scope: dict[str, Any] = {"type": "http", "method": request.method, "scheme": "http", "headers": headers}
    scope |= {"raw_path": path, "path": request.path, "query_string": b""}
    answers: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    before = time.process_time()
    await application(scope, receive, send)
    seconds = time.process_time() - before
    if answers[0]["status"] != 200:
        raise RuntimeError(f"{request.path} answered {answers}")
    return seconds


def _describes(names: list[str]) -> Requests:
    paths = [f"/v1/table/{object_path((WIDE_NAMESPACE, name))}/describe" for name in names]
    for number in numbers():
        yield Request(number % CONNECTIONS, "POST", paths[number % len(paths)], {})


def _batches() -> Requests:
    for number in numbers():
        declarations = [{"declare_table": {"id": [f"table_{number}_{part}"]}} for part in ("a", "b")]
        yield Request(0, "POST", "/v1/table/batch-commit", {"operations": declarations})
