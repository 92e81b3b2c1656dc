"""InsertIntoTable."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows, schema, stream
from namespace_tck.trial import Trial

checks = CheckList()

WRITERS = 16


@checks("insert_into_table", Promise.ROWS, "InsertIntoTableRequest.mode")
def appends_by_default(t: Trial) -> None:
    """Without a mode the rows are added to those that are there."""
    made = t.table()
    t.call("insert_into_table", made, rows([4, 5])).ok()
    t.equal(t.ids(made), [1, 2, 3, 4, 5], "ids")


@checks("insert_into_table", Promise.MODES, "InsertIntoTableRequest.mode")
def mode_append_adds_rows(t: Trial) -> None:
    """With mode Append, in any case, the rows are added to those that are there."""
    made = t.table()
    t.call("insert_into_table", made, rows([4]), mode="Append").ok()
    t.call("insert_into_table", made, rows([5]), mode="append").ok()
    t.equal(t.ids(made), [1, 2, 3, 4, 5], "ids")


@checks("insert_into_table", Promise.MODES, "InsertIntoTableRequest.mode")
def mode_overwrite_replaces_all_rows(t: Trial) -> None:
    """With mode Overwrite the table has the new rows alone."""
    made = t.table()
    t.call("insert_into_table", made, rows([9]), mode="Overwrite").ok()
    t.equal(t.ids(made), [9], "ids")


@checks("insert_into_table", Promise.MODES, "InsertIntoTableRequest.mode")
def refuses_an_unknown_insert_mode(t: Trial) -> None:
    """A mode that is not published is refused with 400 and code 13, and no row is added."""
    made = t.table()
    t.call("insert_into_table", made, rows([9]), mode="invented").refused(13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.VERSIONS, "InsertIntoTableResponse.version")
def answers_the_new_version(t: Trial) -> None:
    """The answer holds the version that the rows are in."""
    made = t.table()
    found = t.call("insert_into_table", made, rows([4])).ok()
    t.equal(found.get("version"), 2, "version")
    t.equal(t.versions(made), [1, 2], "versions")


@checks("insert_into_table", Promise.ROWS, "InsertIntoTableResponse.num_inserted_rows")
def answers_the_number_of_rows(t: Trial) -> None:
    """The answer holds the number of rows that were inserted."""
    found = t.call("insert_into_table", t.table(), rows([4, 5])).ok()
    t.equal(found.get("num_inserted_rows"), 2, "num_inserted_rows")


@checks("insert_into_table", Promise.ROWS, "InsertIntoTable")
def creates_a_declared_table(t: Trial) -> None:
    """An insert into a table that is only declared creates it with the rows."""
    made = t.declared()
    t.call("insert_into_table", made, rows([1, 2])).ok()
    t.equal(t.ids(made), [1, 2], "ids")
    found = t.call("describe_table", made, check_declared=True).ok()
    t.equal(found.get("is_only_declared"), False, "is_only_declared")


@checks("insert_into_table", Promise.ROWS, "InsertIntoTable")
def an_insert_of_no_rows_changes_no_row(t: Trial) -> None:
    """A stream without rows adds none."""
    made = t.table()
    t.call("insert_into_table", made, schema().empty_table()).ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.ERRORS, "InsertIntoTable")
def refuses_rows_of_another_type(t: Trial) -> None:
    """Rows whose column has another type are refused with code 20 or 13, and no row is added."""
    made = t.table()
    t.call("insert_into_table", made, pa.table({"id": ["text"], "name": ["x"]})).refused(20, 13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.ERRORS, "InsertIntoTable")
def refuses_rows_with_an_unknown_column(t: Trial) -> None:
    """Rows with a column that the table does not have are refused with code 20, 12 or 13, and no row is added."""
    made = t.table()
    data = rows([4]).append_column("invented", pa.array([1]))
    t.call("insert_into_table", made, data).refused(20, 12, 13)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.ERRORS, "InsertIntoTable")
def refuses_rows_that_are_not_arrow(t: Trial) -> None:
    """A body that is not an Arrow stream is refused with 400, and no row is added."""
    made = t.table()
    t.call("insert_into_table", made, b"this is not Arrow, but long enough to be a stream").refused(13, 20)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.ATOMICITY, "InsertIntoTable")
def a_broken_stream_adds_no_rows(t: Trial) -> None:
    """A stream that ends too early adds none of its rows and no version."""
    made = t.table()
    whole = stream(rows(range(10, 2000)))
    t.call("insert_into_table", made, whole[: len(whole) // 2]).refused(13, 20)
    t.equal(t.ids(made), [1, 2, 3], "ids")
    t.equal(t.versions(made), [1], "versions")


@checks("insert_into_table", Promise.ERRORS, "InsertIntoTableRequest.branch")
def refuses_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("insert_into_table", t.table(), rows([4]), branch="missing").refused(22)


@checks("insert_into_table", Promise.CONCURRENCY, "InsertIntoTable")
def concurrent_inserts_all_land(t: Trial) -> None:
    """Of sixteen clients that insert at once, each success adds its rows once, and a refusal has code 14."""
    made = t.table(data=rows([0]))
    jobs = [partial(t.call, "insert_into_table", made, rows([number])) for number in range(1, WRITERS + 1)]
    landed = [0]
    for number, answer in enumerate(t.together(jobs), 1):
        if answer.is_success:
            landed.append(number)
        else:
            answer.refused(14)
    t.equal(t.ids(made), landed, "ids of the rows whose insert succeeded")
    t.expect(len(landed) > 1, "no insert succeeded")


@checks("insert_into_table", Promise.CONCURRENCY, "InsertIntoTable")
def concurrent_first_inserts_lose_no_rows(t: Trial) -> None:
    """Of six clients that insert into a declared table, each success has its rows in the table."""
    made = t.declared()
    jobs = [partial(t.call, "insert_into_table", made, rows([number])) for number in range(6)]
    answers = t.together(jobs)
    landed = [number for number, answer in enumerate(answers) if answer.is_success]
    t.expect(bool(landed), "no insert succeeded", answers[0])
    t.equal(t.ids(made), landed, "ids of the rows whose insert succeeded")


@checks("insert_into_table", Promise.CONCURRENCY, "InsertIntoTable")
def readers_see_whole_inserts(t: Trial) -> None:
    """A reader beside inserts of ten rows each sees a multiple of ten rows."""
    made = t.table(data=rows(range(10)))

    def write() -> list[int]:
        for number in range(1, 6):
            t.call("insert_into_table", made, rows(range(number * 10, number * 10 + 10))).ok()
        return []

    def look() -> list[int]:
        return [t.call("count_table_rows", made, {}).ok() for _ in range(15)]

    for counts in t.together([write, look, look]):
        t.equal([count % 10 for count in counts], [0] * len(counts), "rows modulo ten")


@checks("insert_into_table", Promise.ROWS, "InsertIntoTable")
def inserts_many_rows(t: Trial) -> None:
    """An insert of many rows is one version."""
    made = t.table()
    t.call("insert_into_table", made, rows(range(10, 20_010))).ok()
    t.equal(t.call("count_table_rows", made, {}).ok(), 20_003, "rows")
    t.equal(t.versions(made), [1, 2], "versions")
