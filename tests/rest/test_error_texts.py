"""No error tells where the catalog is, what opens it, or how the server is made: every code, on every route.

Code 19 is not used by the server.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, stream
from tests.emulators import s3_service
from tests.rest.served import SERVED, Served
from tests.rest.test_openapi import OPERATIONS, body_fields
from tests.server.servers import ServerProcess

pytestmark = pytest.mark.slow

HIDDEN = "hidden-7f3a"
"""A part of the path of the root."""
SECRET = "hidden-secret-9c1b"
"""A part of every key of the server, and of what a broken store says."""
FORBIDDEN = (
    *(HIDDEN, SECRET, "Traceback", 'File "', ".rs:", ".py", "site-packages", "/root/", "/home/", "/tmp/", "/usr/"),
    *("object at 0x", "botocore", "aiobotocore", "pyarrow.lib", "PyObject", "panicked", "lance::", "lance_io"),
)
ROWS = pa.table({"id": [1, 2, 3], "s": ["x", "y", "z"]})
_numbers = count()

BODIES: tuple[Any, ...] = (
    None,
    {},
    [],
    {"id": 7},
    {"id": ["w", "t"], "version": 99, "branch": "none", "tag": "none", "name": "none", "index_name": "none"},
    {"id": ["w", "t"], "version": "x" * 2000, "predicate": 7, "updates": {}, "columns": 7, "query": []},
    {"predicate": "nope = 1", "updates": [["id", "nope"]], "filter": "nope = 1", "k": 1, "vector": {}},
    {"predicate": "id / 0 = 1", "updates": [["id", "id / 0"]], "filter": "id / 0 = 1", "k": 1, "vector": {}},
    {"predicate": "((((", "updates": [["id", "'"]], "filter": "'", "k": 1, "vector": {"single_vector": [1.0]}},
    {"column": "nope", "index_type": "BTREE", "columns": ["nope"], "k": 1, "vector": {}, "version": 1, "tag": "a"},
    {"column": "s", "index_type": "IVF_PQ", "new_columns": [{"name": "b", "expression": "nope"}]},
    {"new_columns": [{"name": "id", "expression": "1"}], "alterations": [{"path": "nope", "rename": "q"}]},
    {"alterations": [{"path": "s", "data_type": {"type": "int64"}}], "updates": [{"path": "nope", "metadata": {}}]},
    {"query": {"k": 1, "vector": {"single_vector": [1.0]}, "filter": "nope = 1"}, "k": 1, "vector": {}},
    {"location": "../../etc/passwd", "manifest_path": "/etc/passwd", "version": 2, "new_table_name": "a/b"},
    {"location": "/etc/passwd", "manifest_path": "../x", "version": 2, "actions": [{"setStatusAction": {}}]},
    {"operations": [{"commit_transaction": {"id": ["w", "t"], "transaction": "AAAA"}}], "entries": [7]},
    {"operations": [{"create_table_version": {"id": ["w", "t"], "version": 2, "manifest_path": "/etc/passwd"}}]},
    {"ranges": [{"start_version": 9, "end_version": 4}], "mode": "none", "behavior": "none", "from_version": 99},
    {"k": 1, "vector": {}, "full_text_query": {"string_query": {"query": "x", "columns": ["id"]}}},
    {"k": 1, "vector": {"single_vector": [1.0]}, "vector_column": "s"},
)
REMOVING = {"drop_table", "deregister_table", "drop_namespace", "rename_table"}
ROW_BODIES = (
    b"",
    b"garbage",
    stream(ROWS)[:-40],
    stream(pa.table({"id": ["x"], "s": [1]})),
    stream(pa.table({"other": [1]})),
    stream(ROWS),
)
TABLES = ("w$t", "w$declared", "w$none", "none$t", "w", "%2E%2E$t", "w$" + "x" * 300, "$")


@dataclass
class Answers:
    """What was answered to many requests."""

    codes: dict[int, int] = field(default_factory=dict)
    requests: int = 0
    leaks: list[str] = field(default_factory=list)
    slips: list[str] = field(default_factory=list)
    """Internal errors where a client can cause them."""

    def note(self, answer: httpx.Response) -> None:
        self.requests += 1
        if answer.is_success:
            return
        told = answer.text + repr(dict(answer.headers))
        where = f"{answer.request.method} {answer.request.url}"
        self.leaks += [f"{where}: {word}: {told[:300]}" for word in FORBIDDEN if word in told]
        if answer.status_code == 404 and not answer.content:
            return
        code = answer.json()["code"]
        self.codes[code] = self.codes.get(code, 0) + 1
        if code == 18:
            self.slips.append(f"{where}: {answer.json()['error'][:200]}")


def _paths(served: Served, table: str) -> str:
    values = {"{id}": table, "{index_name}": "none", "{version}": "99", "{column}": "none", "{row}": "0"}
    if served.path.startswith("/v1/namespace/"):
        values["{id}"] = table.partition("$")[0] or "$"
    elif served.path.startswith("/v1/transaction/"):
        values["{id}"] = f"{table}$99"
    path = served.path
    for name, value in values.items():
        path = path.replace(name, value if "%" in value else quote(value, safe=""))
    return path


def _sweep(http: httpx.Client, tables: tuple[str, ...], answers: Answers, *, bodies: tuple[Any, ...] = BODIES) -> None:
    """All bodies about the first table, and every other one, in turn, about the others."""
    for served in SERVED:
        for place, table in enumerate(tables):
            path = _paths(served, table)
            if served.operation in REMOVING and table.startswith("w"):
                continue
            if served.rows is not None:
                for content in ROW_BODIES:
                    for query in ("", "?mode=none&on=nope&branch=none"):
                        answers.note(http.post(path + query, content=content, headers=ARROW))
            elif served.method == "GET":
                for query in ("", "?limit=x", "?page_token=%00", "?delimiter="):
                    answers.note(http.get(path + query))
            else:
                known = body_fields(OPERATIONS[served.method, served.path])
                for given in bodies if not place else bodies[place % 2 :: 2]:
                    body = {name: given[name] for name in given.keys() & known} if isinstance(given, dict) else given
                    answers.note(http.post(path, json=body) if body is not None else http.post(path))
                answers.note(http.post(path, content=b"\x00{", headers={"content-type": "application/json"}))
                answers.note(http.post(path, json={}, headers={"x-lance-catalog-version": "999999"}))


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root") / HIDDEN


@pytest.fixture(scope="module")
def http(hidden: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("log") / "log"
    with ServerProcess(hidden, log=log) as server, httpx.Client(base_url=server.url, timeout=120) as client:
        _make(client)
        yield client


def _make(http: httpx.Client) -> None:
    http.post("/v1/namespace/w/create", json={}).raise_for_status()
    http.post("/v1/table/w$t/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post("/v1/table/w$t/tags/create", json={"tag": "one", "version": 1}).raise_for_status()
    http.post("/v1/table/w$declared/declare", json={}).raise_for_status()


@pytest.mark.parametrize(
    ("tables", "least"), [(TABLES[:4], 2500), pytest.param(TABLES, 5000, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_wrong_requests_on_every_route(http: httpx.Client, tables: tuple[str, ...], least: int) -> None:
    answers = Answers()
    _sweep(http, tables, answers)
    assert answers.requests > least
    assert answers.leaks == []
    assert answers.slips == []
    assert answers.codes.keys() >= {1, 4, 11, 12, 13, 20, 22}, answers.codes


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no data files": lambda table: shutil.rmtree(table / "data"),
    "data files cut": lambda table: [path.write_bytes(path.read_bytes()[:20]) for path in (table / "data").iterdir()],
    "manifests cut": lambda table: [path.write_bytes(b"x") for path in (table / "_versions").glob("*.manifest")],
    "nothing left": shutil.rmtree,
    "no indices": lambda table: shutil.rmtree(table / "_indices"),
    "a file in place of the directory": lambda table: (shutil.rmtree(table), table.write_bytes(b"x")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_tables(http: httpx.Client, hidden: Path, damage: Callable[[Path], None]) -> None:
    name = f"damaged{next(_numbers)}"
    http.post(f"/v1/table/w${name}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"/v1/table/w${name}/create_index", json={"column": "s", "index_type": "FTS"}).raise_for_status()
    [table] = hidden.glob(f"*_w${name}")
    damage(table)
    answers = Answers()
    good = (
        {"predicate": "id = 1", "updates": [["id", "5"]], "k": 1, "vector": {}, "version": 2, "tag": name},
        {"k": 1, "vector": {}, "full_text_query": {"string_query": {"query": "x"}}, "name": name, "from_version": 2},
        {"column": "id", "index_type": "BTREE", "columns": ["s"], "query": {"k": 1, "vector": {}}},
        {"new_columns": [{"name": "b", "expression": "id"}], "alterations": [{"path": "id", "rename": "q"}]},
    )
    _sweep(http, (f"w${name}",), answers, bodies=good)
    assert answers.leaks == []
    assert {11, 18} & answers.codes.keys(), answers.codes


def test_a_change_of_a_version_whose_files_are_gone(http: httpx.Client, hidden: Path) -> None:
    http.post("/v1/table/w$gone/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    [table] = hidden.glob("*_w$gone")
    shutil.rmtree(table / "data")
    for operation, body in (
        ("update", {"updates": [["id", "5"]]}),
        ("delete", {"predicate": "id = 1"}),
        ("query", {"k": 1, "vector": {}}),
    ):
        answer = http.post(f"/v1/table/w$gone/{operation}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (500, 18), answer.text


def test_a_store_that_refuses_or_is_gone(tmp_path: Path) -> None:
    """What the store says, with a secret in it, is not passed on."""
    denied = False

    def guard(application: Any) -> Any:
        def guarded(environ: dict[str, Any], start_response: Any) -> Any:
            if denied:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                text = f"{SECRET} may not {environ['PATH_INFO']}"
                return [f"<Error><Code>AccessDenied</Code><Message>{text}</Message></Error>".encode()]
            return application(environ, start_response)

        return guarded

    with s3_service(HIDDEN, guard=guard) as emulator:
        options = {**emulator.storage_options, "aws_secret_access_key": SECRET}
        environment = {f"LANCE_NAMESPACE_STORAGE__{name.upper()}": value for name, value in options.items()}
        root = f"s3://{HIDDEN}/{HIDDEN}"
        with ServerProcess(root, log=tmp_path / "log", environment=environment) as server:
            with httpx.Client(base_url=server.url, timeout=120) as http:
                _make(http)
                denied = True
                answers = Answers()
                _sweep(http, ("w$t",), answers, bodies=({"predicate": "id = 1", "k": 1, "vector": {}},))
            assert answers.leaks == []
            assert 17 in answers.codes, answers.codes
            denied = False


@pytest.fixture
def occupied(tmp_path: Path) -> Iterator[httpx.Client]:
    """A server with keys that does one change of rows at a time."""
    environment = {"LANCE_NAMESPACE_CHANGE_WORKERS": "1", "LANCE_NAMESPACE_MAX_WAITING_WORK": "0"}
    environment["LANCE_NAMESPACE_API_KEYS"] = json.dumps({SECRET: "someone"})
    with (
        ServerProcess(tmp_path / HIDDEN, log=tmp_path / "log", environment=environment) as server,
        httpx.Client(base_url=server.url, timeout=120, headers={"x-api-key": SECRET}) as client,
    ):
        yield client


def test_every_code_is_told_without_a_secret(occupied: httpx.Client, http: httpx.Client) -> None:
    _make(occupied)
    answers = Answers()
    post = occupied.post
    t = "/v1/table/w$t"
    index = {"column": "id", "index_type": "BTREE", "name": "i"}
    for path, body in (
        (f"{t}/create_index", index),
        (f"{t}/create_index", index),
        (f"{t}/branches/create", {"name": "dev"}),
        ("/v1/namespace/w/create", {}),
        ("/v1/namespace/w/drop", {}),
        ("/v1/namespace/none/describe", {}),
        ("/v1/table/w$none/describe", {}),
        (f"{t}/declare", {}),
        (f"{t}/index/none/stats", {}),
        (f"{t}/tags/version", {"tag": "none"}),
        (f"{t}/tags/create", {"tag": "one", "version": 1}),
        ("/v1/transaction/w$t$99/describe", {}),
        (f"{t}/describe", {"version": 99}),
        (f"{t}/count_rows", {"predicate": "nope = 1"}),
        (f"{t}/describe", {"version": "x"}),
        (f"{t}/branches/create", {"name": "dev"}),
        (f"{t}/branches/delete", {"name": "none"}),
        (f"{t}/backfill_column", {"column": "s"}),
    ):
        answers.note(post(path, json=body))
    answers.note(post(f"{t}/insert", content=stream(pa.table({"id": ["x"], "s": ["y"]})), headers=ARROW))
    answers.note(
        post(
            "/v1/table/batch-commit", json={"operations": [{"assert_table_version": {"id": ["w", "t"], "version": 1}}]}
        )
    )
    answers.note(http.post("/v1/table/w$t/describe", json={}, headers={"host": "elsewhere.example"}))
    answers.note(post(f"{t}/describe", json={}, headers={"x-api-key": "wrong-key"}))
    _throttle(occupied, answers)
    assert answers.leaks == []
    assert answers.codes.keys() >= {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23}


def _throttle(http: httpx.Client, answers: Answers) -> None:
    """Let one insert wait for its rows, and send others meanwhile, until one of them is refused.

    If the slow one is refused itself, its client reads that when all of its rows are sent: it waits for a second only.
    """
    body = stream(ROWS)

    def slow() -> Iterator[bytes]:
        yield body[:50]
        deadline = time.monotonic() + 1
        while 21 not in answers.codes and time.monotonic() < deadline:
            time.sleep(0.05)
        yield body[50:]

    until = time.monotonic() + 60
    while 21 not in answers.codes and time.monotonic() < until:
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(http.post, "/v1/table/w$t/insert", content=slow(), headers=ARROW)
            while not waiting.done() and 21 not in answers.codes:
                answers.note(http.post("/v1/table/w$t/insert", content=body, headers=ARROW))
            answers.note(waiting.result())
