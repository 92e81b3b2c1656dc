"""Many clients and three servers on a bucket for minutes, while the servers are killed and held.

    python -m tests.histories.soak [SECONDS]

Each client has two tables, and commits one batch of two appends after the other. It asks another server with the same
key until it has an answer. In the end every batch that was answered is in both tables once, and every other one in both
or in neither. In the first half of the time the servers are peers of each other. In the second half their peers are
also an address where nobody listens, one that never answers, and one of another program, and the rows of the catalog
say several times a second that one of these committed last.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import lance

from benchmarks.support.gateway import serve_gateway
from benchmarks.support.staging import Template, write_template
from benchmarks.support.transactions import one_row, write_data_file
from lance_core.storage.opening import open_store
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.model.errors import CatalogBusy
from tests.directory.invariants import check_quiet
from tests.histories.faults import Faults
from tests.histories.history import Recorder
from tests.histories.servers import Place, Server, ServerFactory

CLIENTS, SERVERS = 64, 3
DELAY = 0.005
"""Seconds by which answers of the bucket are delayed."""
PATIENCE = 60.0
"""Seconds after which a batch without an answer is given up."""
NAMESPACE = "soak"
BATCH = "/v1/table/batch-commit"
Table = tuple[str, str]


@dataclass(slots=True)
class Client:
    """One client: its tables with their directories, and what became of its batches, by their data files."""

    number: int
    tables: Sequence[tuple[Table, Path]]
    answered: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    version: int = 0

    def commit(self, urls: Sequence[str], template: Template) -> None:
        """One batch, asked for until there is an answer."""
        names = [write_data_file(place, template) for _, place in self.tables]
        operations = [
            one_row(table, template, name, self.version) for (table, _), name in zip(self.tables, names, strict=True)
        ]
        key, began = str(uuid.uuid4()), time.monotonic()
        status, answer = 0, ""
        while time.monotonic() - began < PATIENCE:
            try:
                status, answer = _post(random.choice(urls), BATCH, {"operations": operations}, key)
            except (OSError, http.client.HTTPException):
                status = 0
            if status and status < 500:
                break
            time.sleep(0.05)
        both = " ".join(names)
        if status == 200:
            self.answered.append(both)
            self.version = json.loads(answer)["results"][0]["commit_transaction"]["version"]["version"]
            self.waits.append(time.monotonic() - began)
        elif status == 0 or status >= 500:
            self.unknown.append(both)
        else:
            self.refused.append(f"{both}: {status} {answer}")


def _post(url: str, path: str, body: dict[str, Any], key: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    try:
        connection.request("POST", path, json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def _make_clients(place: Place, url: str) -> list[Client]:
    """Clients with two empty tables each."""
    names = [(NAMESPACE, f"t{number:03d}") for number in range(2 * CLIENTS)]
    _post(url, f"/v1/namespace/{NAMESPACE}/create", {}, str(uuid.uuid4()))
    operations = [{"declare_table": {"id": name}} for name in names]
    status, answer = _post(url, BATCH, {"operations": operations}, str(uuid.uuid4()))
    if status != 200:
        raise RuntimeError(f"tables for the clients: expected 200, found {status} {answer}")
    results = json.loads(answer)["results"]
    locations = [result["declare_table"]["location"].rstrip("/").rpartition("/")[2] for result in results]
    places = [(name, place.directory / location) for name, location in zip(names, locations, strict=True)]
    return [Client(number, places[2 * number : 2 * number + 2]) for number in range(CLIENTS)]


def run(seconds: float) -> bool:
    """Both halves, each on a bucket of its own; whether all was sound. Prints what happened."""
    with tempfile.TemporaryDirectory() as home, ServerFactory() as factory:
        halves = [_half(Path(home), factory, seconds / 2, bad_hints=bad) for bad in (False, True)]
    return all(halves)


def _half(home: Path, factory: ServerFactory, seconds: float, *, bad_hints: bool) -> bool:
    name = "bad-hints" if bad_hints else "peers"
    template = write_template(home / name)
    recorder, memory = Recorder(), list[tuple[int, ...]]()
    with serve_gateway(DELAY) as gateway:
        place = Place.on(gateway, name)
        with (
            _strangers() as strangers,
            factory.servers(place, home / name, SERVERS, peers=True, strangers=strangers) as servers,
        ):
            clients = _make_clients(place, servers[0].url)
            before, end = gateway.requests().total(), time.monotonic() + seconds
            urls = [server.url for server in servers]
            works: list[Callable[[], None]] = [partial(client.commit, urls, template) for client in clients]
            works += [partial(_disturb, Faults(name, servers, recorder)), partial(_weigh, servers, memory)]
            if bad_hints:
                works.append(partial(_mislead, place.uri, strangers))
            threads = [threading.Thread(target=_until, args=(end, work, recorder)) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            requests = gateway.requests().total() - before
        for problem in _lost_or_torn(clients):
            recorder.fail(problem)
        try:
            check_quiet(place.directory, step=1_000)
        except AssertionError as error:
            recorder.fail(f"invariants of the root: {error}")
        _print(name, clients, recorder, seconds, requests, memory)
    return not recorder.failures


def _until(end: float, work: Callable[[], None], recorder: Recorder) -> None:
    try:
        while time.monotonic() < end:
            work()
    except BaseException:  # noqa: BLE001 - a thread has no other way to tell it
        recorder.fail(traceback.format_exc())


def _disturb(faults: Faults) -> None:
    time.sleep(random.uniform(3, 6))
    faults.step()


def _weigh(servers: Sequence[Server], memory: list[tuple[int, ...]]) -> None:
    """Note the resident memory of each server in MiB; 0 for one that does not run."""
    time.sleep(5)
    memory.append(tuple(_resident(server.pid) for server in servers))


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _mislead(root: str, strangers: Sequence[str]) -> None:
    """Let a row of the catalog say that a stranger committed last."""
    with closing(open_store(root)) as store:
        catalog = StoredCatalog(store)
        catalog.table.announced = Peer(uuid.uuid4().hex, random.choice(strangers))
        now = int(time.time() * 1_000)
        with suppress(CatalogBusy):
            catalog.committer.commit_changes(
                lambda snapshot: changes_of([replace(snapshot.collector, timestamp_ms=now)])
            )
    time.sleep(0.3)


@contextmanager
def _strangers() -> Iterator[list[str]]:
    """Addresses where nobody listens, where connections are never answered, and of another program."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with socket.socket() as gone, socket.socket() as silent, ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        gone.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen(512)
        serving = threading.Thread(target=other.serve_forever)
        serving.start()
        ports = gone.getsockname()[1], silent.getsockname()[1], other.server_address[1]
        # Of the peers that committed lately the one with the lowest URL is asked: these go before all servers.
        yield [f"http://127.0.0.1:0{port}" for port in ports]
        other.shutdown()
        serving.join()


