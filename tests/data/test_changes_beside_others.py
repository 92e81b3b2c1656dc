"""A change of columns or indices is staged while another writer commits: it is rebased, or staged again.

What comes of it is what pylance makes of the two changes one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import lance_namespace as models
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

from tests.data.two_servers import TwoServers, TwoTables

ROWS = pa.table({"a": [1, 2, 3, 4], "s": ["w", "x", "y", "z"], "n": pa.array([1, 2, 3, 4], pa.int32())})
OTHERS: dict[str, Callable[[lance.LanceDataset], Any]] = {
    "delete": lambda dataset: dataset.delete("a = 2"),
    "append": lambda dataset: dataset.insert(ROWS),
    "compact": lambda dataset: dataset.optimize.compact_files(),
    "metadata of a field": lambda dataset: dataset.update_field_metadata({"n": {"by": "another"}}),
    "metadata": lambda dataset: dataset.update_schema_metadata({"by": "another"}),
    "index": lambda dataset: dataset.create_scalar_index("s", "BITMAP"),
    "update": lambda dataset: dataset.update({"n": "n + 1"}, where="a = 3"),
    "rename": lambda dataset: dataset.alter_columns({"path": "s", "name": "t"}),
    "drop": lambda dataset: dataset.drop_columns(["s"]),
    "add": lambda dataset: dataset.add_columns({"more": "a * 10"}),
    "overwrite": lambda dataset: lance.write_dataset(ROWS.slice(0, 3), dataset, mode="overwrite"),
}
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "index": ("create_table_index", {"column": "a", "index_type": "BTREE"}),
    "full text": ("create_table_index", {"column": "s", "index_type": "FTS"}),
    "add": ("alter_table_add_columns", {"new_columns": [{"name": "b", "expression": "a + 1"}]}),
    "cast": ("alter_table_alter_columns", {"alterations": [{"path": "n", "data_type": {"type": "int64"}}]}),
    "rename": ("alter_table_alter_columns", {"alterations": [{"path": "n", "rename": "m"}]}),
    "nullable": ("alter_table_alter_columns", {"alterations": [{"path": "a", "nullable": False}]}),
    "drop": ("alter_table_drop_columns", {"columns": ["n"]}),
    "metadata": ("update_table_schema_metadata", {"metadata": {"by": "us"}}),
    "metadata of a field": ("update_field_metadata", {"updates": [{"path": "n", "metadata": {"by": "us"}}]}),
    "restore": ("restore_table", {"version": 1}),
}


@pytest.fixture
def table(servers: TwoServers, name: str) -> TwoTables:
    return servers.make(name, ROWS, ROWS)


def call(table: TwoTables, operation: str, body: dict[str, Any]) -> Any:
    request = {"create_table_index": models.CreateTableIndexRequest}.get(operation) or getattr(
        models, "".join(word.capitalize() for word in operation.split("_")) + "Request"
    )
    return getattr(table.servers.namespace, operation)(request.from_dict({"id": table.id, **body}))


@pytest.mark.combinations
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("ours", CHANGES)
def test_the_outcome_is_that_of_one_after_the_other(
    table: TwoTables, ours: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    namespace = table.servers.namespace
    commit = namespace.commit_change

    def late(staged: Any, record: Any) -> Any:
        commits.append(len(commits))
        if len(commits) == 1:
            OTHERS[other](lance.dataset(namespace_client=table.client, table_id=table.id))
        return commit(staged, record)

    operation, body = CHANGES[ours]
    with monkeypatch.context() as patch:
        patch.setattr(namespace, "commit_change", late)
        patch.delitem(vars(namespace), "data", raising=False)
        try:
            call(table, operation, body)
            code = None
        except LanceNamespaceError as error:
            code = int(error.code)
    OTHERS[other](table.open_stock())
    answer = stock(table, operation, body)

    assert commits
    if code is None:
        dataset, expected = table.open(), table.open_stock()
        if not answer:
            assert (ours, other, len(commits)) == ("full text", "rename", 1)  # an index knows its field by the id
            return
        exact = (ours, other) != ("cast", "metadata of a field")  # pylance loses the metadata of a field that is cast
        assert dataset.schema.equals(expected.schema, check_metadata=exact), (dataset.schema, expected.schema)
        assert dataset.to_table().sort_by("a") == expected.to_table().sort_by("a")
        assert [index.name for index in dataset.describe_indices()] == [
            index.name for index in expected.describe_indices()
        ]
        assert dataset.count_rows("a >= 2") == expected.count_rows("a >= 2")
    else:
        assert not answer, code


def stock(table: TwoTables, operation: str, body: dict[str, Any]) -> bool:
    """Do the same by pylance, after the other change. Whether it succeeds."""
    dataset = table.open_stock()
    try:
        match operation:
            case "create_table_index":
                dataset.create_scalar_index(body["column"], "INVERTED" if body["index_type"] == "FTS" else "BTREE")
            case "alter_table_add_columns":
                dataset.add_columns({entry["name"]: entry["expression"] for entry in body["new_columns"]})
            case "alter_table_alter_columns":
                [entry] = body["alterations"]
                alteration = {"path": entry["path"]}
                alteration |= {"name": entry["rename"]} if "rename" in entry else {}
                alteration |= {"nullable": entry["nullable"]} if "nullable" in entry else {}
                alteration |= {"data_type": pa.int64()} if "data_type" in entry else {}
                dataset.alter_columns(alteration)
            case "alter_table_drop_columns":
                dataset.drop_columns(body["columns"])
            case "update_table_schema_metadata":
                dataset.update_schema_metadata(body["metadata"])
            case "update_field_metadata":
                dataset.update_field_metadata({entry["path"]: entry["metadata"] for entry in body["updates"]})
            case "restore_table":
                dataset.checkout_version(body["version"]).restore()
    except (OSError, ValueError, RuntimeError, KeyError):
        return False
    return True
