"""One batch of N table versions against N calls of `version/create`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.load import Load, Request, drive
from benchmarks.support.report import Report, Table, milliseconds, ratio
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

SIZES = (1, 10, 100, 200)
ROUNDS = 7
NAMESPACE = "batch"


def run(directory: Path) -> Report:
    """Measure every size on both servers, median of `ROUNDS`."""
    template = write_template(directory)
    ours: dict[str, dict[int, float]] = {}
    for durability in ("none", "fsync"):
        with serve_ours(directory / f"ours-{durability}", durability) as server:
            tables = _create_tables(server, template, batch=True)
            ours[durability] = _measure(server, tables, template, directory, "batch", 1)
            if durability == "none":
                ours["singly"] = _measure(server, tables, template, directory, "singly", 1)
            verify_tables(tables)
    with serve_peer(directory / "peer") as server:
        tables = _create_tables(server, template, batch=False)
        alone = _measure(server, tables, template, directory, "singly", 1)
        eight = _measure(server, tables, template, directory, "singly", 8)
        verify_tables(tables)
    table = Table(
        "One change of N tables, milliseconds until the last is acknowledged",
        (
            "tables",
            "one batch (atomic)",
            "one batch, fsync (atomic)",
            "ours, one by one",
            "peer, one by one",
            "peer, 8 connections",
            "batch against peer",
            "against peer on 8",
            "fsync against peer",
        ),
    )
    for size in SIZES:
        batch, synced = ours["none"][size], ours["fsync"][size]
        table.add(
            size,
            milliseconds(batch),
            milliseconds(synced),
            milliseconds(ours["singly"][size]),
            milliseconds(alone[size]),
            milliseconds(eight[size]),
            ratio(alone[size], batch),
            ratio(eight[size], batch),
            ratio(alone[size], synced),
        )
    table.notes.append("The peer never syncs a file and has no batch: its N calls are N separate commits.")
    return Report(
        "batch_size",
        "One batch against many calls",
        "Each table has one staged manifest that appends a row, written beforehand. Ours gets them as one "
        "`batch-commit`, the peer (pylance's RestAdapter over its DirectoryNamespace) as one `version/create` each. "
        f"Median of {ROUNDS} rounds. All tables are opened with pylance afterwards and checked.",
        [table],
    )


def _create_tables(server: Server, template: Template, *, batch: bool) -> list[StagedTable]:
    server.call("POST", f"/v1/namespace/{NAMESPACE}/create", {"id": [NAMESPACE]})
    names = [(NAMESPACE, f"t{number:03d}") for number in range(max(SIZES))]
    tables = declare_tables(server, names, batch=batch)
    create_first_versions(server, tables, template, batch=batch)
    return tables


def _measure(
    server: Server, tables: Sequence[StagedTable], template: Template, directory: Path, how: str, connections: int
) -> dict[int, float]:
    """Seconds for each size. The first round warms the server up and is left out."""
    seconds: dict[int, float] = {}
    for size in SIZES:
        rounds: list[float] = []
        for _ in range(ROUNDS + 1):
            operations = [stage_version(table, template) for table in tables[:size]]
            flush_files()
            rounds.append(_send(server, operations, directory, how, min(connections, size)).seconds)
        seconds[size] = median(rounds[1:])
    return seconds


def _send(server: Server, operations: Sequence[Operation], directory: Path, how: str, connections: int) -> Load:
    if how == "batch":
        requests = [Request(0, "POST", "/v1/table/batch-commit", batch_body(operations))]
    else:
        requests = [
            Request(number % connections, "POST", create_path(operation), operation)
            for number, operation in enumerate(operations)
        ]
    return drive(server.port, connections, requests, directory)
