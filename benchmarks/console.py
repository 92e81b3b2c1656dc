"""What pages of the console cost a server, and the batches beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count as numbers
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from benchmarks.load import Request, drive
from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import Server, serve_ours
from benchmarks.support.staging import (
    StagedTable,
    Template,
    batch_body,
    create_first_versions,
    declare_tables,
    flush_files,
    stage_version,
    write_template,
)

CLIENTS = 32
PAIRS = 320
BATCHES = 2_400
"""Of one turn."""
TURNS = 5
RATES = (0, 1, 4, 20)
"""Pages in a second beside the batches. A page of events that is left open asks once in two seconds."""
SETTLING = 10.0
"""Seconds after the last batch, whose work in the background is no cost of pages."""
VISITS = 20
PAGES = {
    "Home": "",
    "Tables": "/namespaces",
    "a table": "/tables/shop$t000",
    "Search": "/search?text=t01",
    "Log": "/log",
    "Events": "/events",
    "Drops": "/drops",
}
MIXED = ("Home", "a table", "Log", "Events", "Tables")
"""What is asked for beside the batches, in turn."""


def run(directory: Path) -> Report:
    """Measure batches beside no pages, few and many by turns, and then single pages."""
    template = write_template(directory)
    with serve_ours(directory / "catalog", environment={"LANCE_NAMESPACE_CONSOLE": "true"}) as server:
        server.call("POST", "/v1/namespace/shop/create", {})
        tables = declare_tables(server, [("shop", f"t{number:03d}") for number in range(2 * PAIRS)], batch=True)
        create_first_versions(server, tables, template, batch=True)
        batches = _batches(tables, template)
        beside: dict[int, list[tuple[float, float, float]]] = {rate: [] for rate in RATES}
        _turn(server, batches, 0, directory)
        for turn in range(TURNS):
            for rate in RATES if turn % 2 else reversed(RATES):
                beside[rate].append(_turn(server, batches, rate, directory))
        time.sleep(SETTLING)
        pages = {name: _page(server, path) for name, path in PAGES.items()}
    return Report(
        "console",
        "The cost of the console",
        f"{CLIENTS} clients commit batches of two tables, as in [batches per second](batch-rate.md), to a catalog of "
        f"{2 * PAIRS} tables in a directory, while a browser asks for {', '.join(MIXED)} in turn. Processor time is "
        "that of the server's process, which other work on the machine changes less than it changes durations.",
        [_beside(beside), _alone(pages)],
    )


def _beside(found: dict[int, list[tuple[float, float, float]]]) -> Table:
    table = Table(
        f"Batches of {CLIENTS} clients beside pages",
        ("pages in a second", "processor time for a batch, ms", "against none", "batches/s", "against none", "p99 ms"),
    )
    for rate, turns in found.items():
        seconds, per_second, p99 = (median(column) for column in zip(*turns, strict=True))
        # Turns of one round are beside each other in time: so their ratios, and of these the median.
        more = median(mine[0] / none[0] for mine, none in zip(turns, found[0], strict=True))
        rates = median(mine[1] / none[1] for mine, none in zip(turns, found[0], strict=True))
        table.add(rate, f"{seconds * 1000:.2f}", f"{more:.2f}x", count(per_second), f"{rates:.2f}x", milliseconds(p99))
    table.notes.append(
        f"{TURNS} rounds of {BATCHES} batches beside each number of pages; medians, and medians of the ratios within "
        "a round. The time for a batch includes that for the pages."
    )
    return table


def _alone(found: dict[str, tuple[float, int]]) -> Table:
    table = Table("Processor time of the server for a page", ("page", "ms", "KiB"))
    for name, (seconds, size) in found.items():
        table.add(name, milliseconds(seconds), f"{size / 1024:.1f}")
    table.notes.append(
        f"The median of {VISITS} rounds of five visits, without batches at the time. Each of the newest catalog "
        f"versions has the batches of up to {CLIENTS} clients, all of which the Log and Events show."
    )
    return table


def _batches(tables: Sequence[StagedTable], template: Template) -> Iterator[object]:
    for number in numbers():
        at = 2 * (number % PAIRS)
        yield batch_body([stage_version(tables[at], template), stage_version(tables[at + 1], template)])


def _turn(server: Server, batches: Iterator[object], rate: int, directory: Path) -> tuple[float, float, float]:
    """Processor seconds for a batch, batches in a second, and their tail latency."""
    requests = [
        Request(number % CLIENTS, "POST", "/v1/table/batch-commit", body)
        for number, body in enumerate(islice(batches, BATCHES))
    ]
    flush_files()
    with _visiting(server, rate):
        before = server.processor_seconds()
        load = drive(server.port, CLIENTS, requests, directory)
        seconds = server.processor_seconds() - before
    return seconds / load.requests, load.per_second, load.p99


@contextmanager
def _visiting(server: Server, rate: int) -> Iterator[None]:
    """Ask for pages meanwhile, so many in a second."""
    stop, failed = threading.Event(), list[Exception]()

    def visit() -> None:
        try:
            with server.connect() as connection:
                due = time.monotonic()
                for name in cycle(MIXED):
                    connection.send(f"/console{PAGES[name]}", None, method="GET")
                    due += 1 / rate
                    if stop.wait(max(0.0, due - time.monotonic())):
                        return
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    visitor = threading.Thread(target=visit)
    if rate:
        visitor.start()
    try:
        yield
    finally:
        stop.set()
        if rate:
            visitor.join()
    if failed:
        raise failed[0]


def _page(server: Server, path: str) -> tuple[float, int]:
    """Processor seconds and bytes of a page."""
    with server.connect() as connection:
        size = len(connection.send(f"/console{path}", None, method="GET"))
        found = []
        for _ in range(VISITS):
            before = server.processor_seconds()
            for _ in range(5):
                connection.send(f"/console{path}", None, method="GET")
            found.append((server.processor_seconds() - before) / 5)
        return median(found), size
