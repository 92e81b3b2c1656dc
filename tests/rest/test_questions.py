"""What requests ask, remembered by their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.dispatch import PathTable
from namespace_server.rest.endpoints import Endpoint
from namespace_server.rest.errors import RouteNotFound
from namespace_server.rest.exchange import Question, Questions
from namespace_server.rest.service import SERVED
from tests.rest.conftest import EchoCatalog

JSON = b"application/json"


def endpoint(operation: str) -> Endpoint:
    return next(each for each in SERVED if each.operation == operation)


def ask(
    questions: Questions,
    operation: str = "describe_table",
    segment: bytes = b"a%24t",
    query: bytes = b"",
    body: bytes = b"{}",
    media_type: bytes = JSON,
) -> Question:
    return questions.read(endpoint(operation), segment, query, media_type, body)


def test_the_same_bytes_ask_the_same() -> None:
    questions = Questions()
    first = ask(questions)
    again = ask(questions, segment=bytes(bytearray(b"a%24t")), body=bytes(bytearray(b"{}")))
    assert again is first
    assert (first.operation, first.request) == ("describe_table", {"id": ["a", "t"]})


@pytest.mark.parametrize(
    ("other", "request_"),
    [
        ({"segment": b"a%24u"}, {"id": ["a", "u"]}),
        ({"query": b"delimiter=."}, {"id": ["a$t"]}),
        ({"query": b"delimiter=t"}, {"id": ["a$"]}),
        ({"query": b"check_declared=true"}, {"id": ["a", "t"], "check_declared": True}),
        ({"body": b'{"version":1}'}, {"id": ["a", "t"], "version": 1}),
        ({"body": b'{"branch":"dev"}'}, {"id": ["a", "t"], "branch": "dev"}),
        ({"operation": "table_exists"}, {"id": ["a", "t"]}),
        ({"media_type": b"application/json; charset=utf-8"}, {"id": ["a", "t"]}),
    ],
    ids=str,
)
def test_other_bytes_ask_something_else(other: dict[str, Any], request_: dict[str, Any]) -> None:
    questions = Questions()
    first = ask(questions)
    asked = ask(questions, **other)
    assert asked != first
    assert (asked.operation, asked.request) == (other.get("operation", "describe_table"), request_)
    assert ask(questions) is first


def test_bad_input_stays_bad_beside_good() -> None:
    questions = Questions()
    ask(questions)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="Content-Type"):
            ask(questions, media_type=b"text/plain")
        with pytest.raises(InvalidInputError, match="delimiter"):
            ask(questions, query=b"delimiter=")
        with pytest.raises(InvalidInputError, match="the route names"):
            ask(questions, body=b'{"id":["b"]}')


def test_what_is_remembered_is_bounded() -> None:
    questions = Questions(count=4)
    first = ask(questions)
    for number in range(4):
        ask(questions, segment=b"t%d" % number)
    assert ask(questions) is not first
    assert ask(questions) == ask(questions)


def test_nothing_long_is_remembered() -> None:
    questions = Questions(longest=100)
    long = b'{"context":{"message":"' + b"x" * 100 + b'"}}'
    first = ask(questions, body=long)
    again = ask(questions, body=long)
    assert again is not first
    assert again.request == first.request


def test_paths_are_found_again_up_to_a_bound() -> None:
    table = PathTable([("GET", "/v1/thing/{id}", "thing")], remembered=2)
    for _ in range(2):
        for name in (b"a", b"b", b"c", b"d" * 1000):
            assert table.find("GET", b"/v1/thing/" + name) == ("thing", name)
        with pytest.raises(RouteNotFound):
            table.find("GET", b"/v1/other/a")


class TestOverHttp:
    """One server that has answered a question before, and a second one on the same root."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "catalog"

    @pytest.fixture
    def url(self, serve: Any, root: Path) -> str:
        url: str = serve(
            DirectoryNamespace(root=str(root), durability="none"), keys={"key-no-1": "ann", "key-no-2": "bob"}
        ).url
        for path, body in (("/v1/namespace/a/create", {}), ("/v1/table/a$t/declare", {})):
            assert httpx.post(url + path, json=body, headers={"x-api-key": "key-no-1"}).status_code == 200
        return url

    def describe(
        self, url: str, table: str = "a$t", delimiter: str = "$", key: str | None = "key-no-1", **headers: str
    ) -> httpx.Response:
        given = headers if key is None else {"x-api-key": key, **headers}
        return httpx.post(f"{url}/v1/table/{table}/describe?delimiter={delimiter}", json={}, headers=given)

    def test_who_has_no_key_gets_no_answer_that_others_got(self, url: str) -> None:
        for _ in range(2):
            assert self.describe(url).status_code == 200
            assert self.describe(url, key="key-no-2").json() == self.describe(url).json()
            for key in ("key-no-3", "", None):
                refused = self.describe(url, key=key)
                assert (refused.status_code, refused.json()["code"]) == (401, 16)

    def test_a_pin_is_answered_at_its_version(self, url: str) -> None:
        now = self.describe(url)
        version = int(now.headers["x-lance-catalog-version"])
        gone = self.describe(url, **{"x-lance-catalog-version": str(version - 1)})
        assert (gone.status_code, gone.json()["code"]) == (404, 4)  # the table was not declared yet
        again = self.describe(url)
        assert (again.json(), again.headers["x-lance-catalog-version"]) == (now.json(), str(version))
        pinned = self.describe(url, **{"x-lance-catalog-version": str(version)})
        assert pinned.json() == now.json()

    def test_another_delimiter_names_another_table(self, url: str) -> None:
        assert self.describe(url, "a$t").status_code == 200
        assert self.describe(url, "a.t", ".").json() == self.describe(url, "a$t").json()
        assert self.describe(url, "a.t").status_code == 404
        assert self.describe(url, "a$t", ".").status_code == 404

    def test_what_another_server_changes_is_answered_at_once(self, url: str, root: Path) -> None:
        other = DirectoryNamespace(root=str(root), durability="none")
        headers = {"x-api-key": "key-no-1"}

        def ask() -> tuple[int, list[str], str]:
            listed = httpx.get(f"{url}/v1/namespace/a/table/list", headers=headers)
            return self.describe(url).status_code, listed.json()["tables"], listed.headers["x-lance-catalog-version"]

        for number in range(5):
            before = other.read("describe_catalog", {}).catalog_version
            assert [ask(), ask()] == [(200, ["t"], str(before))] * 2
            other._write("create_namespace", {"id": [f"n{number}"]})
            other._write("drop_table", {"id": ["a", "t"]})
            assert [ask(), ask()] == [(404, [], str(before + 2))] * 2
            other._write("declare_table", {"id": ["a", "t"]})
        other.close()

    def test_every_read_is_asked_with_its_question(self, serve: Any) -> None:
        catalog = EchoCatalog()
        server = serve(catalog)
        for path, agent in (("a$t", "one"), ("a$t", "other"), ("a$u", "one")):  # in other bytes each
            assert self.describe(server.url, path, key=None, **{"user-agent": agent}).status_code == 200
        first, second, third = catalog.questions
        assert first is second
        assert first is not third
