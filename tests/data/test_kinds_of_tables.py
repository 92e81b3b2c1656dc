"""Changes of columns and indices on branches, and on tables with stable row ids."""

from __future__ import annotations

import lance
import lance_namespace as models
import pyarrow as pa
import pytest

from tests.data.two_servers import TwoServers, TwoTables

ROWS = pa.table({"a": [1, 2, 3, 4], "s": ["w", "x", "y", "z"], "n": pa.array([1, 2, 3, 4], pa.int32())})


def on_branch(table: TwoTables) -> lance.LanceDataset:
    dataset = table.open().checkout_version(("work", None))
    dataset.validate()
    return dataset


def test_a_branch_changes_and_main_stays(servers: TwoServers, name: str) -> None:
    table = servers.make(name, ROWS)
    assert table.post("branches/create", {"name": "work"}).status_code == 200
    before = table.open().version
    place = {"branch": "work"}
    for path, body in (
        ("add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]}),
        ("alter_columns", {"alterations": [{"path": "n", "data_type": "int64", "rename": "m"}]}),
        ("create_index", {"column": "a", "index_type": "BTREE"}),
        ("create_index", {"column": "s", "index_type": "FTS"}),
        ("update_field_metadata", {"updates": [{"path": "a", "metadata": {"k": "v"}}]}),
        ("drop_columns", {"columns": ["m"]}),
    ):
        answer = table.post(path, {**body, **place})
        assert answer.status_code == 200, answer.text
    assert table.post("schema_metadata/update?branch=work", {"k": "v"}).json() == {"k": "v"}
    found = table.post("index/list", place).json()["indexes"]
    assert [index["index_name"] for index in found] == ["a_idx", "s_idx"]
    dataset = on_branch(table)
    assert dataset.schema.names == ["a", "s", "b"]
    assert "ScalarIndexQuery" in dataset.scanner(filter="a = 2").explain_plan()
    assert dataset.to_table(filter="a = 2").to_pylist() == [{"a": 2, "s": "x", "b": 3}]
    assert table.post("stats", place).json()["num_indices"] == 2
    assert table.post("index/a_idx/drop?branch=work").status_code == 200
    assert table.post("restore", {"version": before, **place}).status_code == 200
    assert on_branch(table).schema.names == ["a", "s", "n"]
    assert (table.open().version, table.open().schema.names) == (before, ["a", "s", "n"])
    request = models.DescribeTableIndexStatsRequest(id=table.id, index_name="a_idx", branch="work")
    with pytest.raises(Exception, match="a_idx"):
        servers.namespace.describe_table_index_stats(request)


def test_rows_keep_their_ids(servers: TwoServers, name: str) -> None:
    table = servers.make(name, ROWS, ROWS, enable_stable_row_ids=True)
    for dataset in table.each():
        dataset.update({"s": "'new'"}, where="a = 2")
    for path, body in (
        ("create_index", {"column": "a", "index_type": "BTREE"}),
        ("create_index", {"column": "s", "index_type": "FTS"}),
        ("add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]}),
        ("alter_columns", {"alterations": [{"path": "n", "data_type": "int64"}]}),
        ("drop_columns", {"columns": ["b"]}),
    ):
        table.both(path, body)
    ours, stock = table.each()
    for dataset in (ours, stock):
        assert "ScalarIndexQuery" in dataset.scanner(filter="a = 2").explain_plan()
        assert dataset.scanner(full_text_query="new").to_table().num_rows == 2
    rows = [dataset.to_table(with_row_id=True).sort_by("_rowid") for dataset in (ours, stock)]
    assert rows[0] == rows[1]
    for dataset in table.each():
        dataset.optimize.compact_files()
    rows = [dataset.to_table(filter="a >= 2", with_row_id=True).sort_by("_rowid") for dataset in table.each()]
    assert rows[0] == rows[1]
