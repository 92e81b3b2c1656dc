"""QueryTable with a vector or with words."""

from __future__ import annotations

from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import decode, rows, texts
from namespace_tck.trial import Trial

checks = CheckList()

_BODIES = ("the quick brown fox", "a lazy dog sleeps", "the fox and the dog", "nothing of the kind")


def _near(t: Trial, table: list[str], x: float, **request: object) -> Any:
    vector = {"single_vector": [x, 0.0, 0.0, 0.0]}
    answer = t.call("query_table", table, {"k": 3, "vector": vector, "vector_column": "vector", **request})
    return decode(answer.ok())


def _words(t: Trial, query: dict[str, Any], **request: object) -> list[int]:
    made = t.table(data=texts(_BODIES))
    t.call("create_table_scalar_index", made, {"column": "body", "index_type": "FTS"}).ok()
    answer = t.call("query_table", made, {"k": 10, "vector": {}, "full_text_query": query, **request})
    return sorted(decode(answer.ok())["id"].to_pylist())


@checks("query_table", Promise.QUERIES, "QueryTableRequestVector.single_vector")
def answers_the_nearest_rows(t: Trial) -> None:
    """With a vector the k nearest rows are answered, the nearest first."""
    found = _near(t, t.table(data=rows(range(20))), 7.1)
    t.equal(found["id"].to_pylist(), [7, 8, 6], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.distance_type")
def measures_with_the_given_distance(t: Trial) -> None:
    """The distance of the request decides which rows are nearest."""
    made = t.table(data=rows(range(1, 20)))
    t.equal(_near(t, made, 1.0, distance_type="dot")["id"].to_pylist(), [19, 18, 17], "ids by dot product")
    t.equal(_near(t, made, 1.0, distance_type="l2")["id"].to_pylist(), [1, 2, 3], "ids by l2")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.prefilter")
def filters_before_the_search(t: Trial) -> None:
    """With prefilter the k nearest of the rows for which the filter is true are answered."""
    found = _near(t, t.table(data=rows(range(20))), 0.0, filter="id >= 10", prefilter=True)
    t.equal(found["id"].to_pylist(), [10, 11, 12], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.prefilter")
def filters_after_the_search(t: Trial) -> None:
    """Without prefilter the filter is applied to the k nearest rows."""
    found = _near(t, t.table(data=rows(range(20))), 0.0, filter="id >= 1", prefilter=False)
    t.equal(found["id"].to_pylist(), [1, 2], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.upper_bound")
def bounds_the_distance(t: Trial) -> None:
    """With bounds only rows within them are answered."""
    found = _near(t, t.table(data=rows(range(20))), 5.0, k=10, upper_bound=1.5)
    t.equal(sorted(found["id"].to_pylist()), [4, 5, 6], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.offset")
def an_offset_skips_the_nearest(t: Trial) -> None:
    """With an offset so many of the nearest rows are skipped."""
    found = _near(t, t.table(data=rows(range(20))), 0.0, k=2, offset=2)
    t.equal(found["id"].to_pylist(), [2, 3], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.vector_column")
def finds_the_vector_column(t: Trial) -> None:
    """Without vector_column the only column of vectors is searched."""
    made = t.table(data=rows(range(20)))
    request = {"k": 1, "vector": {"single_vector": [4.0, 0.0, 0.0, 0.0]}}
    t.equal(decode(t.call("query_table", made, request).ok())["id"].to_pylist(), [4], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequestVector.multi_vector")
def searches_for_many_vectors(t: Trial) -> None:
    """With several vectors the nearest rows of each are answered."""
    made = t.table(data=rows(range(20)))
    vectors = [[3.0, 0.0, 0.0, 0.0], [12.0, 0.0, 0.0, 0.0]]
    request = {"k": 1, "vector": {"multi_vector": vectors}, "vector_column": "vector"}
    t.equal(sorted(decode(t.call("query_table", made, request).ok())["id"].to_pylist()), [3, 12], "ids")


@checks("query_table", Promise.ERRORS, "QueryTableRequest.vector_column")
def refuses_an_unknown_vector_column(t: Trial) -> None:
    """A vector column that does not exist is refused with code 12 or 13."""
    request = {"k": 1, "vector": {"single_vector": [1.0, 0.0, 0.0, 0.0]}, "vector_column": "invented"}
    t.call("query_table", t.table(), request).refused(12, 13)


@checks("query_table", Promise.ERRORS, "QueryTableRequestVector.single_vector")
def refuses_a_vector_of_another_length(t: Trial) -> None:
    """A vector that is shorter than those of the column is refused with 400 and code 13."""
    request = {"k": 1, "vector": {"single_vector": [1.0]}, "vector_column": "vector"}
    t.call("query_table", t.table(), request).refused(13)


@checks("query_table", Promise.QUERIES, "StringFtsQuery.query")
def finds_rows_by_words(t: Trial) -> None:
    """A text query answers the rows that hold any of its words."""
    t.equal(_words(t, {"string_query": {"query": "fox"}}), [1, 3], "ids")


@checks("query_table", Promise.QUERIES, "StringFtsQuery.columns")
def finds_words_in_the_given_columns(t: Trial) -> None:
    """A text query may name the columns that it searches."""
    t.equal(_words(t, {"string_query": {"query": "dog", "columns": ["body"]}}), [2, 3], "ids")


@checks("query_table", Promise.QUERIES, "MatchQuery.operator")
def finds_rows_with_all_words(t: Trial) -> None:
    """A match query with operator And answers the rows that hold all words."""
    match = {"match": {"column": "body", "terms": "fox dog", "operator": "And"}}
    t.equal(_words(t, {"structured_query": {"query": match}}), [3], "ids")


@checks("query_table", Promise.QUERIES, "MatchQuery.operator")
def finds_rows_with_any_word(t: Trial) -> None:
    """A match query with operator Or answers the rows that hold any word."""
    match = {"match": {"column": "body", "terms": "fox dog", "operator": "Or"}}
    t.equal(_words(t, {"structured_query": {"query": match}}), [1, 2, 3], "ids")


@checks("query_table", Promise.QUERIES, "BooleanQuery")
def combines_text_queries(t: Trial) -> None:
    """A boolean query answers rows that match what must match and nothing of what must not."""
    boolean = {
        "must": [{"match": {"column": "body", "terms": "fox"}}],
        "must_not": [{"match": {"column": "body", "terms": "dog"}}],
        "should": [],
    }
    t.equal(_words(t, {"structured_query": {"query": {"boolean": boolean}}}), [1], "ids")


@checks("query_table", Promise.QUERIES, "StringFtsQuery.query")
def finds_nothing_for_an_unknown_word(t: Trial) -> None:
    """A text query for a word that no row holds answers no row."""
    t.equal(_words(t, {"string_query": {"query": "zebra"}}), [], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.full_text_query")
def filters_what_the_words_find(t: Trial) -> None:
    """A text query together with a filter answers rows for which both hold."""
    t.equal(_words(t, {"string_query": {"query": "fox"}}, filter="id > 1", prefilter=True), [3], "ids")


@checks("query_table", Promise.ERRORS, "QueryTableRequestFullTextQuery")
def refuses_two_kinds_of_text_query(t: Trial) -> None:
    """A string query together with a structured one is refused with 400 and code 13."""
    query = {
        "string_query": {"query": "fox"},
        "structured_query": {"query": {"match": {"column": "body", "terms": "fox"}}},
    }
    made = t.table(data=texts(_BODIES))
    t.call("query_table", made, {"k": 10, "vector": {}, "full_text_query": query}).refused(13)
