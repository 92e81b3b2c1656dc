"""Rows in parts: uploaded by several requests to several servers, committed once as one version, or not at all."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from namespace_server.directory.gc.report import UPLOADED
from tests.access.granting import as_principal, keys
from tests.data.arrow import ARROW, files, location, stream
from tests.directory.gc.collecting import WEEK, collect, let_pass
from tests.directory.tables import Ground
from tests.running import running

ROWS = pa.table({"a": [1, 2], "s": ["x", "y"]})
PARTS = [pa.table({"a": [10 * n, 10 * n + 1], "s": [f"p{n}"] * 2}) for n in range(1, 5)]
OTHER_COLUMNS = pa.table({"b": [1.5]})
NOBODY = str(uuid.UUID(int=7))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("multipart")


@pytest.fixture(scope="module")
def servers(root: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Two servers of one root, which know the same two principals; requests are those of ann."""
    known = keys("ann", "bob")
    with (
        running(root, known) as one,
        running(root, known) as two,
        httpx.Client(base_url=one, headers=as_principal("ann"), timeout=60) as first,
        httpx.Client(base_url=two, headers=as_principal("ann"), timeout=60) as second,
    ):
        first.post("/v1/namespace/w/create", json={}).raise_for_status()
        yield first, second


class Upload:
    """An upload for one table, whose requests go to several servers in turn."""

    def __init__(self, servers: Sequence[httpx.Client], table: str, **query: str) -> None:
        self.servers = servers
        self.table = table
        self.query = query
        self.asked = 0
        begun = self.ask("create", **query)
        assert begun.status_code == 200, begun.text
        self.id: str = begun.json()["upload_id"]

    @property
    def http(self) -> httpx.Client:
        self.asked += 1
        return self.servers[self.asked % len(self.servers)]

    def ask(self, what: str, body: Any = None, **query: str) -> httpx.Response:
        path = f"{self.table}/multipart_write/{what}"
        return self.http.post(path, json=body, params=query) if body else self.http.post(path, params=query)

    def part(self, rows: pa.Table, part_id: str | None = None, **query: str) -> httpx.Response:
        named = {"upload_id": self.id, "upload_part_id": part_id or str(uuid.uuid4())}
        query = self.query | named | query
        return self.http.post(f"{self.table}/insert", content=stream(rows), headers=ARROW, params=query)

    def complete(self, **body: Any) -> httpx.Response:
        return self.ask("complete", body, upload_id=self.id, **self.query)

    def abort(self) -> httpx.Response:
        return self.ask("abort", upload_id=self.id)


