"""Which method and path reach which operation."""

from __future__ import annotations

import inspect
import re

import httpx
import lance_namespace
import lance_namespace_urllib3_client.api as stock
import pytest
from lance_namespace.errors import LanceNamespaceError

from namespace_server.rest.routers import unsupported
from tests.rest.served import SERVED

OURS = {
    ("GET", "/v1/catalog"),
    ("GET", "/v1/catalog/versions"),
    ("GET", "/v1/catalog/dropped"),
    ("GET", "/v1/catalog/tables"),
    ("GET", "/v1/catalog/figures"),
    ("GET", "/v1/table/{id}/fragments"),
    ("POST", "/v1/table/{id}/maintain"),
    ("GET", "/v1/catalog/pins"),
    ("POST", "/v1/catalog/pins"),
    ("POST", "/v1/catalog/pins/delete"),
    ("GET", "/v1/catalog/events"),
    ("POST", "/v1/catalog/access"),
    ("GET", "/v1/catalog/grants"),
    ("POST", "/v1/catalog/grants"),
    ("POST", "/v1/catalog/can"),
    ("GET", "/v1/catalog/cursors"),
    ("POST", "/v1/catalog/cursors"),
    ("POST", "/v1/catalog/cursors/delete"),
    ("GET", "/v1/catalog/intents"),
    ("POST", "/v1/catalog/intents"),
    ("POST", "/v1/catalog/intents/end"),
    ("GET", "/v1/catalog/versions/{version}"),
    ("POST", "/v1/table/{id}/fetch_blobs"),
    ("GET", "/v1/table/{id}/blob/{column}/{row}/bytes"),
    ("GET", "/v1/table/{id}/blob/{column}/bytes"),
    ("POST", "/v1/table/{id}/stage"),
    ("POST", "/v1/table/{id}/stage_update"),
    ("POST", "/v1/table/{id}/stage_delete"),
    ("POST", "/v1/table/{id}/stage_merge"),
    ("POST", "/v1/table/{id}/multipart_write/create"),
    ("POST", "/v1/table/{id}/multipart_write/complete"),
    ("POST", "/v1/table/{id}/multipart_write/abort"),
    ("POST", "/v1/table/{id}/changes"),
    ("POST", "/v1/table/{id}/clone"),
    ("POST", "/v1/table/{id}/branches/diff"),
    ("POST", "/v1/table/{id}/branches/cherry_pick"),
    ("POST", "/v1/table/{id}/undrop"),
    ("POST", "/v1/namespace/{id}/undrop"),
}


UNSUPPORTED = {(route.method, route.path, route.operation) for route in unsupported.OF_THE_PUBLISHED_API}
REFUSED = {(route.method, route.path, route.operation) for route in unsupported.ROUTES}


def stock_routes() -> set[tuple[str, str, str]]:
    """Method, path and operation of every call that the generated client of the published API can make."""
    routes = set()
    for module in vars(stock).values():
        if not inspect.ismodule(module):
            continue
        for call in re.finditer(
            r"def _(\w+)_serialize\(.*?method='(\w+)',\s*resource_path='([^']+)'", inspect.getsource(module), re.DOTALL
        ):
            routes.add((call[2], call[3], call[1]))
    return routes


NOTHING_DONE = {"outcome": "nothing_done"}


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", "/v1/table/t/describe", "describe_table"),
        ("POST", "/v1/table/version/describe", "describe_table"),
        ("POST", "/v1/table/version/batch-create", "batch_create_table_versions"),
        ("POST", "/v1/table/%24/version/create/", "create_table_version"),
        ("GET", "/v1/table", "list_all_tables"),
        ("GET", "/v1/catalog/versions/7", "describe_catalog_version"),
    ],
)
def test_a_path_reaches_its_operation(http: httpx.Client, method: str, path: str, operation: str) -> None:
    bodies = {
        "batch_create_table_versions": {"entries": []},
        "create_table_version": {"version": 1, "manifest_path": "x"},
    }
    response = http.request(method, path, json=bodies.get(operation, {}))
    assert (response.status_code, response.json()["operation"]) == (200, operation)


def test_every_call_of_the_stock_client_has_its_route() -> None:
    known = {(item.method, item.path, item.operation) for item in SERVED} | UNSUPPORTED
    known = {item for item in known if item[:2] not in OURS}
    assert len(known) == 54
    assert known == {item for item in stock_routes() if item[2] in {name for _, _, name in known}}
    assert {item[:2] for item in known} == {item[:2] for item in stock_routes()}


def test_operations_have_the_names_of_the_namespace_interface() -> None:
    names = {item.operation for item in SERVED if (item.method, item.path) not in OURS}
    names |= {operation for _, _, operation in UNSUPPORTED}
    assert {name for name in names if not hasattr(lance_namespace.LanceNamespace, name)} == set()


@pytest.mark.parametrize(("method", "path", "operation"), sorted(REFUSED))
def test_operations_that_are_not_served_say_so(http: httpx.Client, method: str, path: str, operation: str) -> None:
    path = re.sub(r"\{\w+\}", "a", path)
    response = http.request(method, path, content=b"anything at all" if method == "POST" else None)
    assert (response.status_code, response.json()) == (
        406,
        {"error": f"Not supported: {operation}", "code": 0, **NOTHING_DONE},
    )


@pytest.mark.parametrize("path", ["/v1", "/v1/nothing", "/v2/table", "/health", "/v1/table/a"])
def test_unknown_routes_answer_json(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert (response.status_code, response.json()) == (
        404,
        {"error": f"GET {path}: no such route", "code": 0, **NOTHING_DONE},
    )


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/table/a/describe", "POST"),
        ("DELETE", "/v1/table/a/drop", "POST"),
        ("POST", "/v1/table", "GET, HEAD"),
        ("PUT", "/v1/catalog", "GET, HEAD"),
        ("POST", "/health/live", "GET, HEAD"),
    ],
)
def test_wrong_methods_answer_json(http: httpx.Client, method: str, path: str, allowed: str) -> None:
    response = http.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert response.json() == {"error": f"{method} {path}: expected {allowed}", "code": 0, **NOTHING_DONE}


def test_an_address_that_ends_in_a_slash_reaches_the_same_routes(http: httpx.Client) -> None:
    """Of "http://host:2333/" stock clients make "//v1/...". Nothing else is another spelling of a path."""
    target = str(http.base_url)
    assert httpx.get(f"{target}//v1/catalog").json() == http.get("/v1/catalog").json()
    assert httpx.post(f"{target}//v1/namespace/a/exists", json={}).status_code == 200
    for path in ("//health/live", "///v1/catalog", "//metrics"):
        assert httpx.get(f"{target}{path}").status_code == 404
    stock_client = lance_namespace.connect("rest", {"uri": f"{target}/"})
    with pytest.raises(LanceNamespaceError, match="missing field `tables`"):  # it reached the server that echoes
        stock_client.list_tables(lance_namespace.ListTablesRequest(id=["a"]))
