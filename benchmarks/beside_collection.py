"""Describes and flips beside a garbage collection, and what one costs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.load import Load, Request, drive, object_path
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import serve_ours
from benchmarks.support.staging import Template, flush_files, write_template
from benchmarks.support.transactions import TransactionWriter
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.background.gc import NICENESS
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.namespace import DirectoryNamespace

TABLES = 1_000
VERSIONS = 10
CHANGED = 50
NEW_VERSIONS = 20
AT_ONCE = 200
CONNECTIONS = 8
SECONDS = 8.0
ROUNDS = 3
SPACE = "graph"


def run(directory: Path) -> Report:
    """Collect a catalog of a thousand tables, then serve it, with and without a garbage collection at work."""
    root = directory / "catalog"
    writer = _Catalog(root, write_template(directory))
    costs = _costs(root, writer)
    flush_files()
    return Report(
        "beside_collection",
        "Garbage collection",
        f"{count(TABLES)} tables of {VERSIONS} versions each. Durability `none`. A garbage collection is a process of "
        f"its own with niceness {NICENESS}, as a server starts it.",
        [costs, _latencies(root, directory)],
    )


class _Catalog:
    """A catalog whose tables get versions in batches."""

    def __init__(self, root: Path, template: Template) -> None:
        catalog = StoredCatalog(LocalStore(root, "none"), CatalogOptions(sweep_interval=timedelta(0)))
        self.namespace = DirectoryNamespace(catalog=catalog)
        self.tables = [(SPACE, f"table_{number:05d}") for number in range(TABLES)]
        self._writer = TransactionWriter(root, self.namespace, template)
        self.namespace.write("create_namespace", {"id": [SPACE]})
        for part in self._parts(self.tables):
            self.namespace.commit_batch({"operations": [{"declare_table": {"id": list(table)}} for table in part]})
        self.add_versions(self.tables, VERSIONS)

    def add_versions(self, tables: list[tuple[str, str]], number: int) -> None:
        for _ in range(number):
            for part in self._parts(tables):
                self.namespace.commit_batch({"operations": [self._writer.write(table) for table in part]})
        self.namespace.catalog.sweep()

    @staticmethod
    def _parts(tables: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
        yield from (tables[start : start + AT_ONCE] for start in range(0, len(tables), AT_ONCE))


def _costs(root: Path, writer: _Catalog) -> Table:
    table = Table("What a run costs", ("run", "requests", "listings", "objects read", "seconds, on a local disk"))
    changed = f"{CHANGED} tables have {NEW_VERSIONS} new versions each"
    for name in ("the first one", "nothing happened since", changed):
        if name == changed:
            writer.add_versions(writer.tables[:CHANGED], NEW_VERSIONS)
        store = CountingStore(LocalStore(root, "none"))
        catalog = StoredCatalog(store, CatalogOptions(sweep_interval=timedelta(0)))
        catalog.snapshot()
        with store.measure() as cost:
            began = time.perf_counter()
            Collector(catalog, settle=timedelta(0)).collect(everywhere=False)
            seconds = time.perf_counter() - began
        read = cost.by_verb["get"] + cost.by_verb["head"]
        table.add(name, count(cost.requests), count(cost.by_verb["list"]), count(read), f"{seconds:.2f}")
    return table


def _latencies(root: Path, directory: Path) -> Table:
    table = Table(
        f"Over {CONNECTIONS} connections, median of {ROUNDS} rounds of {SECONDS:.0f} s by turns",
        ("requests", "alone: per second", "p50 ms", "p99 ms", "beside: per second", "p50 ms", "p99 ms", "p99, ratio"),
    )
    with serve_ours(root) as server:
        kinds = {"describe a table": _describes(), "a batch of two declares": _declares()}
        loads: dict[str, tuple[list[Load], list[Load]]] = {kind: ([], []) for kind in kinds}
        for _ in range(ROUNDS):
            for kind, requests in kinds.items():
                loads[kind][0].append(drive(server.port, CONNECTIONS, _take(requests), directory, SECONDS))
                with _collections(root):
                    loads[kind][1].append(drive(server.port, CONNECTIONS, _take(requests), directory, SECONDS))
    for kind, (alone, beside) in loads.items():
        first, second = _middle(alone), _middle(beside)
        cells = [
            cell
            for load in (first, second)
            for cell in (count(load.per_second), milliseconds(load.p50), milliseconds(load.p99))
        ]
        table.add(kind, *cells, ratio(second.p99, first.p99))
    table.notes.append("The garbage collections look at all tables, one run after the other.")
    return table


def _middle(loads: list[Load]) -> Load:
    return sorted(loads, key=lambda load: load.p99)[len(loads) // 2]


def _describes() -> Iterator[Request]:
    number = 0
    while True:
        name = (SPACE, f"table_{number % TABLES:05d}")
        path = f"/v1/table/{object_path(name)}/describe?delimiter=%24"
        yield Request(number % CONNECTIONS, "POST", path, {"id": list(name)})
        number += 1


def _declares() -> Iterator[Request]:
    number = 0
    while True:
        operations = [{"declare_table": {"id": [SPACE, f"new_{number:07d}_{each}"]}} for each in "ab"]
        yield Request(number % CONNECTIONS, "POST", "/v1/table/batch-commit", {"operations": operations})
        number += 1


def _take(requests: Iterator[Request]) -> list[Request]:
    return [next(requests) for _ in range(60_000)]


@contextmanager
def _collections(root: Path) -> Iterator[None]:
    """Collections, one after the other, in processes of their own."""
    over = threading.Event()

    def collect() -> None:
        command = [sys.executable, "-m", "namespace_server", "gc", str(root), "--durability", "none"]
        while not over.is_set():
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
                while process.poll() is None:
                    if over.wait(0.05):
                        process.terminate()

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
