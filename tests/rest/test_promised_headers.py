"""Every header that the OpenAPI document promises, of every route, on real servers: none is taken and ignored."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from tests.audit.lines import log_in
from tests.rest.promised import MORE, NAMESPACE, REQUESTS, Asked, Scene
from tests.rest.test_openapi import OPERATIONS, parameters, resolved
from tests.running import running

_ANN, _BOB = {"x-api-key": "alpha-key-1234"}, {"x-api-key": "beta-key-1234"}
_KEYS = {"alpha-key-1234": "ann", "beta-key-1234": "bob"}
_FAR = str(10**12)


class Route:
    """An operation of the document, and the headers that it promises."""

    def __init__(self, method: str, path: str, operation: dict[str, Any]) -> None:
        self.name: str = operation["operationId"]
        self.method, self.path = method, path
        self.taken = set(parameters(operation, "header"))
        self.answered = set(operation["responses"]["200"].get("headers", {}))
        self.errors = set(resolved(operation["responses"].get("default", {})).get("headers", {}))

    def __repr__(self) -> str:
        return self.name


ROUTES = [Route(method, path, operation) for (method, path), operation in OPERATIONS.items()]
_OTHER_CATALOGS = {"EnableGrants", "ChangeGrants"}  # they succeed where grants are in force, see tests/access
CHANGES = [route for route in ROUTES if "Idempotency-Key" in route.taken and route.name not in _OTHER_CATALOGS]
OTHERS = [route for route in ROUTES if "Idempotency-Key" not in route.taken]
# Their files have no history.
_OF_NOW = {"ListTableTags", "GetTableTagVersion", "ListTableBranches"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The first server, as ann."""
    root = tmp_path_factory.mktemp("promised") / "root"
    log = log_in(root.with_name("audit"))
    with running(root, _KEYS, log, ["ann"]) as url, httpx.Client(base_url=url, timeout=60, headers=_ANN) as http:
        made = Scene(http, root)
        made.ask(f"/v1/namespace/{NAMESPACE}/create", {})
        yield made


@pytest.fixture(scope="module")
def other(scene: Scene) -> Iterator[httpx.Client]:
    """Another server on the same root, as ann."""
    log = log_in(scene.root.with_name("audit"), "p2")
    with running(scene.root, _KEYS, log, ["ann"]) as url, httpx.Client(base_url=url, timeout=60, headers=_ANN) as http:
        yield http


def _catalog_version(http: httpx.Client) -> int:
    return http.get("/v1/catalog").json()["version"]


def test_there_is_a_request_for_every_route() -> None:
    assert {route.name for route in ROUTES} == set(REQUESTS)
    assert len(CHANGES) > 30
    assert set().union(*(route.taken for route in ROUTES)) == {
        "Idempotency-Key",
        "If-None-Match",
        "If-Range",
        "Last-Event-ID",
        "Range",
        "x-lance-catalog-version",
        "x-lancedb-min-read-version",
    }


@pytest.mark.parametrize("route", CHANGES, ids=repr)
def test_a_key_is_honoured(scene: Scene, other: httpx.Client, route: Route) -> None:
    asked = REQUESTS[route.name](scene, f"key-{route.name}")
    key = {"Idempotency-Key": f"k-{route.name}"}
    before = _catalog_version(scene.http)
    first = asked.send(scene.http, route.method, route.path, key)
    assert first.status_code == 200, first.text
    _check_answered(route, first)
    [made] = _batches(scene.http, before)

    for http in (scene.http, other):
        again = asked.send(http, route.method, route.path, key)
        assert (again.status_code, again.json()) == (200, first.json())
        different = _different(asked).send(http, route.method, route.path, key)
        assert (different.status_code, different.json()["code"]) == (400, 13), different.text
        assert "was used for another request" in different.json()["error"]
        assert route.errors <= set(different.headers)
        assert _batches(http, before) == [made]

    of_another = _different(asked).send(scene.http, route.method, route.path, {**key, **_BOB})
    assert "was used" not in of_another.text

    catalog = DirectoryNamespace(root=str(scene.root)).catalog
    record = catalog.snapshot().record_by_key(key["Idempotency-Key"], "ann")
    assert record is not None
    assert record.principal == "ann"
    assert record.catalog_version == made["version"]
    catalog.close()


def _different(asked: Asked) -> Asked:
    """Another request of the same form: about something else."""
    if asked.id is not None:
        return replace(asked, id=f"{asked.id}-other")
    if "name" in asked.body:
        return replace(asked, body={"name": f"{asked.body['name']}-other"})
    if "intent_id" in asked.body:
        return replace(asked, body={**asked.body, "intent_id": "00000000-0000-4000-8000-000000000000"})
    if "operations" in asked.body:
        return replace(asked, body={"operations": [{"declare_table": {"id": [NAMESPACE, "another"]}}]})
    [entry] = asked.body["entries"]
    return replace(asked, body={"entries": [{**entry, "version": 2}]})


