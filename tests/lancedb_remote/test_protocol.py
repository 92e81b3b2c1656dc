"""What lancedb's remote client needs of answers beside their values: statuses, versions, one change for repetitions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    ErrorCode,
    InternalError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableColumnNotFoundError,
    TableIndexNotFoundError,
    TableNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
)

from namespace_server.outcomes import NOTHING_DONE, UNKNOWN
from namespace_server.rest.dialects.lancedb import TRANSLATIONS
from namespace_server.rest.dialects.statuses import lancedb_status
from namespace_server.rest.errors import RouteNotFound, status_of
from namespace_server.rest.routers import ROUTES
from namespace_server.rest.routing import LANCEDB
from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import Shop, refused, rows

LONG_MATCH = {"query": "A" * 100_000, "columns": ["text"] * 20}
MANY_MATCHES = [{"multi_match": {"query": "A" * 200, "columns": ["text"] * 100}}] * 60
AGENT = {"user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "shop"}


@pytest.fixture(scope="module")
def http(remote_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=remote_url, headers=AGENT) as client:
        yield client


def test_each_route_of_the_dialect_has_a_translation_and_no_other_has() -> None:
    routed = [route.operation for route in ROUTES if LANCEDB in route.dialects]
    assert len(routed) == len(set(routed))
    assert set(routed) == TRANSLATIONS.keys()


def test_answers_announce_what_works(shop: Shop, http: httpx.Client) -> None:
    table = shop.table(rows(3))
    path = f"/v1/table/{table.name}"
    for answer in (http.get("/v1/table/"), http.post(f"{path}/describe/"), http.get("/v1/namespace/$/table/list")):
        assert (answer.status_code, answer.headers["phalanx-version"]) == (200, "0.5.0")
    counted = http.post(f"{path}/count_rows/", json={"predicate": None})
    deleted = http.post(f"{path}/delete/", json={"predicate": "id = 1"})
    described = http.post(f"{path}/describe/", json={"version": None})
    assert [each.headers["x-lancedb-version"] for each in (counted, deleted, described)] == ["1", "2", "2"]
    assert (
        "phalanx-version" not in http.post(f"/v1/table/shop${table.name}/exists", headers={"user-agent": "x"}).headers
    )


def nested(depth: int) -> pa.DataType:
    return pa.list_(nested(depth - 1)) if depth else pa.int64()


@pytest.mark.parametrize(
    "columns",
    [
        stream(pa.table({"n": pa.array([1, 2])})),
        stream(pa.table({"n": pa.array([], pa.int64())})) + b"more",
        stream(pa.table({"n": pa.array([], nested(300))})),
    ],
    ids=["rows", "more", "nested"],
)
def test_a_schema_of_new_columns_is_a_stream_without_rows(shop: Shop, http: httpx.Client, columns: bytes) -> None:
    """Rows that are sent with it would be lost."""
    table = shop.table(rows(3))
    answer = http.post(f"/v1/table/{table.name}/add_columns/", content=columns, headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "arrow_schema" in answer.json()["error"]
    assert table.version == 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("query", {"k": 1, "vector": [], "use_lsm": True}, "use_lsm"),
        ("query", {"k": 1, "vector": "x"}, "vector"),
        ("query", {"k": 1, "columns": 1}, "columns"),
        ("query", {"k": 1, "full_text_query": {"query": {"match": {"terms": "a", "column": None}}, "x": 1}}, "x"),
        ("query", {"k": 1, "order_by": [{"column_name": "id", "descending": True}]}, "descending"),
        ("query", {"k": 1, "full_text_query": {"query": {"multi_match": LONG_MATCH}}}, "multi_match"),
        ("query", {"k": 1, "full_text_query": {"query": {"boolean": {"should": MANY_MATCHES}}}}, "multi_match"),
        ("query", {"k": "1"}, "k"),
        ("explain_plan", {"query": {"k": 1, "nonsense": 1}}, "nonsense"),
        ("create_index", {"column": "id", "index_type": "BTREE", "nonsense": 1}, "nonsense"),
        ("create_index", {"column": "text", "index_type": "FTS", "lance_tokenizer": "x"}, "lance_tokenizer"),
        ("create_index", {"column": "text", "index_type": "FM"}, "FM"),
        ("create_index", {"column": "id", "index_type": "BTREE", "num_partitions": 2}, "num_partitions"),
        ("create_index", {"column": "text", "index_type": "FTS", "metric_type": "l2"}, "distance_type"),
        ("create_index", {"column": "vector", "index_type": "IVF_FLAT", "stem": True}, "stem"),
        ("update", {"updates": [["id", "1"]], "nonsense": 1}, "nonsense"),
        ("delete", {"predicate": "true", "nonsense": 1}, "nonsense"),
        ("rename", {"new_table_name": "u", "nonsense": 1}, "nonsense"),
        ("rename", {"new_table_name": "u", "new_namespace": "x"}, "new_namespace"),
        ("tags/create", {"tag": "a", "version": 1, "nonsense": 1}, "nonsense"),
        ("describe", {"nonsense": 1}, "nonsense"),
        ("drop", {"nonsense": 1}, "nonsense"),
        ("restore", {"version": 1, "nonsense": 1}, "nonsense"),
        ("stats", {"nonsense": 1}, "nonsense"),
        ("get_lsm_write_spec", {"nonsense": 1}, "nonsense"),
        ("get_lsm_stats", {"nonsense": 1}, "nonsense"),
        ("insert?nonsense=1", None, "nonsense"),
        ("insert?upload_id=u&upload_part_id=p", None, "upload_id"),
        ("merge_insert?on=id&use_lsm=true", None, "use_lsm"),
        ("analyze_plan?distributed_metrics=true", {"k": 1}, "distributed_metrics"),
        ("add_columns", {"new_columns": [{"name": "n", "function": "f"}]}, "function"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_served_is_refused_by_its_name(
    shop: Shop, http: httpx.Client, path: str, body: Any, field: str
) -> None:
    table = shop.table(rows(3))
    route, _, query = path.partition("?")
    target = f"/v1/table/{table.name}/{route}/{'?' * bool(query)}{query}"
    given: dict[str, Any] = {"json": body} if body is not None else {"content": stream(rows(1)), "headers": ARROW}
    answer = http.post(target, **given)
    assert answer.status_code == 400, answer.text
    assert field in answer.json()["error"]
    assert (table.count_rows(), table.version) == (3, 1)


@pytest.mark.parametrize(
    "request_of",
    [
        ("update", {"predicate": None, "updates": [["id", "id + 1"]]}),
        ("delete", {"predicate": "id = 1"}),
        ("add_columns", {"new_columns": [{"name": "n", "expression": "id"}]}),
        ("drop_columns", {"columns": ["text"]}),
        ("create_index", {"column": "id", "index_type": "BTREE"}),
        ("tags/create", {"tag": "a", "version": 1}),
        ("restore", {"version": 1}),
    ],
    ids=lambda each: each[0],
)
def test_a_change_that_comes_again_with_its_request_id_is_made_once(
    shop: Shop, http: httpx.Client, request_of: tuple[str, Any]
) -> None:
    table = shop.table(rows(3))
    path, body = request_of
    given = {"x-request-id": str(uuid.uuid4())}
    answers = [http.post(f"/v1/table/{table.name}/{path}/", json=body, headers=given) for _ in range(3)]
    assert [each.status_code for each in answers] == [200] * 3, answers[-1].text
    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert table.version == (1 if path == "tags/create" else 2)


@pytest.mark.parametrize(
    ("error", "operation", "status"),
    [
        (TableNotFoundError("t"), "update_table", 404),
        (TableColumnNotFoundError("c"), "query_table", 400),
        (TableTagNotFoundError("v"), "get_table_tag_version", 400),
        (TableTagAlreadyExistsError("v"), "create_table_tag", 400),
        (TableIndexNotFoundError("i"), "drop_table_index", 404),
        (TableIndexNotFoundError("i"), "query_table", 400),
        (TableBranchNotFoundError("b"), "query_table", 400),
        (TableBranchNotFoundError("b"), "delete_table_branch", 404),
        (TableBranchNotFoundError("b"), "cherry_pick_table_branch", 404),
        (ConcurrentModificationError("x"), "cherry_pick_table_branch", 503),
        (ConcurrentModificationError("x"), "insert_into_table", 409),
        (RouteNotFound("x"), "", 406),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_statuses_mean_what_the_client_takes_them_for(error: LanceNamespaceError, operation: str, status: int) -> None:
    assert lancedb_status(error, NOTHING_DONE, operation) == status


@pytest.mark.parametrize("operation", ["insert_into_table", "merge_insert_into_table"])
@pytest.mark.parametrize("code", list(ErrorCode))
def test_rows_whose_outcome_is_open_are_never_asked_for_again(operation: str, code: ErrorCode) -> None:
    error = type("Error", (LanceNamespaceError,), {"code": code})("x")
    repeated = {409, 429, 500, 502, 503, 504}
    assert lancedb_status(error, UNKNOWN, operation) not in repeated
    if status_of(error) == 503:
        assert lancedb_status(error, NOTHING_DONE, operation) == 503


def test_other_changes_whose_outcome_is_open_are_asked_for_again_under_their_id() -> None:
    for error in (ServiceUnavailableError("x"), InternalError("x")):
        assert lancedb_status(error, UNKNOWN, "update_table") in {500, 503}


@pytest.mark.parametrize("body", [b"", b"no arrow", stream(rows(3))[:-40], stream(rows(3))[:200]], ids=len)
def test_rows_that_are_torn_change_nothing(shop: Shop, http: httpx.Client, body: bytes) -> None:
    table = shop.table(rows(3))
    for path in ("insert/", "merge_insert/?on=id", "insert/?mode=overwrite"):
        answer = http.post(f"/v1/table/{table.name}/{path}", content=body, headers=ARROW)
        assert answer.status_code == 400, answer.text
    assert (table.count_rows(), table.version) == (3, 1)


def test_an_absent_table_is_told_from_all_else(shop: Shop) -> None:
    table = shop.table(rows(1))
    shop.db.drop_table(table.name)
    for ask in (
        table.count_rows,
        lambda: table.search().to_arrow(),
        lambda: table.add(rows(1)),
        lambda: table.update(values={"id": 1}),
        lambda: table.delete("true"),
        table.list_versions,
        lambda: table.tags.create("a", 1),
        table.get_lsm_write_spec,
    ):
        with pytest.raises(ValueError, match=f"Table '{table.name}' was not found"):
            ask()


def test_a_body_that_is_too_large_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/table/t/tags/create/", json={"tag": "a" * (2 << 20), "version": 1})
    assert answer.status_code == 413
    form = http.post("/v1/table/t/drop/", content=b"{}", headers={"content-type": "text/plain"})
    assert (form.status_code, "Content-Type" in form.text) == (400, True)


def test_there_is_none_of_what_is_not_served(shop: Shop, http: httpx.Client) -> None:
    db = shop.db
    assert [
        *(db.list_jobs(), db.list_views(), db.list_functions(), db.list_secrets(), db.list_materialized_views())
    ] == [[]] * 5
    with refused("not found"):
        db.open_job("none")
    table = shop.table(rows(1))
    assert table.get_lsm_write_spec() is None
    for path in ("set_lsm_write_spec", "flush_lsm", "compact_lsm", "errors", "backfill_column"):
        answer = http.post(f"/v1/table/{table.name}/{path}/", json={})
        assert (answer.status_code, "not supported" in answer.text) == (406, True)
    assert http.post("/v1/view/a/create", json={"query": "x"}).status_code == 406
    assert http.post("/v1/nothing/at/all").status_code == 406
    assert json.loads(http.post("/v1/secret/a/create").text)["code"] == 0


def test_blobs_are_looked_for_and_there_are_none(shop: Shop) -> None:
    assert shop.table(pa.table({"id": [1]})).blob_columns() == []


def asked(shop: Shop, name: str, route: str = "query", **body: Any) -> httpx.Response:
    given = {"vector": [], "k": 3, **body} if route == "query" else body
    return httpx.post(f"{shop.url}/v1/table/{name}/{route}/", json=given, headers=AGENT)


def test_nothing_of_a_scan_is_dropped_unchecked(shop: Shop) -> None:
    """Numbers of probes come with each query, and a scan has none; a filter is one also where no row is asked for."""
    name = shop.table().name
    probes = {"nprobes": 20, "minimum_nprobes": 20, "maximum_nprobes": 20}
    assert asked(shop, name, **probes).status_code == 200
    for each in probes:
        for value in ("many", -1, 1.5, True, [20]):
            answer = asked(shop, name, **{each: value})
            assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
            assert answer.json()["error"].startswith(f"{each}: expected ")
    for given in ({}, {"filter": "id > 3"}, {"filter": "id > 3 -- all of them"}):
        answer = asked(shop, name, k=0, **given)
        assert answer.status_code == 200, answer.text
        assert pa.ipc.open_file(answer.content).read_all().num_rows == 0
    for wrong in ("", "id >", "nope = 1", "id = 1) OR (true", 7):
        answer = asked(shop, name, k=0, filter=wrong)
        assert answer.status_code == 400, (wrong, answer.text)


def test_an_empty_filter_is_refused_as_local_tables_do(shop: Shop) -> None:
    remote, local = shop.pair()
    for table in (remote, local):
        for ask in (
            lambda table: table.search().where("").to_arrow(),
            lambda table: table.search([1.0] * 8).where(" ").limit(3).to_arrow(),
            lambda table: table.count_rows(""),
            lambda table: table.delete(""),
        ):
            with pytest.raises(Exception, match="expression"):
                ask(table)
    for route, body in (("query", {"vector": {}, "k": 3, "filter": ""}), ("count_rows", {"predicate": ""})):
        answer = httpx.post(f"{shop.url}/v1/table/shop${remote.name}/{route}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
        assert "expected an SQL expression" in answer.json()["error"]
