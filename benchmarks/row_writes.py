"""Rows written over HTTP: inserts, an update, a delete, a merge, an index, and inserts of many clients at once."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import lance
import numpy as np
import orjson
import pyarrow as pa

from benchmarks.load import Request, drive
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import ARROW, JSON, Connection, Server, serve_ours, serve_peer

SIZES = (100, 10_000, 1_000_000)
CLIENTS = 16
SECONDS = 10.0
REPEATS = {100: 101, 10_000: 51, 1_000_000: 6}
CHANGES = 21
ROWS = 100_000
PIECES = (5, 50)
"""Fragments of the tables that are changed, before the first change."""
PEER_BODY = 2 << 20
"""Bytes of a body that the peer accepts."""
WIDE = 50
"""Columns of numbers in a wide table."""
WIDE_PIECES = 25
NAMESPACE = "rows"


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
    table.notes.append(
        "An update of no rows is found and scanned, and commits nothing. Our commits are batches: they write the new "
        "version of the table and one of the catalog, the peer's only the first. That is a fixed time of each change."
    )
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
        f"some of {count(ROWS)} rows; each leaves one more fragment or deletion file. Those that were merged get an "
        f"index. At the end {CLIENTS} clients insert for {SECONDS:.0f} s, each with one request under way.",
        [table, apart, together],
    )


def _measure_times(servers: Mapping[str, Server]) -> dict[str, dict[str, float]]:
    """Seconds by kind of request and server."""
    found: dict[str, dict[str, float]] = {}
    with ExitStack() as opened:
        clients = {who: opened.enter_context(server.connect()) for who, server in servers.items()}
        for size in SIZES:
            route, body = f"/v1/table/{NAMESPACE}$insert_{size}", _rows(size)
            those = {who: client for who, client in clients.items() if who == "ours" or len(body) <= PEER_BODY}
            for client in those.values():
                client.send(f"{route}/create", _rows(10), ARROW)
            found[f"insert of {count(size)} rows"] = _in_turn(those, f"{route}/insert", [body] * REPEATS[size], ARROW)
        hundreds = [f"id >= {first} AND id < {first + 100}" for first in range(0, 100 * CHANGES, 100)]
        updates = [orjson.dumps({"updates": [["value", "value + 1"]], "predicate": some}) for some in hundreds]
        nothing = orjson.dumps({"updates": [["value", "value + 1"]], "predicate": "id < 0"})
        for pieces in PIECES:
            route = f"/v1/table/{NAMESPACE}$of_{pieces}"
            for client in clients.values():
                _fill(client, route, pieces)
            found[f"update of no rows, {pieces} fragments"] = _in_turn(clients, f"{route}/update", [nothing] * CHANGES)
            found[f"update of 100 rows, {pieces} fragments"] = _in_turn(clients, f"{route}/update", updates)
            deletes = [orjson.dumps({"predicate": some}) for some in hundreds]
            found[f"delete of 100 rows, {pieces} fragments"] = _in_turn(clients, f"{route}/delete", deletes)
        route = f"/v1/table/{NAMESPACE}$wide"
        for client in clients.values():
            _fill(client, route, WIDE_PIECES, WIDE)
        found[f"update of 100 rows, {WIDE} columns"] = _in_turn(clients, f"{route}/update", updates)
        route = f"/v1/table/{NAMESPACE}$merged"
        for client in clients.values():
            _fill(client, route, PIECES[0])
        merge = f"{route}/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true"
        merged = [_rows(1000, ROWS - 500 + 500 * number) for number in range(CHANGES)]
        found["merge of 1,000 rows, half of them new"] = _in_turn(clients, merge, merged, ARROW)
        indices = [
            orjson.dumps({"column": "id", "index_type": "BTREE", "name": f"by_id_{number}"})
            for number in range(CHANGES)
        ]
        found["B-tree on a column"] = _in_turn(clients, f"{route}/create_scalar_index", indices)
    return found


def _fill(client: Connection, route: str, pieces: int, numbers: int = 0) -> None:
    """Make a table of `ROWS` rows in so many fragments."""
    size = ROWS // pieces
    client.send(f"{route}/create", _rows(size, numbers=numbers), ARROW)
    for first in range(size, ROWS, size):
        client.send(f"{route}/insert", _rows(size, first, numbers), ARROW)


def _in_turn(
    clients: Mapping[str, Connection], path: str, bodies: Sequence[bytes], media_type: str = JSON
) -> dict[str, float]:
    """Median seconds of the requests, by client."""

    def sender(client: Connection) -> Callable[[int], object]:
        return lambda number: client.send(path, bodies[number], media_type)

    return _medians(len(bodies), {who: sender(client) for who, client in clients.items()})


def _measure_parts(server: Server, directory: Path) -> dict[str, float]:
    """The parts of an insert as requests of their own, and an append by pylance without any server."""
    route, body = f"/v1/table/{NAMESPACE}$parts", _rows(SIZES[0])
    uri, rows = str(directory / "alone"), pa.ipc.open_stream(body).read_all()
    lance.write_dataset(rows, uri)
    staged: list[bytes] = []

    def commit(_: int) -> None:
        client.send("/v1/table/batch-commit", orjson.dumps({"operations": orjson.loads(staged.pop())["operations"]}))

    with server.connect() as client:
        client.send(f"{route}/create", _rows(10), ARROW)
        return _medians(
            REPEATS[SIZES[0]],
            {
                "insert": lambda _: client.send(f"{route}/insert", body, ARROW),
                "rows staged": lambda _: staged.append(client.send(f"{route}/stage?mode=append", body, ARROW)),
                "their batch": commit,
                "count of rows": lambda _: client.send(f"{route}/count_rows", b"{}"),
                "append by pylance, no server": lambda _: lance.write_dataset(rows, uri, mode="append"),
            },
        )


def _measure_rate(server: Server, directory: Path) -> tuple[float, int]:
    """Committed inserts per second, and the number of those that were refused."""
    route = f"/v1/table/{NAMESPACE}$together"
    with server.connect() as client:
        client.send(f"{route}/create", _rows(10), ARROW)
    inserts = [Request(number, "POST", f"{route}/insert", _rows(100, 100 * number)) for number in range(CLIENTS)]
    load = drive(server.port, CLIENTS, inserts, directory, SECONDS, may_fail=True)
    return (load.requests - load.failed) / load.seconds, load.failed


def _medians(repeats: int, requests: Mapping[str, Callable[[int], object]]) -> dict[str, float]:
    """Median seconds of each request but the first. They are sent in turn: what the machine does then slows all."""
    times: dict[str, list[float]] = {name: [] for name in requests}
    for number in range(repeats):
        for name, request in requests.items():
            began = time.perf_counter()
            request(number)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def _rows(size: int, first: int = 0, numbers: int = 0) -> bytes:
    """Three columns, and so many columns of numbers."""
    random = np.random.default_rng(size)
    rows = pa.table(
        {
            "id": np.arange(first, first + size),
            "value": random.random(size),
            "name": [f"row {number}" for number in range(size)],
            **{f"number_{column}": random.random(size) for column in range(numbers)},
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
