"""What a server could get wrong without a word to lancedb's clients: each is done, or refused by its name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import lancedb
import pyarrow as pa
import pytest
from lancedb.remote import ClientConfig, RetryConfig, TimeoutConfig

from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import Shop, connect, listed, new_name, refused, rows
from tests.listener import body_of, listen

AGENT = {"user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "shop"}
VECTOR = [1.0] * 8
WORDS = {"base_tokenizer": "simple", "stem": False, "remove_stop_words": False}


@pytest.fixture(scope="module")
def http(remote_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=remote_url, headers=AGENT) as client:
        yield client


@pytest.fixture(scope="module")
def indexed(shop: Shop, http: httpx.Client) -> str:
    """The routes of a table whose text and vectors have an index, and that has rows which are in none."""
    table = shop.table(rows(290))
    path = f"/v1/table/{table.name}"
    for body in (
        {"column": "text", "index_type": "FTS", **WORDS},
        {"column": "vector", "index_type": "IVF_FLAT", "metric_type": "l2", "num_partitions": 4},
    ):
        assert http.post(f"{path}/create_index/", json=body).status_code == 200
    table.add(rows(10, 290))
    return path


def found(http: httpx.Client, path: str, **query: Any) -> pa.Table:
    answer = http.post(f"{path}/query/", json={"version": None, "prefilter": True, "k": 5, "vector": [], **query})
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_file(answer.content).read_all()


def test_tables_of_another_database_are_neither_overwritten_nor_dropped(remote_url: str) -> None:
    left, right = (connect(remote_url, f"db://{new_name()}") for _ in range(2))
    for name in ("t", "u"):
        left.create_table(name, pa.table({"n": [1, 2, 3]}))
        right.create_table(name, pa.table({"n": [9]}), mode="overwrite")
    right.drop_table("u")
    assert [left.open_table(name).count_rows() for name in ("t", "u")] == [3, 3]


def test_a_namespace_to_move_to_is_moved_to(shop: Shop) -> None:
    table, namespace = shop.table(rows(1)), new_name()
    shop.db.create_namespace([namespace])
    shop.db.rename_table(table.name, "moved", new_namespace_path=[namespace])
    assert (listed(shop.db, namespace_path=[namespace]), "moved" in listed(shop.db, limit=1000)) == (["moved"], False)


def test_changed_rows_are_counted(shop: Shop) -> None:
    table = shop.table(pa.table({"n": [1, 2, 3]}))
    assert table.update(where="n > 1", values_sql={"n": "n + 10"}).rows_updated == 2
    assert table.delete("n > 10").num_deleted_rows == 2


def test_an_update_whose_answer_is_late_is_made_once(remote_url: str, shop: Shop) -> None:
    """The client repeats it under one request id, when it has waited for as long as it waits."""
    table = shop.table(pa.table({"n": [0]}))
    asked: list[str] = []

    def late(request: BaseHTTPRequestHandler) -> None:
        body = body_of(request)
        names = ("x-lancedb-database", "x-request-id", "user-agent", "content-type", "x-api-key")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        answer = httpx.request(request.command, remote_url + request.path, content=body, headers=headers)
        if "/update" in request.path:
            asked.append(headers["x-request-id"])
            time.sleep(1.5 if len(asked) == 1 else 0)
        try:
            request.send_response(answer.status_code)
            request.send_header("content-length", str(len(answer.content)))
            request.end_headers()
            request.wfile.write(answer.content)
        except OSError:
            request.close_connection = True

    with listen(late) as url:
        config = ClientConfig(
            retry_config=RetryConfig(backoff_factor=0.1),
            timeout_config=TimeoutConfig(read_timeout=timedelta(seconds=1)),
        )
        handle = lancedb.connect("db://shop", api_key="any-key", host_override=url, client_config=config)
        assert handle.open_table(table.name).update(values_sql={"n": "n + 1"}).rows_updated == 1
    assert (len(asked), len(set(asked))) == (2, 1)
    assert table.count_rows("n = 1") == 1


def test_a_name_that_the_client_refuses_hides_no_other(shop: Shop, remote_url: str) -> None:
    table = shop.table(rows(1))
    odd = httpx.post(f"{remote_url}/v1/table/shop${new_name()}%20odd/create", content=stream(rows(1)), headers=ARROW)
    assert odd.status_code == 200
    assert table.name in listed(shop.db, limit=1000)


def test_no_part_of_a_write_is_rows_by_itself(shop: Shop, http: httpx.Client) -> None:
    table = shop.table(rows(3))
    part = http.post(
        f"/v1/table/{table.name}/insert/?upload_id=u&upload_part_id=p", content=stream(rows(1)), headers=ARROW
    )
    assert part.status_code in (400, 404)
    assert (table.count_rows(), table.version) == (3, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.count_rows("nope > 1"),
        lambda table: table.drop_columns(["nope"]),
        lambda table: table.tags.get_version("nope"),
        lambda table: table.search().where("nope > 1").to_arrow(),
        lambda table: table.branches.checkout("nope"),
    ],
)
def test_no_other_error_says_that_the_table_is_missing(shop: Shop, ask: Callable[[Any], object]) -> None:
    table = shop.table(rows(1))
    with refused("nope", table=table):
        ask(table)


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"filter": "id < 3"}, lambda seen: seen["id"].to_pylist() == [0, 1, 2]),
        ({"offset": 297}, lambda seen: seen["id"].to_pylist() == [297, 298, 299]),
        ({"columns": ["price"]}, lambda seen: seen.column_names == ["price"]),
        ({"columns": {"x": "id + 1"}, "k": 1}, lambda seen: seen.to_pylist() == [{"x": 1}]),
        ({"with_row_id": True}, lambda seen: "_rowid" in seen.column_names),
        ({"version": 1, "offset": 289}, lambda seen: seen["id"].to_pylist() == [289]),
        (
            {"order_by": [{"column_name": "id", "ascending": False, "nulls_first": False}], "k": 3},
            lambda seen: seen["id"].to_pylist() == [299, 298, 297],
        ),
        (
            {"full_text_query": {"columns": ["text"], "query": "lazy"}},
            lambda seen: {*seen["text"].to_pylist()} == {"a lazy cat"},
        ),
        ({"vector": VECTOR, "distance_type": "cosine"}, lambda seen: max(seen["_distance"].to_pylist()) < 1),
        ({"vector": VECTOR, "lower_bound": 1e9}, lambda seen: seen.num_rows == 0),
        ({"vector": VECTOR, "upper_bound": 0.0}, lambda seen: seen.num_rows == 0),
        (
            {"vector": VECTOR, "k": 400, "nprobes": 4, "fast_search": True},
            lambda seen: max(seen["id"].to_pylist()) < 290,
        ),
        ({"vector": VECTOR, "k": 400, "nprobes": 1}, lambda seen: seen.num_rows < 300),
        ({"vector": VECTOR, "k": 400, "nprobes": 1, "bypass_vector_index": True}, lambda seen: seen.num_rows == 300),
        ({"vector": VECTOR, "filter": "id = 299", "prefilter": False}, lambda seen: seen.num_rows == 0),
        ({"vector": [VECTOR, VECTOR], "k": 1}, lambda seen: sorted(seen["query_index"].to_pylist()) == [0, 1]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, Mapping) else "",
)
def test_each_field_of_a_query_has_its_effect(
    http: httpx.Client, indexed: str, given: dict[str, Any], differs: Callable[[pa.Table], bool]
) -> None:
    seen = found(http, indexed, **given)
    assert differs(seen), seen.to_pylist()[:5]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_an_index_has_the_metric_that_it_is_asked_for(shop: Shop, http: httpx.Client, metric: str) -> None:
    path = f"/v1/table/{shop.table().name}"
    body = {"column": "vector", "index_type": "IVF_FLAT", "metric_type": metric, "num_partitions": 1, "name": "own"}
    assert http.post(f"{path}/create_index/", json=body).status_code == 200
    assert http.post(f"{path}/index/own/stats/", json={"version": None}).json()["distance_type"] == metric


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("base_tokenizer", "whitespace"),
        ("language", "French"),
        ("with_position", True),
        ("max_token_length", 7),
        ("lower_case", False),
        ("stem", False),
        ("remove_stop_words", False),
        ("ascii_folding", False),
        ("block_size", 256),
    ],
)
def test_each_option_of_an_index_of_words_is_kept(shop: Shop, http: httpx.Client, option: str, value: Any) -> None:
    path = f"/v1/table/{shop.table(rows(4)).name}"
    made = http.post(f"{path}/create_index/", json={"column": "text", "index_type": "FTS", option: value})
    assert made.status_code == 200, made.text
    index = http.post(f"{path}/index/list/", json={"version": None}).json()["indexes"][0]
    assert json.loads(index["index_details"])[option] == value
