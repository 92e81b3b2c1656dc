"""Describes of tables while other clients send the most expensive requests that a server accepts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from random import Random

import httpx

from benchmarks.load import Load, Request, drive, object_path
from benchmarks.support.catalogs import WIDE_NAMESPACE, write_wide_catalog
from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import Server, serve_ours
from benchmarks.support.staging import flush_files

TABLES = 100_000
CONNECTIONS = 8
SECONDS = 8.0
BODY_BYTES = 64 << 20
OPERATIONS = 1_100
LATER_TABLES = 8_000
LATER_BATCHES = 3
PINNED_READS = 10
LISTS = 8


def run(directory: Path) -> Report:
    """Measure describes alone, beside each kind of expensive request, and beside all of them."""
    root = directory / "catalog"
    write_wide_catalog(root, TABLES)
    flush_files()
    with serve_ours(root) as server:
        names = server.call("GET", f"/v1/namespace/{WIDE_NAMESPACE}/table/list")["tables"]
        described = Random(5).sample(names, 2_000)
        requests = [_describe((WIDE_NAMESPACE, name), number) for number, name in enumerate(described)]
        versions = iter([_declare(server, f"history_{number}") for number in range(2 * PINNED_READS)])
        for number in range(LATER_BATCHES):
            server.call("POST", "/v1/table/batch-commit", _declarations(f"later_{number}", LATER_TABLES))
        batches = iter([_large_batch("first"), _large_batch("second")])
        kinds: dict[str, Callable[[], None]] = {
            f"a batch of {BODY_BYTES >> 20} MiB": lambda: server.call("POST", "/v1/table/batch-commit", next(batches)),
            f"{PINNED_READS} reads pinned to versions that are not cached": lambda: _read_pinned(server, versions),
            f"{LISTS} lists of {count(TABLES)} tables": lambda: _list(server),
        }
        drive(server.port, CONNECTIONS, requests, directory, 1.0)
        found: dict[str, Load] = {"nothing": drive(server.port, CONNECTIONS, requests, directory, SECONDS)}
        for kind, work in kinds.items():
            with _beside([work]):
                found[kind] = drive(server.port, CONNECTIONS, requests, directory, SECONDS)
        with _beside(list(kinds.values())):
            found["all of these"] = drive(server.port, CONNECTIONS, requests, directory, SECONDS)
    table = Table(
        f"Describes over {CONNECTIONS} connections while other clients send …",
        ("other clients", "describes/s", "p50 ms", "p99 ms"),
    )
    for kind, load in found.items():
        table.add(kind, count(load.per_second), milliseconds(load.p50), milliseconds(load.p99))
    table.notes.append(f"A namespace of {count(TABLES)} tables. The expensive requests start with the describes.")
    table.notes.append(
        f"Since the pinned versions {count(LATER_BATCHES * LATER_TABLES)} tables were declared, so that each version "
        "is loaded as a whole."
    )
    table.notes.append(f"The batch declares {count(OPERATIONS)} tables with properties of 60 KiB.")
    return Report(
        "under_load",
        "Latency beside expensive requests",
        f"Describes for {SECONDS:.0f} s. Large bodies, historic snapshots and long lists are handled in threads beside "
        "the event loop, which share the interpreter with it.",
        [table],
    )


def _describe(name: tuple[str, str], number: int) -> Request:
    path = f"/v1/table/{object_path(name)}/describe?delimiter=%24"
    return Request(number % CONNECTIONS, "POST", path, {"id": list(name)})


def _declare(server: Server, name: str) -> int:
    """Declare a table; the catalog version that this made."""
    server.call("POST", f"/v1/table/{object_path((WIDE_NAMESPACE, name))}/declare", {})
    version: int = server.call("GET", "/v1/catalog")["version"]
    return version


def _declarations(prefix: str, number: int, **properties: str) -> dict[str, object]:
    names = [[WIDE_NAMESPACE, f"{prefix}_{each}"] for each in range(number)]
    return {"operations": [{"declare_table": {"id": name, "properties": properties}} for name in names]}


def _large_batch(prefix: str) -> dict[str, object]:
    value = "x" * (BODY_BYTES // OPERATIONS - 200)
    return _declarations(prefix, OPERATIONS, note=value)


def _read_pinned(server: Server, versions: Iterator[int]) -> None:
    """Describe a table as of catalog versions that differ from the newest in so many rows that all are loaded."""

    def read(version: int) -> None:
        path = f"http://127.0.0.1:{server.port}/v1/namespace/{WIDE_NAMESPACE}/describe"
        httpx.post(path, json={}, headers={"x-lance-catalog-version": str(version)}, timeout=120).raise_for_status()

    with ThreadPoolExecutor(PINNED_READS) as pool:
        list(pool.map(read, islice(versions, PINNED_READS)))


def _list(server: Server) -> None:
    with ThreadPoolExecutor(LISTS) as pool:
        list(pool.map(lambda _: server.call("GET", f"/v1/namespace/{WIDE_NAMESPACE}/table/list"), range(LISTS)))


@contextmanager
def _beside(works: list[Callable[[], None]]) -> Iterator[None]:
    """Start each of `works` in a thread; at the end of the block wait for them, and raise what went wrong."""
    failed: list[Exception] = []

    def attempt(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=attempt, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    try:
        yield
    finally:
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
