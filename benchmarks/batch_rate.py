"""Atomic two-table batches per second from many clients at once, and how many share a flip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.load import Load, Request, drive
from benchmarks.support.report import Report, Table, count, milliseconds, ratio
from benchmarks.support.servers import Server, serve_ours, serve_peer
from benchmarks.support.staging import (
    Operation,
    StagedTable,
    Template,
    batch_body,
    create_first_versions,
    create_path,
    declare_tables,
    flush_files,
    stage_version,
    verify_tables,
    write_template,
)

CLIENTS = {1: 1_600, 8: 4_800, 32: 8_000}
"""Number of clients -> number of batches that they send together."""

PAIRS = 320
"""Each batch writes one pair of tables; a client works through its own pairs in turn."""

NAMESPACE = "rate"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run gave; `flips` is the number of catalog versions made meanwhile."""

    load: Load
    flips: int


def run(directory: Path) -> Report:
    """Measure ours with and without fsync and the peer, for every number of clients."""
    template = write_template(directory)
    table = Table(
        "Batches of two tables, per second",
        (
            "clients",
            "ours",
            "p50 ms",
            "p99 ms",
            "batches per flip",
            "ours, fsync",
            "p50 ms, fsync",
            "batches per flip, fsync",
            "peer, pairs of calls (not atomic)",
            "ours against peer",
            "fsync against peer",
        ),
    )
    for clients, batches in CLIENTS.items():
        plain = _measure_ours(directory / f"ours-{clients}", template, clients, batches, "none")
        synced = _measure_ours(directory / f"fsync-{clients}", template, clients, batches // 2, "fsync")
        peer = _measure_peer(directory / f"peer-{clients}", template, clients, batches // 2)
        pairs = peer.requests / 2 / peer.seconds
        table.add(
            clients,
            count(plain.load.per_second),
            milliseconds(plain.load.p50),
            milliseconds(plain.load.p99),
            f"{plain.load.requests / plain.flips:.1f}",
            count(synced.load.per_second),
            milliseconds(synced.load.p50),
            f"{synced.load.requests / synced.flips:.1f}",
            count(pairs),
            ratio(plain.load.per_second, pairs),
            ratio(synced.load.per_second, pairs),
        )
    table.notes.append(
        "Batches per flip: batches that were acknowledged, divided by the catalog versions made meanwhile."
    )
    table.notes.append("The peer makes two separate commits of a pair, keeps no record of them and never syncs a file.")
    return Report(
        "batch_rate",
        "Batches per second",
        "Every client sends one `batch-commit` after the other, each with staged manifests of two of its own tables "
        f"({2 * PAIRS} tables in all); the manifests were written beforehand. The load generator is a C program. "
        "A share of the tables is opened with pylance afterwards and checked.",
        [table],
    )


def _measure_ours(root: Path, template: Template, clients: int, batches: int, durability: str) -> Outcome:
    with serve_ours(root, durability) as server:
        tables = _create_tables(server, template, batch=True)
        requests = [
            Request(number % clients, "POST", "/v1/table/batch-commit", batch_body(pair))
            for number, pair in enumerate(_stage_pairs(tables, template, batches))
        ]
        flush_files()
        before = server.call("GET", "/v1/catalog")["version"]
        load = drive(server.port, clients, requests, root.parent)
        flips = server.call("GET", "/v1/catalog")["version"] - before
        verify_tables(tables[::40])
        return Outcome(load, flips)


def _measure_peer(root: Path, template: Template, clients: int, batches: int) -> Load:
    with serve_peer(root) as server:
        tables = _create_tables(server, template, batch=False)
        requests = [
            Request(number % clients, "POST", create_path(operation), operation)
            for number, pair in enumerate(_stage_pairs(tables, template, batches))
            for operation in pair
        ]
        flush_files()
        load = drive(server.port, clients, requests, root.parent)
        verify_tables(tables[::40])
        return load


def _stage_pairs(tables: list[StagedTable], template: Template, batches: int) -> list[tuple[Operation, Operation]]:
    """Staged versions for that many batches, the pairs in turn, so that a chain's versions come in order.

    With a number of clients that divides `PAIRS`, a pair always belongs to the same client.
    """
    turns = (pair for _ in range(batches) for pair in range(PAIRS))
    return [
        (stage_version(tables[2 * pair], template), stage_version(tables[2 * pair + 1], template))
        for pair in islice(turns, batches)
    ]


def _create_tables(server: Server, template: Template, *, batch: bool) -> list[StagedTable]:
    server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {"id": [NAMESPACE]})
    names = [(NAMESPACE, f"t{number:03d}") for number in range(2 * PAIRS)]
    tables = declare_tables(server, names, batch=batch)
    create_first_versions(server, tables, template, batch=batch)
    return tables
