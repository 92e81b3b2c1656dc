"""Lines about changes of rows, and about what comes twice."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from namespace_tck.lancedb.data import small
from namespace_tck.lancedb.lines import Asked, LineList, N, T, missing, post, refused
from namespace_tck.lancedb.matching import Rows, Where, kind, text
from namespace_tck.registry import Promise

lines = LineList("rows", Promise.ROWS)

_COUNT: Final = {"version": None}
_TWO: Final = small(100, 2)
_OVERLAP: Final = small(4, 4)
"""Two rows that the table has, and two that it has not."""
_DEV: Final = post(T + "branches/create/", {"name": "dev"})
_SCAN: Final[dict[str, Any]] = {"version": None, "prefilter": True, "k": 9223372036854775807, "vector": []}


def count(expected: int, **given: object) -> Asked:
    """The number of rows of the table, under a predicate or of a branch."""
    return post(T + "count_rows/", {**_COUNT, **given}, expected)


_count_rows = lines.about("Table.count_rows")
_count_rows(
    "The number of rows is a JSON number.",
    count(6),
    post(T + "count_rows/", {"predicate": "`id` > 3", "version": None}, 2),
)
_count_rows(
    "Rows of a version are counted.", post(T + "delete/", {"predicate": "id = 0"}), count(5), count(6, version=1)
)
_count_rows("A table that is missing is told by 404.", missing(N + "count_rows/", _COUNT))
_count_rows(
    "A column that is missing is no missing table.",
    refused(T + "count_rows/", {"predicate": "nope > 1", "version": None}, text("nope")),
)

_add = lines.about("Table.add")
_add("Rows that are added are a new version.", post(T + "insert/", _TWO, {"version": 2}), count(8))
_add("A mode may say that rows are added.", post(T + "insert/?mode=append", _TWO, {"version": 2}), count(8))
_add("All rows are replaced if that is asked for.", post(T + "insert/?mode=overwrite", _TWO, {"version": 2}), count(2))
_add(
    "All rows are replaced by none.",
    post(T + "insert/?mode=overwrite", small(count=0), {"version": kind(int)}),
    count(0),
)
_add("A stream without rows adds none.", post(T + "insert/", small(count=0), {"version": kind(int)}), count(6))
_add(
    "Rows are added to a branch alone.",
    _DEV,
    post(T + "insert/?branch=dev", _TWO, {"version": kind(int)}),
    count(8, branch="dev"),
    count(6),
)
_add(
    "Rows are added to a table in a namespace.",
    post("/v1/namespace/{m}/create", {}, statuses=(200, 204)),
    post("/v1/table/{m}${n}/create/?mode=create", _TWO),
    post("/v1/table/{m}${n}/insert/", _TWO, {"version": 2}),
)
_add("A table that is missing is told by 404.", missing(N + "insert/", _TWO))
_add(
    "Rows of another schema are refused, and nothing is added.",
    refused(T + "insert/", pa.table({"other": [1]}), statuses=(400,)),
    count(6),
    post(T + "describe/", None, {"version": 1}),
)
_add(
    "A stream that is torn adds nothing.",
    refused(T + "insert/", b"\xff\xff\xff\xff\x10\x00\x00\x00", statuses=(400,)),
    count(6),
)
_add(
    "A column that may be null may be left out.",
    post(T + "insert/", _TWO.drop_columns(["text"]), {"version": 2}),
    count(2, predicate="text IS NULL"),
)

_SET: Final = {"predicate": "id > 3", "updates": [["text", "'new'"]]}
_update = lines.about("Table.update")
_update(
    "Rows that are updated are counted.",
    post(T + "update/", _SET, {"rows_updated": 2, "version": 2}),
    count(2, predicate="text = 'new'"),
)
_update(
    "All rows are updated without a predicate, by expressions.",
    post(
        T + "update/",
        {"predicate": None, "updates": [["id", "id + 1"], ["price", "price - 1"]]},
        {"rows_updated": 6, "version": 2},
    ),
    count(1, predicate="id = 6 AND price = 1.5"),
)
_update(
    "No row is updated where none matches.",
    post(T + "update/", {"predicate": "id < 0", "updates": [["id", "0"]]}, {"rows_updated": 0, "version": kind(int)}),
)
_update(
    "Rows of a branch alone are updated.",
    _DEV,
    post(T + "update/", {**_SET, "branch": "dev"}, {"rows_updated": 2}),
    count(2, branch="dev", predicate="text = 'new'"),
    count(0, predicate="text = 'new'"),
)
_update("A table that is missing is told by 404.", missing(N + "update/", _SET))
_update(
    "A column that is missing is refused, and nothing is updated.",
    refused(T + "update/", {"predicate": "id = 1", "updates": [["nope", "1"]]}, text("nope")),
    post(T + "describe/", None, {"version": 1}),
)
_update(
    "An expression that is none is refused, and nothing is updated.",
    refused(T + "update/", {"predicate": "id =", "updates": [["id", "1 +"]]}),
    post(T + "describe/", None, {"version": 1}),
)

_delete = lines.about("Table.delete")
_delete(
    "Rows that are deleted are counted.",
    post(T + "delete/", {"predicate": "`id` in (1, 2, 3)"}, {"num_deleted_rows": 3, "version": 2}),
    count(3),
)
_delete(
    "No row is deleted where none matches.",
    post(T + "delete/", {"predicate": "false"}, {"num_deleted_rows": 0, "version": kind(int)}),
    count(6),
)
_delete(
    "Rows of a branch alone are deleted.",
    _DEV,
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}, {"num_deleted_rows": 1}),
    count(5, branch="dev"),
    count(6),
)
_delete("A table that is missing is told by 404.", missing(N + "delete/", {"predicate": "true"}))
_delete(
    "A column that is missing is refused, and nothing is deleted.",
    refused(T + "delete/", {"predicate": "nope = 1"}, text("nope")),
    count(6),
)

_UPSERT: Final = (
    "&when_matched_update_all=true&when_not_matched_insert_all=true&when_not_matched_by_source_delete=false"
)
_KEEP: Final = "&when_matched_update_all=false&when_not_matched_insert_all=true&when_not_matched_by_source_delete=false"
_ONLY: Final = "&when_matched_update_all=true&when_not_matched_insert_all=false&when_not_matched_by_source_delete=false"
_TRIM: Final = "&when_matched_update_all=false&when_not_matched_insert_all=false&when_not_matched_by_source_delete=true"
_NOTHING: Final = _TRIM.replace("true", "false")
_MERGE: Final = T + "merge_insert/?on=id"


def _merged(inserted: int, updated: int, deleted: int) -> dict[str, object]:
    return {"num_inserted_rows": inserted, "num_updated_rows": updated, "num_deleted_rows": deleted, "version": 2}


_merge_insert = lines.about("Table.merge_insert")
_merge_insert(
    "Rows are updated where the key is there, and inserted elsewhere.",
    post(_MERGE + _UPSERT, _OVERLAP, {**_merged(2, 2, 0), "num_rows": 4, "num_attempts": kind(int)}),
    count(8),
)
_merge_insert("Rows are inserted alone.", post(_MERGE + _KEEP, _OVERLAP, _merged(2, 0, 0)), count(8))
_merge_insert("Rows are updated alone.", post(_MERGE + _ONLY, _OVERLAP, _merged(0, 2, 0)), count(6))
_merge_insert(
    "Rows are updated under a condition on the row that is there.",
    post(_MERGE + _ONLY + "&when_matched_update_all_filt=target.%60id%60%20%3E%204", _OVERLAP, _merged(0, 1, 0)),
)
_merge_insert(
    "A key may have several columns.",
    post(T + "merge_insert/?on=text&on=id" + _UPSERT, _OVERLAP, _merged(2, 2, 0)),
    count(8),
)
_merge_insert("Rows that the source has not are deleted.", post(_MERGE + _TRIM, _OVERLAP, _merged(0, 0, 4)), count(2))
_merge_insert(
    "Rows that the source has not are deleted under a condition.",
    post(_MERGE + _TRIM + "&when_not_matched_by_source_delete_filt=id%20%3C%202", _OVERLAP, _merged(0, 0, 2)),
    count(4),
)
_merge_insert(
    "An empty source inserts nothing.",
    post(_MERGE + _KEEP, small(count=0), {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}),
    count(6),
)
_merge_insert(
    "An empty source of the key alone deletes what it is asked to.",
    post(
        _MERGE + _TRIM,
        pa.table({"id": pa.array([], pa.int64())}),
        {"num_deleted_rows": 6, "num_inserted_rows": 0, "num_updated_rows": 0},
    ),
    count(0),
)
_merge_insert(
    "A merge need not use an index.", post(_MERGE + _UPSERT + "&use_index=false", _OVERLAP, _merged(2, 2, 0)), count(8)
)
_merge_insert(
    "A merge has the time that its header says.",
    post(_MERGE + _UPSERT, _OVERLAP, _merged(2, 2, 0), headers={"x-request-timeout-ms": "60000"}),
)
_merge_insert(
    "Rows of a branch alone are merged.",
    _DEV,
    post(_MERGE + _UPSERT + "&branch=dev", _OVERLAP, {"num_inserted_rows": 2}),
    count(8, branch="dev"),
    count(6),
)
_merge_insert(
    "A merge that has nothing to do is refused, or does nothing.",
    post(
        T + "merge_insert/?on=id" + _NOTHING,
        _OVERLAP,
        statuses=(200, 400),
    ),
    count(6),
)
_merge_insert(
    "A key that is missing is refused, and nothing is merged.",
    refused(T + "merge_insert/?on=nope" + _UPSERT, _OVERLAP, text("nope")),
    count(6),
)
_merge_insert("A table that is missing is told by 404.", missing(N + "merge_insert/?on=id" + _UPSERT, _OVERLAP))
_merge_insert("A stream that is torn merges nothing.", refused(_MERGE + _UPSERT, b"no rows", statuses=(400,)), count(6))
_merge_insert(
    "Rows for a log are refused by name, or merged.",
    post(_MERGE + _UPSERT + "&use_lsm=true", _OVERLAP, refusal="use_lsm"),
    count(8),
)

twice = LineList("repeats", Promise.RETRIES)
_SAME: Final = {"x-request-id": "7c5f1d5a-4ab4-4b7c-9f8e-{db}-{t}"}


def _again(path: str, body: object, answer: object = kind(dict)) -> tuple[Asked, Asked]:
    return post(T + path, body, answer, headers=_SAME), post(T + path, body, answer, headers=_SAME)


_table_update = twice.about("Table.update")
_table_update(
    "An update that comes again under its request id is made once.",
    *_again("update/", {"predicate": "id = 1", "updates": [["id", "id + 100"]]}, {"rows_updated": 1, "version": 2}),
    count(1, predicate="id = 101"),
)
twice(
    "Table.delete",
    "A deletion that comes again under its request id is made once.",
    *_again("delete/", {"predicate": "id = 1"}, {"num_deleted_rows": 1, "version": 2}),
)
twice(
    "Table.add_columns",
    "A column that is added again under its request id is added once.",
    *_again("add_columns/", {"new_columns": [{"name": "n", "expression": "id"}]}, {"version": 2}),
)
twice(
    "Table.drop_columns",
    "A column that is dropped again under its request id is dropped once.",
    *_again("drop_columns/", {"columns": ["text"]}, {"version": 2}),
)
twice(
    "Table.create_index",
    "An index that is made again under its request id is made once.",
    *_again("create_index/", {"column": "id", "index_type": "BTREE", "replace": False}),
)
twice(
    "Table.restore",
    "A version that is restored again under its request id is restored once.",
    post(T + "delete/", {"predicate": "id = 1"}),
    *_again("restore/", {"version": 1}),
    post(T + "describe/", None, {"version": 3}),
)
twice(
    "Tags.create",
    "A tag that is created again under its request id is created once.",
    *_again("tags/create/", {"tag": "v1", "version": 1}),
)
_table_update(
    "The same update under another request id is another one.",
    post(T + "update/", {"predicate": None, "updates": [["id", "id + 1"]]}),
    post(T + "update/", {"predicate": None, "updates": [["id", "id + 1"]]}),
    count(1, predicate="id = 7"),
)

fresh = LineList("freshness", Promise.VERSIONS)
_table_count_rows = fresh.about("Table.count_rows")
_table_count_rows(
    "Reads say of which version they are.",
    post(T + "delete/", {"predicate": "id = 1"}, answered={"x-lancedb-version": "2"}),
    post(T + "count_rows/", _COUNT, 5, answered={"x-lancedb-version": "2"}),
    post(T + "query/", _SCAN, Rows(count=5), answered={"x-lancedb-version": "2"}),
)
_table_count_rows(
    "A read sees the version that its client has written.",
    post(T + "delete/", {"predicate": "id = 1"}, {"version": 2}),
    post(T + "count_rows/", _COUNT, 5, headers={"x-lancedb-min-version": "2"}),
)
_table_count_rows(
    "A read sees the version that its client has read.",
    post(T + "delete/", {"predicate": "id = 1"}),
    post(T + "count_rows/", _COUNT, 5, headers={"x-lancedb-min-read-version": "2"}),
)
fresh(
    "Table.checkout_latest",
    "A read sees what was written before a time.",
    post(T + "delete/", {"predicate": "id = 1"}),
    post(T + "count_rows/", _COUNT, 5, headers={"x-lancedb-min-timestamp": "2026-01-01T00:00:00.000000001+00:00"}),
)
_table_count_rows(
    "A table that was made anew is read by a client that knows later versions of the old one.",
    post(N + "create/?mode=create", _TWO),
    post(N + "count_rows/", _COUNT, 2, headers={"x-lancedb-min-read-version": "9"}),
)
fresh(
    "Table.schema",
    "A description that is as new as asked for has the new column.",
    post(T + "add_columns/", {"new_columns": [{"name": "n", "expression": "id"}]}, {"version": 2}),
    post(
        T + "describe/",
        {"version": None},
        {"schema": {"fields": Where("a column n", lambda found: "n" in [each["name"] for each in found])}},
        headers={"x-lancedb-min-version": "2"},
    ),
)
