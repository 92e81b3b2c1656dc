"""What a catalog holds after hundreds of thousands of changes, with a garbage collection every six hours.

python -m benchmarks.growth [changes]
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import orjson

from benchmarks.support.chart import Panel, write_chart
from benchmarks.support.report import Report, Table, count
from benchmarks.support.staging import Operation, Template, write_template
from benchmarks.support.time_lapse import TimeLapse
from benchmarks.support.transactions import TransactionWriter
from lance_core.storage.local import LocalStore
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.entries import TOMBSTONES, Changes, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.namespace import DirectoryNamespace

CHANGES = 200_000
CONTROL = 16_000
"""Changes of the catalog that are not collected."""
PERIOD = 2_000
HOURS = timedelta(hours=6)
SWEPT = 100
"""Changes between two sweeps, which a server makes every two seconds."""
SETTINGS = {
    "gc.catalog.age": "1d",
    "gc.uncommitted.grace": "1d",
    "gc.dropped.window": "1d",
}
RECORDS = timedelta(seconds=20)
"""Some 8,000 changes."""
TABLES = 40
MOST_FRAGMENTS = 50
KEPT_VERSIONS = 20
SPACE = "graph"
PICTURE = Path(__file__).resolve().parent.parent / "docs" / "assets" / "growth.svg"
COLD = """
import json, resource, sys, time
root = sys.argv[1]
began = time.perf_counter()
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.model.snapshot import CatalogSnapshot
namespace = DirectoryNamespace(root=root)
imported = time.perf_counter()
namespace.catalog.snapshot()
loaded = time.perf_counter() - imported
resident = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
import lance
times = []
for _ in range(9):
    began = time.perf_counter()
    lance.dataset(root + "/__manifest").to_table()
    times.append(time.perf_counter() - began)
print(json.dumps([loaded, resident, min(times)]))
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """A root after so many changes: files and bytes below `__manifest` and in all, and what a new process needs.

    Seconds to load the catalog and resident bytes then; seconds in which stock pylance reads the rows of `__manifest`.
    """

    changes: int
    catalog_files: int
    catalog_bytes: int
    files: int
    size: int
    load: float
    resident: int
    stock: float


class Graph:
    """A catalog of some tables that are changed by turns, one flip a change, as `source` chooses."""

    def __init__(self, root: Path, template: Template, source: Random) -> None:
        self.root = root
        self.store = TimeLapse(LocalStore(root, "none"))
        options = CatalogOptions(sweep_interval=timedelta(0), record_retention=RECORDS)
        self.namespace = DirectoryNamespace(catalog=StoredCatalog(self.store, options))
        self.changes = 0
        self.done: Counter[str] = Counter()
        self._writer = TransactionWriter(root, self.namespace, template)
        self._source = source
        self._fragments: dict[tuple[str, str], int] = {}
        self._branched: tuple[str, str] | None = None
        self._names = 0
        self._write("create_namespace", id=[SPACE])
        while len(self._fragments) < TABLES:
            self._create()

    def change(self) -> None:
        """Make one change of the catalog."""
        kinds: dict[Callable[[], None], int] = {
            self._append: 80,
            self._create: 5,
            self._drop: 5,
            self._expire: 8,
            self._label: 1,
            self._branch: 1,
            self._fail: 1,
        }
        before = self.namespace.catalog.table.refresh().version
        while self.namespace.catalog.table.refresh().version == before:
            [kind] = self._source.choices(list(kinds), weights=list(kinds.values()))
            self.done[kind.__name__.strip("_")] += 1
            kind()
        self.changes += 1
        if self.changes % SWEPT == 0:
            self.namespace.catalog.sweep()

    def let_pass(self) -> None:
        """Six hours pass, for files and for dropped tables."""
        passed = HOURS // timedelta(milliseconds=1)

        def plan(snapshot: CatalogSnapshot) -> Changes:
            dead = (record for record in snapshot.records() if record.state in TOMBSTONES)
            return changes_of(replace(each, timestamp_ms=each.timestamp_ms - passed) for each in dead)

        self.namespace.catalog.committer.commit_changes(plan)
        self.store.let_pass(HOURS)

    def _write(self, operation: str, **request: Any) -> None:
        self.namespace.write(operation, request)

    def _batch(self, operations: list[Operation]) -> None:
        self.namespace.commit_batch({"operations": operations})

    def _some(self, number: int) -> list[tuple[str, str]]:
        return self._source.sample(sorted(self._fragments), number)

    def _create(self) -> None:
        self._names += 1
        table = (SPACE, f"table_{self._names:06d}")
        self._write("declare_table", id=list(table))
        self._fragments[table] = 0
        self._commit([table])

    def _append(self) -> None:
        self._commit(self._some(2))

    def _drop(self) -> None:
        if len(self._fragments) > TABLES:
            [table] = self._some(1)
            self._write("drop_table", id=list(table))
            del self._fragments[table]

    def _expire(self) -> None:
        [table] = self._some(1)
        head = self.namespace.catalog.snapshot().head(table)
        if head is not None and head.version > KEPT_VERSIONS + 1:
            ranges = [{"start_version": 1, "end_version": head.version - KEPT_VERSIONS}]
            self._write("batch_delete_table_versions", id=list(table), ranges=ranges)

    def _label(self) -> None:
        [table] = self._some(1)
        properties = {"owner": f"team {self._source.randrange(10)}", "changed": str(self.changes)}
        self._batch([{"set_table_properties": {"id": list(table), "properties": properties}}])

    def _branch(self) -> None:
        """Make a branch, or delete the one that there is."""
        if self._branched is None or self._branched not in self._fragments:
            [self._branched] = self._some(1)
            self._write("create_table_branch", id=list(self._branched), name="trial")
        else:
            self.namespace.change("delete_table_branch", {"id": list(self._branched), "name": "trial"})
            self._branched = None

    def _fail(self) -> None:
        """A writer dies: its file stays, and nothing names it."""
        [table] = self._some(1)
        self._writer.write_data_file(table)

    def _commit(self, tables: list[tuple[str, str]]) -> None:
        self._batch([self._transaction(table) for table in tables])

    def _transaction(self, table: tuple[str, str]) -> Operation:
        """An append of one row; with too many fragments, an overwrite by it."""
        anew = self._fragments[table] >= MOST_FRAGMENTS
        self._fragments[table] = 1 if anew else self._fragments[table] + 1
        return self._writer.write(table, anew=anew)


