"""Servers of the release before and of this one on one root: they are replaced one after the other, and back."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from benchmarks.support.staging import write_template
from tests.directory.invariants import check_quiet
from tests.histories.pairs import Client, lost_or_torn, make_clients
from tests.histories.servers import Place
from tests.server.servers import REPOSITORY, ServerProcess

FORMER = "a66e390d0e000df42f2e05fbd50d861306d50bf3"
"""The last commit before collections, which brought a catalog flag, and before servers that forward to each other."""
CLIENTS = 6


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it was."""
    directory = tmp_path_factory.mktemp("former")
    archive = directory / "source.tar"
    command = ["git", "archive", "--output", str(archive), FORMER]
    made = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"the history of the project is needed, in a clone that is not shallow: {made.stderr.strip()}")
    with tarfile.open(archive) as source:
        source.extractall(directory / "source", filter="data")
    return directory / "source"


@pytest.fixture
def serve(tmp_path: Path, former: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], ServerProcess]]:
    """Start a server on the root, of the release before if asked."""
    monkeypatch.delenv("LANCE_NAMESPACE_GC_INTERVAL")  # a setting that it does not know
    with ExitStack() as servers:

        def start(before: bool) -> ServerProcess:
            source = former if before else REPOSITORY
            environment = {"PYTHONPATH": f"{source}:{source / 'openapi' / 'client'}"}
            if not before:
                environment["LANCE_NAMESPACE_GC_INTERVAL"] = "0"
            log = tmp_path / "server.log"
            return servers.enter_context(
                ServerProcess(tmp_path / "root", log=log, environment=environment, source=source)
            )

        yield start


def work(client: Client, urls: list[str], template: Path, ended: threading.Event) -> None:
    while not ended.is_set():
        client.commit(urls, template)


def await_progress(clients: list[Client]) -> None:
    """Until each client has committed twice more: once at least since now."""
    before, until = [len(client.answered) for client in clients], time.monotonic() + 60
    while any(len(client.answered) < count + 2 for client, count in zip(clients, before, strict=True)):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.long
def test_servers_are_replaced_one_after_the_other_while_clients_commit(
    tmp_path: Path, serve: Callable[[bool], ServerProcess]
) -> None:
    template = write_template(tmp_path)
    servers = [serve(True), serve(True)]
    urls = [server.url for server in servers]
    clients = make_clients(Place.below(tmp_path), urls[0], CLIENTS)
    ended = threading.Event()
    threads = [threading.Thread(target=partial(work, client, urls, template, ended)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        for before in (False, True):
            for at in range(len(servers)):
                await_progress(clients)
                servers[at].stop()
                servers[at] = serve(before)
                urls[at] = servers[at].url
        await_progress(clients)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for server in servers:
        server.stop()
    assert not [batch for client in clients for batch in client.unknown]
    assert not list(lost_or_torn(clients))
    check_quiet(tmp_path / "root", step=100)


def test_after_a_collection_the_release_before_reads_and_does_not_write(
    tmp_path: Path, serve: Callable[[bool], ServerProcess]
) -> None:
    older = serve(True)
    assert older.call("POST", "/v1/namespace/a/create", {}).status == 200
    gc = [sys.executable, "-m", "namespace_server", "gc", str(tmp_path / "root")]
    subprocess.run(gc, cwd=REPOSITORY, check=True, capture_output=True)

    refused = older.call("POST", "/v1/namespace/b/create", {})
    assert (refused.status, refused.code) == (406, 0)
    assert "writer flags" in refused.body["error"]
    assert older.call("GET", "/v1/namespace/$/list").body["namespaces"] == ["a"]
    newer = serve(False)
    assert newer.call("POST", "/v1/namespace/b/create", {}).status == 200
    assert newer.call("GET", "/health/ready").body["mode"] == "read-write"
    assert sorted(older.call("GET", "/v1/namespace/$/list").body["namespaces"]) == ["a", "b"]
