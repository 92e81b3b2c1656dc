"""Writes of lancedb's remote client in several requests at one time, which are one version or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import lancedb
import pyarrow as pa
import pytest

from tests.access.granting import ADMIN, granted, key, keys, put_rows, switch_on
from tests.lancedb_remote.remote import Shop, connect, new_name, rows, told
from tests.listener import body_of, listen
from tests.running import running

LARGE = pa.concat_tables([rows(500, 1000 * (number + 1)) for number in range(12)])


def test_parallel_writes_are_as_locally(shop: Shop) -> None:
    remote, local = shop.pair()
    for mode in ("append", "overwrite"):
        answers = [table.add(LARGE, mode=mode, write_parallelism=4).version for table in (remote, local)]
        assert answers[0] == answers[1]
        found, expected = (table.search().limit(10_000).to_arrow().sort_by("id") for table in (remote, local))
        assert found.equals(expected)


def test_parallel_writes_to_a_branch(shop: Shop) -> None:
    table = shop.table(rows(3))
    branch = table.branches.create("dev")
    assert branch.add(LARGE, write_parallelism=4).version == 2
    assert (branch.count_rows(), table.count_rows()) == (6003, 3)


def test_rows_that_do_not_fit_change_nothing(shop: Shop) -> None:
    table = shop.table(rows(3))
    for bad in (LARGE.drop_columns(["text"]).append_column("nope", pa.nulls(6000)), [{"id": "x"}]):
        with pytest.raises(Exception, match=r"nope|[Cc]ast|schema"):
            table.add(bad, write_parallelism=4)
    assert (table.count_rows(), table.version) == (3, 1)


class Middle:
    """Stands between a client and two servers, which it asks in turn; what it loses is answered 503, or not at all."""

    def __init__(self, upstream: list[str]) -> None:
        self.asked: list[str] = []
        self.busy: Callable[[str], bool] = lambda _path: False
        self.lost: Callable[[str], bool] = lambda _path: False
        self._turn = cycle(upstream)
        self.url = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = body_of(request)
        what = request.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        what = "part" if "upload_part_id" in request.path else what
        self.asked.append(what)
        if self.busy(what):
            request.send_response(503)
            request.send_header("content-length", "0")
            request.end_headers()
            return
        kept = {"host", "connection", "content-length", "transfer-encoding"}
        headers = {name: value for name, value in request.headers.items() if name.lower() not in kept}
        answer = httpx.request(request.command, next(self._turn) + request.path, content=body, headers=headers)
        if self.lost(what):
            request.close_connection = True
            return
        request.send_response(answer.status_code)
        for name in ("content-type", "phalanx-version", "x-lancedb-version"):
            if name in answer.headers:
                request.send_header(name, answer.headers[name])
        request.send_header("content-length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)


def once(name: str) -> Callable[[str], bool]:
    """True for the first request of this name."""
    left = [name]

    def is_first(what: str) -> bool:
        return what in left and not left.remove(what)

    return is_first


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    root = tmp_path_factory.mktemp("two")
    with running(root) as one, running(root) as other:
        yield one, other


@pytest.fixture
def middle(two: tuple[str, str]) -> Iterator[Middle]:
    made = Middle(list(two))
    with listen(made.answer) as made.url:
        yield made


def test_two_servers_take_the_requests_in_turn(middle: Middle) -> None:
    table = connect(middle.url).create_table(new_name(), rows(3))
    middle.asked.clear()
    assert table.add(LARGE, write_parallelism=4).version == 2
    parts = middle.asked.count("part")
    assert parts > 1
    assert [each for each in middle.asked if each != "describe"] == ["create", *["part"] * parts, "complete"]
    assert table.count_rows() == 6003


def test_a_part_that_is_refused_for_now_begins_it_anew(middle: Middle) -> None:
    table = connect(middle.url, retries=3).create_table(new_name(), rows(3))
    middle.busy = once("part")
    assert table.add(LARGE, write_parallelism=4).version == 2
    assert middle.asked.count("abort") == 1
    assert middle.asked.count("complete") == 1
    assert table.count_rows() == 6003


def test_a_completion_that_is_refused_for_now_comes_again(middle: Middle) -> None:
    table = connect(middle.url, retries=3).create_table(new_name(), rows(3))
    middle.busy = once("complete")
    assert table.add(LARGE, write_parallelism=4).version == 2
    assert table.count_rows() == 6003


def test_an_answer_that_is_lost_is_no_second_write(middle: Middle) -> None:
    """The client gives up, and aborts what is completed: that is refused, and nothing is written anew."""
    table = connect(middle.url, retries=3).create_table(new_name(), rows(3))
    middle.lost = once("complete")
    with pytest.raises(Exception, match=r".") as raised:
        table.add(LARGE, write_parallelism=4)
    assert "error sending request" in told(raised.value), told(raised.value)
    assert middle.asked.count("create") == 2  # of the table, and of the upload
    assert (table.count_rows(), table.version) == (6003, 2)


def test_who_may_not_write_writes_no_part(tmp_path: Path) -> None:
    with running(tmp_path, keys(ADMIN, "ann", "bob")) as url:
        admin, ann, bob = (
            lancedb.connect("db://shop", api_key=key(name), host_override=url) for name in (ADMIN, "ann", "bob")
        )
        admin.create_table("t", rows(3))
        switch_on(
            tmp_path,
            granted("namespace", "shop", "ann", "read", "write"),
            granted("namespace", "shop", "bob", "read"),
        )
        assert ann.open_table("t").add(LARGE, write_parallelism=4).version == 2
        for table, mode in ((bob.open_table("t"), "append"), (ann.open_table("t"), "overwrite")):
            with pytest.raises(Exception, match="permission denied"):
                table.add(LARGE, mode=mode, write_parallelism=4)
        assert admin.open_table("t").count_rows() == 6003
        ours = {"x-lancedb-database": "shop", "user-agent": "LanceDB-x"}
        with httpx.Client(base_url=url, headers=ours, timeout=30) as http:
            path = "/v1/table/t/multipart_write"
            begun = http.post(f"{path}/create", headers={"x-api-key": key("ann")}).json()["upload_id"]
            put_rows(tmp_path, [granted("namespace", "shop", "bob", "read", "write")])
            for what in ("complete", "abort"):
                answer = http.post(f"{path}/{what}?upload_id={begun}", headers={"x-api-key": key("bob")})
                assert (answer.status_code, answer.json()["code"]) == (400, 10)  # 404 would be a missing table
            put_rows(tmp_path, [granted("namespace", "shop", "ann", "read")])
            answer = http.post(f"{path}/complete?upload_id={begun}", headers={"x-api-key": key("ann")})
            assert answer.status_code == 403, answer.text


def test_what_the_client_sends_is_all_that_is_taken(shop: Shop, remote_url: str) -> None:
    table = shop.table(rows(3))
    with httpx.Client(base_url=remote_url, headers={"x-lancedb-database": "shop", "user-agent": "LanceDB-x"}) as http:
        path = f"/v1/table/{table.name}/multipart_write"
        for target in ("create?nothing=1", "complete", "complete?upload_id=u", f"abort?upload_id={'x' * 2000}"):
            answer: Any = http.post(f"{path}/{target}")
            assert answer.status_code == 400, answer.text
        assert http.post("/v1/table/absent/multipart_write/create").status_code == 404
