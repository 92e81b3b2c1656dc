"""What a `+` in a path stands for, where it is raw: the client, the body or the catalog decides, or nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.rest.request.ids import choose, read_ids
from tests.data.arrow import stream
from tests.running import running

ROWS = stream(pa.table({"a": [1, 2]}))
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
FORM = "?delimiter=%24"
_numbers = count()


class Catalog:
    """A namespace of a test, and requests with raw paths."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.name = f"n{next(_numbers)}"
        self.post(f"/v1/namespace/{self.name}/create", json={})

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.http.post(path, **given)

    def create(self, *names: str) -> None:
        for name in names:
            body = {"id": [self.name, name]}
            segment = name.replace("%", "%25").replace("+", "%2B").replace(" ", "%20")
            assert self.post(f"/v1/table/{self.name}${segment}/declare", json=body).status_code == 200

    def table(self, segment: str, route: str, **given: Any) -> httpx.Response:
        return self.post(f"/v1/table/{self.name}%24{segment}/{route}", **given)

    def names(self) -> list[str]:
        found: list[str] = self.http.get(f"/v1/namespace/{self.name}/table/list").json()["tables"]
        return found


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("root")) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture
def catalog(http: httpx.Client) -> Catalog:
    return Catalog(http)


@pytest.fixture
def native(catalog: Catalog) -> Iterator[Catalog]:
    """The same without a user agent, as pylance's native client."""
    kept = catalog.http.headers.pop("user-agent")
    yield catalog
    catalog.http.headers["user-agent"] = kept


