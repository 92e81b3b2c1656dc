"""Describing and listing tables of a namespace that holds two thousand.

Each kind of request is measured twice: in bytes that the server has not seen before, so that nothing can come from the
response cache; and again and again in the same bytes, as clients that poll send them.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.load import Load, Request, drive, object_path
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import Server, serve_ours, serve_peer
from benchmarks.support.staging import StagedTable, create_first_versions, declare_tables, flush_files, write_template

TABLES = 2_000
CONNECTIONS = 8
SECONDS = 3.0
NAMESPACE = "reads"
CHANGES = "changes"
CHANGES_PER_SECOND = 20
NEW_REQUESTS = {"ours": 40_000, "peer": 4_000}


def run(directory: Path) -> Report:
    """Measure each kind of request on both servers."""
    template = write_template(directory)
    found: dict[str, dict[str, Load]] = {}
    for who, serve in (("ours", serve_ours), ("peer", serve_peer)):
        with serve(directory / who) as server:
            batch = who == "ours"
            for namespace in (NAMESPACE, CHANGES):
                server.call("POST", f"/v1/namespace/{namespace}/create", {"id": [namespace]})
            names = [(NAMESPACE, f"table_{number:04d}") for number in range(TABLES)]
            tables = declare_tables(server, names, batch=batch)
            create_first_versions(server, tables, template, batch=batch)
            flush_files()
            found[who] = _measure_new(server, tables, directory, NEW_REQUESTS[who]) | _measure(
                server, tables, directory
            )
    table = Table(
        f"Reads of a namespace of {count(TABLES)} tables, {CONNECTIONS} connections",
        ("request", "ours/s", "p50 ms", "p99 ms", "peer/s", "p50 ms", "p99 ms", "ours against peer"),
    )
    for request, ours in found["ours"].items():
        peer = found["peer"][request]
        table.add(
            request,
            count(ours.per_second),
            milliseconds(ours.p50),
            milliseconds(ours.p99),
            count(peer.per_second),
            milliseconds(peer.p50),
            milliseconds(peer.p99),
            ratio(ours.per_second, peer.per_second),
        )
    table.notes.append(
        "Tables in a namespace, which the peer looks up in `__manifest`. Its tables at the root come from a directory "
        "listing instead and are faster: see the last table."
    )
    return Report(
        "table_reads",
        "Reading the catalog",
        f"{CONNECTIONS} connections, each with one request under way. Requests never seen before are sent once each; "
        f"the others are repeated for {SECONDS:.0f} s, so that ours come from the response cache. Every answer of ours "
        "is that of the newest catalog version: the storage is asked for a newer one after the request has come, once "
        "for all requests of one iteration of the event loop. Access logs are off: the peer has none.",
        [table, _measure_root_tables(directory)],
    )


def _measure(server: Server, tables: Sequence[StagedTable], directory: Path) -> dict[str, Load]:
    shuffled = list(tables)
    Random(7).shuffle(shuffled)
    kinds = {
        "describe, from the response cache": [
            _describe(table.identifier, number) for number, table in enumerate(shuffled)
        ],
        "newest version of a table": [_newest(table.identifier, number) for number, table in enumerate(shuffled)],
        "list all 2,000 tables": [_list(number, "") for number in range(CONNECTIONS)],
        "page of 100, from the response cache": [_list(number, "&limit=100") for number in range(CONNECTIONS)],
    }
    loads = {kind: _drive_warm(server, requests, directory) for kind, requests in kinds.items()}
    with _changing(server):
        changing = f"describe, {CHANGES_PER_SECOND} changes a second"
        loads[changing] = _drive_warm(server, kinds["describe, from the response cache"], directory)
    return loads


def _measure_new(server: Server, tables: Sequence[StagedTable], directory: Path, count: int) -> dict[str, Load]:
    """Requests of which each is sent once. They differ as those of many clients do: in context and page token."""
    names = [table.identifier for table in tables]
    Random(11).shuffle(names)

    def describe(number: int) -> Request:
        request = _describe(names[number % len(names)], number)
        return Request(
            request.connection, "POST", request.path, {**_body(request), "context": {"trace": f"{number:x}"}}
        )

    def page(number: int) -> Request:
        return _list(number, f"&limit=100&page_token={names[number % len(names)][-1]}-{number:x}")

    loads = {}
    for kind, make in (("describe, never seen before", describe), ("page of 100, never seen before", page)):
        drive(server.port, CONNECTIONS, [make(number) for number in range(count, count + 1000)], directory)
        loads[kind] = drive(server.port, CONNECTIONS, [make(number) for number in range(count)], directory)
    return loads


def _body(request: Request) -> dict[str, object]:
    assert isinstance(request.body, dict)
    return request.body


@contextmanager
def _changing(server: Server) -> Iterator[None]:
    """Declare tables in another namespace for as long as the block runs; its end raises what went wrong with them."""
    ended = threading.Event()

    def change() -> None:
        while not ended.wait(1 / CHANGES_PER_SECOND):
            identifier = (CHANGES, uuid.uuid4().hex)
            server.call("POST", f"/v1/table/{object_path(identifier)}/declare", {"id": list(identifier)})

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        try:
            yield
        finally:
            ended.set()
        changing.result()


def _measure_root_tables(directory: Path) -> Table:
    """Describe of a table that lies at the root, in catalogs of one table: the peer's fastest path."""
    loads = {}
    for who, serve in (("ours", serve_ours), ("peer", serve_peer)):
        with serve(directory / f"root-{who}") as server:
            template = write_template(directory / f"template-{who}")
            tables = declare_tables(server, [("alone",)], batch=who == "ours")
            create_first_versions(server, tables, template, batch=who == "ours")
            requests = [_describe(("alone",), number) for number in range(CONNECTIONS)]
            loads[who] = _drive_warm(server, requests, directory)
    table = Table("Describe of one table at the root", ("ours/s", "p50 ms", "peer/s", "p50 ms", "ours against peer"))
    ours, peer = loads["ours"], loads["peer"]
    table.add(
        count(ours.per_second),
        milliseconds(ours.p50),
        count(peer.per_second),
        milliseconds(peer.p50),
        ratio(ours.per_second, peer.per_second),
    )
    table.notes.append("The peer answers from a directory listing without looking at `__manifest`.")
    return table


def _drive_warm(server: Server, requests: Sequence[Request], directory: Path) -> Load:
    drive(server.port, CONNECTIONS, requests, directory, 0.5)
    return drive(server.port, CONNECTIONS, requests, directory, SECONDS)


def _describe(identifier: tuple[str, ...], number: int) -> Request:
    """As pylance sends it."""
    path = f"/v1/table/{object_path(identifier)}/describe?delimiter=%24&with_table_uri=false&check_declared=false"
    body = {"id": list(identifier), "with_table_uri": False, "check_declared": False}
    return Request(number % CONNECTIONS, "POST", path, body)


def _newest(identifier: tuple[str, ...], number: int) -> Request:
    path = f"/v1/table/{object_path(identifier)}/version/list?delimiter=%24&limit=1&descending=true"
    return Request(number % CONNECTIONS, "POST", path)


def _list(number: int, page: str) -> Request:
    return Request(number % CONNECTIONS, "GET", f"/v1/namespace/{NAMESPACE}/table/list?delimiter=%24{page}")
