"""lancedb gives the same rows whether it does its queries itself or has our server do them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

from namespace_server.rest.data_service import DataService
from tests.data.queried import DIMENSION, Queried, same_ranking

VECTOR = [0.1 * n for n in range(DIMENSION)]
APPLE, FIG = MatchQuery("apple", "title"), MatchQuery("fig", "body")
Search = Callable[[Any], Any]

SCANS: dict[str, Search] = {
    "filter": lambda table: table.search().where("x > 40").limit(20),
    "offset": lambda table: table.search().where("x > 40").limit(5).offset(7),
    "columns": lambda table: table.search().select(["id", "nested"]).limit(5),
    "row ids": lambda table: table.search().with_row_id(True).limit(5),
    "vector": lambda table: table.search(VECTOR, vector_column_name="vector").limit(5),
    "vector and filter": lambda table: table.search(VECTOR, vector_column_name="vector").where("x > 40").limit(5),
    "exact": lambda table: table.search(VECTOR, vector_column_name="vector").bypass_vector_index().offset(3).limit(5),
}
TEXTS: dict[str, Search] = {
    "words": lambda table: table.search("apple fig", query_type="fts", fts_columns="title").limit(20),
    "words in any column": lambda table: table.search("apple fig", query_type="fts").limit(20),
    "words and filter": lambda table: (
        table.search("apple", query_type="fts", fts_columns="title").where("x > 40").limit(20)
    ),
    "fuzzy": lambda table: table.search(MatchQuery("aplle", "title", fuzziness=2)).limit(20),
    "phrase": lambda table: table.search(PhraseQuery("apple fig", "title", slop=1)).limit(20),
    "boost": lambda table: table.search(BoostQuery(APPLE, FIG, negative_boost=0.25)).limit(20),
    "many columns": lambda table: table.search(MultiMatchQuery("apple", ["title", "body"], boosts=[1.0, 2.0])).limit(
        20
    ),
    "boolean": lambda table: table.search(BooleanQuery([(Occur.MUST, APPLE), (Occur.MUST_NOT, FIG)])).limit(20),
}


def opened(tables: Queried, *pushed: str) -> Any:
    connection = lancedb.connect_namespace(
        "rest", {"uri": tables.url}, namespace_client_pushdown_operations=list(pushed)
    )
    return connection.open_table("t", namespace_path=["w"])


@pytest.mark.parametrize("search", SCANS.values(), ids=SCANS)
def test_scans_and_vector_searches(tables: Queried, search: Search) -> None:
    found = search(opened(tables, "QueryTable")).to_arrow()
    assert found.num_rows > 0
    assert found.equals(search(opened(tables)).to_arrow())


@pytest.mark.parametrize("search", TEXTS.values(), ids=TEXTS)
def test_full_text_searches(tables: Queried, search: Search) -> None:
    found = search(opened(tables, "QueryTable")).select(["id"]).to_arrow()
    assert found.num_rows > 0
    same_ranking(found, search(opened(tables)).select(["id"]).to_arrow())


def test_hybrid_searches(tables: Queried) -> None:
    def search(*pushed: str) -> pa.Table:
        builder = opened(tables, *pushed).search(query_type="hybrid", vector_column_name="vector", fts_columns="title")
        return builder.vector(VECTOR).text("grape hazel").select(["id"]).limit(10).to_arrow()

    found, local = search("QueryTable"), search()
    assert found.column_names == local.column_names
    assert found["_relevance_score"].to_pylist() == local["_relevance_score"].to_pylist()


def test_with_asyncio(tables: Queried) -> None:
    async def search(*pushed: str) -> list[pa.Table]:
        connection = lancedb.connect_namespace_async(
            "rest", {"uri": tables.url}, namespace_client_pushdown_operations=list(pushed)
        )
        table = await connection.open_table("t", namespace_path=["w"])
        return [
            await table.query().where("x > 40").select(["id"]).limit(20).offset(2).to_arrow(),
            await table.query().nearest_to(VECTOR).column("vector").select(["id"]).limit(5).to_arrow(),
            await table.query().nearest_to_text(APPLE).select(["id"]).limit(20).to_arrow(),
        ]

    pushed, local = asyncio.run(search("QueryTable")), asyncio.run(search())
    assert pushed[0].equals(local[0])
    assert pushed[1].equals(local[1])
    same_ranking(pushed[2], local[2])
    assert [found.num_rows for found in pushed] == [20, 5, 20]


def test_are_asked_of_the_server(tables: Queried, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    rows = DataService.rows

    def noting(service: DataService, operation: str, request: dict[str, Any], *others: Any, **at: Any) -> Any:
        asked.append(request)
        return rows(service, operation, request, *others, **at)

    monkeypatch.setattr(DataService, "rows", noting)
    for table in (opened(tables), opened(tables, "QueryTable")):
        table.search().where("x = 1").limit(3).to_arrow()
        table.search("apple", query_type="fts").limit(3).to_arrow()
    assert [("filter" in request, "full_text_query" in request) for request in asked] == [(True, False), (False, True)]
