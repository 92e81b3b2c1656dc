"""A million tables and ten thousand grants: what reads and a flip cost where grants are in force."""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from lance_namespace.errors import TableNotFoundError

from benchmarks.support.catalogs import WIDE_NAMESPACE, write_wide_catalog
from benchmarks.support.report import Report, Table, count, milliseconds
from namespace_server.access.grants import AccessEntry, GrantEntry
from namespace_server.access.subjects import Grantee, Privilege, Subject
from namespace_server.directory.manifest_table.flip import FlipClaimed, FlipCommitted
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.namespace import DirectoryNamespace

TABLES = 1_000_000
GRANTS = 10_000
VISIBLE = 1_000
ROUNDS = 3_000
PAGES = 300
FLIPS = 300
READER = Subject("reader", frozenset({"analysts"}))
OWNER = Subject("owner")

Read = tuple[str, dict[str, Any]]


def run(directory: Path) -> Report:
    """Read and declare as the operator, who is not judged, and as callers, on one catalog."""
    write_wide_catalog(directory / "catalog", TABLES)
    namespace = DirectoryNamespace(root=str(directory / "catalog"), durability="none")
    try:
        names = list(namespace.newest().child_tables((WIDE_NAMESPACE,)))
        visible = names[:: TABLES // VISIBLE]
        before = _flips(namespace, {}, "before")
        _switch_on(namespace.catalog.table, visible)
        gc.freeze()  # as the server does with what it has imported
        reads = _reads(namespace, visible)
        flips = {"without grants": before, **_flips_of_callers(namespace)}
    finally:
        namespace.close()
    return Report(
        "grants",
        "A million tables and ten thousand grants",
        f"All tables are declared in one namespace. {count(VISIBLE)} of the {count(GRANTS)} grants are to one reader, "
        "on each thousandth table. Reads in process, from the request as JSON values to the answer, not from the cache "
        "of answers. The operator is not judged.",
        [_reads_table(reads), _flips_table(flips)],
    )


def _switch_on(table: ManifestTable, visible: list[str]) -> None:
    grants = [_grant((WIDE_NAMESPACE, name), Grantee("principal", "reader"), Privilege.READ) for name in visible]
    others = GRANTS - len(grants) - 1
    grants += [
        _grant((WIDE_NAMESPACE, visible[number % len(visible)]), Grantee("role", f"role{number}"), Privilege.READ)
        for number in range(others)
    ]
    owner = _grant((), Grantee("principal", "owner"), Privilege.OWN)
    flip = table.prepare(table.refresh(), changes_of([AccessEntry(), owner, *grants]), attempt=str(uuid.uuid4()))
    table.stage(flip)
    claimed = table.claim(flip)
    assert isinstance(claimed, FlipClaimed)
    assert isinstance(table.prove(claimed), FlipCommitted)


def _grant(on: tuple[str, ...], to: Grantee, privilege: Privilege) -> GrantEntry:
    return GrantEntry("table" if on else "catalog", on, to, frozenset({privilege}))


def _reads(namespace: DirectoryNamespace, visible: list[str]) -> dict[str, dict[str, list[float]]]:
    """Seconds of reads by their kind and by who reads, by turns."""
    random = Random(5)
    seen = [random.choice(visible) for _ in range(ROUNDS)]
    last = visible[: -(VISIBLE // 10)]
    tokens = [random.choice(last) for _ in range(PAGES)]
    asked: Mapping[str, Callable[[], Iterator[Read]]] = {
        "describe a table that may be seen": lambda: (
            ("describe_table", {"id": [WIDE_NAMESPACE, name]}) for name in seen
        ),
        "describe a table that is not there": lambda: (
            ("describe_table", {"id": [WIDE_NAMESPACE, f"absent_{name}"]}) for name in seen
        ),
        "ask whether a table exists": lambda: (("table_exists", {"id": [WIDE_NAMESPACE, name]}) for name in seen),
        "list a page of 100": lambda: (
            ("list_tables", {"id": [WIDE_NAMESPACE], "limit": 100, "page_token": token}) for token in tokens
        ),
        "list a page of 100 of all tables": lambda: (
            ("list_all_tables", {"limit": 100, "page_token": f"{WIDE_NAMESPACE}${token}"}) for token in tokens
        ),
    }
    with suppress(TableNotFoundError):
        namespace.read("describe_table", {"id": [WIDE_NAMESPACE, "before_0_a"]}, subject=READER)
        raise AssertionError("the reader sees what it has no grant on")
    found: dict[str, dict[str, list[float]]] = {}
    for kind, requests in asked.items():
        times: dict[str, list[float]] = {"the operator": [], "reader": [], "owner": []}
        turns = cycle([("the operator", None), ("reader", READER), ("owner", OWNER)])
        for operation, request in requests():
            for _ in range(len(times)):
                who, subject = next(turns)
                began = time.perf_counter()
                with suppress(TableNotFoundError):
                    namespace.read(operation, request, subject=subject)
                times[who].append(time.perf_counter() - began)
        found[kind] = times
    return found


def _flips_of_callers(namespace: DirectoryNamespace) -> dict[str, list[float]]:
    return {
        "with grants, the operator": _flips(namespace, {}, "operator"),
        "with grants, who owns the catalog": _flips(namespace, {"subject": OWNER, "principal": "owner"}, "owner"),
    }


def _flips(namespace: DirectoryNamespace, caller: dict[str, Any], prefix: str) -> list[float]:
    """Seconds of batches of two declarations."""
    times = []
    for number in range(FLIPS):
        operations = [{"declare_table": {"id": [WIDE_NAMESPACE, f"{prefix}_{number}_{each}"]}} for each in "ab"]
        began = time.perf_counter()
        call = namespace.prepare("batch_commit_tables", {"operations": operations}, **caller)
        [answer] = namespace.commit_calls([call])
        times.append(time.perf_counter() - began)
        if isinstance(answer, Exception):
            raise answer
    return times


def _reads_table(found: dict[str, dict[str, list[float]]]) -> Table:
    table = Table(
        "Reads, microseconds",
        (
            "read",
            "operator (median)",
            "(p90)",
            "reader of one in a thousand (median)",
            "(p90)",
            "owner of the catalog (median)",
            "(p90)",
        ),
    )
    for kind, times in found.items():
        cells = [f"{value * 1e6:.1f}" for each in times.values() for value in (median(each), quantiles(each, n=10)[8])]
        table.add(kind, *cells)
    return table


def _flips_table(found: dict[str, list[float]]) -> Table:
    table = Table("Batches of two declarations, milliseconds", ("grants", "median", "(p90)"))
    for kind, times in found.items():
        table.add(kind, milliseconds(median(times)), milliseconds(quantiles(times, n=10)[8]))
    return table
