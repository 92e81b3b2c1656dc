"""One table through lancedb: as a remote database, through the namespace client, and in process.

All sides do the same calls in turn. The remote client sends rows and queries to our server. So does a program that
sends its requests without lancedb, and one that uses the namespace API, by pylance's client of it. Lancedb's namespace
connection asks the server where tables are, and reads and writes files itself. In process lancedb works in a directory,
which has no catalog.
"""

from __future__ import annotations

import io
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import lance
import lance_namespace as spec
import lancedb
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import ARROW, Connection, Server, serve_ours

DATABASE = "bench"
SEARCHED = 1_000_000
DIMENSION = 128
PARTITIONS = 256
PART = 50_000
SEARCHES = 60
PROBES = 20
"""What lancedb asks for where a program says nothing."""
COLUMNS = ["id", "number", "_distance"]
FEW, MANY = 100, 1_000_000
ADDS = {FEW: 61, MANY: 7}
KEPT = 100_000
MERGED = 1_000
MERGES = 31

REMOTE, REQUEST, API, CONNECTION, ALONE = (
    "`db://`",
    "its request alone",
    "namespace API",
    "`connect_namespace`",
    "in process",
)
OTHERS = (REQUEST, API, CONNECTION, ALONE)
SHARED = (REMOTE, REQUEST, API, CONNECTION)
"""Sides of one database."""


class Subject(Protocol):
    """A table of one side."""

    def search(self, vector: npt.NDArray[np.float32]) -> pa.Table:
        """The ten nearest rows."""

    def add(self, rows: pa.Table) -> None:
        """Add rows."""

    def merge(self, rows: pa.Table) -> None:
        """Update rows that are there, by their ids, and insert the others."""

    def count(self) -> int:
        """The number of rows."""


@dataclass(frozen=True, slots=True)
class LancedbTable:
    """A table of lancedb."""

    table: Any

    def search(self, vector: npt.NDArray[np.float32]) -> pa.Table:
        return self.table.search(vector).limit(10).select(COLUMNS).to_arrow()

    def add(self, rows: pa.Table) -> None:
        self.table.add(rows)

    def merge(self, rows: pa.Table) -> None:
        self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def count(self) -> int:
        return int(self.table.count_rows())


@dataclass(frozen=True, slots=True)
class RequestTable:
    """A table by the requests that lancedb's remote client makes, without the client."""

    connection: Connection
    name: str

    def search(self, vector: npt.NDArray[np.float32]) -> pa.Table:
        unset = dict.fromkeys(("version", "refine_factor", "ef", "lower_bound", "upper_bound"))
        probes = dict.fromkeys(("nprobes", "minimum_nprobes", "maximum_nprobes"), PROBES)
        request = {"prefilter": True, "k": 10, "vector": vector.tolist(), "columns": COLUMNS, **unset, **probes}
        return pa.ipc.open_file(self._send("query/", orjson.dumps(request), "application/json")).read_all()

    def add(self, rows: pa.Table) -> None:
        self._send("insert/", _stream(rows, "lz4"))

    def merge(self, rows: pa.Table) -> None:
        self._send(
            "merge_insert/?on=id&when_matched_update_all=true&when_not_matched_insert_all=true", _stream(rows, "lz4")
        )

    def count(self) -> int:
        return int(self._send("count_rows/", b'{"predicate":null,"version":null}', "application/json"))

    def _send(self, operation: str, body: bytes, media_type: str = ARROW) -> bytes:
        return self.connection.send(f"/v1/table/{self.name}/{operation}", body, media_type)


@dataclass(frozen=True, slots=True)
class ApiTable:
    """A table by requests of the namespace API."""

    namespace: Any
    id: list[str]

    def search(self, vector: npt.NDArray[np.float32]) -> pa.Table:
        request = {
            "id": self.id,
            "k": 10,
            "vector": {"single_vector": vector.tolist()},
            "vector_column": "vector",
            "columns": {"column_names": COLUMNS},
            "nprobes": PROBES,
        }
        return pa.ipc.open_file(self.namespace.query_table(request).data).read_all()

    def add(self, rows: pa.Table) -> None:
        self.namespace.insert_into_table(spec.InsertIntoTableRequest(id=self.id), _stream(rows))

    def merge(self, rows: pa.Table) -> None:
        request = spec.MergeInsertIntoTableRequest(
            id=self.id, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True, use_index=True
        )
        self.namespace.merge_insert_into_table(request, _stream(rows))

    def count(self) -> int:
        return int(self.namespace.count_table_rows(spec.CountTableRowsRequest(id=self.id)).count)


