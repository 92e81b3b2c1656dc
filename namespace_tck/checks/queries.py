"""QueryTable without search, and the plans of queries."""

from __future__ import annotations

from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import decode, rows
from namespace_tck.trial import Trial

checks = CheckList()


def _query(t: Trial, table: list[str], **request: object) -> Any:
    return decode(t.call("query_table", table, {"k": 100, "vector": {}, **request}).ok())


@checks("query_table", Promise.QUERIES, "QueryTable")
def answers_all_rows(t: Trial) -> None:
    """Without vector, text and filter the rows of the table are answered, as Arrow."""
    found = _query(t, t.table())
    t.equal(sorted(found["id"].to_pylist()), [1, 2, 3], "ids")
    t.equal(sorted(found.column_names), ["id", "name", "score", "vector"], "columns")


@checks("query_table", Promise.QUERIES, "QueryTable")
def answers_values_as_they_were_written(t: Trial) -> None:
    """The values of all columns are those that were written."""
    found = sorted(_query(t, t.table()).to_pylist(), key=lambda row: row["id"])
    t.equal(found, rows([1, 2, 3]).to_pylist(), "rows")


@checks("query_table", Promise.QUERIES, "QueryTable")
def queries_an_empty_table(t: Trial) -> None:
    """A table whose rows were all deleted answers none, with its schema."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "true"}).ok()
    found = _query(t, made)
    t.equal((found.num_rows, sorted(found.column_names)), (0, ["id", "name", "score", "vector"]), "rows and columns")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.filter")
def filters_rows(t: Trial) -> None:
    """With a filter only rows for which it is true are answered."""
    t.equal(sorted(_query(t, t.table(), filter="id >= 2")["id"].to_pylist()), [2, 3], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.filter")
def filters_by_texts(t: Trial) -> None:
    """A filter may compare texts."""
    t.equal(_query(t, t.table(), filter="name = 'row 2'")["id"].to_pylist(), [2], "ids")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.k")
def k_bounds_the_rows(t: Trial) -> None:
    """At most k rows are answered."""
    t.equal(_query(t, t.table(), k=2).num_rows, 2, "rows")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.k")
def k_bounds_filtered_rows(t: Trial) -> None:
    """With a filter, k of the rows for which it is true are answered."""
    found = _query(t, t.table(data=rows(range(20))), k=3, filter="id >= 10")["id"].to_pylist()
    t.equal(len(found), 3, "rows")
    t.expect(all(number >= 10 for number in found), f"expected ids from 10 on, found {found}")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.offset")
def offset_skips_rows(t: Trial) -> None:
    """With an offset so many rows are skipped; pages of k rows hold every row once."""
    made = t.table(data=rows(range(10)))
    found = [number for start in (0, 4, 8) for number in _query(t, made, k=4, offset=start)["id"].to_pylist()]
    t.equal(sorted(found), list(range(10)), "ids of all pages")


@checks("query_table", Promise.QUERIES, "QueryTableRequestColumns.column_names")
def answers_the_columns_asked_for(t: Trial) -> None:
    """With column names only these columns are answered."""
    found = _query(t, t.table(), columns={"column_names": ["name"]})
    t.equal(found.column_names, ["name"], "columns")


@checks("query_table", Promise.QUERIES, "QueryTableRequestColumns.column_aliases")
def answers_columns_under_other_names(t: Trial) -> None:
    """With column aliases the columns are answered under those names."""
    found = _query(t, t.table(), columns={"column_aliases": {"title": "name"}})
    t.equal(found.column_names, ["title"], "columns")
    t.equal(sorted(found["title"].to_pylist()), ["row 1", "row 2", "row 3"], "values")


@checks("query_table", Promise.QUERIES, "QueryTableRequest.with_row_id")
def answers_row_ids_on_request(t: Trial) -> None:
    """With with_row_id the row ids are answered in the column _rowid, all different."""
    found = _query(t, t.table(), with_row_id=True)
    t.expect("_rowid" in found.column_names, "expected a column _rowid")
    t.equal(len(set(found["_rowid"].to_pylist())), 3, "different row ids")


@checks("query_table", Promise.VERSIONS, "QueryTableRequest.version")
def queries_an_older_version(t: Trial) -> None:
    """With a version the rows of that version are answered."""
    made = t.table(versions=3)
    t.equal(sorted(_query(t, made, version=1)["id"].to_pylist()), [1, 2, 3], "ids of version 1")
    t.equal(sorted(_query(t, made, version=2)["id"].to_pylist()), [1, 2, 3, 101], "ids of version 2")


@checks("query_table", Promise.ERRORS, "QueryTableRequest.version")
def refuses_to_query_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "version": 99}).refused(11)


@checks("query_table", Promise.ERRORS, "QueryTableRequest.branch")
def refuses_to_query_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "branch": "missing"}).refused(22)


@checks("query_table", Promise.ERRORS, "QueryTableRequest.filter")
def refuses_a_filter_that_is_not_sql(t: Trial) -> None:
    """A filter that is not SQL is refused with 400 and code 13."""
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "filter": "((("}).refused(13)


@checks("query_table", Promise.ERRORS, "QueryTableRequest.filter")
def refuses_a_filter_of_an_unknown_column(t: Trial) -> None:
    """A filter over a column that does not exist is refused with code 12 or 13."""
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "filter": "invented = 1"}).refused(12, 13)


@checks("query_table", Promise.ERRORS, "QueryTableRequestColumns.column_names")
def refuses_unknown_columns(t: Trial) -> None:
    """A column that does not exist is refused with code 12 or 13."""
    request = {"k": 1, "vector": {}, "columns": {"column_names": ["invented"]}}
    t.call("query_table", t.table(), request).refused(12, 13)


@checks("query_table", Promise.ERRORS, "QueryTableRequest.offset")
def refuses_a_negative_offset(t: Trial) -> None:
    """An offset below 0 is refused with 400 and code 13."""
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "offset": -1}).refused(13)


@checks("query_table", Promise.ERRORS, "QueryTableRequestColumns")
def refuses_names_beside_aliases(t: Trial) -> None:
    """Column names together with column aliases are refused with 400 and code 13."""
    columns = {"column_names": ["id"], "column_aliases": {"title": "name"}}
    t.call("query_table", t.table(), {"k": 1, "vector": {}, "columns": columns}).refused(13)


@checks("query_table", Promise.QUERIES, "QueryTable")
def does_not_answer_deleted_rows(t: Trial) -> None:
    """Rows that were deleted are not answered."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "id = 2"}).ok()
    t.equal(sorted(_query(t, made)["id"].to_pylist()), [1, 3], "ids")


