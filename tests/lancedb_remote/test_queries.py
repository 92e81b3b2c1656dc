"""Queries of lancedb's remote client give what a local table gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lancedb.query as lq
import pyarrow as pa
import pytest
from lancedb.expr import col
from lancedb.index import FTS, IvfFlat

from tests.lancedb_remote.remote import ROWS, VECTOR, Shop, refused, rows

WORDS = FTS(with_position=True)
OTHER = [5.0] * 8


def test_scans(shop: Shop) -> None:
    def ask(table: Any) -> pa.Table:
        scans = [
            table.search().select(["id", "text"]),
            table.search().where("id > 100").select(["id", "text"]).limit(5).offset(3),
            table.search().where(col("id") > 295).select(["id", "text"]),
        ]
        return pa.concat_tables(scan.to_arrow() for scan in scans)

    shop.same(ask)
    shop.same(lambda table: table.search().to_arrow())
    shop.same(lambda table: table.search().select({"twice": "id * 2"}).limit(5).to_arrow())
    shop.same(lambda table: table.search().with_row_id(True).select(["id"]).limit(3).to_arrow())


def order(*columns: tuple[str, bool], nulls_first: bool = False) -> list[dict[str, Any]]:
    return [{"column_name": name, "ascending": up, "nulls_first": nulls_first} for name, up in columns]


@pytest.mark.parametrize(
    "by",
    [order(("id", False)), order(("text", True), ("id", False)), order(("price", True), nulls_first=True)],
    ids=str,
)
def test_rows_are_ordered(shop: Shop, by: list[dict[str, Any]]) -> None:
    shop.same(lambda table: table.search().order_by(by).limit(7).offset(2).to_arrow())


def test_rows_are_ordered_by_columns_that_are_not_asked_for(shop: Shop) -> None:
    found = shop.table().search().select(["id"]).order_by(order(("text", True), ("id", False))).limit(3).to_arrow()
    assert found.to_pydict() == {"id": [297, 293, 289]}
    with_id = shop.table().search().select(["id"]).with_row_id(True).order_by(order(("id", False))).limit(1).to_arrow()
    assert with_id.to_pydict() == {"id": [299], "_rowid": [299]}


def test_vectors_are_searched_for(shop: Shop) -> None:
    shop.same(lambda table: table.search(VECTOR).limit(4).to_arrow())

    def ask(table: Any) -> pa.Table:
        found = [
            table.search(VECTOR),
            table.search(VECTOR).distance_type("cosine"),
            table.search(VECTOR).distance_type("dot"),
            table.search(VECTOR).where("id > 100"),
            table.search(VECTOR).where("id > 100", prefilter=False),
            table.search(VECTOR).distance_range(100.0, 9000.0).offset(2),
        ]
        return pa.concat_tables(each.select(["id", "_distance"]).limit(4).to_arrow() for each in found)

    shop.same(ask)
    shop.same(lambda table: table.search(VECTOR).with_row_id(True).select(["id"]).limit(4).to_arrow())
    shop.same(lambda table: table.search(VECTOR).limit(4).order_by(order(("id", False))).to_arrow())


def test_an_index_of_vectors_is_used_as_asked(shop: Shop) -> None:
    remote, local = shop.pair()
    for table in (remote, local):
        table.create_index("vector", config=IvfFlat(num_partitions=2))

    def ask(table: Any) -> pa.Table:
        found = [
            table.search(VECTOR).minimum_nprobes(1).maximum_nprobes(2).refine_factor(2),
            table.search(VECTOR).minimum_nprobes(1).maximum_nprobes(0),
            table.search(VECTOR).nprobes(2).ef(20),
            table.search(VECTOR).bypass_vector_index(),
            table.search(VECTOR).fast_search().nprobes(2),
        ]
        asked = (each.select(["id", "_distance"]).limit(4).to_arrow() for each in found)
        return pa.concat_tables(each.select(["id", "_distance"]) for each in asked)

    assert ask(remote).to_pylist() == ask(local).to_pylist()


def test_several_vectors_are_searched_for_in_one_request(shop: Shop) -> None:
    remote, local = shop.pair()

    def ask(table: Any) -> set[tuple[int, int]]:
        found = table.search([VECTOR, OTHER]).select(["id"]).limit(2).to_arrow()
        return {(row["query_index"], row["id"]) for row in found.to_pylist()}

    assert ask(remote) == ask(local)
    assert len(ask(remote)) == 4


def test_rows_of_several_vectors_and_of_bits_are_searched(shop: Shop) -> None:
    several = pa.list_(pa.list_(pa.float32(), 2))
    multi = pa.table({"id": [0, 1], "vector": pa.array([[[1.0, 0.0], [0.0, 1.0]], [[9.0, 9.0], [8.0, 1.0]]], several)})
    bits = pa.table({"id": [0, 1, 2], "vector": pa.array([[0] * 8, [255] * 8, [15] * 8], pa.list_(pa.uint8(), 8))})
    shop.same(
        lambda table: table.search([[1.0, 0.0], [0.0, 1.0]]).distance_type("cosine").limit(2).to_arrow(), data=multi
    )
    shop.same(lambda table: table.search([15] * 8).distance_type("hamming").limit(2).to_arrow(), data=bits)


@pytest.mark.parametrize(
    "query",
    [
        "puppy",
        lq.MatchQuery("cst", "text", fuzziness=1),
        lq.MatchQuery("puppy cat", "text", operator=lq.FullTextOperator.AND),
        lq.PhraseQuery("lazy cat", "text"),
        lq.BoostQuery(lq.MatchQuery("puppy", "text"), lq.MatchQuery("cat", "text"), negative_boost=0.2),
        lq.MultiMatchQuery("puppy", ["text"], boosts=[2.0]),
        lq.BooleanQuery(
            [(lq.Occur.MUST, lq.MatchQuery("puppy", "text")), (lq.Occur.MUST_NOT, lq.MatchQuery("cat", "text"))]
        ),
    ],
    ids=lambda query: type(query).__name__,
)
def test_words_are_searched_for(shop: Shop, query: Any) -> None:
    remote, local = shop.pair(rows(8))
    for table in (remote, local):
        table.create_index("text", config=WORDS)

    def ask(table: Any) -> list[tuple[int, float]]:
        found = table.search(query, query_type="fts").limit(8).to_list()
        return sorted((row["id"], round(row["_score"], 3)) for row in found)

    assert ask(remote) == ask(local) != []


def test_words_are_searched_for_in_named_columns(shop: Shop) -> None:
    table = shop.table(pa.table({"a": ["puppy", "cat"], "b": ["cat", "puppy"], "id": [0, 1]}))
    for column in ("a", "b"):
        table.create_index(column, config=FTS())
    found = table.search("puppy", query_type="fts", fts_columns="b").limit(5).to_list()
    assert [row["id"] for row in found] == [1]
    both = table.search(lq.MultiMatchQuery("puppy", ["a", "b"]), query_type="fts").limit(5).to_list()
    assert {row["id"] for row in both} == {0, 1}


def test_vectors_and_words_are_searched_for_at_once(shop: Shop) -> None:
    remote, local = shop.pair(rows(40))
    for table in (remote, local):
        table.create_index("text", config=WORDS)

    def ask(table: Any) -> list[int]:
        found = table.search(query_type="hybrid").vector(VECTOR).text("puppy").limit(5).to_list()
        return sorted(row["id"] for row in found)

    assert ask(remote) == ask(local)


def test_rows_come_in_several_forms_and_within_a_time(shop: Shop) -> None:
    table = shop.table()
    assert sum(batch.num_rows for batch in table.search().limit(7).to_batches()) == 7
    assert len(table.search().limit(7).to_pandas()) == len(table.search().limit(7).to_list()) == 7
    assert table.search(VECTOR).limit(2).to_arrow(timeout=timedelta(seconds=30)).num_rows == 2
    assert table.head(3).num_rows == 3


def test_rows_are_taken_by_offset_and_by_id(shop: Shop) -> None:
    remote, local = shop.pair()
    taken = [[row["id"] for row in table.take_offsets([7, 3]).to_list()] for table in (remote, local)]
    assert taken[0] == taken[1]
    assert sorted(row["id"] for row in remote.take_row_ids([3, 7]).to_list()) == [3, 7]


def test_rows_are_counted(shop: Shop) -> None:
    table = shop.table()
    assert (table.count_rows(), table.count_rows("id >= 290")) == (ROWS, 10)
    table.delete("id = 299")
    assert table.count_rows("id >= 290") == 9


def test_plans_are_explained_and_analysed(shop: Shop) -> None:
    table = shop.table()
    assert "KNN" in table.search(VECTOR).limit(3).explain_plan(True)
    assert "metrics" in table.search(VECTOR).limit(3).analyze_plan()
    assert "Sort" in table.search().order_by(order(("id", False))).explain_plan()


def test_errors_name_the_column(shop: Shop) -> None:
    table = shop.table()
    wrong = [
        lambda: table.search().where("nope > 1").to_arrow(),
        lambda: table.search().select(["nope"]).to_arrow(),
        lambda: table.search(VECTOR, vector_column_name="nope").to_arrow(),
        lambda: table.search().order_by(order(("nope", True))).to_arrow(),
        lambda: table.count_rows("nope > 1"),
    ]
    for ask in wrong:
        with refused("nope", table=table):
            ask()
