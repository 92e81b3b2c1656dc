"""One table through lancedb: as a remote database, through the namespace client, and in process.

The three do the same calls in turn. The remote client sends rows and queries to our server. The namespace client asks
it where tables are, and reads and writes files itself; a query may be pushed down to the server. In process lancedb
works in a directory, which has no catalog.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import lancedb
import numpy as np
import pyarrow as pa

from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import serve_ours

DATABASE = "bench"
SEARCHED = 1_000_000
DIMENSION = 128
PARTITIONS = 256
PART = 50_000
SEARCHES = 60
FEW, MANY = 100, 1_000_000
ADDS = {FEW: 61, MANY: 7}
KEPT = 100_000
MERGED = 1_000
MERGES = 31

REMOTE, PUSHED, CLIENT, ALONE = "db://", "namespace client, pushed down", "namespace client", "in process"


@dataclass(frozen=True, slots=True)
class Side:
    """A connection, what the names of its own tables end in, and the namespace of all."""

    connection: Any
    own: str
    path: Sequence[str] = ()

    def create(self, name: str, rows: pa.Table) -> Any:
        """A table of this side alone."""
        return self.connection.create_table(f"{name}_{self.own}", rows, namespace_path=list(self.path))

    def open(self, name: str) -> Any:
        return self.connection.open_table(name, namespace_path=list(self.path))


def run(directory: Path, searched: int = SEARCHED) -> Report:
    """Measure each call on all sides."""
    root, local = directory / "catalog", directory / "local"
    root.mkdir()
    with serve_ours(root) as server:
        url = f"http://127.0.0.1:{server.port}"
        pushed = lancedb.connect_namespace("rest", {"uri": url}, namespace_client_pushdown_operations=["QueryTable"])
        remote = Side(lancedb.connect(f"db://{DATABASE}", api_key="any", host_override=url), "remote")
        client = Side(lancedb.connect_namespace("rest", {"uri": url}), "client", (DATABASE,))
        alone = Side(lancedb.connect(local), "alone")
        sides = {REMOTE: remote, CLIENT: client, ALONE: alone}
        remote.create("first", _rows(1))  # which creates the database
        shutil.copytree(_write_searched(url, searched), local / "searched.lance")
        found = {
            f"vector search in {count(searched)} rows, 10 rows": _searches(
                {REMOTE: remote, PUSHED: Side(pushed, "pushed", (DATABASE,)), CLIENT: client, ALONE: alone}
            )
        }
        for size, repeats in ADDS.items():
            found[f"add of {count(size)} rows"] = _adds(sides, size, repeats)
        found[f"merge_insert of {count(MERGED)} rows, half of them new, into {count(KEPT)}"] = _merges(sides)
    table = Table(
        "The same call of lancedb on each side",
        (
            "call",
            "db://, ms",
            "p90 ms",
            "pushed down, ms",
            "namespace client, ms",
            "in process, ms",
            "db:// by pushed down",
            "by namespace client",
            "by in process",
        ),
    )
    for call, times in found.items():
        medians = {side: statistics.median(each) for side, each in times.items()}
        others = [PUSHED, CLIENT, ALONE]
        table.add(
            call,
            milliseconds(medians[REMOTE]),
            milliseconds(statistics.quantiles(times[REMOTE], n=10)[-1]),
            *(milliseconds(medians[side]) if side in medians else "" for side in others),
            *(f"{medians[REMOTE] / medians[side]:.2f}" if side in medians else "" for side in others),
        )
    table.notes.append(
        "Only the remote client and queries that are pushed down send the work to the server. The other two do it in "
        "the process of the client, on files of the same disk: of a search they save HTTP, and what the server does "
        "so that it is of the newest version."
    )
    table.notes.append("In process nothing is committed to a catalog.")
    return Report(
        "db",
        "Remote databases of lancedb",
        "The calls of lancedb, the sides in turn, one call at a time; medians, without the first calls. The searched "
        f"table has an IVF_PQ index of {PARTITIONS} partitions, and is the same on all sides. Rows that are added or "
        "merged have three columns. Ratios are times of `db://` by those of the others: below 1 it is faster.",
        [table],
    )


Times = dict[str, list[float]]
"""Seconds by side."""


def _searches(sides: Mapping[str, Side]) -> Times:
    """Different searches of the open table; each side finds the same rows."""
    random = np.random.default_rng(3)
    vectors = random.standard_normal((2 * SEARCHES, DIMENSION)).astype("float32")
    tables = {name: side.open("searched") for name, side in sides.items()}

    def search(table: Any) -> Callable[[int], Any]:
        return lambda number: table.search(vectors[number]).limit(10).select(["id", "number", "_distance"]).to_arrow()

    answers = [search(table)(0)["id"].to_pylist() for table in tables.values()]
    if any(each != answers[0] for each in answers):
        raise RuntimeError(f"expected the same rows from all sides, found {answers}")
    return _in_turn({name: search(table) for name, table in tables.items()}, 2 * SEARCHES, SEARCHES)


def _adds(sides: Mapping[str, Side], size: int, repeats: int) -> Times:
    rows = _rows(size)
    tables = {name: side.create(f"added_{size}", _rows(10)) for name, side in sides.items()}

    def adder(table: Any) -> Callable[[int], Any]:
        return lambda _: table.add(rows)

    times = _in_turn({name: adder(table) for name, table in tables.items()}, repeats, max(repeats // 4, 1))
    for name, table in tables.items():
        if (found := table.count_rows()) != 10 + repeats * size:
            raise RuntimeError(f"{name}: expected {10 + repeats * size} rows, found {found}")
    return times


def _merges(sides: Mapping[str, Side]) -> Times:
    tables = {name: side.create("merged", _rows(KEPT)) for name, side in sides.items()}
    parts = [_rows(MERGED, KEPT + MERGED // 2 * (number - 1)) for number in range(MERGES)]

    def merger(table: Any) -> Callable[[int], Any]:
        builder = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        return lambda number: builder.execute(parts[number])

    times = _in_turn({name: merger(table) for name, table in tables.items()}, MERGES, MERGES // 4)
    for name, table in tables.items():
        if (found := table.count_rows()) != KEPT + MERGED // 2 * MERGES:
            raise RuntimeError(f"{name}: expected {KEPT + MERGED // 2 * MERGES} rows, found {found}")
    return times


def _in_turn(calls: Mapping[str, Callable[[int], Any]], repeats: int, left_out: int) -> Times:
    """Times of the calls without the first ones. The sides are in turn: what the machine does then slows all."""
    times: Times = {name: [] for name in calls}
    names = list(calls)
    for number in range(repeats):
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            began = time.perf_counter()
            calls[name](number)
            if number >= left_out:
                times[name].append(time.perf_counter() - began)
    return times


def _rows(size: int, first: int = 0) -> pa.Table:
    random = np.random.default_rng(size)
    names = [f"row {number}" for number in range(first, first + size)]
    return pa.table({"id": np.arange(first, first + size), "value": random.random(size), "name": names})


def _write_searched(url: str, rows: int) -> Path:
    """Write the table of vectors and its index into the database; where it is."""
    client = lance_namespace.connect("rest", {"uri": url})
    parts = _vectors(rows)
    first = next(parts)

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from parts

    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    dataset = lance.write_dataset(reader, namespace_client=client, table_id=[DATABASE, "searched"], mode="create")
    partitions = min(PARTITIONS, max(rows // 1000, 2))
    dataset.create_index("vector", "IVF_PQ", num_partitions=partitions, num_sub_vectors=DIMENSION // 8)
    return Path(dataset.uri.removeprefix("file://"))


def _vectors(rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for first in range(0, rows, PART):
        size = min(PART, rows - first)
        vectors = random.standard_normal(size * DIMENSION).astype("float32")
        yield pa.record_batch(
            {
                "id": pa.array(np.arange(first, first + size)),
                "number": pa.array(random.integers(0, 1_000_000, size)),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
            }
        )
