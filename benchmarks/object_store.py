"""Batches of two appends on a bucket: rate, latency, requests to the store, and processor time of the server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Load, Request, drive, object_path
from benchmarks.support.gateway import BUCKET, Gateway, serve_gateway
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import Server, serve_ours, serve_peer
from benchmarks.support.staging import Operation, StagedTable, Template, create_path, stage_version, write_template
from benchmarks.support.transactions import one_row, write_data_file

ROUND_TRIP = 0.06
CASES = ((ROUND_TRIP, 1, 24), (ROUND_TRIP, 32, 24), (ROUND_TRIP, 128, 16), (0.0, 32, 24))
"""Seconds by which each answer of the store is delayed, clients, batches of each client."""
FENCED = {"no": {}, "yes": {"LANCE_NAMESPACE_FENCED": "true"}}
"""Whether the server may take it that nobody else writes manifests of versions."""

SERVERS = ((1, False), (2, False), (2, True), (3, True))
"""How many servers share the root, and whether they know each other as peers."""
_SHARED_CLIENTS, _SHARED_BATCHES = 60, 24

_PEER_CLIENTS = 32
_PEER_VERSIONS = 3
"""How many clients the peer has at most, since it answers a hundred of them in minutes; versions of each table."""

NAMESPACE = "graph"
_Table = tuple[tuple[str, ...], Path]


@dataclass(frozen=True, slots=True)
class _Outcome:
    load: Load
    requests: float
    processor: float


def run(directory: Path) -> Report:
    """Measure each case on a gateway of its own."""
    template = write_template(directory)
    table = Table(
        "Batches of two appends over HTTP",
        (
            "delay of the store",
            "clients",
            "fenced",
            "batches/s",
            "p50 ms",
            "p99 ms",
            "requests a batch",
            "CPU of the server, ms",
            "peer, pairs of calls (not atomic)",
            "ours against peer",
        ),
    )
    for delay, clients, batches in CASES:
        outcomes: dict[str, _Outcome] = {}
        for fenced, settings in FENCED.items():
            with (
                serve_gateway(delay) as gateway,
                serve_ours(f"s3://{BUCKET}/catalog", environment={**gateway.environment, **settings}) as server,
            ):
                outcomes[fenced] = _measure(gateway, server, template, directory, clients, batches)
        with serve_gateway(delay) as gateway, serve_peer(f"s3://{BUCKET}/peer", gateway.environment) as server:
            peer = _measure_peer(gateway, server, template, directory, min(clients, _PEER_CLIENTS))
        pairs = peer.requests / 2 / peer.seconds
        for fenced, found in outcomes.items():
            table.add(
                f"{delay * 1_000:.0f} ms",
                clients,
                fenced,
                count(found.load.per_second),
                milliseconds(found.load.p50),
                milliseconds(found.load.p99),
                f"{found.requests:.1f}",
                f"{found.processor * 1_000:.1f}",
                f"{pairs:.1f}",
                ratio(found.load.per_second, pairs),
            )
    table.notes.append(
        "Fenced: the server does not look for what others may have committed above the heads of tables, because the "
        "store refuses manifests of versions from everyone else."
    )
    table.notes.append(
        f"The peer makes two separate commits of a pair, of manifests that were staged beforehand, for {_PEER_CLIENTS} "
        "clients at most."
    )
    shared = Table(
        f"Servers on one root, {_SHARED_CLIENTS} clients, {ROUND_TRIP * 1_000:.0f} ms",
        (
            "servers",
            "peers",
            "batches/s",
            "p50 ms",
            "p99 ms",
            "fairness",
            "requests a batch",
            "CPU of the servers, ms",
        ),
    )
    for servers, peers in SERVERS:
        with serve_gateway(ROUND_TRIP) as gateway, _serve_together(gateway, servers, peers=peers) as running:
            loads, made, processor = _measure_together(gateway, running, template, directory)
        batches = sum(load.requests for load in loads)
        shared.add(
            servers,
            "yes" if peers else "no",
            count(batches / max(load.seconds for load in loads)),
            ", ".join(milliseconds(load.p50) for load in loads),
            ", ".join(milliseconds(load.p99) for load in loads),
            f"{_fairness([load.per_second for load in loads]):.2f}",
            f"{made / batches:.1f}",
            f"{processor / batches * 1_000:.1f}",
        )
    shared.notes.append("Each server has an equal share of the clients. Fairness is Jain's index of their rates.")
    return Report(
        "object_store",
        "Batches on a bucket",
        "Each client has two tables, and sends one `commit_transaction` batch of two appends after the other; data "
        "files were written beforehand, and each transaction was made from version 1. The store is versitygw over a "
        "directory in memory on the same machine, behind a proxy that delays answers. The load generator is a C "
        "program; gateway, proxy, load and server share the processors.",
        [table, shared],
    )


@contextmanager
def _serve_together(gateway: Gateway, servers: int, *, peers: bool) -> Iterator[list[Server]]:
    """Servers on one root."""
    known = {"LANCE_NAMESPACE_PEER_SECRET": "a secret of servers"} if peers else {}
    with ExitStack() as running:
        yield [
            running.enter_context(serve_ours(f"s3://{BUCKET}/catalog", environment={**gateway.environment, **known}))
            for _ in range(servers)
        ]


def _measure_together(
    gateway: Gateway, servers: list[Server], template: Template, directory: Path
) -> tuple[list[Load], int, float]:
    """The load of each server, all requests to the store, and the processor time of all servers."""
    pairs = _make_tables(gateway, servers[0], template, _SHARED_CLIENTS)
    each = _SHARED_CLIENTS // len(servers)
    shares = [pairs[number * each : (number + 1) * each] for number in range(len(servers))]
    for server, share in zip(servers, shares, strict=True):
        drive(server.port, each, _appends(share, template, 1), directory)
    requests = [_appends(share, template, _SHARED_BATCHES) for share in shares]
    before, began = gateway.requests(), sum(server.processor_seconds() for server in servers)
    places = [directory / f"load{number}" for number in range(len(servers))]
    for place in places:
        place.mkdir(exist_ok=True)
    with ThreadPoolExecutor(len(servers)) as pool:
        loads = list(pool.map(drive, [server.port for server in servers], [each] * len(servers), requests, places))
    processor = sum(server.processor_seconds() for server in servers) - began
    return loads, (gateway.requests() - before).total(), processor


def _fairness(rates: list[float]) -> float:
    """Jain's index: 1 if all are equal, 1 / n if one has everything."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def _make_tables(gateway: Gateway, server: Server, template: Template, clients: int) -> list[list[_Table]]:
    """Two tables for each client, with a first version, in a catalog that was collected once."""
    server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {})
    gateway.collect(f"s3://{BUCKET}/catalog")
    names = [(NAMESPACE, f"t{number:04d}") for number in range(2 * clients)]
    declared = server.call("POST", "/v1/table/batch-commit", _body([{"declare_table": {"id": name}} for name in names]))
    root = f"s3://{BUCKET}/"
    places = [
        gateway.directory / result["declare_table"]["location"].removeprefix(root) for result in declared["results"]
    ]
    tables = list(zip(names, places, strict=True))
    server.call("POST", "/v1/table/batch-commit", _body([_append(*table, template, first=True) for table in tables]))
    return [list(pair) for pair in zip(tables[::2], tables[1::2], strict=True)]


