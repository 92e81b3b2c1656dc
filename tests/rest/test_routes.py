"""Which method and path reach which operation."""

from __future__ import annotations

import inspect
import re

import httpx
import lance_namespace
import lance_namespace_urllib3_client.api as stock
import pytest

from namespace_server.rest import unsupported
from namespace_server.rest.dispatch import PathTable
from namespace_server.rest.errors import MethodNotAllowed, RouteNotFound
from namespace_server.rest.service import SERVED

OURS = {
    ("GET", "/v1/catalog"),
    ("GET", "/v1/catalog/versions"),
    ("GET", "/v1/catalog/versions/{version}"),
}


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


class TestPathTable:
    table = PathTable(
        [
            ("POST", "/v1/table/{id}/describe", "describe"),
            ("POST", "/v1/table/{id}/version/create", "create"),
            ("POST", "/v1/table/version/batch-create", "batch"),
            ("GET", "/v1/table", "all"),
            ("GET", "/v1/catalog/versions/{version}", "pin"),
            ("POST", "/v1/table/{id}/index/{name}/stats", "stats"),
        ]
    )

    @pytest.mark.parametrize(
        ("method", "path", "target", "parameter"),
        [
            ("POST", b"/v1/table/t/describe", "describe", b"t"),
            ("POST", b"/v1/table/version/describe", "describe", b"version"),
            ("POST", b"/v1/table/version/batch-create", "batch", b""),
            ("POST", b"/v1/table/%24/version/create/", "create", b"%24"),
            ("POST", b"/v1/table//describe", "describe", b""),
            ("GET", b"/v1/table", "all", b""),
            ("GET", b"/v1/table/", "all", b""),
            ("GET", b"/v1/catalog/versions/7", "pin", b"7"),
            ("POST", b"/v1/table/t/index/i/stats", "stats", b"t"),
        ],
    )
    def test_finds(self, method: str, path: bytes, target: str, parameter: bytes) -> None:
        assert self.table.find(method, path) == (target, parameter)

    @pytest.mark.parametrize("path", [b"", b"/", b"/v1", b"/v1/table/t", b"/v2/table", b"/v1/table/t/describe/more"])
    def test_finds_nothing(self, path: bytes) -> None:
        with pytest.raises(RouteNotFound):
            self.table.find("POST", path)

    def test_tells_a_wrong_method_from_a_wrong_path(self) -> None:
        with pytest.raises(MethodNotAllowed) as caught:
            self.table.find("GET", b"/v1/table/t/describe")
        assert caught.value.allowed == ("POST",)


def test_every_call_of_the_stock_client_has_its_route() -> None:
    known = {(item.method, item.path, item.operation) for item in (*SERVED, *unsupported.ENDPOINTS)}
    known = {item for item in known if item[:2] not in OURS}
    assert len(known) == 54
    assert known == {item for item in stock_routes() if item[2] in {name for _, _, name in known}}
    assert {item[:2] for item in known} == {item[:2] for item in stock_routes()}


def test_operations_have_the_names_of_the_namespace_interface() -> None:
    names = {item.operation for item in (*SERVED, *unsupported.ENDPOINTS) if (item.method, item.path) not in OURS}
    assert {name for name in names if not hasattr(lance_namespace.LanceNamespace, name)} == set()


@pytest.mark.parametrize("endpoint", unsupported.ENDPOINTS, ids=lambda item: item.operation)
def test_operations_that_are_not_served_say_so(http: httpx.Client, endpoint: object) -> None:
    path = endpoint.path.replace("{id}", "a").replace("{index_name}", "i")
    response = http.request(endpoint.method, path, content=b"anything at all")
    assert (response.status_code, response.json()) == (
        406,
        {"error": f"Not supported: {endpoint.operation}", "code": 0},
    )


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v2/table", "/docs", "/openapi.json", "/health", "/v1/table/a"]
)
def test_unknown_routes_answer_json(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert (response.status_code, response.json()) == (404, {"error": f"GET {path}: no such route", "code": 0})


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/table/a/describe", "POST"),
        ("DELETE", "/v1/table/a/drop", "POST"),
        ("POST", "/v1/table", "GET"),
        ("PUT", "/v1/catalog", "GET"),
        ("POST", "/health/live", "GET"),
    ],
)
def test_wrong_methods_answer_json(http: httpx.Client, method: str, path: str, allowed: str) -> None:
    response = http.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert response.json() == {"error": f"{method} {path}: expected {allowed}", "code": 0}
