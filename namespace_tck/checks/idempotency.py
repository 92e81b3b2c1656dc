"""Changes under an idempotency key: applied once, answered again, refused for another request.

Checked only where the server answers `GET /v1/catalog`, as what it adds to the specification.
"""

from __future__ import annotations

from namespace_tck.exchanges import ServerAnswer
from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()

_CLIENTS = 6
_LONG = 100_000


def _keyed(t: Trial, operation: str, of: list[str], body: object, **query: object) -> ServerAnswer:
    """A call under the key of this check."""
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    key = {"Idempotency-Key": f"{t.space[0]}-{t.space[1]}"}
    return t.call(operation, of, body, headers=key, **query)


def _twice(t: Trial, operation: str, of: list[str], body: object, **query: object) -> None:
    """Call twice under the key, and compare the answers."""
    first = _keyed(t, operation, of, body, **query).ok()
    t.equal(_keyed(t, operation, of, body, **query).ok(), first, "the second answer")


@checks("insert_into_table", Promise.EXTENSIONS, "InsertIntoTable")
def rows_under_a_key_are_inserted_once(t: Trial) -> None:
    """The same rows under the same key are added once, and the answer is that of the first time."""
    made = t.table()
    _twice(t, "insert_into_table", made, rows([4]))
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("insert_into_table", Promise.EXTENSIONS, "InsertIntoTable")
def many_rows_under_a_key_are_inserted_once(t: Trial) -> None:
    """A hundred thousand rows that are sent again under their key are added once."""
    made = t.table()
    _twice(t, "insert_into_table", made, rows(list(range(4, 4 + _LONG))))
    t.equal(t.call("count_table_rows", made).ok(), 3 + _LONG, "rows")


@checks("insert_into_table", Promise.EXTENSIONS, "InsertIntoTable")
def other_rows_under_a_key_are_refused(t: Trial) -> None:
    """Other rows, or another mode, under a key that was used are refused with code 13, and change nothing."""
    made = t.table()
    _keyed(t, "insert_into_table", made, rows([4])).ok()
    _keyed(t, "insert_into_table", made, rows([5])).refused(13)
    _keyed(t, "insert_into_table", made, rows([4]), mode="overwrite").refused(13)
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("insert_into_table", Promise.EXTENSIONS, "InsertIntoTable")
def concurrent_inserts_under_a_key_are_one(t: Trial) -> None:
    """Six clients that insert the same rows under the same key get the same answer, and the rows are there once."""
    made = t.table()
    t.need(t.session.has_catalog, "the server has no catalog of its own (GET /v1/catalog)")
    answers = t.together([lambda: _keyed(t, "insert_into_table", made, rows([4]))] * _CLIENTS)
    t.equal(len({str(sorted(answer.ok().items())) for answer in answers}), 1, "different answers")
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("merge_insert_into_table", Promise.EXTENSIONS, "MergeInsertIntoTable")
def a_merge_under_a_key_is_applied_once(t: Trial) -> None:
    """A merge that is repeated under its key is answered with the counts of the first time."""
    made = t.table()
    every = {"when_matched_update_all": True, "when_not_matched_insert_all": True}
    _twice(t, "merge_insert_into_table", made, rows([3, 4]), on="id", **every)
    t.equal(t.ids(made), [1, 2, 3, 4], "ids")


@checks("update_table", Promise.EXTENSIONS, "UpdateTable")
def an_update_under_a_key_is_applied_once(t: Trial) -> None:
    """An update that is repeated under its key changes its rows once."""
    made = t.table()
    _twice(t, "update_table", made, {"updates": [["id", "id + 10"]]})
    t.equal(t.ids(made), [11, 12, 13], "ids")


@checks("delete_from_table", Promise.EXTENSIONS, "DeleteFromTable")
def a_deletion_under_a_key_is_answered_again(t: Trial) -> None:
    """A deletion that is repeated under its key spares the rows that were added in between."""
    made = t.table()
    first = _keyed(t, "delete_from_table", made, {"predicate": "id > 1"}).ok()
    t.call("insert_into_table", made, rows([7])).ok()
    t.equal(_keyed(t, "delete_from_table", made, {"predicate": "id > 1"}).ok(), first, "the second answer")
    t.equal(t.ids(made), [1, 7], "ids")


@checks("create_table", Promise.EXTENSIONS, "CreateTable")
def a_table_under_a_key_is_created_once(t: Trial) -> None:
    """A table that is created again under the key of its creation is answered, and not refused as one that exists."""
    made = t.id("t")
    _twice(t, "create_table", made, rows([1]))
    t.call("create_table", made, rows([1])).refused(5)
    t.equal(t.versions(made), [1], "versions")


@checks("alter_table_add_columns", Promise.EXTENSIONS, "AlterTableAddColumns")
def columns_under_a_key_are_added_once(t: Trial) -> None:
    """Columns that are added again under their key are answered, and not refused as ones that exist."""
    made = t.table()
    _twice(t, "alter_table_add_columns", made, {"new_columns": [{"name": "more", "expression": "id * 2"}]})
    t.equal(t.versions(made), [1, 2], "versions")


@checks("create_table_tag", Promise.EXTENSIONS, "CreateTableTag")
def a_tag_under_a_key_is_created_once(t: Trial) -> None:
    """A tag that is created again under its key is answered, also when it was deleted in between."""
    made = t.table()
    first = _keyed(t, "create_table_tag", made, {"tag": "v", "version": 1}).ok()
    t.call("delete_table_tag", made, {"tag": "v"}).ok()
    t.equal(_keyed(t, "create_table_tag", made, {"tag": "v", "version": 1}).ok(), first, "the second answer")
    t.equal(t.call("list_table_tags", made).ok()["tags"], {}, "tags")
