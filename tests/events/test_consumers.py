"""Consumers that are killed and started again at random, while two servers commit and the collector runs.

Each notes each catalog version once, in order, and all note the same bytes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from lance_core.errors import LanceCoreError
from namespace_client import Catalog
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.directory.namespace import DirectoryNamespace
from tests.server.servers import REPOSITORY, ServerProcess

CONSUMERS = 4
LONG_SECONDS = float(os.environ.get("LANCE_EVENTS_SECONDS", "120"))


@pytest.mark.slow
def test_each_version_once_and_in_order(tmp_path: Path) -> None:
    run(tmp_path, seconds=10, pause=1.5)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS + 300)
def test_each_version_once_and_in_order_for_long(tmp_path: Path) -> None:
    run(tmp_path, seconds=LONG_SECONDS, pause=2)


def run(home: Path, seconds: float, pause: float) -> None:
    root = home / "root"
    with ServerProcess(root, log=home / "one.log") as one, ServerProcess(root, log=home / "two.log") as two:
        urls = [one.url, two.url]
        with Catalog.connect(one.url) as catalog:
            catalog.create_namespace("shared")
            first = catalog.access.state().version
            for number in range(CONSUMERS):
                catalog.advance_cursor(f"c{number}", first)
        consumers = [Consumer(home, f"c{number}", urls) for number in range(CONSUMERS)]
        end = time.monotonic() + seconds
        with collecting(root) as oldest, writing(urls) as committed:
            while time.monotonic() < end:
                time.sleep(random.uniform(0, pause))
                random.choice(consumers).kill_and_start()
        with Catalog.connect(two.url) as catalog:
            last = catalog.access.state().version
            wait_for(consumers, last)
            for consumer in consumers:
                consumer.kill()
            told = {consumer.name: consumer.noted() for consumer in consumers}
            kept = catalog.cursors()
    for name, lines in told.items():
        versions = [version for version, _ in lines if version <= last]
        assert versions == list(range(first + 1, last + 1)), name
    digests = [[digest for version, digest in lines if version <= last] for lines in told.values()]
    assert all(each == digests[0] for each in digests)
    assert not any(cursor.expired for cursor in kept)
    assert min(committed.values()) > 5
    assert sum(consumer.kills for consumer in consumers) >= 3
    assert oldest[-1] > 1, "the collector removed no version: the history was not shortened"


class Consumer:
    """A process that notes events under a cursor."""

    def __init__(self, home: Path, name: str, urls: list[str]) -> None:
        self.name = name
        self.kills = 0
        self._notes = home / f"{name}.notes"
        self._log = home / f"{name}.log"
        self._config = json.dumps({"urls": urls, "cursor": name, "notes": str(self._notes)})
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def _start(self) -> None:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.events.consumer", self._config], stderr=log, cwd=REPOSITORY
            )

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def kill_and_start(self) -> None:
        self.kill()
        self._start()

    def noted(self) -> list[tuple[int, str]]:
        text = self._notes.read_text() if self._notes.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [(int(version), digest) for version, digest in map(str.split, lines)]


def wait_for(consumers: list[Consumer], version: int) -> None:
    end = time.monotonic() + 60
    while any(not (noted := each.noted()) or noted[-1][0] < version for each in consumers):
        assert time.monotonic() < end, [(each.name, each.noted()[-1:]) for each in consumers]
        time.sleep(0.1)


@contextmanager
def writing(urls: list[str]) -> Iterator[dict[str, int]]:
    """One writer at each server, within the block: namespaces all the time, and rows now and then."""
    stop, committed = threading.Event(), dict.fromkeys(urls, 0)

    def write(url: str, number: int) -> None:
        with httpx.Client(base_url=url, timeout=60) as http, Catalog.connect(url, namespace="shared") as catalog:
            table = f"t{number}"
            catalog.create(table, pa.table({"x": [0]}))
            while not stop.is_set():
                committed[url] += 1
                if committed[url] % 20 == 0:
                    catalog.append(table, pa.table({"x": [committed[url]]}))
                answer = http.post(f"/v1/namespace/w{number}_{committed[url]}/create", json={})
                assert answer.status_code == 200, answer.text
                time.sleep(random.uniform(0, 0.05))

    failures: list[BaseException] = []

    def guarded(url: str, number: int) -> None:
        try:
            write(url, number)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(url, number)) for number, url in enumerate(urls)]
    for thread in threads:
        thread.start()
    try:
        yield committed
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


@contextmanager
def collecting(root: Path) -> Iterator[list[int]]:
    """Runs of the collector within the block, one after the other, at a time eight days ahead; the last one after it.

    What was superseded then may go, but for the newest 100 versions and what cursors need; files stay fresh for 30
    days. Gives the oldest kept versions that the runs found.
    """
    stop, oldest = threading.Event(), [1]
    settings = {"gc.uncommitted.grace": "30d", "gc.catalog.age": "1d"}
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    collector = Collector(
        namespace.catalog, settle=timedelta(0), clock=lambda _store, _run: datetime.now(UTC) + timedelta(days=8)
    )

    def collect() -> None:
        while not stop.wait(0.5):
            try:
                oldest.append(collector.collect(settings).oldest)
            except (LanceCoreError, CatalogBusy) as error:  # others won its tries, or removed what it met
                print("a collection failed:", error)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield oldest
    finally:
        stop.set()
        thread.join()
        oldest.append(collector.collect(settings).oldest)
        namespace.close()