@pytest.mark.parametrize("route", OTHERS, ids=repr)
def test_headers_are_honoured(scene: Scene, route: Route) -> None:
    asked = REQUESTS[route.name](scene, f"other-{route.name}")
    answer = asked.send(scene.http, route.method, route.path)
    assert answer.status_code == 200, answer.text
    _check_answered(route, answer)
    newest = str(_catalog_version(scene.http))
    if "x-lance-catalog-version" in route.taken:
        for pin, code in (("latest", 13), (_FAR, 11)):
            refused = asked.send(scene.http, route.method, route.path, {"x-lance-catalog-version": pin})
            assert refused.status_code in {400, 404}
            assert route.errors <= set(refused.headers)
            assert not refused.content or refused.json()["code"] == code  # an existence has no body
        pinned = asked.send(scene.http, route.method, route.path, {"x-lance-catalog-version": newest})
        if route.name in _OF_NOW:
            assert (pinned.status_code, pinned.json()["code"]) == (400, 13)
        else:
            assert pinned.status_code == 200
            _check_answered(route, pinned)
            assert pinned.headers["x-lance-catalog-version"] == newest
    if "Last-Event-ID" in route.taken:
        assert answer.json()["events"]
        seen = asked.send(scene.http, route.method, route.path, {"Last-Event-ID": newest})
        assert seen.json() == {"events": [], "last": int(newest), "newest": int(newest)}
    if "x-lancedb-min-read-version" in route.taken:
        seen = asked.send(scene.http, route.method, route.path, {"x-lancedb-min-read-version": "1"})
        assert seen.status_code == 200, seen.text
        refused = asked.send(scene.http, route.method, route.path, {"x-lancedb-min-read-version": _FAR})
        assert (refused.status_code, refused.json()["code"]) == (404, 11)


def _check_answered(route: Route, answer: httpx.Response) -> None:
    """The headers of a success are those of the document."""
    of_http = {"accept-ranges", "content-location", "etag"}
    found = {name for name in answer.headers if name.startswith(("x-lance-", "x-lancedb-")) or name in of_http}
    # Where keys are required, a probe without one is not told the version of the catalog.
    assert found == (set() if route.name == "HealthLive" else route.answered)
    assert all(answer.headers[name].isdigit() for name in found - of_http)


@pytest.mark.parametrize(
    "name",
    [
        "CreateTable",
        "InsertIntoTable",
        "MergeInsertIntoTable",
        "DeleteFromTable",
        "AlterTableAddColumns",
        "CreateTableTag",
        "DeleteTableTag",
        "DeleteTableBranch",
    ],
)
def test_of_several_at_once_one_is_applied(scene: Scene, other: httpx.Client, name: str) -> None:
    [route] = [route for route in ROUTES if route.name == name]
    asked = REQUESTS[name](scene, f"once-{name}")
    before = _catalog_version(scene.http)

    def send(http: httpx.Client) -> httpx.Response:
        return asked.send(http, route.method, route.path, {"Idempotency-Key": f"once-{name}"})

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(send, [scene.http, other] * 3))
    assert {(answer.status_code, answer.text) for answer in answers if answer.status_code != 200} == set()
    assert len({str(sorted(answer.json().items())) for answer in answers}) == 1
    assert len(_batches(scene.http, before)) == 1


def _batches(http: httpx.Client, since: int) -> list[dict[str, Any]]:
    """The later catalog versions that batches made. A server makes others, as to close records."""
    listed = http.get("/v1/catalog/versions", params={"limit": "50"}).json()["versions"]
    return [entry for entry in listed if entry["version"] > since and entry["batches"]]


def test_rows_belong_to_the_request(scene: Scene) -> None:
    table = scene.table("digest")
    key = {"Idempotency-Key": "digest"}
    first = Asked(MORE, table).send(scene.http, "POST", "/v1/table/{id}/insert", key)
    assert first.status_code == 200
    refused = Asked(MORE[:-1] + b"\x01", table).send(scene.http, "POST", "/v1/table/{id}/insert", key)
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert Asked({}, table).send(scene.http, "POST", "/v1/table/{id}/count_rows").json() == 4


def test_every_change_has_its_principal(scene: Scene) -> None:
    """Also those without a key, by which the objects of all these tests were made."""
    catalog = DirectoryNamespace(root=str(scene.root)).catalog
    records = [record for record in catalog.snapshot().records() if record.is_batch]
    assert {record.principal for record in records} <= {"ann", "bob"}
    assert len([record for record in records if record.idempotency_key is None]) > 20
    catalog.close()


@pytest.mark.parametrize("route", CHANGES, ids=repr)
def test_changes_are_of_the_newest_catalog_version(scene: Scene, route: Route) -> None:
    newest = {"x-lance-catalog-version": str(_catalog_version(scene.http))}
    asked = Asked({}, "absent" if "{id}" in route.path else None)
    refused = asked.send(scene.http, route.method, route.path.replace("{index_name}", "i"), newest)
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert "x-lance-catalog-version: expected with a read" in refused.json()["error"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("If-Match", '"1"'),
        ("If-None-Match", "*"),
        ("If-Modified-Since", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("If-Unmodified-Since", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("Content-Range", "bytes 0-1/2"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("x-lance-branch", "dev"),
        ("X-Lance-Catalog-Versions", "1"),
    ],
)
def test_a_header_that_would_make_it_another_request_is_refused(scene: Scene, name: str, value: str) -> None:
    table = scene.table(f"header-{name.lower()}")
    refused = Asked(MORE, table).send(scene.http, "POST", "/v1/table/{id}/insert", {name: value})
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert refused.json()["error"].startswith(f"{name.lower()}: expected no such header")
    assert Asked({}, table).send(scene.http, "POST", "/v1/table/{id}/count_rows").json() == 2


def test_a_server_of_a_later_release_may_say_more(scene: Scene) -> None:
    known = {"x-lance-forwarded-to": "another", "x-lance-peer-later": "1"}
    assert scene.http.get("/v1/catalog", headers=known).status_code == 200


def test_a_browser_may_ask_whether_an_answer_has_changed(scene: Scene) -> None:
    answer = scene.http.get("/v1/catalog", headers={"If-None-Match": '"1"', "If-Modified-Since": "yesterday"})
    assert answer.status_code == 200
