"""UpdateTable, DeleteFromTable, RestoreTable, CountTableRows, GetTableStats."""

from __future__ import annotations

from functools import partial

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


def _names(t: Trial, table: list[str]) -> dict[int, str]:
    found = t.read(table)
    return dict(sorted(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True)))


@checks("update_table", Promise.ROWS, "UpdateTableRequest.predicate")
def updates_the_rows_of_the_predicate(t: Trial) -> None:
    """Only rows for which the predicate is true are updated."""
    made = t.table()
    t.call("update_table", made, {"predicate": "id > 1", "updates": [["name", "'new'"]]}).ok()
    t.equal(_names(t, made), {1: "row 1", 2: "new", 3: "new"}, "names")


@checks("update_table", Promise.ROWS, "UpdateTableRequest.predicate")
def updates_all_rows_without_a_predicate(t: Trial) -> None:
    """Without a predicate all rows are updated."""
    made = t.table()
    t.call("update_table", made, {"updates": [["name", "'new'"]]}).ok()
    t.equal(_names(t, made), {1: "new", 2: "new", 3: "new"}, "names")


@checks("update_table", Promise.ROWS, "UpdateTableRequest.updates")
def updates_with_expressions_of_the_row(t: Trial) -> None:
    """An expression is evaluated against the current row."""
    made = t.table()
    t.call("update_table", made, {"updates": [["score", "score + 10"], ["id", "id * 2"]]}).ok()
    found = t.read(made)
    pairs = sorted(zip(found["id"].to_pylist(), found["score"].to_pylist(), strict=True))
    t.equal(pairs, [(2, 10.5), (4, 11.0), (6, 11.5)], "ids and scores")


@checks("update_table", Promise.ROWS, "UpdateTableResponse.updated_rows")
def answers_the_number_of_updated_rows(t: Trial) -> None:
    """The answer holds the number of updated rows and the new version."""
    made = t.table()
    found = t.call("update_table", made, {"predicate": "id > 1", "updates": [["name", "'new'"]]}).ok()
    t.equal((found["updated_rows"], found["version"]), (2, t.head(made)), "updated rows and version")


@checks("update_table", Promise.ROWS, "UpdateTableResponse.updated_rows")
def answers_zero_where_nothing_matches(t: Trial) -> None:
    """Where the predicate is true for no row, none is updated, and the request succeeds."""
    made = t.table()
    found = t.call("update_table", made, {"predicate": "id > 100", "updates": [["name", "'new'"]]}).ok()
    t.equal(found["updated_rows"], 0, "updated rows")
    t.equal(_names(t, made), {1: "row 1", 2: "row 2", 3: "row 3"}, "names")


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.updates")
def refuses_to_update_an_unknown_column(t: Trial) -> None:
    """A column that does not exist is refused with code 12 or 13, and no row changes."""
    made = t.table()
    t.call("update_table", made, {"updates": [["invented", "1"]]}).refused(12, 13)
    t.equal(t.versions(made), [1], "versions")


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.predicate")
def refuses_a_predicate_that_is_not_sql(t: Trial) -> None:
    """A predicate that is not SQL is refused with 400 and code 13, and no row changes."""
    made = t.table()
    t.call("update_table", made, {"predicate": "(((", "updates": [["name", "'new'"]]}).refused(13)
    t.equal(t.versions(made), [1], "versions")


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.updates")
def refuses_an_expression_that_is_not_sql(t: Trial) -> None:
    """An expression that is not SQL is refused with 400 and code 13, and no row changes."""
    made = t.table()
    t.call("update_table", made, {"updates": [["name", "((("]]}).refused(13)
    t.equal(t.versions(made), [1], "versions")


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.updates")
def refuses_an_update_without_expressions(t: Trial) -> None:
    """A request without updates is refused with 400 and code 13."""
    t.call("update_table", t.table(), {}).refused(13)


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.updates")
def refuses_an_update_that_is_no_pair(t: Trial) -> None:
    """An update that is not a pair of path and expression is refused with 400 and code 13."""
    t.call("update_table", t.table(), {"updates": [["name"]]}).refused(13)


@checks("update_table", Promise.ERRORS, "UpdateTableRequest.branch")
def refuses_to_update_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("update_table", t.table(), {"branch": "missing", "updates": [["name", "'new'"]]}).refused(22)


@checks("update_table", Promise.CONCURRENCY, "UpdateTable")
def concurrent_updates_lose_no_increment(t: Trial) -> None:
    """Of six clients that add one to the same row, each success is counted once."""
    made = t.table(data=rows([1]))
    start = t.read(made)["score"].to_pylist()[0]
    answers = t.together([lambda: t.call("update_table", made, {"updates": [["score", "score + 1"]]})] * 6)
    won = 0
    for answer in answers:
        if answer.is_success:
            won += 1
        else:
            answer.refused(14)
    t.equal(t.read(made)["score"].to_pylist(), [start + won], "score")


