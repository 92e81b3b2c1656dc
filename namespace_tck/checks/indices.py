"""Indices: create, list, statistics, drop."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pyarrow as pa

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows, texts
from namespace_tck.trial import Trial

checks = CheckList()

LISTING_TIMEOUT = 60.0
"""Seconds until an index, which may be built in the background, must be listed."""


def _listed(t: Trial, table: list[str], name: str) -> dict[str, Any]:
    """The index of a name, once it is listed."""
    limit = time.monotonic() + LISTING_TIMEOUT
    while True:
        for found in t.call("list_table_indices", table).ok()["indexes"]:
            if found["index_name"] == name:
                entry: dict[str, Any] = found
                return entry
        if time.monotonic() > limit:
            raise t.failure(f"index {name} is not listed after {LISTING_TIMEOUT:.0f} s")
        time.sleep(0.2)


def _indexed(t: Trial, index_type: str = "BTREE", column: str = "id") -> list[str]:
    made = t.table()
    request = {"column": column, "index_type": index_type, "name": "ix"}
    t.call("create_table_scalar_index", made, request).ok()
    _listed(t, made, "ix")
    return made


def _builds(operation: str, index_type: str, column: str, t: Trial) -> None:
    data = texts(["the fox", "the dog"]) if index_type == "FTS" else rows(range(300))
    if index_type == "LABEL_LIST":
        data = pa.table({"id": [1, 2], "labels": [["a"], ["a", "b"]]})
    made = t.table(data=data)
    request: dict[str, Any] = {"column": column, "index_type": index_type, "name": "ix"}
    if index_type.startswith("IVF"):
        request |= {"distance_type": "l2", "num_partitions": 2}
    if index_type == "IVF_PQ":
        request["num_sub_vectors"] = 2
    t.call(operation, made, request).ok()
    t.equal(_listed(t, made, "ix")["columns"], [column], "columns")


for _type, _column in (("BTREE", "id"), ("BITMAP", "name"), ("LABEL_LIST", "labels"), ("FTS", "body")):
    checks.define(
        "create_table_scalar_index",
        f"builds_{_type.lower()}",
        Promise.INDICES,
        "CreateTableIndexRequest.index_type",
        f"A scalar index of type {_type} is built and listed with its column.",
        partial(_builds, "create_table_scalar_index", _type, _column),
    )
for _type, _column in (
    ("BTREE", "id"),
    ("FTS", "body"),
    ("IVF_FLAT", "vector"),
    ("IVF_PQ", "vector"),
    ("IVF_HNSW_SQ", "vector"),
):
    checks.define(
        "create_table_index",
        f"builds_{_type.lower()}",
        Promise.INDICES,
        "CreateTableIndexRequest.index_type",
        f"An index of type {_type} is built and listed with its column.",
        partial(_builds, "create_table_index", _type, _column),
    )


@checks("create_table_index", Promise.INDICES, "CreateTableIndexRequest.name")
def names_an_index_itself(t: Trial) -> None:
    """Without a name the index gets one of the server's."""
    made = t.table()
    t.call("create_table_index", made, {"column": "id", "index_type": "BTREE"}).ok()
    limit = time.monotonic() + LISTING_TIMEOUT
    while not (found := t.call("list_table_indices", made).ok()["indexes"]) and time.monotonic() < limit:
        time.sleep(0.2)
    t.expect(len(found) == 1 and bool(found[0]["index_name"]), "expected one index with a name")


@checks("create_table_index", Promise.ERRORS, "CreateTableIndexRequest.column")
def refuses_to_index_an_unknown_column(t: Trial) -> None:
    """A column that does not exist is refused with code 12 or 13."""
    t.call("create_table_index", t.table(), {"column": "invented", "index_type": "BTREE"}).refused(12, 13)


@checks("create_table_index", Promise.ERRORS, "CreateTableIndexRequest.index_type")
def refuses_an_unknown_type(t: Trial) -> None:
    """A type that is not known is refused with code 13 or 0."""
    t.call("create_table_index", t.table(), {"column": "id", "index_type": "INVENTED"}).refused(13, 0)


@checks("create_table_index", Promise.ERRORS, "CreateTableIndexRequest.index_type")
def refuses_a_type_that_does_not_fit_the_column(t: Trial) -> None:
    """A vector index on a column that holds no vectors is refused with 400."""
    request = {"column": "name", "index_type": "IVF_FLAT", "distance_type": "l2"}
    t.call("create_table_index", t.table(), request).refused(13, 20)


@checks("create_table_scalar_index", Promise.ERRORS, "CreateTableIndexRequest.name")
def refuses_an_index_name_that_is_taken(t: Trial) -> None:
    """A name that an index of another column has is refused with 409 and code 7 (TableIndexAlreadyExists)."""
    made = _indexed(t)
    request = {"column": "name", "index_type": "BTREE", "name": "ix"}
    t.call("create_table_scalar_index", made, request).refused(7)


