"""Calls of lancedb's client with bad arguments raise the class that the client has for it, and nothing is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest
from lancedb import LsmWriteSpec
from lancedb.index import FTS, BTree, IvfFlat
from lancedb.remote.errors import HttpError

from tests.lancedb_remote.remote import Shop, connect, listed, rows, told

Call = Callable[[Any, Any], object]
CALLS: Final[dict[str, tuple[Call, type[Exception], tuple[str, ...]]]] = {
    "open_table": (lambda db, _: db.open_table("nowhere"), ValueError, ("nowhere", "was not found")),
    "create_table of one that is there": (
        lambda db, table: db.create_table(table.name, rows(1)),
        ValueError,
        ("already exists",),
    ),
    "create_table in no namespace": (
        lambda db, _: db.create_table("t", rows(1), namespace_path=["nowhere"]),
        HttpError,
        ("404", "nowhere"),
    ),
    "drop_table": (lambda db, _: db.drop_table("nowhere"), HttpError, ("404", "nowhere")),
    "rename_table": (lambda db, _: db.rename_table("nowhere", "else"), HttpError, ("404", "nowhere")),
    "rename_table to a name that is there": (
        lambda db, table: db.rename_table(table.name, "other"),
        HttpError,
        ("400", "other"),
    ),
    "clone_table": (lambda db, _: db.clone_table("copy", "file:///nowhere"), HttpError, ("source_location",)),
    "create_namespace": (lambda db, _: db.create_namespace(["inner"]), HttpError, ("409", "inner")),
    "describe_namespace": (lambda db, _: db.describe_namespace(["nowhere"]), HttpError, ("404", "nowhere")),
    "drop_namespace": (lambda db, _: db.drop_namespace(["nowhere"]), HttpError, ("404", "nowhere")),
    "list of a database of no name": (
        lambda db, _: listed(connect(db.host_override, "db://a$b")),
        HttpError,
        ("400", "a$b"),
    ),
    "add of another schema": (lambda _, table: table.add(pa.table({"other": [1]})), Exception, ("other", "schema")),
    "update by no expression": (lambda _, table: table.update(values_sql={"id": "1 +"}), HttpError, ("400",)),
    "update of no column": (lambda _, table: table.update(values={"nope": 1}), HttpError, ("400", "nope")),
    "update where no column": (lambda _, table: table.update("nope = 1", {"id": 1}), HttpError, ("400", "nope")),
    "delete where no column": (lambda _, table: table.delete("nope = 1"), HttpError, ("400", "nope")),
    "delete where nothing": (lambda _, table: table.delete(""), HttpError, ("400",)),
    "merge_insert on no column": (
        lambda _, table: table.merge_insert("nope").when_not_matched_insert_all().execute(rows(1)),
        HttpError,
        ("400", "nope"),
    ),
    "merge_insert where no column": (
        lambda _, table: table.merge_insert("id").when_matched_update_all(where="target.nope = 1").execute(rows(1)),
        HttpError,
        ("400", "nope"),
    ),
    "count_rows": (lambda _, table: table.count_rows("nope > 1"), HttpError, ("400", "nope")),
    "count_rows by a condition of 20 MB": (
        lambda _, table: table.count_rows(f"text = '{'x' * 20_000_000}'"),
        HttpError,
        (),  # the client is still writing when the refusal comes
    ),
    "search where no column": (
        lambda _, table: table.search().where("nope > 1").to_arrow(),
        HttpError,
        ("400", "nope"),
    ),
    "search of no column": (lambda _, table: table.search().select(["nope"]).to_arrow(), HttpError, ("400", "nope")),
    "search of a longer vector": (lambda _, table: table.search([1.0] * 9).to_arrow(), HttpError, ("400",)),
    "search of words without an index": (
        lambda _, table: table.search("x", query_type="fts", fts_columns="id").to_arrow(),
        HttpError,
        ("400",),
    ),
    "explain_plan": (lambda _, table: table.search().where("nope > 1").explain_plan(), RuntimeError, ("400", "nope")),
    "create_index of no column": (lambda _, table: table.create_index("nope", config=BTree()), ValueError, ("nope",)),
    "create_index of vectors of text": (
        lambda _, table: table.create_index("text", config=IvfFlat(num_partitions=1)),
        HttpError,
        ("400", "text"),
    ),
    "create_index of words of numbers": (lambda _, table: table.create_index("id", config=FTS()), HttpError, ("400",)),
    "drop_index": (lambda _, table: table.drop_index("nope"), RuntimeError, ("nope", "was not found")),
    "prewarm_index": (lambda _, table: table.prewarm_index("nope"), RuntimeError, ("nope", "was not found")),
    "prewarm_data": (lambda _, table: table.prewarm_data(["nope"]), HttpError, ("400", "nope")),
    "add_columns by no column": (lambda _, table: table.add_columns({"n": "nope + 1"}), HttpError, ("400", "nope")),
    "add_columns of one that is there": (lambda _, table: table.add_columns({"id": "1"}), HttpError, ("400", "id")),
    "alter_columns": (
        lambda _, table: table.alter_columns({"path": "nope", "rename": "x"}),
        HttpError,
        ("400", "nope"),
    ),
    "drop_columns": (lambda _, table: table.drop_columns(["nope"]), HttpError, ("400", "nope")),
    "update_field_metadata": (
        lambda _, table: table.update_field_metadata({"path": "nope", "metadata": {"a": "b"}}),
        HttpError,
        ("400", "nope"),
    ),
    "checkout": (lambda _, table: table.checkout(99), ValueError, ("99", "was not found")),
    "checkout of no tag": (lambda _, table: table.checkout("nope"), HttpError, ("400", "nope")),
    "restore": (lambda _, table: table.restore(99), Exception, ("99",)),
    "tags.create of one that is there": (lambda _, table: table.tags.create("first", 1), HttpError, ("400", "first")),
    "tags.create of no version": (lambda _, table: table.tags.create("new", 99), HttpError, ("400", "99")),
    "tags.update": (lambda _, table: table.tags.update("nope", 1), HttpError, ("400", "nope")),
    "tags.delete": (lambda _, table: table.tags.delete("nope"), HttpError, ("400", "nope")),
    "branches.create of one that is there": (lambda _, table: table.branches.create("dev"), ValueError, ("dev",)),
    "branches.create of a path": (lambda _, table: table.branches.create("../x"), ValueError, ("../x",)),
    "branches.delete": (lambda _, table: table.branches.delete("nope"), ValueError, ("nope", "was not found")),
    "set_lsm_write_spec": (
        lambda _, table: table.set_lsm_write_spec(LsmWriteSpec.unsharded()),
        HttpError,
        ("406", "not supported"),
    ),
    "open_job": (lambda db, _: db.open_job("nope"), Exception, ("nope", "not found")),
}
"""A call with a database and a table, the class that it raises, and what the error says."""


@pytest.fixture(scope="module")
def table(shop: Shop) -> Any:
    """A table with a tag `first` and a branch `dev`, and a table `other` and a namespace `inner` beside it."""
    made = shop.table(rows(5))
    shop.db.create_table("other", rows(1), mode="overwrite")
    made.tags.create("first", 1)
    made.branches.create("dev")
    if "inner" not in shop.db.list_namespaces().namespaces:
        shop.db.create_namespace(["inner"])
    return made


def version_of(url: str) -> int:
    found: int = httpx.get(f"{url}/v1/catalog").json()["version"]
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_raises_its_class_and_does_nothing(shop: Shop, table: Any, name: str) -> None:
    call, kind, words = CALLS[name]
    before = version_of(shop.url), table.version, table.count_rows()
    with pytest.raises(kind) as raised:
        call(shop.db, table)
    text = told(raised.value)
    assert all(word in text for word in words), text
    assert "RetryError" not in text
    assert " 500 " not in text
    table.checkout_latest()
    assert (version_of(shop.url), table.version, table.count_rows()) == before