@checks("query_table", Promise.QUERIES, "QueryTable")
def reads_its_own_writes(t: Trial) -> None:
    """A query after a write that was answered sees its rows, each time."""
    made = t.table(data=rows([0]))
    for number in range(1, 6):
        t.call("insert_into_table", made, rows([number])).ok()
        t.equal(sorted(_query(t, made)["id"].to_pylist()), list(range(number + 1)), "ids")


@checks("explain_table_query_plan", Promise.QUERIES, "ExplainTableQueryPlan")
def explains_a_plan(t: Trial) -> None:
    """The plan of a query is answered as a string that is not empty."""
    found = t.call("explain_table_query_plan", t.table(), {"query": {"k": 1, "vector": {}, "filter": "id = 1"}}).ok()
    t.expect(bool(found.strip()), "expected a plan")


@checks("explain_table_query_plan", Promise.QUERIES, "ExplainTableQueryPlanRequest.verbose")
def explains_a_plan_verbosely(t: Trial) -> None:
    """The plan of a query is answered with verbose too."""
    request = {"query": {"k": 1, "vector": {}}, "verbose": True}
    t.expect(bool(t.call("explain_table_query_plan", t.table(), request).ok().strip()), "expected a plan")


@checks("explain_table_query_plan", Promise.ERRORS, "ExplainTableQueryPlanRequest.query")
def refuses_to_explain_what_is_not_sql(t: Trial) -> None:
    """A filter that is not SQL is refused with 400 and code 13."""
    request = {"query": {"k": 1, "vector": {}, "filter": "((("}}
    t.call("explain_table_query_plan", t.table(), request).refused(13)


@checks("explain_table_query_plan", Promise.ERRORS, "ExplainTableQueryPlanRequest.query")
def refuses_to_explain_nothing(t: Trial) -> None:
    """A request without a query is refused with 400 and code 13."""
    t.call("explain_table_query_plan", t.table(), {}).refused(13)


@checks("analyze_table_query_plan", Promise.QUERIES, "AnalyzeTableQueryPlan")
def analyzes_a_plan(t: Trial) -> None:
    """The analysis of a query is answered as a string that is not empty."""
    found = t.call("analyze_table_query_plan", t.table(), {"k": 1, "vector": {}, "filter": "id = 1"}).ok()
    t.expect(bool(found.strip()), "expected an analysis")


@checks("analyze_table_query_plan", Promise.ERRORS, "AnalyzeTableQueryPlanRequest.filter")
def refuses_to_analyze_what_is_not_sql(t: Trial) -> None:
    """A filter that is not SQL is refused with 400 and code 13."""
    t.call("analyze_table_query_plan", t.table(), {"k": 1, "vector": {}, "filter": "((("}).refused(13)


@checks("analyze_table_query_plan", Promise.ERRORS, "AnalyzeTableQueryPlanRequest.version")
def refuses_to_analyze_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    t.call("analyze_table_query_plan", t.table(), {"k": 1, "vector": {}, "version": 99}).refused(11)
