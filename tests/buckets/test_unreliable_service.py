"""A service that throttles, breaks connections, cuts bodies short and answers late: nothing is lost, nothing is twice.

Two processes commit to one root meanwhile, and repeat what they do not know the outcome of, as clients do.
"""

from __future__ import annotations

import random
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.data import schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.doctor.run import Examination
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import as_operation
from tests.emulators import Wsgi, s3_service
from tests.staged_fragments import stage_fragments

pytestmark = pytest.mark.services

TABLES = ("a", "b")
BATCHES = 24
LATE = 1.6
"""Seconds of a late answer; the clients wait for one of them."""
CHANCES = {
    "throttled": 0.05,
    "too many": 0.03,
    "broken off before": 0.02,
    "broken off after": 0.03,
    "cut short": 0.03,
    "late answer": 0.01,
    "late arrival": 0.01,
}
SLOW_DOWN = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>'


@dataclass
class Unreliable:
    """In front of a service: while it is `on`, something befalls a request now and then."""

    on: bool = False
    chance: random.Random = field(default_factory=lambda: random.Random("unreliable"))
    befell: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self) -> str | None:
        with self.lock:
            self.requests += 1
            if not self.on:
                return None
            at = self.chance.random()
            for fault, chance in CHANCES.items():
                if at < chance:
                    self.befell[fault] += 1
                    return fault
                at -= chance
        return None

    def __call__(self, application: Wsgi) -> Wsgi:
        """The service behind it."""

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            fault = self.choose()
            if fault is None:
                return application(environ, start_response)
            if fault == "throttled":
                start_response("503 Slow Down", [("Content-Length", str(len(SLOW_DOWN)))])
                return [SLOW_DOWN]
            if fault == "too many":
                start_response("429 Too Many Requests", [("Content-Length", "0"), ("Retry-After", "0")])
                return []
            if fault == "broken off before":
                return break_off(environ, start_response)
            if fault == "late arrival":
                # The client has given up by then, and perhaps sent the request again.
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                time.sleep(LATE)
                environ["wsgi.input"] = Read(body)
            told: list[Any] = []
            content = b"".join(application(environ, lambda *given: told.append(given)))
            if fault == "late answer":
                time.sleep(LATE)
            if fault == "broken off after":
                return break_off(environ, start_response)
            start_response(*told[0])
            return [content[: len(content) // 2] if fault == "cut short" else content]

        return answer


class Read:
    """A body that was read already."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int = -1) -> bytes:
        given, self.data = (self.data, b"") if size < 0 else (self.data[:size], self.data[size:])
        return given


def break_off(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    with suppress(OSError):
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start_response("200 OK", [])
    return []


class Root:
    """A root on the service, with two tables, and transactions for them whose files are written."""

    def __init__(self, uri: str, options: dict[str, str], service: Unreliable) -> None:
        self.uri = uri
        self.options = options
        self.service = service
        self.processes = [self.process() for _ in range(2)]
        process = self.processes[0]
        process.write("create_namespace", {"id": ["w"]})
        process.commit_batch({"operations": [{"declare_table": {"id": ["w", table]}} for table in TABLES]})
        self.commit(process, [self.transaction(table, -1) for table in TABLES], None)

    def process(self) -> DirectoryNamespace:
        store = open_store(self.uri, {**self.options, "timeout": "1s"})
        options = CatalogOptions(sweep_interval=timedelta(milliseconds=300))
        return DirectoryNamespace(catalog=StoredCatalog(store, options))

    def location(self, table: str) -> str:
        entry = self.processes[0].catalog.snapshot().table(("w", table))
        assert entry is not None
        return f"{self.uri}/{entry.location}"

    def transaction(self, table: str, value: int) -> dict[str, Any]:
        data = pa.table({"id": pa.array([value], pa.int64())})
        first = value < 0
        mode = "create" if first else "append"
        fragments = stage_fragments(data, self.location(table), mode=mode, storage_options=self.options)
        message = pb.Transaction(read_version=0 if first else 1, uuid=str(uuid.uuid4()))
        if first:
            message.overwrite.fragments.extend(fragments)
            message.overwrite.schema.extend(schema_fields(data.schema))
        else:
            message.append.fragments.extend(fragments)
        return as_operation(["w", table], message)

    def commit(self, process: DirectoryNamespace, operations: list[dict[str, Any]], key: str | None) -> int:
        """Commit a batch, and repeat it while its outcome is not known; how often it was sent."""
        for attempt in range(1, 40):
            try:
                process.commit_batch({"operations": operations}, idempotency_key=key)
            except ServiceUnavailableError:
                continue
            return attempt
        raise AssertionError(f"batch {key} is still not decided")

    def ids(self, table: str) -> list[int]:
        found = lance.dataset(self.location(table), storage_options=self.options).to_table()["id"].to_pylist()
        return sorted(found)


@pytest.fixture
def root() -> Iterator[Root]:
    service = Unreliable()
    with s3_service("unreliable", guard=service) as emulator:
        made = Root(emulator.new_root(), emulator.storage_options, service)
        yield made
        service.on = False
        for process in made.processes:
            process.close()


def test_batches_are_committed_once(root: Root) -> None:
    batches = [[root.transaction(table, number) for table in TABLES] for number in range(BATCHES)]
    service = root.service
    before, service.on = service.requests, True

    def send(number: int) -> int:
        return root.commit(root.processes[number % 2], batches[number], f"key {number}")

    with ThreadPoolExecutor(6) as pool:
        sent = list(pool.map(send, range(BATCHES)))
    service.on = False

    assert set(service.befell) == set(CHANCES), service.befell
    # A loop that repeats without a wait would make thousands.
    assert (service.requests - before) / BATCHES < 80, (service.requests - before, sent)
    # The catalog has every batch at once; what could not be promoted then is promoted by a sweep.
    process = root.processes[0]
    assert [process.catalog.snapshot().head(("w", table)).version for table in TABLES] == [1 + BATCHES] * 2
    process.catalog.sweep()
    for table in TABLES:
        assert root.ids(table) == list(range(-1, BATCHES))

    # Healed, and at full speed again: a batch takes what it takes on a service that never failed.
    process.catalog.flush_record_housekeeping()
    operations = [root.transaction(table, BATCHES) for table in TABLES]
    root.processes[1].close()
    began = service.requests
    assert root.commit(process, operations, None) == 1
    assert service.requests - began < 40
    process.close()
    store = open_store(root.uri, root.options)
    try:
        report = Examination(store).examine()
    finally:
        store.close()
    assert report.findings == ()
