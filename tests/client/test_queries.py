"""Rows that the catalog finds, at a catalog version, within a bound of bytes; rows that it writes for a batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from namespace_client import NotFound
from namespace_client.row_streams import RowsTooLong
from tests.client.scene import Scene

ROWS = pa.table({"id": list(range(2000)), "kind": pa.array(["a", "b"] * 1000).dictionary_encode()})
BYTES = 4096


def stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def test_a_query_is_of_the_catalog_version_that_it_names(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", ROWS)
    first = tx.result.catalog_version
    with scene.catalog.begin() as tx:
        tx.delete("t", "id >= 10")
    access, name = scene.catalog.access, (scene.namespace, "t")
    query = {"filter": "kind = 'b'", "order_by": [{"column_name": "id", "ascending": False}], "k": 3}
    assert access.query(name, query, at=first).read_all()["id"].to_pylist() == [1999, 1997, 1995]
    assert access.query(name, query).read_all().to_pylist() == [{"id": i, "kind": "b"} for i in (9, 7, 5)]
    assert access.table_value("count_table_rows", name, {"predicate": "kind = 'b'"}, at=first) == 1000
    assert access.table_value("get_table_stats", name)["num_rows"] == 10
    with pytest.raises(NotFound):
        access.query((scene.namespace, "absent"), query)


def test_a_query_ends_where_its_rows_have_more_bytes_than_their_reader_takes(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", ROWS)
    name = (scene.namespace, "t")
    with pytest.raises(RowsTooLong, match="expected at most 4,096 bytes"):
        scene.catalog.access.query(name, {}, most=BYTES).read_all()
    assert scene.catalog.access.query(name, {"k": 3}, most=BYTES).read_all().num_rows == 3


def test_staged_rows_are_there_once_a_batch_commits_them(scene: Scene) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", ROWS)
    name = (scene.namespace, "t")
    staged = scene.catalog.access.stage_rows(name, stream(ROWS.slice(0, 5)), {"mode": "append"})
    assert staged["num_rows"] == 5
    assert scene.catalog.access.table_value("count_table_rows", name) == 2000
    scene.catalog.access.change("batch_commit_tables", {"operations": staged["operations"]})
    assert scene.catalog.access.table_value("count_table_rows", name) == 2005
    access = scene.catalog.access
    changed = access.stage_change("stage_update", name, {"predicate": "id = 7", "updates": [["id", "-7"]]})
    merged = access.stage_merge(name, stream(pa.table({"id": [7]})), {"on": ["id"]})
    assert (merged["operations"], merged["num_inserted_rows"]) == ([], 0)
    gone = access.stage_change("stage_delete", name, {"predicate": "id = 123456"})
    assert (changed["updated_rows"], gone) == (1, {"operations": [], "num_deleted_rows": 0})
    assert access.table_value("count_table_rows", name, {"predicate": "id < 0"}) == 0
    rows = access.stage_rows(name, stream(ROWS.slice(0, 3)), {"mode": "append"})
    access.change("batch_commit_tables", {"operations": [*changed["operations"], *rows["operations"]]})
    assert access.table_value("count_table_rows", name, {"predicate": "id = -7"}) == 1
    assert access.table_value("count_table_rows", name) == 2008
    with pytest.raises(NotFound):
        scene.catalog.access.stage_rows((scene.namespace, "absent"), stream(ROWS), {"mode": "append"})
