"""Rows written over HTTP: inserts, an update, a delete, a merge, an index, and inserts of many clients at once."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import lance
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
    with serve_ours(directory / "ours") as ours, serve_peer(directory / "peer") as peer:
        servers = {"ours": ours, "peer": peer}
        for server in servers.values():
            server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {"id": [NAMESPACE]})
        times = _measure_times(servers)
        parts = _measure_parts(ours, directory)
        rates = {who: _measure_rate(server, directory) for who, server in servers.items()}
    table = Table("One client", ("request", "ours ms", "peer ms", "ours against peer"))
    for kind, found in times.items():
        compared = ratio(found["peer"], found["ours"]) if "peer" in found else ""
        table.add(kind, *(milliseconds(found[who]) if who in found else "refused" for who in servers), compared)
    table.notes.append("The peer refuses bodies of more than 2 MiB, and so the insert of 1,000,000 rows.")
    apart = Table("Where the time of an insert of 100 rows goes", ("request", "ms"))
    for part, seconds in parts.items():
        apart.add(part, milliseconds(seconds))
    apart.notes.append("Rows that are staged are written by a worker; a batch commits them. The count is HTTP alone.")
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
        "Medians of requests by one client, to one server and the other in turn. Updates, deletes and merges change "
        f"some of {count(ROWS)} rows, which then get an index. At the end {CLIENTS} clients insert for "
        f"{SECONDS:.0f} s, each with one request under way.",
        [table, apart, together],
    )


def _measure_times(servers: Mapping[str, Server]) -> dict[str, dict[str, float]]:
    """Seconds by kind of request and server."""
    found: dict[str, dict[str, float]] = {}
    with ExitStack() as opened:
        clients = {who: opened.enter_context(_client(server)) for who, server in servers.items()}
        for size in SIZES:
            route, body = f"/v1/table/{NAMESPACE}$insert_{size}", _rows(size)
            those = {who: client for who, client in clients.items() if who == "ours" or len(body) <= PEER_BODY}
            for client in those.values():
                _send(client, f"{route}/create", _rows(10))
            found[f"insert of {count(size)} rows"] = _medians(
                REPEATS[size], {who: partial(_insert, client, f"{route}/insert", body) for who, client in those.items()}
            )
        route = f"/v1/table/{NAMESPACE}$changed"
        for client in clients.values():
            _send(client, f"{route}/create", _rows(PIECE))
            for first in range(PIECE, ROWS, PIECE):
                _send(client, f"{route}/insert", _rows(PIECE, first))
        merge = f"{route}/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true"
        changes: dict[str, Callable[[httpx.Client, int], None]] = {
            "merge of 1,000 rows, half of them new": lambda client, number: _send(
                client, merge, _rows(1000, ROWS - 500 + 500 * number)
            ),
            "update of 100 rows": lambda client, number: _change(
                client, f"{route}/update", updates=[["value", "value + 1"]], predicate=_hundred(number)
            ),
            "delete of 100 rows": lambda client, number: _change(client, f"{route}/delete", predicate=_hundred(number)),
            "B-tree on a column": lambda client, number: _change(
                client, f"{route}/create_scalar_index", column="id", index_type="BTREE", name=f"by_id_{number}"
            ),
        }
        for kind, change in changes.items():
            found[kind] = _medians(CHANGES, {who: partial(change, client) for who, client in clients.items()})
    return found


def _measure_parts(server: Server, directory: Path) -> dict[str, float]:
    """The parts of an insert as requests of their own, and an append by pylance without any server."""
    route, body = f"/v1/table/{NAMESPACE}$parts", _rows(SIZES[0])
    uri, rows = str(directory / "alone"), pa.ipc.open_stream(body).read_all()
    lance.write_dataset(rows, uri)
    staged: list[object] = []

    def stage(_: int) -> None:
        answer = client.post(f"{route}/stage?mode=append", content=body, headers=ARROW).raise_for_status()
        staged.append(answer.json()["operations"])

    with _client(server) as client:
        _send(client, f"{route}/create", _rows(10))
        return _medians(
            REPEATS[SIZES[0]],
            {
                "insert": partial(_insert, client, f"{route}/insert", body),
                "rows staged": stage,
                "their batch": lambda _: _change(client, "/v1/table/batch-commit", operations=staged.pop()),
                "count of rows": lambda _: _change(client, f"{route}/count_rows"),
                "append by pylance, no server": lambda _: lance.write_dataset(rows, uri, mode="append"),
            },
        )


def _measure_rate(server: Server, directory: Path) -> tuple[float, int]:
    """Committed inserts per second, and the number of those that were refused."""
    route = f"/v1/table/{NAMESPACE}$together"
    with _client(server) as client:
        _send(client, f"{route}/create", _rows(10))
    inserts = [Request(number, "POST", f"{route}/insert", _rows(100, 100 * number)) for number in range(CLIENTS)]
    load = drive(server.port, CLIENTS, inserts, directory, SECONDS, may_fail=True)
    return (load.requests - load.failed) / load.seconds, load.failed


def _medians(repeats: int, requests: Mapping[str, Callable[[int], None]]) -> dict[str, float]:
    """Median seconds of each request. They are sent in turn: what else the machine does then slows all."""
    times: dict[str, list[float]] = {name: [] for name in requests}
    for number in range(repeats + 1):
        for name, request in requests.items():
            began = time.perf_counter()
            request(number)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def _client(server: Server) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=600)


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