@checks("delete_from_table", Promise.ROWS, "DeleteFromTableRequest.predicate")
def deletes_the_rows_of_the_predicate(t: Trial) -> None:
    """Only rows for which the predicate is true are deleted."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "id > 1"}).ok()
    t.equal(t.ids(made), [1], "ids")


@checks("delete_from_table", Promise.VERSIONS, "DeleteFromTableResponse.version")
def answers_the_version_of_the_deletion(t: Trial) -> None:
    """The answer holds the version without the rows."""
    made = t.table()
    found = t.call("delete_from_table", made, {"predicate": "id > 1"}).ok()
    t.equal(found.get("version"), t.head(made), "version")


@checks("delete_from_table", Promise.ROWS, "DeleteFromTableRequest.predicate")
def deletes_nothing_where_nothing_matches(t: Trial) -> None:
    """Where the predicate is true for no row, none is deleted, and the request succeeds."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "id > 100"}).ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("delete_from_table", Promise.ROWS, "DeleteFromTableRequest.predicate")
def deletes_all_rows(t: Trial) -> None:
    """With the predicate true all rows are deleted, and the table is still there."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "true"}).ok()
    t.equal(t.ids(made), [], "ids")
    t.call("insert_into_table", made, rows([5])).ok()
    t.equal(t.ids(made), [5], "ids")


@checks("delete_from_table", Promise.ERRORS, "DeleteFromTableRequest.predicate")
def refuses_a_deletion_that_is_not_sql(t: Trial) -> None:
    """A predicate that is not SQL is refused with 400 and code 13, and no row is deleted."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "((("}).refused(13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("delete_from_table", Promise.ERRORS, "DeleteFromTableRequest.predicate")
def refuses_a_predicate_of_an_unknown_column(t: Trial) -> None:
    """A predicate over a column that does not exist is refused with code 12 or 13, and no row is deleted."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "invented = 1"}).refused(12, 13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("delete_from_table", Promise.ERRORS, "DeleteFromTableRequest.predicate")
def refuses_a_deletion_without_a_predicate(t: Trial) -> None:
    """A request without a predicate is refused with 400 and code 13, and no row is deleted."""
    made = t.table()
    t.call("delete_from_table", made, {}).refused(13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("delete_from_table", Promise.RETRIES, "DeleteFromTable")
def a_repeated_deletion_succeeds(t: Trial) -> None:
    """The same deletion sent twice leaves the rows as after the first."""
    made = t.table()
    for _ in range(2):
        t.call("delete_from_table", made, {"predicate": "id = 2"}).ok()
    t.equal(t.ids(made), [1, 3], "ids")


@checks("delete_from_table", Promise.CONCURRENCY, "DeleteFromTable")
def concurrent_deletions_of_other_rows_all_hold(t: Trial) -> None:
    """Of four clients that delete different rows, the rows of each success are gone and no others."""
    made = t.table(data=rows(range(8)))
    jobs = [partial(t.call, "delete_from_table", made, {"predicate": f"id = {number}"}) for number in range(4)]
    left = list(range(4, 8))
    for number, answer in enumerate(t.together(jobs)):
        if not answer.is_success:
            answer.refused(14)
            left.append(number)
    t.equal(t.ids(made), sorted(left), "ids")


@checks("restore_table", Promise.ROWS, "RestoreTableRequest.version")
def restores_the_rows_of_a_version(t: Trial) -> None:
    """After a restore the table has the rows of that version."""
    made = t.table(versions=3)
    t.call("restore_table", made, {"version": 1}).ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("restore_table", Promise.VERSIONS, "RestoreTable")
def a_restore_is_a_new_version(t: Trial) -> None:
    """A restore adds a version and keeps the others."""
    made = t.table(versions=3)
    t.call("restore_table", made, {"version": 1}).ok()
    t.equal(t.versions(made), [1, 2, 3, 4], "versions")


@checks("restore_table", Promise.ERRORS, "RestoreTableRequest.version")
def refuses_to_restore_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    made = t.table()
    t.call("restore_table", made, {"version": 99}).refused(11)
    t.equal(t.versions(made), [1], "versions")


@checks("restore_table", Promise.ERRORS, "RestoreTableRequest.version")
def refuses_a_restore_without_a_version(t: Trial) -> None:
    """A request without a version is refused with 400 and code 13."""
    t.call("restore_table", t.table(), {}).refused(13)


@checks("restore_table", Promise.ROWS, "RestoreTableRequest.version")
def a_restore_brings_deleted_rows_back(t: Trial) -> None:
    """Rows that were deleted are there again after the restore of the version before."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "true"}).ok()
    t.call("restore_table", made, {"version": 1}).ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("count_table_rows", Promise.ROWS, "CountTableRows")
def counts_all_rows(t: Trial) -> None:
    """Without a predicate all rows are counted, and the answer is a plain integer."""
    t.equal(t.call("count_table_rows", t.table(), {}).ok(), 3, "rows")


@checks("count_table_rows", Promise.ROWS, "CountTableRowsRequest.predicate")
def counts_the_rows_of_a_predicate(t: Trial) -> None:
    """With a predicate the rows for which it is true are counted."""
    t.equal(t.call("count_table_rows", t.table(), {"predicate": "id >= 2"}).ok(), 2, "rows")


@checks("count_table_rows", Promise.VERSIONS, "CountTableRowsRequest.version")
def counts_the_rows_of_a_version(t: Trial) -> None:
    """With a version the rows of that version are counted."""
    made = t.table(versions=3)
    t.equal(t.call("count_table_rows", made, {"version": 1}).ok(), 3, "rows of version 1")
    t.equal(t.call("count_table_rows", made, {}).ok(), 5, "rows of the newest version")


@checks("count_table_rows", Promise.ERRORS, "CountTableRowsRequest.version")
def refuses_to_count_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    t.call("count_table_rows", t.table(), {"version": 99}).refused(11)


@checks("count_table_rows", Promise.ERRORS, "CountTableRowsRequest.branch")
def refuses_to_count_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("count_table_rows", t.table(), {"branch": "missing"}).refused(22)


@checks("count_table_rows", Promise.ERRORS, "CountTableRowsRequest.predicate")
def refuses_to_count_what_is_not_sql(t: Trial) -> None:
    """A predicate that is not SQL is refused with 400 and code 13."""
    t.call("count_table_rows", t.table(), {"predicate": "((("}).refused(13)


@checks("count_table_rows", Promise.ROWS, "CountTableRows")
def does_not_count_deleted_rows(t: Trial) -> None:
    """Rows that were deleted are not counted."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "id = 1"}).ok()
    t.equal(t.call("count_table_rows", made, {}).ok(), 2, "rows")


@checks("get_table_stats", Promise.ROWS, "GetTableStatsResponse.num_rows")
def counts_rows_in_statistics(t: Trial) -> None:
    """The statistics hold the number of rows."""
    t.equal(t.call("get_table_stats", t.table(versions=3)).ok()["num_rows"], 5, "rows")


@checks("get_table_stats", Promise.ROWS, "FragmentStats.num_fragments")
def counts_fragments_in_statistics(t: Trial) -> None:
    """The statistics hold the number of fragments, and lengths that fit the number of rows."""
    found = t.call("get_table_stats", t.table(versions=3)).ok()["fragment_stats"]
    t.expect(1 <= found["num_fragments"] <= 5, "expected 1 to 5 fragments for 5 rows")
    shortest, longest = found["lengths"]["min"], found["lengths"]["max"]
    t.expect(1 <= shortest <= longest <= 5, "expected lengths between 1 and 5 rows")
    t.expect(shortest * found["num_fragments"] <= 5 <= longest * found["num_fragments"], "expected 5 rows in all")


@checks("get_table_stats", Promise.INDICES, "GetTableStatsResponse.num_indices")
def counts_indices_in_statistics(t: Trial) -> None:
    """The statistics hold the number of indices."""
    made = t.table()
    t.equal(t.call("get_table_stats", made).ok()["num_indices"], 0, "indices")
    t.call("create_table_scalar_index", made, {"column": "id", "index_type": "BTREE"}).ok()
    t.equal(t.call("get_table_stats", made).ok()["num_indices"], 1, "indices")


@checks("get_table_stats", Promise.ROWS, "GetTableStatsResponse.num_rows")
def leaves_deleted_rows_out_of_statistics(t: Trial) -> None:
    """Rows that were deleted are not counted in the statistics."""
    made = t.table()
    t.call("delete_from_table", made, {"predicate": "id = 1"}).ok()
    t.equal(t.call("get_table_stats", made).ok()["num_rows"], 2, "rows")


@checks("get_table_stats", Promise.ROWS, "GetTableStatsResponse.total_bytes")
def measures_bytes_in_statistics(t: Trial) -> None:
    """The total number of bytes of a table with rows is positive."""
    t.expect(t.call("get_table_stats", t.table()).ok()["total_bytes"] > 0, "expected more than 0 bytes")
