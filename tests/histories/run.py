"""One history: two servers on one root, clients of all kinds, faults, and the check.

    python -m tests.histories.run SEED [SECONDS]
    LANCE_HISTORIES_SECONDS=7200 python -m tests.histories.run

The first runs the history of a seed. Its choices are those of the seed; how they interleave is not. The second runs
histories of new seeds for as long, and keeps those with anomalies below `build/histories`: the root, the servers' logs,
the events, and a report.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from namespace_client import Catalog
from tests.directory.invariants import check_progress, check_quiet
from tests.histories.checker import Anomaly, check
from tests.histories.clients import (
    Client,
    HttpClient,
    OwnClient,
    PathClient,
    Reader,
    SerializableClient,
    StockClient,
)
from tests.histories.faults import Faults
from tests.histories.history import NAMESPACE, TABLES, Recorder, Walk, arrow_rows, walk
from tests.histories.servers import ServerFactory
from tests.histories.workload import FIRST_ROWS, Workload
from tests.server.servers import REPOSITORY

EVERY: tuple[type[Client], ...] = (
    OwnClient,
    OwnClient,
    SerializableClient,
    SerializableClient,
    HttpClient,
    HttpClient,
    StockClient,
    PathClient,
    Reader,
    Reader,
)
PATIENCE = 150
"""Seconds in which each client has to end its last step: stock clients try for half a minute."""


@dataclass(frozen=True, repr=False)
class Report:
    """What a history was, and what is wrong with it."""

    seed: str
    recorder: Recorder
    walked: Walk
    anomalies: Sequence[Anomaly]

    @property
    def sound(self) -> bool:
        return not self.anomalies and not self.recorder.failures

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        outcomes = Counter(f"{event.client.partition('-')[0]} {event.outcome}" for event in self.recorder.events)
        versions = sum(len(states) for states in self.walked.states.values())
        moved = f"{len(self.walked.pins)} catalog versions, {versions} table versions"
        lines = [
            f"seed {self.seed}: {len(self.recorder.events)} events, {moved}, faults {dict(self.recorder.faults)}",
            ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())),
            *map(str, self.anomalies[:20]),
            *self.recorder.failures[:5],
        ]
        return "\n".join(lines)


def run(
    seed: str,
    home: Path,
    factory: ServerFactory,
    *,
    seconds: float,
    enough: int = 1_000_000,
    kinds: Sequence[type[Client]] = EVERY,
    servers: int = 2,
    faults: bool = True,
    defect: str | None = None,
) -> Report:
    """Run the history of a seed below `home`, and check it; `defect` is planted in the servers.

    It ends after some seconds, or with `enough` events where the machine is quick.
    Without anomalies the invariants of the root are checked too, and that all its tables can be written.
    """
    root, recorder, workload = home / "root", Recorder(), Workload()
    locations = _make_tables(root)
    with ExitStack() as stack:
        running = [
            stack.enter_context(factory.server(root, home / f"server{number}.log", defect)) for number in range(servers)
        ]
        urls = [server.url for server in running]
        clients = [
            kind(f"{kind.__name__}{number}", seed, urls, workload, recorder) for number, kind in enumerate(kinds)
        ]
        for client in clients:
            stack.callback(client.close)
            if isinstance(client, PathClient):
                client.locations = locations
        steps: list[tuple[str, Callable[[], None]]] = [(client.name, client.step) for client in clients]
        if faults:
            steps.append(("faults", Faults(seed, running, recorder).step))
        end = time.monotonic() + seconds
        _act(steps, recorder, lambda: time.monotonic() >= end or len(recorder.events) >= enough)
    walked = walk(root)
    report = Report(seed, recorder, walked, check(recorder.events, walked))
    if report.sound:
        try:
            check_quiet(root, step=max(1, len(walked.pins) // 4))
            check_progress(root)
        except AssertionError as error:
            recorder.fail(f"invariants of the root: {error}")
    return report


def _make_tables(root: Path) -> dict[str, str]:
    with Catalog.connect(str(root), namespace=[NAMESPACE]) as catalog:
        catalog.ensure_namespace()
        with catalog.begin() as tx:
            for table in TABLES:
                tx.create(table, arrow_rows(FIRST_ROWS))
        return {table_id[-1]: state.uri for table_id, state in catalog.access.pins().tables.items()}


def _act(steps: Sequence[tuple[str, Callable[[], None]]], recorder: Recorder, over: Callable[[], bool]) -> None:
    """Repeat each step in a thread of its own until it is over. What a step raises is a failure of the history."""

    def repeat(name: str, step: Callable[[], None]) -> None:
        try:
            while not over():
                step()
        except BaseException:  # noqa: BLE001 - a thread has no other way to tell it
            recorder.fail(f"{name}: {traceback.format_exc()}")

    threads = [threading.Thread(target=repeat, args=step, name=step[0], daemon=True) for step in steps]
    for thread in threads:
        thread.start()
    while not over():
        time.sleep(0.05)
    for thread in threads:
        thread.join(PATIENCE)
        if thread.is_alive():
            recorder.fail(f"{thread.name} is still in a step after {PATIENCE} seconds")


def run_for(seconds: float, each: float) -> bool:
    """Run histories of new seeds for some time; whether all were sound."""
    end, sound = time.monotonic() + seconds, True
    with ServerFactory() as factory:
        while time.monotonic() < end:
            sound &= run_kept(secrets.token_hex(4), factory, each)
    return sound


def run_kept(seed: str, factory: ServerFactory, seconds: float) -> bool:
    """Run a history below `build/histories`, and keep what belongs to it unless it is sound."""
    home = REPOSITORY / "build" / "histories" / seed
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    report = run(seed, home, factory, seconds=seconds)
    print(report, flush=True)
    if report.sound:
        shutil.rmtree(home)
    else:
        report.recorder.write(home / "events.jsonl")
        (home / "report.txt").write_text(f"{report}\n")
        print(f"kept in {home}", flush=True)
    return report.sound


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with ServerFactory() as servers:
            all_sound = run_kept(sys.argv[1], servers, float(sys.argv[2]) if len(sys.argv) > 2 else 20)
    else:
        all_sound = run_for(float(os.environ.get("LANCE_HISTORIES_SECONDS", "3600")), 20)
    sys.exit(not all_sound)
