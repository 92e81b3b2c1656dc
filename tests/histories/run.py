"""One history: some servers on one root, clients of all kinds, faults, and the check.

    python -m tests.histories.run SEED [SECONDS]
    LANCE_HISTORIES_SECONDS=7200 python -m tests.histories.run
    LANCE_HISTORIES_STORE=s3 python -m tests.histories.run

The first runs the history of a seed. Its choices are those of the seed; how they interleave is not. The second runs
histories of new seeds for as long, and keeps those with anomalies below `build/histories`: the root, the servers' logs,
the events, and a report. With a store of `s3` the root is behind a gateway, which takes minutes to build once.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.support.gateway import Gateway, serve_gateway
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
from tests.histories.servers import Place, Server, ServerFactory
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
    PathClient,
    Reader,
    Reader,
)
STEP_TIMEOUT = 150
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
    beside: Callable[[Callable[[], bool]], None] = lambda _over: None,
    servers: int = 2,
    peers: bool = False,
    place: Place | None = None,
) -> Report:
    """Run the history of a seed below `home`, with clients of every kind and faults of the servers, and check it.

    The root is at `place`, or below `home`. The servers hand their changes to one of them if they are `peers`.
    `beside` runs with them until its argument says that it is over.

    It ends after some seconds, or with `enough` events where the machine is quick; a client that has committed nothing
    yet goes on until it has, without faults. Without anomalies the invariants of the root are checked too, and that all
    its tables can be written.
    """
    place = place or Place.below(home)
    with _clients(seed, home, factory, kinds, place, servers=servers, peers=peers) as (running, clients, recorder):
        faults = Faults(seed, running, recorder)
        end = time.monotonic() + seconds

        def over() -> bool:
            return time.monotonic() >= end or len(recorder.events) >= enough

        def act(client: Client) -> None:
            while not (over() and client.committed):
                client.step()

        def disturb() -> None:
            while not over():
                faults.step()

        works = {client.name: partial(act, client) for client in clients}
        at_one_time({**works, "faults": disturb, "beside": partial(beside, over)}, recorder, end)
    report = _check(seed, place, recorder)
    if report.sound:
        try:
            check_quiet(place.directory, step=max(1, len(report.walked.pins) // 4))
            check_progress(place.directory)
        except AssertionError as error:
            recorder.fail(f"invariants of the root: {error}")
    return report


def run_rounds(
    seed: str, home: Path, factory: ServerFactory, kinds: Sequence[type[Client]], *, rounds: int, defect: str
) -> Report:
    """Run a history of clients that meet, on one server with a planted defect, and check it.

    In each round each client makes one step, and none goes on from its meeting before all have come to theirs: all
    transactions have read before the first one commits.
    """
    place = Place.below(home)
    with _clients(seed, home, factory, kinds, place, servers=1, defect=defect) as (_, clients, recorder):
        meeting = threading.Barrier(len(clients), timeout=STEP_TIMEOUT)

        def act(client: Client) -> None:
            client.meeting = meeting.wait
            try:
                for _ in range(rounds):
                    client.step()
            except BaseException:
                meeting.abort()
                raise

        at_one_time({client.name: partial(act, client) for client in clients}, recorder, time.monotonic())
    return _check(seed, place, recorder)


@contextmanager
def _clients(
    seed: str,
    home: Path,
    factory: ServerFactory,
    kinds: Sequence[type[Client]],
    place: Place,
    *,
    servers: int,
    defect: str | None = None,
    peers: bool = False,
) -> Iterator[tuple[list[Server], list[Client], Recorder]]:
    """Servers on a new root, and clients of them. They have ended when the block ends."""
    recorder, workload = Recorder(), Workload()
    locations = _make_tables(place.uri)
    with ExitStack() as stack:
        running = stack.enter_context(factory.servers(place, home, servers, defect=defect, peers=peers))
        urls = [server.url for server in running]
        clients = [
            kind(f"{kind.__name__}{number}", seed, urls, workload, recorder) for number, kind in enumerate(kinds)
        ]
        for client in clients:
            stack.callback(client.close)
            if isinstance(client, PathClient):
                client.locations = locations
        yield running, clients, recorder


def _check(seed: str, place: Place, recorder: Recorder) -> Report:
    walked = walk(place.directory)
    return Report(seed, recorder, walked, check(recorder.events, walked))


def _make_tables(root: str) -> dict[str, str]:
    with Catalog.connect(root, namespace=[NAMESPACE]) as catalog:
        catalog.ensure_namespace()
        with catalog.begin() as tx:
            for table in TABLES:
                tx.create(table, arrow_rows(FIRST_ROWS))
        return {table_id[-1]: state.uri for table_id, state in catalog.access.pins().tables.items()}


def at_one_time(works: Mapping[str, Callable[[], None]], recorder: Recorder, end: float) -> None:
    """Do each work in a thread of its own. What it raises, and work that does not end, is a failure of the history."""

    def attempt(name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException:  # noqa: BLE001 - a thread has no other way to tell it
            recorder.fail(f"{name}: {traceback.format_exc()}")

    threads = [threading.Thread(target=attempt, args=each, name=each[0], daemon=True) for each in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + STEP_TIMEOUT)
        if thread.is_alive():
            recorder.fail(f"{thread.name} is still in a step after {STEP_TIMEOUT} seconds")


def run_for(seconds: float, each: float) -> bool:
    """Run histories of new seeds for some time; whether all were sound."""
    end, sound = time.monotonic() + seconds, True
    with ServerFactory() as factory, _store() as gateway:
        while time.monotonic() < end:
            sound &= run_kept(secrets.token_hex(4), factory, each, gateway)
    return sound


def _store() -> AbstractContextManager[Gateway | None]:
    """The S3 gateway if LANCE_HISTORIES_STORE is s3; else roots are directories."""
    return serve_gateway(0.005) if os.environ.get("LANCE_HISTORIES_STORE") == "s3" else nullcontext()


def run_kept(seed: str, factory: ServerFactory, seconds: float, gateway: Gateway | None = None) -> bool:
    """Run a history below `build/histories`, and keep what belongs to it unless it is sound."""
    home = REPOSITORY / "build" / "histories" / seed
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    choose = random.Random(f"{seed} servers")
    servers, peers = choose.choice((2, 3)), choose.random() < 0.5
    place = None if gateway is None else Place.on(gateway, f"history-{seed}")
    report = run(seed, home, factory, seconds=seconds, servers=servers, peers=peers, place=place)
    print(f"{servers} servers, peers: {peers}")
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
        with ServerFactory() as servers, _store() as store:
            all_sound = run_kept(sys.argv[1], servers, float(sys.argv[2]) if len(sys.argv) > 2 else 20, store)
    else:
        all_sound = run_for(float(os.environ.get("LANCE_HISTORIES_SECONDS", "3600")), 20)
    sys.exit(not all_sound)