def run(directory: Path, changes: int = CHANGES) -> Report:
    """Change two catalogs in the same way; one is collected."""
    template = write_template(directory)
    collected, removed = _grow(directory / "collected", template, changes, PERIOD * 4)
    control, _ = _grow(directory / "control", template, min(changes, CONTROL), PERIOD, collects=False)
    _draw(collected, control)
    return Report(
        "growth",
        f"A catalog after {count(changes)} changes",
        f"{TABLES} tables of some {KEPT_VERSIONS} versions, changed one flip after the other by appends to two tables, "
        "tables that are made and dropped, deleted versions, branches and properties; one write in a hundred dies. "
        f"Every {count(PERIOD)} changes six hours pass by the dates of the files, and a garbage collection runs. "
        f"History, dropped tables and files of failed writes are kept for a day, which is {count(PERIOD * 4)} changes. "
        "In process, "
        "durability `none`.\n\n![Files, bytes, time to load and time to read level off](../../assets/growth.svg)",
        [_table("With garbage collections", collected), _removed(removed), _table("Without", control)],
    )


def _grow(
    root: Path, template: Template, changes: int, every: int, *, collects: bool = True
) -> tuple[list[Sample], Counter[str]]:
    graph = Graph(root, template, Random(24))
    samples = [_sample(graph)]
    removed: Counter[str] = Counter()
    while graph.changes < changes:
        graph.change()
        if graph.changes % PERIOD == 0:
            graph.let_pass()
            if collects:
                report = Collector(graph.namespace.catalog, settle=timedelta(0)).collect(SETTINGS, everywhere=False)
                removed.update({reason: total.files for reason, total in report.removed.items()})
        if graph.changes % every == 0:
            samples.append(_sample(graph))
            print(f"{root.name}: {samples[-1]}", file=sys.stderr, flush=True)
    return samples, removed


def _sample(graph: Graph) -> Sample:
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for meta in graph.store.list(""):
        place = meta.path.partition("/")[0]
        files[place] += 1
        sizes[place] += meta.size
    command = [sys.executable, "-c", COLD, str(graph.root)]
    found = [orjson.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3)]
    load, resident, stock = (min(values) for values in zip(*found, strict=True))
    catalog = files["__manifest"], sizes["__manifest"]
    return Sample(graph.changes, *catalog, files.total(), sizes.total(), load, int(resident), stock)


def _table(title: str, samples: list[Sample]) -> Table:
    columns = (
        "changes",
        "files of `__manifest`",
        "its MB",
        "all files",
        "all MB",
        "load, ms",
        "memory, MB",
        "stock reads it, ms",
    )
    table = Table(title, columns)
    for each in samples:
        sizes = (each.catalog_files, each.catalog_bytes / 1e6, each.files, each.size / 1e6)
        new = (each.load * 1e3, each.resident / 1e6, each.stock * 1e3)
        table.add(count(each.changes), *map(count, sizes), *(f"{value:.0f}" for value in new))
    return table


def _removed(removed: Counter[str]) -> Table:
    table = Table("What the garbage collections removed", ("why", "files"))
    for reason, files in removed.most_common():
        table.add(reason, count(files))
    return table


def _draw(collected: list[Sample], control: list[Sample]) -> None:
    def panel(title: str, unit: str, value: Callable[[Sample], float]) -> Panel:
        lines = {"with collections": collected, "without": control}
        return Panel(
            title, unit, {name: [(each.changes, value(each)) for each in line] for name, line in lines.items()}
        )

    write_chart(
        PICTURE,
        "Files, bytes, time to load and memory level off while a catalog is changed and collected",
        "changes",
        [
            panel("Files of the catalog", "files", lambda each: each.catalog_files),
            panel("Bytes of the whole root", "MB", lambda each: each.size / 1e6),
            panel("A new process loads the catalog", "ms", lambda each: each.load * 1e3),
            panel("Stock pylance reads the catalog", "ms", lambda each: each.stock * 1e3),
        ],
    )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        print(*(table.markdown() for table in run(Path(scratch), *map(int, sys.argv[1:])).tables), sep="\n")
