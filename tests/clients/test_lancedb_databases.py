"""Databases of lancedb's remote client: each is the namespace of its name, and sees nothing of the others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

import httpx
import lance_namespace as m
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lancedb.remote.errors import HttpError

from namespace_server.rest.request.ids import IdScope
from tests.data.arrow import stream
from tests.running import running

ROWS = pa.table({"salary": [1, 2, 3]})
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
_numbers = count()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("root")) as url:
        yield url


@pytest.fixture
def catalog(url: str) -> Any:
    return lancedb.connect_catalog(url, api_key="key")


@pytest.fixture
def databases(catalog: Any) -> tuple[str, str]:
    """The names of two databases of a test."""
    names = f"hr{next(_numbers)}", f"sales{next(_numbers)}"
    for name in names:
        catalog.create_database(name)
    return names


def tables(url: str, namespace: str) -> list[str]:
    found: list[str] = httpx.get(f"{url}/v1/namespace/{namespace}/table/list").json()["tables"]
    return found


def remote(url: str, name: str) -> Any:
    return lancedb.connect(f"db://{name}", api_key="key", host_override=url)


def names(db: Any) -> list[str]:
    found: list[str] = db.list_tables().tables
    return found


@contextmanager
def database_http(url: str, name: str, prefix: str | None = None) -> Iterator[httpx.Client]:
    headers = {"x-lancedb-database": name} | ({} if prefix is None else {"x-lancedb-database-prefix": prefix})
    with httpx.Client(base_url=url, headers=headers) as http:
        yield http


def test_a_database_drops_no_table_of_another(catalog: Any, url: str, databases: tuple[str, str]) -> None:
    hr, sales = (catalog.connect_database(name) for name in databases)
    hr.create_table("people", ROWS)
    assert (names(hr), names(sales)) == (["people"], [])
    with pytest.raises(HttpError, match="Table not found"):
        sales.drop_table("people")
    sales.create_table("people", ROWS.slice(0, 1))
    sales.drop_table("people")
    assert names(hr) == ["people"]
    assert (tables(url, databases[0]), tables(url, databases[1]), tables(url, "$")) == (["people"], [], [])


def test_a_database_with_a_table_is_not_dropped(catalog: Any, databases: tuple[str, str]) -> None:
    catalog.connect_database(databases[0]).create_table("people", ROWS)
    with pytest.raises(HttpError, match="not empty"):
        catalog.drop_database(databases[0])
    catalog.connect_database(databases[0]).drop_table("people")
    catalog.drop_database(databases[0])
    assert databases[0] not in catalog.list_databases().databases


def test_two_urls_of_databases_have_two_contents(url: str, databases: tuple[str, str]) -> None:
    hr, sales = (remote(url, name) for name in databases)
    hr.create_table("people", ROWS)
    assert names(sales) == []
    sales.create_table("people", ROWS)
    client = hr.namespace_client()
    assert client.list_tables(m.ListTablesRequest(id=[])).tables == ["people"]
    described = client.describe_table(m.DescribeTableRequest(id=["people"]))
    assert described.namespace == []
    client.drop_table(m.DropTableRequest(id=["people"]))
    assert (tables(url, databases[0]), tables(url, databases[1])) == ([], ["people"])


def test_all_routes_are_below_the_database(url: str, databases: tuple[str, str]) -> None:
    """Each route of a table is called for one database; what another one, and the root, hold does not change."""
    name, other = databases
    with httpx.Client(base_url=url) as root_http:
        _check_all_routes(url, name, other, root_http)


def _check_all_routes(url: str, name: str, other: str, root_http: httpx.Client) -> None:
    for prefix in ("", f"{name}$", f"{other}$"):
        assert root_http.post(f"/v1/table/{prefix}t/create", content=stream(ROWS), headers=ARROW).status_code == 200
    with database_http(url, name) as http:
        assert http.post("/v1/table/t/insert", content=stream(ROWS), headers=ARROW).status_code == 200
        assert http.post("/v1/table/t/update", json={"updates": [["salary", "9"]]}).status_code == 200
        assert http.post("/v1/table/t/delete", json={"id": ["t"], "predicate": "salary = 0"}).status_code == 200
        assert http.post("/v1/table/t/count_rows", json={"id": ["t"]}).json() == 6
        assert http.post("/v1/table/t/tags/create", json={"tag": "x", "version": 1}).status_code == 200
        assert http.post("/v1/table/t/schema_metadata/update", json={"k": "v"}).status_code == 200
        assert http.post("/v1/table/t/create_scalar_index", json={"column": "salary", "index_type": "BTREE"}).is_success
        assert http.post("/v1/table/t/describe", json={"id": ["t"]}).json()["namespace"] == []
        staged = http.post("/v1/table/t/stage?mode=append", content=stream(ROWS), headers=ARROW).json()["operations"]
        declared = {"declare_table": {"id": ["u"]}}
        assert http.post("/v1/table/batch-commit", json={"operations": [*staged, declared]}).status_code == 200
        assert http.post("/v1/table/t/count_rows", json={}).json() == 9
        assert http.get("/v1/table").json()["tables"] == ["t", "u"]
        assert http.get("/v1/table?limit=1").json() == {"tables": ["t"], "page_token": "t"}
        assert http.get("/v1/table?limit=1&page_token=t").json() == {"tables": ["u"]}
        assert http.post("/v1/namespace/inner/create", json={"id": ["inner"]}).status_code == 200
        renamed = http.post("/v1/table/u/rename", json={"new_table_name": "v", "new_namespace_id": ["inner"]})
        assert renamed.status_code == 200
        assert http.get("/v1/table").json()["tables"] == ["inner$v", "t"]
        assert http.get("/v1/table/").json()["tables"] == ["t"]
        assert http.get("/v1/namespace/$/list").json()["namespaces"] == ["inner"]
        assert http.get("/v1/namespace/inner/table/list").json()["tables"] == ["v"]
    with database_http(url, name, "inner") as http:
        assert http.get("/v1/table/").json()["tables"] == ["v"]
        assert http.post("/v1/table/v/drop").status_code == 200
    for prefix in ("", f"{other}$"):
        assert root_http.post(f"/v1/table/{prefix}t/count_rows", json={}).json() == 3
        assert len(root_http.post(f"/v1/table/{prefix}t/version/list").json()["versions"]) == 1
    assert tables(url, name) == ["t"]
    root_http.post("/v1/table/t/drop")


def test_cached_reads_and_keys_of_two_databases_are_two(url: str, databases: tuple[str, str]) -> None:
    key = {"idempotency-key": str(uuid.uuid4())}
    with ExitStack() as opened:
        clients = [opened.enter_context(database_http(url, name)) for name in databases]
        _check_keys_and_cached_reads(clients, key)


def _check_keys_and_cached_reads(clients: list[httpx.Client], key: dict[str, str]) -> None:
    declared = [http.post("/v1/table/t/declare", json={}, headers=key) for http in clients]
    assert [answer.status_code for answer in declared] == [200, 400]  # the key was used for another request
    assert clients[1].post("/v1/table/t/declare", json={}).status_code == 200
    again = clients[0].post("/v1/table/t/declare", json={"id": ["t"]}, headers=key)
    assert again.json()["location"] == declared[0].json()["location"]
    for _ in range(3):
        described = [http.post("/v1/table/t/describe", json={}).json()["location"] for http in clients]
        assert described[0] != described[1]
    version = int(clients[0].get("/v1/catalog").json()["version"])
    pinned = {"x-lance-catalog-version": str(version)}
    assert clients[1].post("/v1/table/t/drop").status_code == 200
    assert clients[1].post("/v1/table/t/describe", json={}, headers=pinned).status_code == 200
    assert clients[1].post("/v1/table/t/describe", json={}).status_code == 404


@pytest.mark.parametrize(
    ("name", "status"), [("nowhere", 404), ("a$b", 400), ("", 400), (b"\xff", 400), ("..", 404), ("a/b", 404)]
)
def test_a_database_that_is_none(url: str, name: Any, status: int) -> None:
    with httpx.Client(base_url=url, headers={"x-lancedb-database": name}) as http:
        assert http.get("/v1/table").status_code == status
        assert http.get("/v1/namespace/$/table/list").status_code == status
        assert http.post("/v1/table/t/declare", json={}).status_code in {400, 404}
        assert http.post("/v1/table/t/drop").status_code in {400, 404}


def test_a_database_is_not_dropped_from_within(url: str, databases: tuple[str, str]) -> None:
    with database_http(url, databases[0]) as http:
        assert http.post("/v1/namespace/$/drop", json={"behavior": "Cascade"}).status_code == 400
        assert http.post("/v1/table/$/drop").status_code == 400
        assert http.post("/v1/namespace/$/exists", json={}).status_code == 200


def test_a_prefix_needs_a_database(url: str) -> None:
    assert httpx.get(f"{url}/v1/table", headers={"x-lancedb-database-prefix": "p"}).status_code == 400


def test_ids_go_below_the_database_and_back() -> None:
    place = IdScope(("db", "p"))
    body = {
        "id": ["t"],
        "properties": {"id": "x"},
        "operations": [{"declare_table": {"id": ["n", "u"], "properties": {"id": "1"}}}, {"drop_table": {"id": []}}],
        "entries": [{"id": ["v"], "version": 1}],
    }
    below = place.request(body)
    assert below["id"] == ["db", "p", "t"]
    assert below["operations"] == [
        {"declare_table": {"id": ["db", "p", "n", "u"], "properties": {"id": "1"}}},
        {"drop_table": {"id": []}},
    ]
    assert below["entries"] == [{"id": ["db", "p", "v"], "version": 1}]
    assert place.answer(below) == body


def test_a_namespace_client_with_the_header_commits_below_the_database(url: str, databases: tuple[str, str]) -> None:
    client = RestNamespace(uri=url, **{"header.x-lancedb-database": databases[1]})
    client.declare_table(m.DeclareTableRequest(id=["a b"]))
    assert tables(url, databases[1]) == ["a b"]
    client.drop_table(m.DropTableRequest(id=["a b"]))
    assert tables(url, databases[1]) == []
