"""Searches by words, alone and with a vector: what pylance and the stock adapter find."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from lance.query import BooleanQuery, BoostQuery, FullTextOperator, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

from tests.data.queried import (
    APPLE,
    FIG,
    ID,
    MATCH_APPLE,
    MATCH_FIG,
    OTHER,
    QUERY,
    TABLE,
    VECTOR,
    Queried,
    complete,
    refusal,
    same_ranking,
    text,
)


class TestFullTextSearches:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({"match": {"terms": "apple fig"}}, {"query": "apple fig"}),
            (MATCH_APPLE, APPLE),
            (
                {"match": {"terms": "apple fig", "column": "title", "operator": "and", "boost": 2}},
                MatchQuery("apple fig", "title", operator=FullTextOperator.AND, boost=2.0),
            ),
            (
                {
                    "match": {
                        "terms": "aplle",
                        "column": "title",
                        "fuzziness": 2,
                        "max_expansions": 5,
                        "prefix_length": 1,
                    }
                },
                MatchQuery("aplle", "title", fuzziness=2, max_expansions=5, prefix_length=1),
            ),
            ({"phrase": {"terms": "apple fig", "column": "title"}}, PhraseQuery("apple fig", "title")),
            (
                {"phrase": {"terms": "apple fig", "column": "title", "slop": 2}},
                PhraseQuery("apple fig", "title", slop=2),
            ),
            ({"boost": {"positive": MATCH_APPLE, "negative": MATCH_FIG}}, BoostQuery(APPLE, FIG)),
            (
                {"boost": {"positive": MATCH_APPLE, "negative": MATCH_FIG, "negative_boost": 0.1}},
                BoostQuery(APPLE, FIG, negative_boost=0.1),
            ),
            (
                {
                    "multi_match": {
                        "match_queries": [
                            {"terms": "apple", "column": "title"},
                            {"terms": "apple", "column": "body", "boost": 3.0},
                        ]
                    }
                },
                MultiMatchQuery("apple", ["title", "body"], boosts=[1.0, 3.0]),
            ),
            (
                {
                    "boolean": {
                        "must": [MATCH_APPLE],
                        "should": [MATCH_FIG],
                        "must_not": [{"match": {"terms": "date", "column": "title"}}],
                    }
                },
                BooleanQuery([(Occur.MUST, APPLE), (Occur.SHOULD, FIG), (Occur.MUST_NOT, MatchQuery("date", "title"))]),
            ),
        ],
    )
    def test_are_those_of_pylance_and_of_the_stock_adapter(
        self, tables: Queried, query: dict[str, Any], expected: Any
    ) -> None:
        found = tables.query(**text(query), k=25)
        assert found.num_rows > 0
        same_ranking(found, tables.dataset.to_table(columns=["id"], full_text_query=expected, limit=25))
        same_ranking(found, tables.stock_query(**text(query), k=25))

    @pytest.mark.parametrize(
        "matches",
        [
            [{"terms": "apple", "column": "title"}, {"terms": "fig", "column": "body", "boost": 2.0}],
            [{"terms": "apple fig", "operator": "And"}, {"terms": "grape"}],
            [{"terms": "aplle", "fuzziness": 2}, {"terms": "date", "column": "title"}],
        ],
    )
    def test_of_matches_that_differ_the_best_counts(self, tables: Queried, matches: list[dict[str, Any]]) -> None:
        query = text({"multi_match": {"match_queries": matches}})
        for k, offset in ((25, 0), (10, 15)):
            found = tables.query(**query, k=k, offset=offset)
            assert found.num_rows == k
            same_ranking(found, tables.stock_query(**query, k=k, offset=offset))

    def test_of_plain_words_find_rows_in_all_indexed_columns(self, tables: Queried) -> None:
        words = {"full_text_query": {"string_query": {"query": "apple fig"}}, "columns": ID}
        same_ranking(tables.query(**words), tables.stock_query(**words))
        assert tables.query(**words).num_rows == 10

    def test_that_lancedb_printed_are_understood(self, tables: Queried) -> None:
        printed = (
            'Match(MatchQuery { column: Some("title"), terms: "aplle", boost: 1.0, fuzziness: Some(2), '
            "max_expansions: 50, operator: Or, prefix_length: 0, document_granularity: None })"
        )
        found = tables.query(full_text_query={"string_query": {"query": printed, "columns": ["title"]}}, columns=ID)
        assert found.num_rows == 10
        same_ranking(found, tables.query(**text({"match": {"terms": "aplle", "column": "title", "fuzziness": 2}})))

    @pytest.mark.parametrize(
        ("query", "error"),
        [
            ({}, (400, 13)),
            ({"match": {"terms": "a"}, "phrase": {"terms": "a"}}, (400, 13)),
            ({"boolean": {"must": [], "should": [], "must_not": []}}, (400, 13)),
            ({"multi_match": {"match_queries": []}}, (400, 13)),
            ({"match": {"terms": "a", "operator": "xor"}}, (400, 13)),
            ({"match": {"terms": "a", "column": "absent"}}, (404, 12)),
            ({"match": {"terms": "a", "column": "x"}}, (400, 13)),
            ({"match": {"terms": "a", "fuzziness": 2**40}}, (400, 13)),
            ({"match": {"terms": "a" * 5000, "fuzziness": 4_000_000_000}}, (400, 13)),
            ({"match": {"terms": "a " * 5000, "fuzziness": 1}}, (400, 13)),
            ({"phrase": {"terms": "apple fig"}}, (400, 13)),
            ({"phrase": {"terms": "apple fig", "column": "body"}}, (400, 13)),
            (
                {
                    "boolean": {
                        "must": [{"multi_match": {"match_queries": [{"terms": "a"}, {"terms": "b"}]}}],
                        "should": [],
                        "must_not": [],
                    }
                },
                (400, 13),
            ),
        ],
    )
    def test_that_make_no_sense_are_refused(
        self, tables: Queried, query: dict[str, Any], error: tuple[int, int]
    ) -> None:
        assert refusal(tables.ours.post(f"{TABLE}/query", json=complete(text(query)))) == error


def shares(ranked: dict[int, float], value: float | None) -> list[float]:
    """What a row with this value may have of a list in the order of its ranks: rows of one value may stand anyhow."""
    places = [rank for rank, found in enumerate(ranked.values(), start=1) if found == value]
    return [1 / (60 + rank) for rank in places] or [0.0]


class TestHybridSearches:
    WORDS = {"full_text_query": {"string_query": {"query": "apple", "columns": ["title"]}}}  # noqa: RUF012

    def test_merge_both_searches_by_reciprocal_rank(self, tables: Queried) -> None:
        vectors = tables.query(vector=VECTOR, columns=ID, k=20)
        words = tables.query(**self.WORDS, columns=ID, k=20)
        found = tables.query(vector=VECTOR, **self.WORDS, columns=ID, k=15, offset=5)
        assert found.column_names == ["id", "_distance", "_score", "_relevance_score"]
        relevance = found["_relevance_score"].to_pylist()
        assert relevance == sorted(relevance, reverse=True)
        distances = dict(zip(vectors["id"].to_pylist(), vectors["_distance"].to_pylist(), strict=True))
        scores = dict(zip(words["id"].to_pylist(), words["_score"].to_pylist(), strict=True))
        for row in found.to_pylist():
            parts = [shares(distances, row["_distance"]), shares(scores, row["_score"])]
            assert any(row["_relevance_score"] == pytest.approx(sum(pair)) for pair in product(*parts))

    def test_filter_both_and_may_tell_row_ids(self, tables: Queried) -> None:
        found = tables.query(
            vector=VECTOR,
            **self.WORDS,
            columns={"column_names": ["x"]},
            filter="x > 30",
            prefilter=True,
            with_row_id=True,
        )
        assert found.column_names == ["x", "_distance", "_score", "_relevance_score", "_rowid"]
        assert found.num_rows == 10
        assert min(found["x"].to_pylist()) > 30

    def test_take_a_bounded_number_of_rows(self, tables: Queried) -> None:
        whole = tables.query(vector=VECTOR, **self.WORDS, columns=ID, k=2**31 - 1)
        assert whole.num_rows == tables.dataset.count_rows()
        two = {"multi_vector": [QUERY, OTHER]}
        assert refusal(tables.ours.post(f"{TABLE}/query", json=complete({"vector": two, **self.WORDS}))) == (400, 13)
