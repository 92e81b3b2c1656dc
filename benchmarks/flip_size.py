"""One catalog change at growing catalog sizes."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from lance.namespace import CreateNamespaceRequest, DirectoryNamespace

from benchmarks import flip
from benchmarks.support.catalogs import write_stock_catalog
from benchmarks.support.report import Report, Table, count, milliseconds, ratio

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FLIPS = 300
PEER_CHANGES = {1_000: 20, 10_000: 20, 100_000: 10, 1_000_000: 3}


def run(directory: Path) -> Report:
    """Measure a flip of ours with and without fsync, and `create_namespace` of the peer."""
    table = Table(
        "One change of the catalog, milliseconds (median)",
        ("rows in `__manifest`", "ours", "ours, fsync", "peer (no fsync)", "ours against peer", "fsync against peer"),
    )
    plain: dict[int, float] = {}
    synced: dict[int, float] = {}
    for rows in SIZES:
        plain[rows] = flip.measure(rows, FLIPS, "none", directory).median_seconds
        synced[rows] = flip.measure(rows, FLIPS, "fsync", directory).median_seconds
        peer = _measure_peer(directory / f"peer-{rows}", rows)
        table.add(
            count(rows),
            milliseconds(plain[rows]),
            milliseconds(synced[rows]),
            milliseconds(peer),
            ratio(peer, plain[rows]),
            ratio(peer, synced[rows]),
        )
    spread = {name: max(times.values()) / min(times.values()) for name, times in (("none", plain), ("fsync", synced))}
    table.notes.append(
        f"Ours, slowest against fastest size: {spread['none']:.2f} without and {spread['fsync']:.2f} with fsync."
    )
    table.notes.append(
        "Ours: two version rows, the record of their batch, and the record before marked closed; merging of fragments "
        "included. Peer: `create_namespace` in process, one row; it rewrites the whole catalog."
    )
    return Report(
        "flip_size",
        "The cost of one catalog change",
        f"The commit of `__manifest` alone, in process, without HTTP: {FLIPS} flips of ours per size, "
        f"{' / '.join(str(number) for number in PEER_CHANGES.values())} changes of the peer.",
        [table],
    )


def _measure_peer(root: Path, rows: int) -> float:
    write_stock_catalog(root, rows)
    namespace = DirectoryNamespace(root=str(root))
    times = []
    for number in range(PEER_CHANGES[rows] + 1):
        began = time.perf_counter()
        namespace.create_namespace(CreateNamespaceRequest(id=[f"new{number}"]))
        times.append(time.perf_counter() - began)
    return median(times[1:])
