"""Rows written over HTTP: inserts, an update, a delete, a merge, an index, and inserts of many clients at once."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa

from benchmarks.load import Request, drive
from benchmarks.report import Report, Table, count, milliseconds, ratio
from benchmarks.servers import Server, serve_ours, serve_peer

SIZES = (100, 10_000, 1_000_000)
CLIENTS = 16
SECONDS = 10.0
REPEATS = {100: 100, 10_000: 50, 1_000_000: 5}
CHANGES = 20
ROWS = 100_000
PIECE = 20_000
PEER_BODY = 2 << 20
"""Bytes of a body that the peer accepts."""
NAMESPACE = "rows"
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def run(directory: Path) -> Report:
    """Measure each kind of write on both servers."""
    times: dict[str, dict[str, float]] = {}
    rates: dict[str, tuple[float, int]] = {}
    for who, serve in (("ours", serve_ours), ("peer", serve_peer)):
        with serve(directory / who) as server:
            server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {"id": [NAMESPACE]})
            times[who] = _measure_times(server, None if who == "ours" else PEER_BODY)
            rates[who] = _measure_rate(server, directory)
    table = Table("One client", ("request", "ours ms", "peer ms", "ours against peer"))
    for kind, ours in times["ours"].items():
        peer = times["peer"].get(kind)
        shown = ("refused", "") if peer is None else (milliseconds(peer), ratio(peer, ours))
        table.add(kind, milliseconds(ours), *shown)
    table.notes.append("The peer refuses bodies of more than 2 MiB, and so the insert of 1,000,000 rows.")
    together = Table(
        f"{CLIENTS} clients insert 100 rows each time into one table",
        ("server", "committed inserts/s", "refused", "ours against peer"),
    )
    for who, (rate, refused) in rates.items():
        compared = ratio(rates["ours"][0], rates["peer"][0]) if who == "ours" else ""
        together.add(who, count(rate), count(refused), compared)
    together.notes.append("Refused: answered with a conflict or another error, after which the client goes on.")
    return Report(
        "row_writes",
        "Writing rows",
        f"Medians of requests by one client. Updates, deletes and merges change some of {count(ROWS)} rows, which then "
        f"get an index. At the end {CLIENTS} clients insert for {SECONDS:.0f} s, each with one request under way.",
        [table, together],
    )


def _measure_times(server: Server, most: int | None) -> dict[str, float]:
    found: dict[str, float] = {}
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=600) as client:
        for size in SIZES:
            route, body = f"/v1/table/{NAMESPACE}$insert_{size}", _rows(size)
            if most is not None and len(body) > most:
                continue
            _send(client, f"{route}/create", _rows(10))
            insert = partial(_insert, client, f"{route}/insert", body)
            found[f"insert of {count(size)} rows"] = _median(REPEATS[size], insert)
        route = f"/v1/table/{NAMESPACE}$changed"
        _send(client, f"{route}/create", _rows(PIECE))
        for first in range(PIECE, ROWS, PIECE):
            _send(client, f"{route}/insert", _rows(PIECE, first))
        merge = f"{route}/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true"
        found["merge of 1,000 rows, half of them new"] = _median(
            CHANGES, lambda number: _send(client, merge, _rows(1000, ROWS - 500 + 500 * number))
        )
        found["update of 100 rows"] = _median(
            CHANGES,
            lambda number: _change(
                client, f"{route}/update", updates=[["value", "value + 1"]], predicate=_hundred(number)
            ),
        )
        found["delete of 100 rows"] = _median(
            CHANGES, lambda number: _change(client, f"{route}/delete", predicate=_hundred(number))
        )
        index = partial(_change, client, f"{route}/create_scalar_index", column="id", index_type="BTREE")
        found["B-tree on a column"] = _median(CHANGES, lambda number: index(name=f"by_id_{number}"))
    return found


def _measure_rate(server: Server, directory: Path) -> tuple[float, int]:
    """Committed inserts per second, and the number of those that were refused."""
    route = f"/v1/table/{NAMESPACE}$together"
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=600) as client:
        _send(client, f"{route}/create", _rows(10))
    inserts = [Request(number, "POST", f"{route}/insert", _rows(100, 100 * number)) for number in range(CLIENTS)]
    load = drive(server.port, CLIENTS, inserts, directory, SECONDS, may_fail=True)
    return (load.requests - load.failed) / load.seconds, load.failed


def _median(repeats: int, request: Callable[[int], None]) -> float:
    request(0)
    times = []
    for number in range(1, repeats + 1):
        began = time.perf_counter()
        request(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _send(client: httpx.Client, path: str, body: bytes) -> None:
    client.post(path, content=body, headers=ARROW).raise_for_status()


def _insert(client: httpx.Client, path: str, body: bytes, _: int) -> None:
    _send(client, path, body)


def _change(client: httpx.Client, path: str, **body: object) -> None:
    client.post(path, json=body).raise_for_status()


def _hundred(number: int) -> str:
    return f"id >= {number * 100} AND id < {number * 100 + 100}"


def _rows(size: int, first: int = 0) -> bytes:
    rows = pa.table(
        {
            "id": np.arange(first, first + size),
            "value": np.random.default_rng(size).random(size),
            "name": [f"row {number}" for number in range(size)],
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
