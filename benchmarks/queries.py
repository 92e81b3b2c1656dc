"""Queries of one table: counts, scans, vector and full-text searches, and many rows out.

Both servers read the same files: the table is written and indexed once and copied below the root of the peer.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import numpy as np
import pyarrow as pa

from benchmarks.support.report import Report, Table, count, milliseconds
from benchmarks.support.servers import Server, serve_ours, serve_peer

ROWS = 1_000_000
PART = 50_000
DIMENSION = 128
WORDS = 20_000
WORDS_IN_TEXT = 8
PARTITIONS = 256
REPEATS = 60
QUERIES = 40
"""Searches differ, so that nothing but indices and pages can come from a cache."""
OUT = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: for each repetition, the requests that are sent one after another."""

    name: str
    ours: Sequence[tuple[str, Any]]
    peer: Sequence[Sequence[tuple[str, Any]]]


def run(directory: Path, rows: int = ROWS) -> Report:
    """Measure each kind of query on both servers, one request at a time."""
    kinds = _kinds(rows)
    ours_root, peer_root = directory / "ours", directory / "peer"
    ours_root.mkdir()
    peer_root.mkdir()
    with serve_ours(ours_root) as ours:
        shutil.copytree(_write(ours, rows), peer_root / "t.lance")
        with serve_peer(peer_root) as peer:
            measured = {
                kind.name: _measure([(ours, [[request] for request in kind.ours]), (peer, kind.peer)]) for kind in kinds
            }
            memory = ours.resident_bytes()
    alone = Table("What takes time without a server", ("step, in one process", "ms"))
    for step, seconds in _measure_alone(str(peer_root / "t.lance"), rows).items():
        alone.add(step, milliseconds(seconds))
    alone.notes.append("The rest of the time of these queries is HTTP and processes. The count is nothing else.")
    table = Table(
        f"Queries of {count(rows)} rows with vectors of {DIMENSION} numbers and texts of {WORDS_IN_TEXT} words",
        ("query", "ours, ms", "p90 ms", "peer, ms", "p90 ms", "time of ours by that of the peer"),
    )
    for kind in kinds:
        mine, theirs = measured[kind.name]
        table.add(
            kind.name,
            milliseconds(mine[0]),
            milliseconds(mine[1]),
            milliseconds(theirs[0]),
            milliseconds(theirs[1]),
            f"{mine[0] / theirs[0]:.2f}",
        )
    table.notes.append(
        "Hybrid: one request to our server; to the peer, which refuses it, the two searches of a client."
    )
    table.notes.append(f"Memory of our server itself at the end: {count(memory / 1e6)} MB; queries run beside it.")
    return Report(
        "queries",
        "Queries of one table",
        "One request at a time, to one server and the other in turn, each on one connection; medians of "
        f"{REPEATS} requests after as many that are not counted. The table has an IVF_PQ index of {PARTITIONS} "
        "partitions, a full-text index and a B-tree. Both servers read the same files from the page cache.",
        [table, alone],
    )


