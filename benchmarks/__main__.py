"""Run the benchmarks: `python -m benchmarks [NAME ...]`, all of them without a name."""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from pathlib import Path

from benchmarks.support.machine import describe_machine

NAMES = (
    "batch_size",
    "batch_rate",
    "flip_size",
    "namespace_size",
    "cold_start",
    "table_reads",
    "queries",
    "db",
    "under_load",
    "fairness",
    "row_writes",
    "beside_rows",
    "mixed_load",
    "engine",
    "graph_writes",
    "spark_reads",
    "beside_collection",
    "growth",
    "object_store",
    "metrics_cost",
    "console",
    "grants",
)
PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "benchmarks" / "results"


def main() -> None:
    """Run each benchmark in a fresh directory on the project's disk, print its tables and write its result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure against pylance's own server.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "--directory", type=Path, default=PROJECT / ".cache", help="where the catalogs are made (default: %(default)s)"
    )
    arguments = parser.parse_args()
    names = arguments.names or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    arguments.directory.mkdir(exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    load = os.getloadavg()[0]
    # Nothing is deleted before the end: for minutes after many deletions ext4 is slow to create files.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch:
        for name in names:
            _run(name, Path(scratch) / name, load)


def _run(name: str, directory: Path, load: float) -> None:
    began = time.monotonic()
    directory.mkdir()
    report = importlib.import_module(f"benchmarks.{name}").run(directory)
    path = report.write(RESULTS, describe_machine(directory, load))
    print(f"# {report.title}\n")
    for table in report.tables:
        print(table.markdown())
    print(f"{name}: {time.monotonic() - began:.0f} s, written to {path.relative_to(PROJECT)}\n", flush=True)


if __name__ == "__main__":
    main()
