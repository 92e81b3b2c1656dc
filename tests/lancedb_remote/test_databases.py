"""Databases of lancedb's clients are namespaces, which come into being with their first table."""

from __future__ import annotations

from typing import Any

import httpx
import lance_namespace as m
import lancedb
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import Shop, connect, listed, new_name, refused, rows
from tests.running import running

ONE = pa.table({"n": [1]})


@pytest.fixture(scope="session")
def catalog(remote_url: str) -> Any:
    return lancedb.connect_catalog(remote_url, api_key="any-key")


def names(url: str, namespace: str) -> list[str]:
    """The tables of a namespace, as the published API lists them."""
    found: list[str] = httpx.get(f"{url}/v1/namespace/{namespace}/table/list").json()["tables"]
    return found


def test_one_overwrites_and_drops_no_table_of_another(remote_url: str) -> None:
    east, west = (connect(remote_url, f"db://{new_name()}") for _ in range(2))
    east.create_table("t", rows(3))
    west.create_table("t", rows(1), mode="overwrite")
    west.drop_table("t")
    with refused("404", "not found"):
        west.drop_table("t")
    assert east.open_table("t").count_rows() == 3


def test_it_is_created_with_its_first_table_in_one_commit(remote_url: str) -> None:
    name = new_name()
    db = connect(remote_url, f"db://{name}")
    assert (listed(db), db.list_tables().tables, db.list_namespaces().namespaces) == ([], [], [])
    before = httpx.get(f"{remote_url}/v1/catalog").json()["version"]
    db.create_table("t", ONE)
    assert httpx.get(f"{remote_url}/v1/catalog").json()["version"] == before + 1
    assert names(remote_url, name) == ["t"]
    with refused("not found"):
        db.open_table("nothing")


def test_nothing_else_is_created_with_a_table(remote_url: str) -> None:
    name = new_name()
    db = connect(remote_url, f"db://{name}")
    with refused("404"):
        db.create_table("t", ONE, namespace_path=["inner"])
    root = httpx.get(f"{remote_url}/v1/namespace/$/list").json()["namespaces"]
    assert name not in root
    with httpx.Client(base_url=remote_url, headers={"x-lancedb-database": name}) as published:
        created = published.post("/v1/table/t/create", content=stream(ONE), headers=ARROW)
        assert (created.status_code, created.json()["code"]) == (404, 1)


def test_a_prefix_is_the_namespace_below(remote_url: str) -> None:
    name = new_name()
    db = connect(remote_url, f"db://{name}/runs")
    db.create_table("t", ONE)
    assert names(remote_url, f"{name}$runs") == ["t"]
    assert names(remote_url, name) == []
    assert listed(connect(remote_url, f"db://{name}"), namespace_path=["runs"]) == ["t"]


def test_it_is_the_namespace_of_its_name(remote_url: str) -> None:
    db, name = connect(remote_url), new_name()
    db.create_table(name, ONE)
    others = lancedb.connect_namespace("rest", {"uri": remote_url})
    assert name in listed(others, namespace_path=["shop"], limit=1000)
    client = db.namespace_client()  # says requests as the published API does
    assert name in client.list_tables(m.ListTablesRequest(id=[])).tables
    client.drop_table(m.DropTableRequest(id=[name]))
    assert name not in listed(db, limit=1000)


def test_the_catalog_creates_lists_opens_and_drops_them(catalog: Any) -> None:
    name = new_name()
    catalog.create_database(name)
    catalog.create_database(name, exist_ok=True)
    assert name in catalog.list_databases().databases
    with refused("already exists"):
        catalog.create_database(name)
    db = catalog.connect_database(name)
    db.create_table("t", ONE)
    with refused("not empty"):
        catalog.drop_database(name)
    db.drop_table("t")
    catalog.drop_database(name)
    with refused("not found"):
        catalog.connect_database(name)
    catalog.drop_database(name, ignore_missing=True)


def test_no_id_leads_out_of_it(remote_url: str) -> None:
    name, other = new_name(), new_name()
    for each in (name, other):
        connect(remote_url, f"db://{each}").create_table("t", ONE)
    with httpx.Client(base_url=remote_url, headers={"x-lancedb-database": name}) as http:
        for wanted in ([other], ["..", other], [f"..${other}"], [""]):
            moved = http.post("/v1/table/t/rename/", json={"new_table_name": "moved", "new_namespace": wanted})
            assert moved.status_code in {400, 404}, moved.text
        assert http.post("/v1/table/t/describe/", json={"id": [other, "t"]}).status_code == 400
        assert http.post(f"/v1/table/..%24{other}%24t/describe/", json={}).status_code in {400, 404}
        assert http.post(f"/v1/table/{other}$t/drop/").status_code == 404
    assert names(remote_url, name) == names(remote_url, other) == ["t"]


@pytest.mark.parametrize("database", ["a$b", "", b"\xff"])
def test_what_is_no_name_is_refused(remote_url: str, database: str | bytes) -> None:
    with httpx.Client(base_url=remote_url, headers=[("x-lancedb-database", database)]) as http:
        for method, path in (("GET", "/v1/table/"), ("POST", "/v1/table/t/describe/")):
            answer = http.request(method, path)
            assert (answer.status_code, "x-lancedb-database" in answer.text) == (400, True)


def test_one_name_may_be_the_root(tmp_path: Any) -> None:
    with running(tmp_path / "root", root_database="old") as url:
        httpx.post(f"{url}/v1/table/t/create", content=stream(ONE), headers=ARROW)
        httpx.post(f"{url}/v1/namespace/lab/create", json={})
        db = connect(url, "db://old")
        assert listed(db) == ["t"]
        db.create_table("u", ONE)
        assert names(url, "$") == ["t", "u"]
        assert listed(connect(url, "db://other")) == []
        connect(url, "db://old/lab").create_table("v", ONE)
        assert names(url, "lab") == ["v"]


def test_namespaces_in_it(shop: Shop) -> None:
    name = new_name()
    shop.db.create_namespace([name], properties={"owner": "ada"})
    assert shop.db.describe_namespace([name]).properties == {"owner": "ada"}
    assert name in shop.db.list_namespaces().namespaces
    inner = shop.db.create_table("inner", rows(5), namespace_path=[name])
    assert inner.count_rows() == 5
    assert listed(shop.db, namespace_path=[name]) == ["inner"]
    with refused("not empty"):
        shop.db.drop_namespace([name])
    shop.db.drop_table("inner", namespace_path=[name])
    shop.db.drop_namespace([name])
    assert name not in shop.db.list_namespaces().namespaces