@checks("create_table_scalar_index", Promise.INDICES, "CreateTableScalarIndex")
def an_indexed_column_answers_the_same_rows(t: Trial) -> None:
    """A query over an indexed column answers the rows that it answers without the index."""
    made = t.table(data=rows(range(500)))
    before = t.ids(made, filter="id >= 490")
    t.call("create_table_scalar_index", made, {"column": "id", "index_type": "BTREE", "name": "ix"}).ok()
    _listed(t, made, "ix")
    t.equal(t.ids(made, filter="id >= 490"), before, "ids")


@checks("create_table_scalar_index", Promise.INDICES, "CreateTableScalarIndex")
def rows_inserted_later_are_found(t: Trial) -> None:
    """Rows that are inserted after the index was built are found by a filter on the column."""
    made = _indexed(t)
    t.call("insert_into_table", made, rows([50])).ok()
    t.equal(t.ids(made, filter="id = 50"), [50], "ids")


@checks("list_table_indices", Promise.INDICES, "ListTableIndicesResponse.indexes")
def lists_no_index_of_a_fresh_table(t: Trial) -> None:
    """A table without an index has an empty list."""
    t.equal(t.call("list_table_indices", t.table()).ok()["indexes"], [], "indexes")


@checks("list_table_indices", Promise.INDICES, "IndexContent")
def lists_indices_with_their_uuid(t: Trial) -> None:
    """Each index is listed with a name, a uuid, its columns and a status."""
    made = _indexed(t)
    found = _listed(t, made, "ix")
    t.expect(bool(found["index_uuid"]) and bool(found["status"]), "expected a uuid and a status")


@checks("list_table_indices", Promise.INDICES, "IndexContent.num_indexed_rows")
def counts_rows_that_are_not_indexed(t: Trial) -> None:
    """Where the numbers of rows are listed, rows that were inserted later count as not indexed."""
    made = _indexed(t)
    t.call("insert_into_table", made, rows([50, 51])).ok()
    found = _listed(t, made, "ix")
    t.need(found.get("num_indexed_rows") is not None, "the server lists no numbers of indexed rows")
    t.equal((found["num_indexed_rows"], found.get("num_unindexed_rows")), (3, 2), "indexed and other rows")


@checks("list_table_indices", Promise.VERSIONS, "ListTableIndicesRequest.version")
def lists_the_indices_of_a_version(t: Trial) -> None:
    """With a version the indices of that version are listed."""
    made = _indexed(t)
    t.equal(t.call("list_table_indices", made, {"version": 1}).ok()["indexes"], [], "indexes of version 1")


@checks("list_table_indices", Promise.ERRORS, "ListTableIndicesRequest.branch")
def refuses_indices_of_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("list_table_indices", t.table(), {"branch": "missing"}).refused(22)


@checks("describe_table_index_stats", Promise.INDICES, "DescribeTableIndexStatsResponse.num_indexed_rows")
def counts_indexed_rows(t: Trial) -> None:
    """The statistics hold the numbers of rows in the index and outside of it."""
    made = _indexed(t)
    t.call("insert_into_table", made, rows([50, 51])).ok()
    found = t.call("describe_table_index_stats", made, {}, index="ix").ok()
    t.equal((found.get("num_indexed_rows"), found.get("num_unindexed_rows")), (3, 2), "indexed and other rows")


@checks("describe_table_index_stats", Promise.INDICES, "DescribeTableIndexStatsResponse.index_type")
def names_the_type(t: Trial) -> None:
    """The statistics hold the type of the index."""
    found = t.call("describe_table_index_stats", _indexed(t), {}, index="ix").ok()
    t.equal(str(found.get("index_type")).replace("_", "").upper(), "BTREE", "index_type")


@checks("describe_table_index_stats", Promise.ERRORS, "DescribeTableIndexStats")
def refuses_statistics_of_a_missing_index(t: Trial) -> None:
    """An index that does not exist is refused with 404 and code 6 (TableIndexNotFound)."""
    t.call("describe_table_index_stats", t.table(), {}, index="missing").refused(6)


@checks("drop_table_index", Promise.INDICES, "DropTableIndex")
def drops_an_index(t: Trial) -> None:
    """A dropped index is not listed, and the rows are still there."""
    made = _indexed(t)
    t.call("drop_table_index", made, index="ix").ok()
    t.equal(t.call("list_table_indices", made).ok()["indexes"], [], "indexes")
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("drop_table_index", Promise.ERRORS, "DropTableIndex")
def refuses_to_drop_a_missing_index(t: Trial) -> None:
    """An index that does not exist is refused with 404 and code 6 (TableIndexNotFound)."""
    t.call("drop_table_index", t.table(), index="missing").refused(6)


@checks("drop_table_index", Promise.CONCURRENCY, "DropTableIndex")
def an_index_is_dropped_once(t: Trial) -> None:
    """Of four clients that drop the same index one succeeds, the others get code 6 or 14."""
    made = _indexed(t)
    t.one_of(t.together([lambda: t.call("drop_table_index", made, index="ix")] * 4), 6, 14)