def refused(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    text: str = answer.json()["error"]
    return text


@pytest.mark.parametrize("only", ["a b", "a+b"])
def test_without_a_body_the_table_that_exists_is_meant(catalog: Catalog, only: str) -> None:
    catalog.create(only)
    assert catalog.table("a+b", "describe", json={}).json()["table"] == only
    assert catalog.table("a+b", "version/list").status_code == 200
    assert catalog.table("a+b", "drop").status_code == 200
    assert catalog.names() == []


def test_a_change_with_an_idempotency_key_needs_a_name_that_is_certain(catalog: Catalog) -> None:
    """What exists is another thing after the change than before it: its repetition would be another request."""
    catalog.create("a b")
    keyed = {"idempotency-key": f"key of {catalog.name}"}
    for route, given in (("drop", {}), ("insert", {"content": ROWS}), ("create", {"content": ROWS})):
        assert "a b" in refused(catalog.table("a+b", route, headers={**keyed, **ARROW} if given else keyed, **given))
    body = {"id": [catalog.name, "a b"]}
    for _ in range(2):
        answer = catalog.table("a+b", "drop", json=body, headers=keyed)
        assert (answer.status_code, answer.json()["id"]) == (200, body["id"])


def test_what_exists_says_nothing_of_what_was_dropped(catalog: Catalog) -> None:
    catalog.create("a b", "a+b")
    for segment in ("a%20b", "a%2Bb"):
        catalog.table(segment, "drop")
    assert "a+b" in refused(catalog.table("a+b", "undrop", json={}))
    assert catalog.table("a+b", "undrop", json={"id": [catalog.name, "a b"]}).status_code == 200
    assert "a b" in refused(catalog.post(f"/v1/namespace/{catalog.name}%24a+b/undrop", json={}))
    assert catalog.names() == ["a b"]


def test_where_both_exist_and_nothing_decides_the_answer_names_both(catalog: Catalog) -> None:
    catalog.create("a b", "a+b")
    for route, given in (
        ("drop", {}),
        ("deregister", {"json": {}}),
        ("describe", {"json": {}}),
        ("version/list", {}),
        ("tags/list", {}),
        ("count_rows", {"json": {}}),
        ("insert", {"content": ROWS, "headers": ARROW}),
        ("schema_metadata/update", {"json": {"k": "v"}}),
    ):
        text = refused(catalog.table("a+b", route, **given))
        assert "a b" in text
        assert "a+b" in text
        assert "%2B" in text
    assert catalog.names() == ["a b", "a+b"]


def test_a_body_decides(catalog: Catalog) -> None:
    catalog.create("a b", "a+b", "a b+c", "a+b c")
    for segment, name in (("a+b", "a b"), ("a+b%2Bc", "a b+c"), ("a%2Bb+c", "a+b c")):
        assert catalog.table(segment, "drop", json={"id": [catalog.name, name]}).status_code == 200
        assert name not in catalog.names()
    assert "names" in refused(catalog.table("a%2Bb", "drop", json={"id": [catalog.name, "a b"]}))
    assert "names" in refused(catalog.table("a%20b", "drop", json={"id": [catalog.name, "a+b"]}))
    assert catalog.names() == ["a+b"]


def test_escapes_decide(catalog: Catalog) -> None:
    catalog.create("a b", "a+b")
    assert catalog.table("a%20b", "drop").status_code == 200
    assert catalog.names() == ["a+b"]
    assert catalog.table("a%20b", "drop").status_code == 404
    assert catalog.table("a%2Bb", "drop").status_code == 200


def test_the_native_client_never_means_a_plus(native: Catalog) -> None:
    native.create("a b", "a+b")
    assert native.table("a+b", f"drop{FORM}").status_code == 200
    assert native.names() == ["a+b"]
    assert native.table("a+b", f"drop{FORM}").status_code == 404
    assert native.table("a+b", f"create{FORM}&mode=overwrite", content=ROWS, headers=ARROW).status_code == 200
    assert native.names() == ["a b", "a+b"]


def test_cached_answers_of_the_two_kinds_of_clients_are_not_mixed(native: Catalog) -> None:
    native.create("a b", "a+b")
    path = f"/v1/namespace/{native.name}/table/list{FORM}"
    for _ in range(3):
        assert native.table("a+b", f"version/list{FORM}").status_code == 200
        assert native.http.get(path).status_code == 200
        refused(native.table("a+b", f"version/list{FORM}", headers={"user-agent": "curl"}))


def test_what_is_created_is_no_other_table_that_exists(catalog: Catalog) -> None:
    create = {"content": ROWS, "headers": ARROW}
    assert catalog.table("a+b", "create", **create).status_code == 200
    assert catalog.names() == ["a+b"]
    catalog.create("c d")
    assert "c d" in refused(catalog.table("c+d", "create?mode=overwrite", **create))
    assert "c d" in refused(catalog.table("c+d", "declare", json={}))
    assert catalog.names() == ["a+b", "c d"]


def test_the_version_that_is_pinned_decides(catalog: Catalog) -> None:
    catalog.create("a b")
    pin = catalog.http.get("/v1/catalog").json()["version"]
    catalog.create("a+b")
    refused(catalog.table("a+b", "describe", json={}))
    pinned = catalog.table("a+b", "describe", json={}, headers={"x-lance-catalog-version": str(pin)})
    assert pinned.json()["table"] == "a b"


def test_a_namespace_and_a_transaction_are_read_the_same_way(catalog: Catalog) -> None:
    inner = catalog.name
    for name in ("n+s", "n s"):
        segment = name.replace("+", "%2B").replace(" ", "%20")
        assert catalog.post(f"/v1/namespace/{inner}${segment}/create", json={}).status_code == 200
    refused(catalog.post(f"/v1/namespace/{inner}%24n+s/drop"))
    refused(catalog.http.get(f"/v1/namespace/{inner}%24n+s/list"))
    catalog.post(f"/v1/namespace/{inner}$n%2Bs/drop")
    assert catalog.post(f"/v1/namespace/{inner}%24n+s/exists", json={}).status_code == 200
    catalog.create("a b", "a+b")
    refused(catalog.post(f"/v1/transaction/{inner}%24a+b%241/describe"))


def test_the_name_of_an_index_needs_a_body_or_escapes(catalog: Catalog) -> None:
    assert catalog.table("t", "create", content=ROWS, headers=ARROW).status_code == 200
    assert "index_name" in refused(catalog.table("t", "index/i+j/drop"))
    assert catalog.table("t", "index/i%2Bj/drop").status_code == 404


@pytest.mark.parametrize(
    ("segment", "delimiter", "readings"),
    [
        ("a+b", "$", [["a+b"], ["a b"]]),
        ("a%2Bb", "$", [["a+b"]]),
        ("n+s$a+b", "$", [["n+s", "a+b"], ["n+s", "a b"], ["n s", "a+b"], ["n s", "a b"]]),
        ("a+b+c%2Bd", "$", [["a+b+c+d"], ["a b c+d"]]),
        ("a+b%2Bc", "+", [["a", "b", "c"], ["a b", "c"]]),
    ],
)
def test_the_readings_of_a_segment(segment: str, delimiter: str, readings: list[list[str]]) -> None:
    assert read_ids(segment, {"delimiter": delimiter}, form=False) == readings


def test_the_readings_are_bounded() -> None:
    assert len(read_ids("$".join(["a+b"] * 4), {}, form=False)) == 16
    with pytest.raises(InvalidInputError, match="at most 4 names"):
        read_ids("$".join(["a+b"] * 5), {}, form=False)
    assert read_ids("$".join(["a+b"] * 5), {}, form=True) == [["a b"] * 5]


def test_nothing_is_chosen_between_two_that_exist() -> None:
    with pytest.raises(InvalidInputError, match=r"\[\"a\+b\"\] or \[\"a b\"\]"):
        choose("drop_table", [["a+b"], ["a b"]], [["a+b"], ["a b"]])
    assert choose("drop_table", [["a+b"], ["a b"]], []) == ["a+b"]
