"""What it costs a server to measure itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count as numbers
from pathlib import Path
from statistics import median, quantiles

from benchmarks.load import Request, drive, object_path
from benchmarks.support.catalogs import WIDE_NAMESPACE, write_wide_catalog
from benchmarks.support.report import Report, Table
from benchmarks.support.servers import Server, serve_ours
from benchmarks.support.staging import flush_files

CONNECTIONS = 8
TABLES = 2_000
DESCRIBES = 2_000
BATCHES = 200
TURNS = 64
WARM = 4
Requests = Callable[[], list[Request]]


def run(directory: Path) -> Report:
    """Measure describes, and batches of two tables, on two servers by turns: one measures itself, one does not."""
    table = Table(
        "Processor time of the server for a request",
        ("request", "not measured, µs", "measured, µs", "ratio in a turn", "half of the turns"),
    )
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for setting in ("false", "true"):
            root = directory / setting
            write_wide_catalog(root, TABLES)
            servers[setting] = stack.enter_context(serve_ours(root, environment={"LANCE_NAMESPACE_METRICS": setting}))
        flush_files()
        names = servers["true"].call("GET", f"/v1/namespace/{WIDE_NAMESPACE}/table/list?limit=500")["tables"]
        kinds: dict[str, Requests] = {
            "describe a table": lambda: _describes(names),
            "batch of two tables": Batches().next,
        }
        for kind, requests in kinds.items():
            turns = list(_by_turns(servers, requests, directory))[WARM:]
            without, measured = (median(turn[setting] for turn in turns) for setting in ("false", "true"))
            ratios = sorted(turn["true"] / turn["false"] for turn in turns)
            middle = [f"{(ratio - 1) * 100:+.1f} %" for ratio in quantiles(ratios, n=4)]
            table.add(kind, f"{without * 1e6:,.1f}", f"{measured * 1e6:,.1f}", middle[1], f"{middle[0]} to {middle[2]}")
    table.notes.append(f"Medians of {TURNS - WARM} turns, after {WARM} that are not counted.")
    return Report(
        "metrics_cost",
        "The cost of metrics",
        f"Two servers run beside each other, each on a catalog of {TABLES:,} tables in a directory. They answer the "
        f"same requests of {CONNECTIONS} connections in turns, and begin in turns. The processor time of their process "
        "is divided by the number of requests.",
        [table],
    )


def _by_turns(servers: dict[str, Server], requests: Requests, directory: Path) -> Iterator[dict[str, float]]:
    """For each turn the seconds of a request, by the setting of the server."""
    for turn in range(TURNS):
        sent = requests()
        found: dict[str, float] = {}
        for setting, server in sorted(servers.items(), reverse=turn % 2 == 1):
            before = server.processor_seconds()
            drive(server.port, CONNECTIONS, sent, directory)
            found[setting] = (server.processor_seconds() - before) / len(sent)
        yield found


def _describes(names: list[str]) -> list[Request]:
    paths = [f"/v1/table/{object_path((WIDE_NAMESPACE, name))}/describe" for name in names]
    return [Request(number % CONNECTIONS, "POST", paths[number % len(paths)], {}) for number in range(DESCRIBES)]


class Batches:
    """Batches that declare two tables each, with names that were not used before."""

    def __init__(self) -> None:
        self._numbers = numbers()

    def next(self) -> list[Request]:
        """The batches of a turn."""
        return [
            Request(number % CONNECTIONS, "POST", "/v1/table/batch-commit", _declarations(next(self._numbers)))
            for number in range(BATCHES)
        ]


def _declarations(number: int) -> dict[str, object]:
    return {"operations": [{"declare_table": {"id": [f"table_{number}_{part}"]}} for part in ("a", "b")]}
