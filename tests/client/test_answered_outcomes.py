"""Each change of each client, and what its client raises for what a server says of the outcome."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from typer.testing import CliRunner

from lance_core.errors import OutcomeUnknown
from lance_core.proto import lance_table_pb2 as pb
from namespace_client import (
    AsyncCatalog,
    Catalog,
    CatalogUnavailable,
    CommitRejected,
    CommitUnknown,
    IncompatibleConflict,
    RetryableConflict,
    access,
)
from namespace_client.http import CatalogServer
from namespace_client.wire import with_outcome
from namespace_server.cli import cli
from namespace_server.cli.command import ExitStatus
from spark_catalog.sql.catalog_requests import CatalogRequests
from table_data.batch_operations import TransactionCommit
from tests.listener import listen

READ = {
    "root": "/root",
    "version": 1,
    "location": "/root/t",
    "versions": [{"version": 1, "timestamp_millis": 0, "manifest_path": "/root/t/_versions/1.manifest"}],
}
T, N = ("a", "t"), ("a",)


def error(text: str, code: int, outcome: str | None = None, **fields: object) -> dict[str, object]:
    said = {} if outcome is None else {"outcome": outcome}
    return {"error": text, "code": code, **said, **fields}


@dataclass
class Server:
    """Answers each read, and each change with one answer; without a status it closes the connection instead."""

    status: int | None = None
    body: Mapping[str, object] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("content-length") or 0))
        reads = ("/describe", "/list", "/catalog")
        is_read = request.command == "GET" or request.path.partition("?")[0].endswith(reads)
        if not is_read:
            self.keys.append(request.headers.get("Idempotency-Key"))
            if self.status is None:
                request.close_connection = True
                return
        data = json.dumps(READ if is_read else self.body).encode()
        request.send_response(200 if is_read else self.status or 0)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


@pytest.fixture(scope="module")
def stub() -> Iterator[Server]:
    found = Server()
    with listen(found.answer) as found.url:
        yield found


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_FIRST_PAUSE", 0)


PYTHON: dict[str, Callable[[Any], Any]] = {
    "ensure_namespace": lambda catalog: catalog.ensure_namespace(N),
    "create_namespace": lambda catalog: catalog.create_namespace(N),
    "drop_namespace": lambda catalog: catalog.drop_namespace(N, missing_ok=True),
    "undrop_namespace": lambda catalog: catalog.undrop_namespace(N),
    "register": lambda catalog: catalog.register(T, "t.lance"),
    "drop": lambda catalog: catalog.drop(T, missing_ok=True),
    "rename": lambda catalog: catalog.rename(T, ("a", "u")),
    "undrop": lambda catalog: catalog.undrop(T),
    "create_tag": lambda catalog: catalog.create_tag(T, "v1"),
    "move_tag": lambda catalog: catalog.move_tag(T, "v1"),
    "delete_tag": lambda catalog: catalog.delete_tag(T, "v1"),
    "create_branch": lambda catalog: catalog.create_branch(T, "dev"),
    "delete_branch": lambda catalog: catalog.delete_branch(T, "dev"),
    "pin": lambda catalog: catalog.pin("release"),
}
SQL: dict[str, Callable[[CatalogRequests], object]] = {
    "CREATE NAMESPACE": lambda sql: sql.create_namespace(N, {}),
    "DROP NAMESPACE": lambda sql: sql.drop_namespace(N, cascade=True),
    "DROP TABLE": lambda sql: sql.drop_table(T),
    "DROP TABLE PURGE": lambda sql: sql.drop_table(T, purge=True),
    "RENAME": lambda sql: sql.rename_table(T, ("a", "u")),
    "undrop": lambda sql: sql.undrop_table(T, T),
    "create_tag": lambda sql: sql.create_tag(T, "v1", 1),
    "drop_tag": lambda sql: sql.delete_tag(T, "v1"),
    "create_branch": lambda sql: sql.create_branch(T, "dev", None),
    "drop_branch": lambda sql: sql.delete_branch(T, "dev"),
    "cleanup": lambda sql: sql.delete_versions(T, [1, 2, 4]),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "drop": ("drop", "a.t"),
    "drop --namespace": ("drop", "a", "--namespace"),
    "rename": ("rename", "a.t", "a.u"),
    "tag create": ("tag", "create", "a.t", "v1"),
    "tag delete": ("tag", "delete", "a.t", "v1"),
}


def _python(server: Server, name: str) -> None:
    with Catalog.connect(server.url, retries=1) as catalog:
        PYTHON[name](catalog)


def _asynchronous(server: Server, name: str) -> None:
    async def change() -> None:
        async with AsyncCatalog.connect(server.url, retries=1) as catalog:
            await PYTHON[name](catalog)

    asyncio.run(change())


def _sql(server: Server, name: str) -> None:
    with CatalogServer(server.url, retries=1) as catalog:
        SQL[name](CatalogRequests(catalog))


def _batch(server: Server, name: str) -> None:
    """What Spark jobs, streams and graph writes send."""
    transaction = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    with CatalogServer(server.url, retries=1) as catalog:
        catalog.commit([TransactionCommit(T, transaction)], idempotency_key="key", message=name)


CHANGES = [
    *(pytest.param(_python, name, id=f"python {name}") for name in PYTHON),
    *(pytest.param(_asynchronous, name, id=f"async {name}") for name in PYTHON),
    *(pytest.param(_sql, name, id=f"sql {name}") for name in SQL),
    pytest.param(_batch, "batch", id="batch"),
]
WORDS = "it says that nothing was done"
"""Words that decide only where a server says nothing else."""
ANSWERS: dict[str, tuple[int | None, dict[str, object], type[Exception], int]] = {
    "unknown": (503, error(WORDS, 17, "unknown", detail="b-1"), CommitUnknown, 2),
    "unknown, by a failure": (500, error(WORDS, 18, "unknown"), CommitUnknown, 2),
    "an outcome of a later release": (503, error(WORDS, 17, "half_done"), CommitUnknown, 2),
    "nothing done": (503, error("full", 17, "nothing_done"), CatalogUnavailable, 2),
    "nothing done, too many": (429, error("full", 21, "nothing_done"), CatalogUnavailable, 2),
    "nothing done, by a failure": (500, error("damaged", 18, "nothing_done"), CommitRejected, 1),
    "refused": (400, error("no", 13, "nothing_done"), CommitRejected, 1),
    "the release before: unknown": (503, error("the outcome is unknown", 17), CommitUnknown, 2),
    "the release before: nothing done": (503, error(WORDS, 17), CatalogUnavailable, 2),
    "the release before: refused": (400, error("no", 13), CommitRejected, 1),
    "the answer is lost": (None, {}, CommitUnknown, 2),
    "a proxy": (502, {}, CommitUnknown, 2),
}


@pytest.mark.parametrize(("send", "name"), CHANGES)
def test_each_change_is_told_as_what_became_of_it(stub: Server, send: Callable[[Server, str], None], name: str) -> None:
    for answer, (status, body, kind, sent) in ANSWERS.items():
        stub.status, stub.body = status, body
        stub.keys.clear()
        with pytest.raises(kind) as raised:
            send(stub, name)
        assert type(raised.value) is kind, answer
        assert isinstance(raised.value, OutcomeUnknown) == (kind is CommitUnknown), answer
        assert len(stub.keys) == sent, answer
        assert len(set(stub.keys)) == 1, answer
        assert (stub.keys[0] is None) == (name == "ensure_namespace")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_ends_with_the_status_of_what_became_of_it(stub: Server, name: str) -> None:
    statuses = {
        CommitUnknown: ExitStatus.UNKNOWN,
        CatalogUnavailable: ExitStatus.UNAVAILABLE,
        CommitRejected: ExitStatus.REFUSED,
    }
    for answer in ("unknown", "nothing done", "refused", "the answer is lost"):
        status, body, kind, _ = ANSWERS[answer]
        stub.status, stub.body = status, body
        stub.keys.clear()
        found = CliRunner().invoke(cli, [*COMMANDS[name], "--url", stub.url])
        assert stub.keys, found.output
        assert found.exit_code == statuses[kind], (answer, found.output)


@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ([{"hint": "incompatible: these are words", "kind": "retryable"}], RetryableConflict),
        ([{"hint": "retryable: these are words", "kind": "incompatible"}], IncompatibleConflict),
        ([{"hint": "retryable: it moved rows"}], RetryableConflict),
        ([{"hint": "retryable: it moved rows"}, {"hint": "incompatible: it was overwritten"}], IncompatibleConflict),
        ([{}], RetryableConflict),
    ],
)
def test_a_conflict_is_of_the_kind_that_its_failures_have(
    stub: Server, failures: list[dict[str, str]], kind: type[Exception]
) -> None:
    """The last three are of the release before, whose words tell."""
    said = {"outcome": "nothing_done"} if "kind" in failures[0] else {}
    stub.status, stub.body = 409, {"error": "a conflict", "code": 14, "failures": failures, **said}
    with pytest.raises(kind):
        _batch(stub, "batch")


def test_the_words_of_the_release_before_are_given_as_fields() -> None:
    said = error("words", 17, "unknown")
    assert with_outcome(said, 503) is said
    assert with_outcome(error("full; nothing was done", 17), 503)["outcome"] == "nothing_done"
    assert with_outcome(error("of a refusal", 13), 400)["outcome"] == "nothing_done"
    assert with_outcome(error("without these words", 18), 500)["outcome"] == "unknown"