@pytest.fixture
def table(servers: tuple[httpx.Client, httpx.Client], request: pytest.FixtureRequest) -> str:
    """The route of a table of this test, with the rows of `ROWS`."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.nodeid.partition("::")[2])
    route = f"/v1/table/w${name[:80]}{len(name)}"
    servers[0].post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    return route


@pytest.fixture
def upload(servers: tuple[httpx.Client, httpx.Client], table: str) -> Upload:
    return Upload(servers, table)


def values(servers: Sequence[httpx.Client], table: str) -> list[int]:
    """The column `a`, as it is read by another server than the one that was asked last."""
    answer = servers[1].post(f"{table}/query", json={"columns": {"column_names": ["a"]}})
    assert answer.status_code == 200, answer.text
    return [int(value) for value in pa.ipc.open_file(answer.content).read_all()["a"].to_pylist()]


def version(servers: Sequence[httpx.Client], table: str) -> int:
    found: int = servers[0].post(f"{table}/describe", json={"load_detailed_metadata": True}).json()["version"]
    return found


def refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert all(word in answer.json()["error"] for word in words), answer.text
    assert answer.json()["outcome"] == "nothing_done"


Servers = tuple[httpx.Client, httpx.Client]


def test_parts_of_several_servers_are_one_version(servers: Servers, upload: Upload) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(upload.part, PARTS))
    assert [(each.status_code, each.json()) for each in answers] == [(200, {"num_inserted_rows": 2})] * 4
    assert (values(servers, upload.table), version(servers, upload.table)) == ([1, 2], 1)
    done = [upload.complete() for _ in range(3)]
    assert [each.status_code for each in done] == [200] * 3, done[-1].text
    assert done[0].json().items() >= {"version": 2, "num_inserted_rows": 8}.items()
    assert done[0].json() == done[1].json() == done[2].json()
    assert sorted(values(servers, upload.table)) == [1, 2, 10, 11, 20, 21, 30, 31, 40, 41]
    assert version(servers, upload.table) == 2


def test_completions_at_one_time_are_one(servers: Servers, upload: Upload) -> None:
    assert upload.part(PARTS[0]).status_code == 200
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: upload.complete(), range(6)))
    assert [each.status_code for each in done] == [200] * 6, [each.text for each in done]
    assert all(each.json() == done[0].json() for each in done)
    assert (values(servers, upload.table), version(servers, upload.table)) == ([1, 2, 10, 11], 2)


def test_rows_have_the_order_of_the_parts_that_are_named(servers: Servers, upload: Upload) -> None:
    names = [str(uuid.uuid4()) for _ in PARTS]
    for name, part in zip(names, PARTS, strict=True):
        assert upload.part(part, name).status_code == 200
    order = [2, 0, 3, 1]
    assert upload.complete(parts=[names[place] for place in order]).status_code == 200
    assert values(servers, upload.table)[2:] == [PARTS[place]["a"][row].as_py() for place in order for row in (0, 1)]
    refused(upload.complete(parts=names), 400, "used for another request")


def test_parts_that_are_missing_repeated_or_foreign_are_refused(servers: Servers, upload: Upload) -> None:
    mine, absent = str(uuid.uuid4()), str(uuid.uuid4())
    foreign = Upload(servers, upload.table)
    theirs = str(uuid.uuid4())
    assert foreign.part(PARTS[1], theirs).status_code == 200
    refused(upload.complete(), 400, "parts: expected at least one, found none")
    upload = Upload(servers, upload.table)
    assert upload.part(PARTS[0], mine).status_code == 200
    refused(upload.complete(parts=[mine, mine]), 400, mine, "twice")
    refused(upload.complete(parts=[mine, theirs]), 400, theirs, "expected those of this upload")
    refused(upload.complete(parts=[mine, absent]), 400, absent, "expected those of this upload")
    refused(upload.complete(parts=[]), 400, f"found no {mine}")
    assert values(servers, upload.table) == [1, 2]
    assert upload.complete(parts=[mine]).status_code == 200
    assert values(servers, upload.table) == [1, 2, 10, 11]


def test_a_part_that_comes_again_is_one(servers: Servers, upload: Upload) -> None:
    part_id = str(uuid.uuid4())
    first = upload.part(PARTS[0], part_id)
    there = files(location(servers[0], upload.table))
    again = upload.part(PARTS[0], part_id)
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (200, {"num_inserted_rows": 2})
    refused(upload.part(PARTS[1], part_id), 400, part_id, "other rows")
    refused(upload.part(PARTS[0], part_id, mode="overwrite"), 400, part_id, "other rows")
    assert files(location(servers[0], upload.table)) == there
    assert upload.complete().json()["num_inserted_rows"] == 2


def test_an_aborted_upload_is_never_committed(servers: Servers, upload: Upload) -> None:
    assert upload.part(PARTS[0]).status_code == 200
    assert [upload.abort().status_code for _ in range(3)] == [200] * 3
    there = files(location(servers[0], upload.table))
    for late in (upload.part(PARTS[1]), upload.complete()):
        refused(late, 400, upload.id, "aborted")
    assert files(location(servers[0], upload.table)) == there
    assert (values(servers, upload.table), version(servers, upload.table)) == ([1, 2], 1)


def test_a_completed_upload_takes_nothing_more(servers: Servers, upload: Upload) -> None:
    assert upload.part(PARTS[0]).status_code == 200
    assert upload.complete().status_code == 200
    for late in (upload.part(PARTS[1]), upload.abort()):
        refused(late, 400, upload.id, "completed")
    assert values(servers, upload.table) == [1, 2, 10, 11]


def test_an_upload_is_that_of_its_caller_and_table(servers: Servers, upload: Upload) -> None:
    assert upload.part(PARTS[0]).status_code == 200
    absent = {"upload_id": NOBODY, "upload_part_id": NOBODY}
    other = f"{upload.table}-other"
    servers[0].post(f"{other}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    servers[0].post(f"{upload.table}/branches/create", json={"name": "dev"}).raise_for_status()
    bob = as_principal("bob")
    for path in ("insert", "multipart_write/complete", "multipart_write/abort"):
        asked = {name: value for name, value in absent.items() if path == "insert" or name == "upload_id"}
        own = asked | {"upload_id": upload.id}
        body: dict[str, Any] = {"content": stream(PARTS[1]), "headers": ARROW} if path == "insert" else {}
        answers = [
            servers[0].post(f"{upload.table}/{path}", params=asked, **body),
            servers[1].post(f"{other}/{path}", params=own, **body),
            servers[1].post(f"{upload.table}/{path}", params=own, **{**body, "headers": body.get("headers", {}) | bob}),
        ]
        if path != "multipart_write/abort":
            answers.append(servers[0].post(f"{upload.table}/{path}", params=own | {"branch": "dev"}, **body))
        for answer in answers:
            assert (answer.status_code, answer.json()["code"]) == (404, 10)
        assert len({answer.text.replace(upload.id, NOBODY) for answer in answers}) == 1
    assert upload.complete().json()["num_inserted_rows"] == 2


def test_all_rows_are_replaced_once(servers: Servers, table: str) -> None:
    upload = Upload(servers, table)
    for part in PARTS[:3]:
        assert upload.part(part, mode="overwrite").status_code == 200
    assert values(servers, table) == [1, 2]
    assert upload.complete().json().items() >= {"version": 2, "num_inserted_rows": 6}.items()
    assert sorted(values(servers, table)) == [10, 11, 20, 21, 30, 31]


def test_parts_that_make_no_one_version_are_refused(servers: Servers, table: str) -> None:
    for second, words in (
        ((PARTS[1], "append"), ("append and overwrite",)),
        ((OTHER_COLUMNS, "overwrite"), ("schema",)),
    ):
        upload = Upload(servers, table)
        assert upload.part(PARTS[0], mode="overwrite").status_code == 200
        assert upload.part(second[0], mode=second[1]).status_code == 200
        refused(upload.complete(), 400, "parts", *words)
    assert (values(servers, table), version(servers, table)) == ([1, 2], 1)


def test_the_first_version_of_a_table_and_that_of_a_branch(servers: Servers, table: str) -> None:
    declared = f"{table}-declared"
    servers[0].post(f"{declared}/declare", json={}).raise_for_status()
    first = Upload(servers, declared)
    for part in PARTS[:2]:
        assert first.part(part).status_code == 200
    assert first.complete().json().items() >= {"version": 1, "num_inserted_rows": 4}.items()
    assert sorted(values(servers, declared)) == [10, 11, 20, 21]
    servers[0].post(f"{table}/branches/create", json={"name": "dev"}).raise_for_status()
    branch = Upload(servers, table, branch="dev")
    for part in PARTS[:2]:
        assert branch.part(part).status_code == 200
    assert branch.complete().json()["version"] == 2
    counted = servers[1].post(f"{table}/count_rows", json={"branch": "dev"}).json()
    assert (counted, values(servers, table)) == (6, [1, 2])


def test_commits_between_the_parts(servers: Servers, table: str) -> None:
    """Appends join, also where a column came between; what replaced all rows is a conflict, and nothing is done."""
    upload = Upload(servers, table)
    assert upload.part(PARTS[0]).status_code == 200
    servers[0].post(f"{table}/insert", content=stream(PARTS[3]), headers=ARROW).raise_for_status()
    servers[0].post(f"{table}/delete", json={"predicate": "a = 1"}).raise_for_status()
    assert upload.part(PARTS[1]).status_code == 200
    assert upload.complete().json()["version"] == 4
    assert sorted(values(servers, table)) == [2, 10, 11, 20, 21, 40, 41]
    late = Upload(servers, table)
    assert late.part(PARTS[2]).status_code == 200
    servers[0].post(f"{table}/insert?mode=overwrite", content=stream(ROWS), headers=ARROW).raise_for_status()
    conflict = late.complete()
    refused(conflict, 409)
    assert conflict.json()["code"] == 14
    assert values(servers, table) == [1, 2]


def test_parts_without_rows_commit_nothing(servers: Servers, upload: Upload) -> None:
    assert [upload.part(ROWS.slice(0, 0)).status_code for _ in range(2)] == [200] * 2
    done = [upload.complete().json() for _ in range(2)]
    assert done[0].items() >= {"version": 1, "num_inserted_rows": 0}.items()
    assert done[0] == done[1]
    assert version(servers, upload.table) == 1


def test_requests_that_are_wrong_are_refused_by_name(servers: Servers, upload: Upload) -> None:
    http, path, body = servers[0], f"{upload.table}/insert", {"content": stream(ROWS), "headers": ARROW}
    refused(http.post(path, params={"upload_id": upload.id}, **body), 400, "upload_part_id")
    refused(http.post(path, params={"upload_part_id": upload.id}, **body), 400, "upload_id")
    refused(http.post(f"{path}?upload%5Fid={upload.id}", **body), 400, "upload_part_id")
    for wrong in ("", "../p", "a b", "x" * 65):
        refused(upload.part(ROWS, wrong or "\n"), 400, "upload_part_id", "64")
    refused(upload.part(ROWS, mode="create"), 400, "mode")
    refused(upload.part(OTHER_COLUMNS), 400, "b")
    refused(upload.ask("complete", upload_id="../x"), 400, "upload_id", "UUID")
    refused(upload.ask("complete"), 400, "upload_id")
    refused(upload.ask("complete", {"upload_id": NOBODY}, upload_id=upload.id), 400, "upload_id")
    refused(upload.ask("complete", {"nothing": 1}, upload_id=upload.id), 400, "nothing")
    refused(upload.ask("abort", upload_id=upload.id, branch="dev"), 400, "branch")
    keyed = {"idempotency-key": "k"}
    asked = {"upload_id": upload.id, "upload_part_id": NOBODY}
    refused(http.post(path, params=asked, content=stream(ROWS), headers=ARROW | keyed), 400, "idempotency-key")
    for what in ("create", "complete", "abort"):
        query = {} if what == "create" else {"upload_id": upload.id}
        answer = http.post(f"{upload.table}/multipart_write/{what}", params=query, headers=keyed)
        refused(answer, 400, "idempotency-key")
    torn = stream(ROWS)[:-40]
    assert http.post(path, params=asked, content=torn, headers=ARROW).status_code == 400
    refused(upload.complete(), 400, "parts: expected at least one, found none")


def begun_before(root: Path, upload: Upload, age: timedelta) -> None:
    at = time.time() - age.total_seconds()
    os.utime(root / "_staging" / "uploads" / upload.id / "upload", (at, at))


def test_an_upload_that_took_too_long_is_over(root: Path, servers: Servers, upload: Upload) -> None:
    done = Upload(servers, upload.table)
    for each in (upload, done):
        assert each.part(PARTS[0]).status_code == 200
    assert done.complete().status_code == 200
    for each in (upload, done):
        begun_before(root, each, timedelta(hours=19, minutes=59))
    assert upload.part(PARTS[1]).status_code == 200
    for each in (upload, done):
        begun_before(root, each, timedelta(hours=20, minutes=1))
    for late in (upload.part(PARTS[2]), upload.complete()):
        refused(late, 400, "20:00:00", "begin anew")
    assert done.complete().status_code == 200
    assert sorted(values(servers, upload.table)) == [1, 2, 10, 11]


def test_what_is_left_of_uploads_is_garbage_and_what_is_under_way_is_not(tmp_path: Path) -> None:
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as http:
        servers = http, http
        http.post("/v1/namespace/w/create", json={}).raise_for_status()
        table = "/v1/table/w$t"
        http.post(f"{table}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
        whole = files(location(http, table))
        abandoned, completed = Upload(servers, table), Upload(servers, table)
        for each in (abandoned, completed):
            assert each.part(PARTS[0]).status_code == 200
        assert completed.complete().status_code == 200
        ground = Ground(tmp_path)
        let_pass(ground)
        open_one = Upload(servers, table)
        assert open_one.part(PARTS[1]).status_code == 200
        report = collect(ground)
        assert report.unknown == 0
        assert report.removed[UPLOADED].files == 5
        left = {path.name for path in (tmp_path / "_staging" / "uploads").rglob("*") if path.is_file()}
        assert len(left) == 2  # the upload that is under way, and its part
        data = [name for name in files(location(http, table)) if name.startswith("data/")]
        assert len(data) == len([name for name in whole if name.startswith("data/")]) + 2
        assert open_one.complete().json()["num_inserted_rows"] == 2
        assert sorted(values(servers, table)) == [1, 2, 10, 11, 20, 21]
        gone = abandoned.complete()
        assert (gone.status_code, gone.json()["code"]) == (404, 10)
        let_pass(ground, WEEK)
        collect(ground)
        assert sorted(values(servers, table)) == [1, 2, 10, 11, 20, 21]
