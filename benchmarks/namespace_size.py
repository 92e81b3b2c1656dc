"""A namespace of growing size: what declaring tables in it costs, and what a server that serves it needs."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from benchmarks.load import object_path
from benchmarks.support.catalogs import WIDE_NAMESPACE, table_names, write_wide_catalog
from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import serve_ours
from benchmarks.support.staging import flush_files
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.process import tune_process

SIZES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 50
PAIRS = 300
MANY = 5_000
MANY_BATCHES = 9
PAGES = 200


@dataclass(frozen=True, slots=True)
class Changes:
    """Seconds: per batch of two declares (median and p90), per batch of `MANY` (median), per page of 100 names."""

    pair: float
    pair_p90: float
    many: float
    page: float


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from process start to the first table described, and bytes held after that."""

    seconds: float
    resident: int


def run(directory: Path) -> Report:
    """Declare tables in namespaces of each size, and start a server on each."""
    tune_process()  # as the server does
    starts: dict[int, Start] = {}
    for tables in SIZES:
        name = write_wide_catalog(directory / str(tables), tables)
        flush_files()
        starts[tables] = _start(directory / str(tables), name)
    changes = _declare({tables: directory / str(tables) for tables in SIZES})
    return Report(
        "namespace_size",
        "A namespace of a million tables",
        "All tables are declared in one namespace, none has versions. Durability `none`. New names are spread over "
        "the order of those that are there.",
        [_changes_table(changes), _starts_table(starts)],
    )


def _changes_table(found: dict[int, Changes]) -> Table:
    table = Table(
        "Declaring tables in it, in process, milliseconds",
        ("tables", "batch of two (median)", "(p90)", f"batch of {count(MANY)} (median)", "list a page of 100"),
    )
    for tables, each in found.items():
        cells = (each.pair, each.pair_p90, each.many, each.page)
        table.add(count(tables), *map(milliseconds, cells))
    pairs, many = (found[SIZES[-1]].pair / found[SIZES[0]].pair, found[SIZES[-1]].many / found[SIZES[1]].many)
    table.notes.append(
        f"At {count(SIZES[-1])} tables a batch of two takes {pairs:.2f} times as long as at {count(SIZES[0])}, one of "
        f"{count(MANY)} takes {many:.2f} times as long as at {count(SIZES[1])}."
    )
    table.notes.append(
        f"{PAIRS} batches of two, {MANY_BATCHES} of {count(MANY)}, from the request as JSON values to its answer; "
        "the sizes by turns."
    )
    return table


def _starts_table(found: dict[int, Start]) -> Table:
    table = Table(
        "From process start to the first table described", ("tables", "seconds", "memory, MB", "bytes per table")
    )
    small = found[SIZES[0]]
    for tables, each in found.items():
        per_table = (each.resident - small.resident) / (tables - SIZES[0]) if tables > SIZES[0] else None
        shown = "" if per_table is None or tables < SIZES[-2] else f"{per_table:.0f}"
        table.add(count(tables), f"{each.seconds:.2f}", count(each.resident / 1e6), shown)
    table.notes.append(
        f"Bytes per table: the difference in resident memory to the server of {count(SIZES[0])} tables, divided by "
        "the difference in tables."
    )
    return table


def _start(root: Path, table: tuple[str, str]) -> Start:
    path = f"/v1/table/{object_path(table)}/describe?delimiter=%24"
    with serve_ours(root) as server:
        began = time.perf_counter()
        server.call("POST", path, {"id": list(table)})
        seconds = server.started + time.perf_counter() - began
        for _ in range(5):
            server.call("POST", path, {"id": list(table)})
        return Start(seconds, server.resident_bytes())


def _declare(roots: dict[int, Path]) -> dict[int, Changes]:
    """Declare in all namespaces by turns, so that a disturbance meets all of them."""
    namespaces = {tables: DirectoryNamespace(root=str(root), durability="none") for tables, root in roots.items()}
    fresh = iter(table_names(Random(-1), len(SIZES) * (2 * (WARM_UP + PAIRS) + MANY * MANY_BATCHES)))

    def by_turns(size: int, rounds: int) -> dict[int, list[float]]:
        times: dict[int, list[float]] = {tables: [] for tables in namespaces}
        for _ in range(rounds):
            for tables, namespace in namespaces.items():
                times[tables].append(_commit(namespace, [f"{next(fresh)}_new" for _ in range(size)]))
        return times

    try:
        for namespace in namespaces.values():
            namespace.newest()
        gc.freeze()  # as the server does with what it has imported
        pairs = {tables: times[WARM_UP:] for tables, times in by_turns(2, WARM_UP + PAIRS).items()}
        many = by_turns(MANY, MANY_BATCHES)
        tokens = table_names(Random(1), PAGES)
        pages = {tables: [_list(namespace, token) for token in tokens] for tables, namespace in namespaces.items()}
    finally:
        for namespace in namespaces.values():
            namespace.close()
    return {
        tables: Changes(
            median(pairs[tables]), quantiles(pairs[tables], n=10)[8], median(many[tables]), median(pages[tables])
        )
        for tables in namespaces
    }


def _commit(namespace: DirectoryNamespace, names: list[str]) -> float:
    request: dict[str, Any] = {"operations": [{"declare_table": {"id": [WIDE_NAMESPACE, name]}} for name in names]}
    began = time.perf_counter()
    namespace.commit_batch(request)
    return time.perf_counter() - began


def _list(namespace: DirectoryNamespace, token: str) -> float:
    began = time.perf_counter()
    namespace.read("list_tables", {"id": [WIDE_NAMESPACE], "limit": 100, "page_token": token})
    return time.perf_counter() - began