def _kinds(rows: int) -> list[Kind]:
    random = np.random.default_rng(3)
    vectors = random.standard_normal((QUERIES, DIMENSION)).astype("float32").tolist()
    texts = [" ".join(f"w{word}" for word in random.integers(0, WORDS // 10, 2)) for _ in range(QUERIES)]
    columns = {"column_names": ["id", "number"]}

    def query(**request: Any) -> tuple[str, Any]:
        return "query", {"k": 10, "vector": {}, "columns": columns, **request}

    near = [query(vector={"single_vector": vector}, vector_column="vector") for vector in vectors]
    text = [query(full_text_query={"string_query": {"query": words}}) for words in texts]
    both = [query(**{**one[1], **other[1], "vector": one[1]["vector"]}) for one, other in zip(near, text, strict=True)]
    single: dict[str, list[tuple[str, Any]]] = {
        "count": [("count_rows", {})],
        "count with a filter": [("count_rows", {"predicate": "number % 7 = 3"})],
        "point lookup by B-tree": [query(filter=f"id = {row}") for row in random.integers(0, rows, QUERIES).tolist()],
        "scan with a filter, 1 of 1,000 rows": [query(filter="number % 1000 = 7", k=0)],
        "vector search, 10 rows": near,
        "full-text search, 10 rows": text,
        f"{count(OUT)} rows, two columns": [query(k=min(OUT, rows))],
        f"{count(OUT)} rows, all columns": [query(k=min(OUT, rows), columns={})],
    }
    kinds = [Kind(name, requests, [[request] for request in requests]) for name, requests in single.items()]
    kinds.append(Kind("hybrid search, 10 rows", both, list(zip(near, text, strict=True))))
    return kinds


Groups = Sequence[Sequence[tuple[str, Any]]]
"""Requests for each repetition, which are sent one after another."""


def _measure(asked: Sequence[tuple[Server, Groups]]) -> list[tuple[float, float]]:
    """The median and the ninth decile of the times of the requests, in seconds, for each server.

    They are asked in turn: what else the machine does then slows both.
    """
    encoded = [[[(path, json.dumps(body).encode()) for path, body in group] for group in groups] for _, groups in asked]
    times: list[list[float]] = [[] for _ in asked]
    with ExitStack() as opened:
        connections = [opened.enter_context(server.connect()) for server, _ in asked]
        for number in range(2 * REPEATS):
            for connection, groups, found in zip(connections, encoded, times, strict=True):
                began = time.perf_counter()
                for path, body in groups[number % len(groups)]:
                    connection.send(f"/v1/table/t/{path}", body)
                if number >= REPEATS:
                    found.append(time.perf_counter() - began)
    return [(statistics.median(found), statistics.quantiles(found, n=10)[-1]) for found in times]


def _measure_alone(uri: str, rows: int) -> dict[str, float]:
    """Median seconds of what pylance and Arrow do for a short query."""
    dataset, columns = lance.dataset(uri), ["id", "number"]
    wanted = np.random.default_rng(4).integers(0, rows, 2 * REPEATS).tolist()
    found: dict[str, list[float]] = {}

    def take(step: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = work()
        found.setdefault(step, []).append(time.perf_counter() - began)
        return result

    for row in wanted:
        lookup = dataset.scanner(columns=columns, filter=f"id = {row}", limit=10)
        take("point lookup by B-tree, by pylance", lookup.to_table)
        scan = dataset.scanner(columns=columns, limit=min(OUT, rows))
        out = take(f"{count(OUT)} rows, two columns, by pylance", scan.to_table)
        take("these rows as an Arrow file", partial(_encode, out))
    return {step: statistics.median(times[REPEATS:]) for step, times in found.items()}


def _encode(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _write(server: Server, rows: int) -> Path:
    """Write the table through our server, with its indices; where it is."""
    client = lance_namespace.connect("rest", {"uri": f"http://127.0.0.1:{server.port}"})
    parts = _parts(rows)
    first = next(parts)

    def batches() -> Iterator[pa.RecordBatch]:
        yield first
        yield from parts

    reader = pa.RecordBatchReader.from_batches(first.schema, batches())
    dataset = lance.write_dataset(reader, namespace_client=client, table_id=["t"], mode="create")
    partitions = min(PARTITIONS, max(rows // 1000, 2))
    dataset.create_index("vector", "IVF_PQ", num_partitions=partitions, num_sub_vectors=DIMENSION // 8)
    dataset.create_scalar_index("text", "INVERTED")
    dataset.create_scalar_index("id", "BTREE")
    return Path(dataset.uri.removeprefix("file://"))


def _parts(rows: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for first in range(0, rows, PART):
        size = min(PART, rows - first)
        # Words of different frequency, as in a language.
        words = np.minimum(random.zipf(1.3, (size, WORDS_IN_TEXT)), WORDS)
        vectors = random.standard_normal(size * DIMENSION).astype("float32")
        yield pa.record_batch(
            {
                "id": pa.array(np.arange(first, first + size)),
                "number": pa.array(random.integers(0, 1_000_000, size)),
                "text": pa.array([" ".join(f"w{word}" for word in line) for line in words.tolist()]),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
            }
        )