def _appends(pairs: list[list[_Table]], template: Template, batches: int) -> list[Request]:
    """Batches of each client, whose two tables are a pair."""
    return [
        Request(client, "POST", "/v1/table/batch-commit", _body([_append(*table, template) for table in pair]))
        for _ in range(batches)
        for client, pair in enumerate(pairs)
    ]


def _measure(
    gateway: Gateway, server: Server, template: Template, directory: Path, clients: int, batches: int
) -> _Outcome:
    requests = _appends(_make_tables(gateway, server, template, clients), template, batches)
    # The first batch of each client reads what the server does not have in memory yet.
    drive(server.port, clients, requests[:clients], directory)
    before, began = gateway.requests(), server.processor_seconds()
    load = drive(server.port, clients, requests[clients:], directory)
    processor = server.processor_seconds() - began
    made = (gateway.requests() - before).total()
    return _Outcome(load, made / load.requests, processor / load.requests)


def _measure_peer(gateway: Gateway, server: Server, template: Template, directory: Path, clients: int) -> Load:
    server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {})
    requests: list[Request] = []
    for number in range(2 * clients):
        name = (NAMESPACE, f"t{number:04d}")
        location = server.call("POST", f"/v1/table/{object_path(name)}/declare", {"id": name})["location"]
        table = StagedTable(name, gateway.directory / location.removeprefix(f"s3://{BUCKET}/"))
        for _ in range(_PEER_VERSIONS):
            operation = stage_version(table, template)
            staged = Path("/", operation["manifest_path"]).relative_to(gateway.directory)
            requests.append(
                Request(number // 2, "POST", create_path(operation), operation | {"manifest_path": str(staged)})
            )
    return drive(server.port, clients, requests, directory)


def _append(name: tuple[str, ...], place: Path, template: Template, *, first: bool = False) -> Operation:
    """A transaction that appends one row to version 1, or writes it; its data file is written."""
    return one_row(name, template, write_data_file(place, template), 0 if first else 1)


def _body(operations: list[Operation]) -> dict[str, list[Operation]]:
    return {"operations": operations}