def _lost_or_torn(clients: Sequence[Client]) -> Iterator[str]:
    """What is wrong with the tables, by what clients were told."""
    for client in clients:
        for refused in client.refused:
            yield f"client {client.number}: refused: {refused}"
        found = [_files(place) for _, place in client.tables]
        for outcome, batches in (("answered", client.answered), ("unknown", client.unknown)):
            for batch in batches:
                counts = [files[name] for files, name in zip(found, batch.split(), strict=True)]
                if counts != [1, 1] and (outcome == "answered" or counts != [0, 0]):
                    yield f"client {client.number}: a batch that was {outcome} is in its tables {counts} times"


def _files(table: Path) -> Counter[str]:
    """The data files of the newest version, as stock pylance reads it."""
    if not (table / "_versions").is_dir():
        return Counter()
    return Counter(
        file.path for fragment in lance.dataset(str(table)).get_fragments() for file in fragment.data_files()
    )


def _print(
    name: str,
    clients: Sequence[Client],
    recorder: Recorder,
    seconds: float,
    requests: int,
    memory: Sequence[tuple[int, ...]],
) -> None:
    answered, unknown = (sum(len(getattr(client, kind)) for client in clients) for kind in ("answered", "unknown"))
    waits = sorted(wait for client in clients for wait in client.waits)
    p50, p99, most = (waits[int(len(waits) * part)] for part in (0.5, 0.99, 0.9999))
    print(f"{name}: {answered} batches in {seconds:.0f} s, {unknown} unknown, faults {dict(recorder.faults)}")
    print(f"  p50 {p50 * 1_000:.0f} ms, p99 {p99 * 1_000:.0f} ms, longest {most:.1f} s")
    print(f"  {requests / answered:.1f} requests a batch")
    for part in range(4):
        sizes = memory[part * len(memory) // 4 : (part + 1) * len(memory) // 4]
        print(f"  memory in quarter {part + 1}: at most {[max(each) for each in zip(*sizes, strict=True)]} MiB")
    for failure in recorder.failures[:20]:
        print(f"  {failure}")


if __name__ == "__main__":
    sys.exit(not run(float(sys.argv[1]) if len(sys.argv) > 1 else 1_200))