def run(directory: Path, searched: int = SEARCHED) -> Report:
    """Measure each call on all sides."""
    root, local = directory / "catalog", directory / "local"
    root.mkdir()
    with serve_ours(root) as server:
        sides = Sides(server, local)
        shutil.copytree(_write_searched(sides.api, searched), local / "searched.lance")
        found = {f"vector search in {count(searched)} rows, 10 rows": _searches(sides.open("searched"))}
        for size, repeats in ADDS.items():
            found[f"add of {count(size)} rows"] = _adds(sides.create(f"added_{size}", _rows(10)), size, repeats)
        merge = f"merge_insert of {count(MERGED)} rows, half of them new, into {count(KEPT)}"
        found[merge] = _merges(sides.create("merged", _rows(KEPT)))
    table = Table(
        "The same call on each side",
        (
            *("call", f"{REMOTE}, ms", "p90 ms"),
            *(f"{side}, ms" for side in OTHERS),
            f"{REQUEST} by {API}",
            *(f"{REMOTE} by {side}" for side in (API, CONNECTION, ALONE)),
        ),
    )
    for call, times in found.items():
        medians = {side: statistics.median(each) for side, each in times.items()}
        table.add(
            call,
            milliseconds(medians[REMOTE]),
            milliseconds(statistics.quantiles(times[REMOTE], n=10)[-1]),
            *(milliseconds(medians[side]) for side in OTHERS),
            f"{medians[REQUEST] / medians[API]:.2f}",
            *(f"{medians[REMOTE] / medians[side]:.2f}" for side in (API, CONNECTION, ALONE)),
        )
    table.notes.append(
        f"{REMOTE} and the namespace API send the work to the server. The last two do it in the process of the "
        "client, on files of the same disk: they encode no rows, send none, and search the version that they opened, "
        "where the server looks for the newest one. Lancedb 0.40 pushes no vector search down to a server."
    )
    table.notes.append(
        f"{REMOTE} less its request alone is the time of lancedb's client; the request by that of the namespace API is "
        "what the dialect costs."
    )
    table.notes.append("In process nothing is committed to a catalog.")
    return Report(
        "db",
        "Remote databases of lancedb",
        "The sides in turn, one call at a time; medians, without the first calls. The searched table has vectors of "
        f"{DIMENSION} numbers and an IVF_PQ index of {PARTITIONS} partitions, and is the same on all sides. Rows that "
        f"are added or merged have three columns. The last columns are times of {REMOTE} by those of the others: below "
        "1 it is faster.",
        [table],
    )


class Sides:
    """The connections of all sides. They share a database, but for the last one, which has its own."""

    def __init__(self, server: Server, local: Path) -> None:
        url = f"http://127.0.0.1:{server.port}"
        agent = {"x-lancedb-database": DATABASE, "user-agent": f"LanceDB-Python-Client/{lancedb.__version__}"}
        self._request = Connection(server.port, agent)
        self.api = spec.connect("rest", {"uri": url})
        self._native = lance.namespace.RestNamespace(uri=url)
        self._remote = lancedb.connect(f"db://{DATABASE}", api_key="any", host_override=url)
        self._connection = lancedb.connect_namespace("rest", {"uri": url})
        self._alone = lancedb.connect(local)
        self._remote.create_table("first", _rows(1))  # which creates the database

    def open(self, name: str, *, own: bool = False) -> dict[str, Subject]:
        """The table of each side: one for those that share the database, or a copy for each."""
        names = {side: f"{name}_{place}" if own else name for place, side in enumerate(SHARED)}
        return {
            REMOTE: LancedbTable(self._remote.open_table(names[REMOTE])),
            REQUEST: RequestTable(self._request, names[REQUEST]),
            API: ApiTable(self._native, [DATABASE, names[API]]),
            CONNECTION: LancedbTable(self._connection.open_table(names[CONNECTION], namespace_path=[DATABASE])),
            ALONE: LancedbTable(self._alone.open_table(name)),
        }

    def create(self, name: str, rows: pa.Table) -> dict[str, Subject]:
        """A new table with these rows for each side."""
        for place in range(len(SHARED)):
            self._remote.create_table(f"{name}_{place}", rows)
        self._alone.create_table(name, rows)
        return self.open(name, own=True)


Times = dict[str, list[float]]
"""Seconds by side."""


def _searches(tables: Mapping[str, Subject]) -> Times:
    """Different searches; each side finds the same rows."""
    random = np.random.default_rng(3)
    vectors = random.standard_normal((2 * SEARCHES, DIMENSION)).astype("float32")
    answers = [table.search(vectors[0])["id"].to_pylist() for table in tables.values()]
    if any(each != answers[0] for each in answers):
        raise RuntimeError(f"expected the same rows from all sides, found {answers}")
    return _in_turn(tables, lambda table, number: table.search(vectors[number]), 2 * SEARCHES, SEARCHES)


def _adds(tables: Mapping[str, Subject], size: int, repeats: int) -> Times:
    rows = _rows(size)
    times = _in_turn(tables, lambda table, _: table.add(rows), repeats, max(repeats // 4, 1))
    _check_counts(tables, 10 + repeats * size)
    return times


def _merges(tables: Mapping[str, Subject]) -> Times:
    parts = [_rows(MERGED, KEPT + MERGED // 2 * (number - 1)) for number in range(MERGES)]
    times = _in_turn(tables, lambda table, number: table.merge(parts[number]), MERGES, MERGES // 4)
    _check_counts(tables, KEPT + MERGED // 2 * MERGES)
    return times


def _check_counts(tables: Mapping[str, Subject], expected: int) -> None:
    for side, table in tables.items():
        if (found := table.count()) != expected:
            raise RuntimeError(f"{side}: expected {expected} rows, found {found}")


def _in_turn(
    tables: Mapping[str, Subject], call: Callable[[Subject, int], object], repeats: int, left_out: int
) -> Times:
    """Times of the calls without the first ones. The sides are in turn: what the machine does then slows all."""
    times: Times = {side: [] for side in tables}
    sides = list(tables)
    for number in range(repeats):
        for place in range(len(sides)):
            side = sides[(place + number) % len(sides)]
            began = time.perf_counter()
            call(tables[side], number)
            if number >= left_out:
                times[side].append(time.perf_counter() - began)
    return times


def _stream(rows: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _rows(size: int, first: int = 0) -> pa.Table:
    random = np.random.default_rng(size)
    names = [f"row {number}" for number in range(first, first + size)]
    return pa.table({"id": np.arange(first, first + size), "value": random.random(size), "name": names})


def _write_searched(client: spec.LanceNamespace, rows: int) -> Path:
    """Write the table of vectors and its index into the database; where it is."""
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
