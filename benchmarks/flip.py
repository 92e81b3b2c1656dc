"""One flip of `__manifest`, in process: what a catalog change costs as the catalog grows.

python -m benchmarks.flip [rows ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import mean, median, quantiles
from tempfile import TemporaryDirectory, mkdtemp
from typing import Literal
from uuid import uuid4

from benchmarks.support.catalogs import VERSIONS_PER_TABLE, write_managed_catalog
from benchmarks.support.staging import flush_files
from lance_core.storage.local import LocalStore
from namespace_server.directory.manifest_table.flip import FlipClaimed, FlipCommitted
from namespace_server.directory.manifest_table.schema import OnDisk
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import (
    Changes,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    changes_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot

SIZES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 50
_RESULTS = b'[{"create_table_version":{"version":{"version":20}}},{"create_table_version":{"version":{"version":20}}}]'


@dataclass(frozen=True, slots=True)
class FlipTimes:
    """Seconds per flip (prepare, stage, commit), seconds to load the catalog, and fragments at the end."""

    median_seconds: float
    mean_seconds: float
    p99_seconds: float
    load_seconds: float
    fragments: int


def measure(rows: int, flips: int, durability: Literal["none", "fsync"], directory: Path | None = None) -> FlipTimes:
    """Flip a catalog of `rows` rows: two version rows and the record of their batch, and the record before closed.

    The catalog is left behind in `directory`; without one it is made among the temporary files and removed.
    """
    scratch: AbstractContextManager[str] = (
        TemporaryDirectory() if directory is None else nullcontext(mkdtemp(prefix="flip-", dir=directory))
    )
    with scratch as place:
        root = Path(place)
        write_managed_catalog(root, rows)
        flush_files()
        store = LocalStore(root, durability=durability)
        table = ManifestTable(store)
        began = time.perf_counter()
        snapshot = table.refresh()
        loaded = time.perf_counter() - began
        changes = _batches(snapshot)
        times = [_flip(table, next(changes)) for _ in range(WARM_UP + flips)][WARM_UP:]
        disk = table.current.disk
        store.close()
        return FlipTimes(
            median(times),
            mean(times),
            quantiles(times, n=100)[98],
            loaded,
            len(disk.layout.fragments) if isinstance(disk, OnDisk) else 0,
        )


def _flip(table: ManifestTable, changes: Changes) -> float:
    began = time.perf_counter()
    flip = table.prepare(table.current, changes, attempt=str(uuid4()))
    table.stage(flip)
    claimed = table.claim(flip)
    outcome = table.prove(claimed) if isinstance(claimed, FlipClaimed) else claimed
    taken = time.perf_counter() - began
    if not isinstance(outcome, FlipCommitted):
        raise TypeError(f"flip of version {flip.version}: expected it to be committed, found {outcome}")
    return taken


def _batches(snapshot: CatalogSnapshot) -> Iterator[Changes]:
    """Two-table batches over all tables in turn, each closing the record of the one before."""
    tables = [table for path in snapshot.all_tables() if (table := snapshot.table(path)) is not None]
    previous: list[RecordEntry] = []
    for number in count():
        chosen = (tables[2 * number % len(tables)], tables[(2 * number + 1) % len(tables)])
        versions = [_version(table, VERSIONS_PER_TABLE + 1 + 2 * number // len(tables)) for table in chosen]
        record = RecordEntry(
            str(uuid4()),
            "open",
            "0" * 64,
            message="benchmark",
            timestamp_ms=time.time_ns() // 1_000_000,
            attempt=str(uuid4()),
            participants=tuple(
                Participant(entry.table_id, None, entry.version, entry.location, entry.staged_path)
                for entry in versions
            ),
            results=_RESULTS,
        )
        yield changes_of([*versions, *previous, record])
        previous = [replace(record, state="closed")]


def _version(table: TableEntry, version: int) -> VersionEntry:
    entry = VersionEntry(
        table.id,
        None,
        version,
        table.location,
        459,
        uuid4().hex * 2,
        str(uuid4()),
        time.time_ns() // 1_000_000,
        '"23461f-660bd5ff4e1d3-1cb"',
    )
    return replace(entry, staged_path=f"{entry.canonical_path}-{uuid4()}")


def main(sizes: tuple[int, ...]) -> None:
    """Print a line per catalog size and durability."""
    print(
        f"{'rows':>10} {'durability':>10} {'median ms':>10} {'mean ms':>8} {'p99 ms':>8} {'load s':>7} {'fragments':>9}"
    )
    for rows in sizes:
        for durability in ("none", "fsync"):
            times = measure(rows, 300, "fsync" if durability == "fsync" else "none")
            print(
                f"{rows:>10,} {durability:>10} {times.median_seconds * 1e3:>10.3f} {times.mean_seconds * 1e3:>8.3f} "
                f"{times.p99_seconds * 1e3:>8.3f} {times.load_seconds:>7.2f} {times.fragments:>9}"
            )


if __name__ == "__main__":
    main(tuple(int(rows) for rows in sys.argv[1:]) or SIZES)
