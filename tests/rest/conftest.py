"""Servers for the tests: an echo for what goes over the wire, and the real catalog."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from lance_namespace.errors import LanceNamespaceError, TableNotFoundError

from namespace_server.access.subjects import Subject
from namespace_server.answer import Answer
from namespace_server.app import Application, create_app
from namespace_server.attempts import RequestOrigin
from namespace_server.background.scheduler import Scheduler
from namespace_server.data.change_request import Caller, ChangeRecord
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import local_hosts
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.serving import Server, ServingOptions
from table_data.batch_operations import StagedOperation


@dataclass(frozen=True, slots=True)
class EchoCall:
    operation: str
    request: Mapping[str, Any]
    idempotency_key: str | None
    principal: str | None
    batch_uuid: str
    vends: bool = False
    batch: None = None
    size: int = 1


class EchoCatalog:
    """Answers every operation with what it was asked, at catalog version 7; a write makes that 8.

    `failure` is raised, or answered for each call of a group, instead; `gate` holds commits back while it is clear.
    An answer under a cache key is cached as long as `version` stays; `looks` counts how often storage was asked for it.
    """

    def __init__(self, *, local: bool = True) -> None:
        self.local = local
        self.background = Scheduler()
        self.group_limit = 64
        self.vends = False
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.prepared = threading.Semaphore(0)
        self.groups: list[list[EchoCall]] = []
        self.settled: list[list[EchoCall]] = []
        self.read_threads: set[str] = set()
        self.cache_keys: list[object] = []
        self.long_operations: set[str] = set()
        self.unwritable: Exception | None = None
        self.version = 7
        self.looks = 0
        self.kept: dict[tuple[object, int], Answer] = {}
        self.started = False
        self.closed = False

    def state(self) -> None:
        return None

    def newest(self) -> int:
        self.looks += 1
        if self.failure is not None:
            raise self.failure
        return self.version

    def cached(self, cache_key: object, snapshot: int, subject: Subject | None = None) -> Answer | None:
        return self.kept.get((cache_key, snapshot))

    def takes_long(self, operation: str, request: Mapping[str, Any], at: int | None) -> bool:
        return operation in self.long_operations

    def tables(self) -> EchoCatalog:
        return self

    storage_options: Mapping[str, str] = {}

    def new_table(
        self, request: Mapping[str, Any], subject: Subject | None = None, implicit: tuple[str, ...] = ()
    ) -> Any:
        raise TableNotFoundError(str(request["id"]))

    def find_table(self, request: Mapping[str, Any], **asked: object) -> Any:
        raise TableNotFoundError(str(request["id"]))

    find_changes = find_table

    def maintain(self, request: Mapping[str, Any], *asked: object, **more: object) -> Any:
        raise TableNotFoundError(str(request["id"]))

    def require(self, subject: Subject | None, *asked: object) -> None:
        pass

    def check_answering(self) -> None:
        pass

    def check_changeable(self) -> None:
        return None

    def check_writable(self) -> None:
        if self.unwritable is not None:
            raise self.unwritable

    def read(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        at: int | None = None,
        snapshot: int | None = None,
        cache_key: object = None,
        subject: Subject | None = None,
    ) -> Answer:
        self.cache_keys.append(cache_key)
        self.read_threads.add(threading.current_thread().name)
        if self.failure is not None:
            raise self.failure
        version = self.version if at is None else at
        body: dict[str, Any] = {"operation": operation, "request": dict(request)}
        if operation == "list_catalog_events":  # whose handler looks at the answer
            body |= {"events": [], "last": version, "newest": version}
        answer = Answer(body, version)
        self.kept[cache_key, answer.catalog_version] = answer
        return answer

    def is_granted(self, subject: object, operation: str) -> bool:
        return False

    def prepare(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        principal: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
    ) -> EchoCall:
        self.prepared.release()
        return EchoCall(operation, request, idempotency_key, principal, f"batch-{request.get('id')}")

    def prepare_change(self, staged: Sequence[StagedOperation], record: ChangeRecord) -> EchoCall:
        caller = record.caller
        return self.prepare(record.operation, {}, idempotency_key=caller.idempotency_key, principal=caller.principal)

    def is_answered(self, caller: Caller) -> bool:
        return False

    def answered(self, record: ChangeRecord) -> None:
        return None

    def commit_calls(self, calls: Sequence[EchoCall]) -> list[Answer | LanceNamespaceError]:
        self.entered.release()
        assert self.gate.wait(30)
        self.groups.append(list(calls))
        if isinstance(self.failure, LanceNamespaceError):
            return [self.failure for _ in calls]
        if self.failure is not None:
            raise self.failure
        return [
            Answer(
                {
                    "operation": call.operation,
                    "request": dict(call.request),
                    "idempotency_key": call.idempotency_key,
                    "principal": call.principal,
                },
                8,
            )
            for call in calls
        ]

    def change(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        principal: str | None = None,
        idempotency_key: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
        implicit: tuple[str, ...] = (),
    ) -> Answer:
        if self.failure is not None:
            raise self.failure
        asked = {"operation": operation, "request": dict(request)}
        return Answer({**asked, "idempotency_key": idempotency_key, "principal": principal}, 8)

    def clean_up(self, calls: Sequence[EchoCall]) -> None:
        self.settled.append(list(calls))
        raise OSError("no room to clear up in")

    def start(self) -> None:
        self.started = True

    def close(self) -> None:
        self.closed = True


class RunningServer:
    """An application behind granian, in a thread of this process."""

    def __init__(self, app: Application, options: ServingOptions | None = None) -> None:
        self.service = app.service
        self._server = Server(app, options or ServingOptions(port=0))
        self.url = self._server.url
        self.port = int(self.url.rpartition(":")[2])
        started = threading.Event()
        self._thread = threading.Thread(target=self._server.run, args=(started.set,), daemon=True)
        self._thread.start()
        while not started.wait(0.005):
            assert self._thread.is_alive(), "the server did not start"

    def ask_to_stop(self) -> None:
        self._server.stop()

    def stop(self) -> None:
        self.ask_to_stop()
        self._thread.join(60)
        assert not self._thread.is_alive()


Serve = Callable[..., RunningServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that end with the test.

    `serve(catalog, keys={...}, options=ServingOptions(...), hosts=..., origins=..., access_log=..., **limits)`.
    """
    with contextlib.ExitStack() as stack:

        def start(
            catalog: Any,
            *,
            keys: Mapping[str, str] | None = None,
            options: ServingOptions | None = None,
            hosts: Iterable[str] = (),
            origins: Iterable[str] = (),
            access_log: Any = None,
            **limits: Any,
        ) -> RunningServer:
            app = create_app(
                catalog,
                Authenticator(keys or {}),
                limits=RequestLimits(**limits),
                hosts=hosts,
                origins=origins,
                access_log=access_log,
            )
            server = RunningServer(app, options)
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture(scope="module")
def echo_server() -> Iterator[RunningServer]:
    server = RunningServer(create_app(EchoCatalog(), Authenticator({}), hosts=local_hosts("127.0.0.1")))
    yield server
    server.stop()


@pytest.fixture
def http(echo_server: RunningServer) -> Iterator[httpx.Client]:
    """A client of an echoing server."""
    # The server speaks plain HTTP. To load certificates for each test would take most of its time.
    with httpx.Client(base_url=echo_server.url, verify=False) as client:
        yield client


@pytest.fixture(scope="module")
def catalog_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with a real catalog."""
    root = tmp_path_factory.mktemp("catalog")
    server = RunningServer(create_app(DirectoryNamespace(root=str(root), durability="none"), Authenticator({})))
    with httpx.Client(base_url=server.url, verify=False) as client:
        yield client
    server.stop()


@pytest.fixture
def echo_catalog() -> EchoCatalog:
    return EchoCatalog()


@pytest.fixture
def remote_echo_catalog() -> EchoCatalog:
    return EchoCatalog(local=False)
