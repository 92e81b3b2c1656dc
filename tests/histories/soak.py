"""Many clients and three servers on a bucket for minutes, while the servers are killed and held.

The catalog was collected once, so that flips stage all manifests in one object.

    python -m tests.histories.soak [SECONDS]

Each client has two tables, and commits one batch of two appends after the other. It asks another server with the same
key until it has an answer. In the end every batch that was answered is in both tables once, and every other one in both
or in neither. The servers share a secret. In the second half of the time flips say several times a second, and prove
with that secret, that a server at another address commits: nobody listens there, nobody answers, or it is another
program.
"""

from __future__ import annotations

import random
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from benchmarks.support.gateway import serve_gateway
from benchmarks.support.staging import write_template
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.workers.memory import anonymous_bytes
from tests.directory.invariants import check_quiet
from tests.histories.faults import Faults
from tests.histories.history import Recorder
from tests.histories.pairs import Client, lost_or_torn, make_clients
from tests.histories.run import at_one_time
from tests.histories.servers import PEER_SECRET, Place, Server, ServerFactory
from tests.listener import listen

CLIENTS, SERVERS = 64, 3
DELAY = 0.005
"""Seconds by which answers of the bucket are delayed."""


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
            factory.servers(place, home / name, SERVERS, peers=True) as servers,
            closing(DirectoryNamespace(root=place.uri, sweep_interval_seconds="0")) as hinting,
        ):
            clients = make_clients(place, servers[0].url, CLIENTS)
            gateway.collect(place.uri)
            before, end = gateway.requests().total(), time.monotonic() + seconds
            urls = [server.url for server in servers]
            works: dict[str, Callable[[], None]] = {
                f"client {client.number}": partial(client.commit, urls, template) for client in clients
            }
            works["faults"] = partial(_disturb, Faults(name, servers, recorder))
            works["memory"] = partial(_weigh, servers, memory)
            if bad_hints:
                works["hints"] = partial(_mislead, hinting, strangers)
            at_one_time({each: partial(_until, end, work) for each, work in works.items()}, recorder, end)
            requests = gateway.requests().total() - before
        for problem in lost_or_torn(clients):
            recorder.fail(problem)
        try:
            check_quiet(place.directory, step=1_000)
        except AssertionError as error:
            recorder.fail(f"invariants of the root: {error}")
        _print(name, clients, recorder, seconds, requests, memory)
    return not recorder.failures


def _until(end: float, work: Callable[[], None]) -> None:
    while time.monotonic() < end:
        work()


def _disturb(faults: Faults) -> None:
    time.sleep(random.uniform(3, 6))
    faults.step()


def _weigh(servers: Sequence[Server], memory: list[tuple[int, ...]]) -> None:
    """Note the memory that each server has alone, in MiB; 0 for one that does not run."""
    time.sleep(5)
    memory.append(tuple(anonymous_bytes(server.pid) >> 20 for server in servers))


def _mislead(namespace: DirectoryNamespace, strangers: Sequence[str]) -> None:
    """Let flips say that a stranger commits, which proves the secret."""
    namespace.catalog.table.peers.join(Peer(uuid.uuid4().hex, random.choice(strangers)), PeerSecret(PEER_SECRET))
    name = [uuid.uuid4().hex]
    for operation in ("declare_table", "drop_table"):
        with suppress(CatalogBusy):
            namespace.write(operation, {"id": name})
    time.sleep(0.3)


@contextmanager
def _strangers() -> Iterator[list[str]]:
    """Addresses where nobody listens, where connections are never answered, and of another program."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("content-length") or 0))
        request.send_error(404)

    with socket.socket() as gone, socket.socket() as silent, listen(answer) as other:
        gone.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen(512)
        urls = [*(f"http://127.0.0.1:{each.getsockname()[1]}" for each in (gone, silent)), other]
        # Of the peers that committed lately the one with the lowest URL is asked: these go before all servers.
        yield [url.replace("127.0.0.1:", "127.0.0.1:0") for url in urls]


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
