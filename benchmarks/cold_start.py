"""Start of a server on a catalog of a million rows, and the memory it holds afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import object_path
from benchmarks.support.catalogs import write_managed_catalog, write_stock_catalog
from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import Server, serve_ours, serve_peer

SIZES = (1_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Start:
    """Times in seconds: from process start to the first describe answered, and a describe after that."""

    started: float
    describe: float
    resident: int


def run(directory: Path) -> Report:
    """Start both servers on a small and a large catalog."""
    ours = {rows: _start(directory / f"ours-{rows}", rows, write_managed_catalog, serve_ours) for rows in SIZES}
    peer = {rows: _start(directory / f"peer-{rows}", rows, write_stock_catalog, serve_peer) for rows in SIZES}
    table = Table(
        "From process start to the first table described",
        ("server", "rows", "seconds", "of which for the rows", "memory, MB", "bytes per row", "next describe, ms"),
    )
    for name, starts in (("ours", ours), ("peer", peer)):
        small, large = starts[SIZES[0]], starts[SIZES[-1]]
        for rows, start in starts.items():
            per_row = (large.resident - small.resident) / (SIZES[-1] - SIZES[0])
            table.add(
                name,
                count(rows),
                f"{start.started:.2f}",
                f"{start.started - small.started:.2f}" if start is large else "",
                count(start.resident / 1e6),
                f"{per_row:.0f}" if start is large else "",
                milliseconds(start.describe),
            )
    table.notes.append(
        "Ours loads the catalog into memory; the peer keeps none of it and reads `__manifest` again for each request, "
        "so it starts sooner, needs less memory and describes more slowly the larger the catalog is."
    )
    table.notes.append("Bytes per row: the difference in resident memory divided by the difference in rows.")
    return Report(
        "cold_start",
        "Cold start and memory",
        "Ours: namespaces of 50 tables with 19 versions each, all of it rows. Peer: namespaces of 1,000 tables; it "
        "stores no versions. The files were just written: the page cache is warm.",
        [table],
    )


def _start(
    root: Path,
    rows: int,
    write: Callable[[Path, int], tuple[str, str]],
    serve: Callable[[Path], AbstractContextManager[Server]],
) -> Start:
    table = write(root, rows)
    path = f"/v1/table/{object_path(table)}/describe?delimiter=%24"
    with serve(root) as server:
        times = []
        for _ in range(6):
            began = time.perf_counter()
            server.call("POST", path, {"id": list(table)})
            times.append(time.perf_counter() - began)
        return Start(server.started + times[0], min(times[1:]), server.resident_bytes())
