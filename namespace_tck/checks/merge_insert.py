"""MergeInsertIntoTable."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()

_NONE: dict[str, Any] = {"when_matched_update_all": None, "when_not_matched_insert_all": None}


def _names(t: Trial, table: list[str]) -> dict[int, str]:
    found = t.read(table)
    return dict(sorted(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True)))


def _merge(t: Trial, table: list[str], data: Any, **clauses: object) -> Any:
    return t.call("merge_insert_into_table", table, data, on="id", **clauses)


def _upsert(t: Trial, table: list[str], data: Any) -> Any:
    return _merge(t, table, data, when_matched_update_all=True, when_not_matched_insert_all=True)


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTable")
def updates_and_inserts(t: Trial) -> None:
    """Rows with a known key are updated, the others are inserted."""
    made = t.table()
    _upsert(t, made, rows([2, 3, 4], "new")).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "new", 3: "new", 4: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableResponse.num_updated_rows")
def answers_the_numbers_of_rows(t: Trial) -> None:
    """The answer holds the numbers of updated and inserted rows, and the version."""
    made = t.table()
    found = _upsert(t, made, rows([2, 3, 4], "new")).ok()
    t.equal((found.get("num_updated_rows"), found.get("num_inserted_rows")), (2, 1), "updated and inserted rows")
    t.equal(found.get("version"), t.head(made), "version")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.when_not_matched_insert_all")
def inserts_only_what_is_missing(t: Trial) -> None:
    """With when_not_matched_insert_all alone, rows with a known key stay as they are."""
    made = t.table()
    clauses = {**_NONE, "when_matched_update_all": False, "when_not_matched_insert_all": True}
    _merge(t, made, rows([3, 4], "new"), **clauses).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "row 2", 3: "row 3", 4: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.when_matched_update_all")
def updates_only_what_is_there(t: Trial) -> None:
    """With when_matched_update_all alone, rows with an unknown key are not inserted."""
    made = t.table()
    clauses = {"when_matched_update_all": True, "when_not_matched_insert_all": False}
    _merge(t, made, rows([3, 4], "new"), **clauses).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "row 2", 3: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.when_matched_update_all_filt")
def updates_where_the_filter_holds(t: Trial) -> None:
    """With when_matched_update_all_filt only rows for which the expression is true are updated."""
    made = t.table()
    clauses = {
        "when_matched_update_all": True,
        "when_matched_update_all_filt": "target.id > 2",
        "when_not_matched_insert_all": False,
    }
    _merge(t, made, rows([2, 3], "new"), **clauses).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "row 2", 3: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.when_not_matched_by_source_delete")
def deletes_what_the_source_lacks(t: Trial) -> None:
    """With when_not_matched_by_source_delete rows whose key the source lacks are deleted."""
    made = t.table()
    clauses = {
        "when_matched_update_all": True,
        "when_not_matched_insert_all": True,
        "when_not_matched_by_source_delete": True,
    }
    _merge(t, made, rows([3, 4], "new"), **clauses).ok()
    t.equal(_names(t, made), {3: "new", 4: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.when_not_matched_by_source_delete_filt")
def deletes_where_the_filter_holds(t: Trial) -> None:
    """With when_not_matched_by_source_delete_filt only rows for which the expression is true are deleted."""
    made = t.table()
    clauses = {
        "when_matched_update_all": True,
        "when_not_matched_insert_all": True,
        "when_not_matched_by_source_delete": True,
        "when_not_matched_by_source_delete_filt": "id < 2",
    }
    _merge(t, made, rows([3, 4], "new"), **clauses).ok()
    t.equal(_names(t, made), {2: "row 2", 3: "new", 4: "new"}, "names")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTableRequest.on")
def matches_on_two_columns(t: Trial) -> None:
    """A row matches only when every column of a composite key is equal."""
    made = t.table()
    query = {"on": ["id", "name"], "when_matched_update_all": True, "when_not_matched_insert_all": True}
    other = pa.table({"id": [1, 2], "name": ["row 1", "other"], "score": [9.0, 9.0]})
    full = rows([1, 2]).set_column(1, "name", other["name"]).set_column(2, "score", other["score"])
    t.call("merge_insert_into_table", made, full, **query).ok()
    found = t.read(made)
    pairs = sorted(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))
    t.equal(pairs, [(1, "row 1"), (2, "other"), (2, "row 2"), (3, "row 3")], "keys")


@checks("merge_insert_into_table", Promise.ROWS, "MergeInsertIntoTable")
def merges_into_a_declared_table(t: Trial) -> None:
    """A merge into a table that is only declared creates it with the rows."""
    made = t.declared()
    _upsert(t, made, rows([1, 2])).ok()
    t.equal(t.ids(made), [1, 2], "ids")


@checks("merge_insert_into_table", Promise.ERRORS, "MergeInsertIntoTableRequest.on")
def refuses_an_unknown_key_column(t: Trial) -> None:
    """A key column that does not exist is refused with code 12 or 13, and no row changes."""
    made = t.table()
    query = {"on": "invented", "when_not_matched_insert_all": True, "when_matched_update_all": True}
    t.call("merge_insert_into_table", made, rows([4]), **query).refused(12, 13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("merge_insert_into_table", Promise.ERRORS, "MergeInsertIntoTableRequest.when_matched_update_all_filt")
def refuses_a_filter_that_is_not_sql(t: Trial) -> None:
    """An expression that is not SQL is refused with 400 and code 13, and no row changes."""
    made = t.table()
    clauses = {"when_matched_update_all": True, "when_matched_update_all_filt": "((("}
    _merge(t, made, rows([3], "new"), **clauses).refused(13)
    t.equal(_names(t, made)[3], "row 3", "name")


@checks("merge_insert_into_table", Promise.ERRORS, "MergeInsertIntoTable")
def refuses_a_source_that_is_not_arrow(t: Trial) -> None:
    """A body that is not an Arrow stream is refused with 400, and no row changes."""
    made = t.table()
    _upsert(t, made, b"this is not Arrow, but long enough to be a stream").refused(13, 20)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("merge_insert_into_table", Promise.ERRORS, "MergeInsertIntoTableRequest.timeout")
def accepts_a_timeout(t: Trial) -> None:
    """A timeout such as 30s is accepted."""
    made = t.table()
    clauses = {"when_matched_update_all": True, "when_not_matched_insert_all": True, "timeout": "30s"}
    _merge(t, made, rows([4]), **clauses).ok()
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("merge_insert_into_table", Promise.RETRIES, "MergeInsertIntoTable")
def a_repeated_upsert_changes_no_row(t: Trial) -> None:
    """The same upsert sent twice leaves the rows as after the first."""
    made = t.table()
    for _ in range(2):
        _upsert(t, made, rows([3, 4], "new")).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "row 2", 3: "new", 4: "new"}, "names")


@checks("merge_insert_into_table", Promise.CONCURRENCY, "MergeInsertIntoTable")
def concurrent_upserts_make_no_duplicates(t: Trial) -> None:
    """Of six clients that upsert the same keys, each success is whole and no key is there twice."""
    made = t.table(data=rows([1, 2, 3]))
    jobs = [partial(_upsert, t, made, rows([1, 2, 3], f"writer {number}")) for number in range(6)]
    answers = t.together(jobs)
    for answer in answers:
        if not answer.is_success:
            answer.refused(14)
    t.equal(t.ids(made), [1, 2, 3], "ids")
    t.equal(len(set(_names(t, made).values())), 1, "writers whose rows are there")


@checks("merge_insert_into_table", Promise.CONCURRENCY, "MergeInsertIntoTable")
def concurrent_upserts_of_other_keys_all_land(t: Trial) -> None:
    """Of six clients that upsert different keys, the rows of each success are there."""
    made = t.table(data=rows([0]))
    jobs = [partial(_upsert, t, made, rows([number])) for number in range(1, 7)]
    landed = [0]
    for number, answer in enumerate(t.together(jobs), 1):
        if answer.is_success:
            landed.append(number)
        else:
            answer.refused(14)
    t.equal(t.ids(made), landed, "ids of the rows whose upsert succeeded")
