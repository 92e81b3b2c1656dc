"""Each operation committed by this engine: stock pylance reads it, and commits of both alternate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.commit.loop import commit_transaction
from lance_core.data import schema_fields
from lance_core.format.naming import parse_manifest_name
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import (
    Append,
    MapUpdate,
    Operation,
    Overwrite,
    UpdateConfig,
    encode_transaction,
)
from tests.commit.flavours import FLAVOURS, IDS, Flavour, commit, make
from tests.transaction.tables import SCHEMA, Table, delete_rows, make_table, merge_rows, rows


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> Flavour:
    return FLAVOURS[request.param]


@pytest.fixture
def table(tmp_path: Path, flavour: Flavour) -> Table:
    return make(tmp_path, flavour)


OPERATIONS: dict[str, tuple[Callable[[Table], Operation], list[int], str]] = {
    "append": (lambda t: Append(t.stage(rows(20, 25))), [*IDS, *range(20, 25)], "Append"),
    "delete": (lambda t: delete_rows(t.open(), "id in (3, 12)"), [i for i in IDS if i not in (3, 12)], "Delete"),
    "delete a fragment": (lambda t: delete_rows(t.open(), "id >= 10"), [i for i in IDS if i < 10], "Delete"),
    "update": (lambda t: merge_rows(t.open(), rows(3, 4)), IDS, "Update"),
    "upsert": (lambda t: merge_rows(t.open(), rows(18, 22)), [*IDS, 20, 21], "Update"),
    "rewrite columns": (lambda t: merge_rows(t.open(), rows(1, 3).drop(["s"])), IDS, "Update"),
    "overwrite": (
        lambda t: Overwrite(t.stage(rows(90, 93), "overwrite"), tuple(schema_fields(SCHEMA))),
        [90, 91, 92],
        "Overwrite",
    ),
    "config": (lambda _: UpdateConfig(MapUpdate({"k": "v"}), MapUpdate({"m": "w"})), IDS, "UpdateConfig"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_commits_of_pylance_and_this_engine_alternate(table: Table, flavour: Flavour, name: str) -> None:
    make, expected, kind = OPERATIONS[name]
    stale = table.open()
    before = table.head()
    committed = commit(table, make(table), flavour)

    assert committed.version == before.version + 1
    assert not committed.rebased
    dataset = table.open()
    assert dataset.version == committed.version
    dataset.validate()
    assert table.ids() == expected
    transaction = dataset.read_transaction(committed.version)
    assert type(transaction.operation).__name__ == kind
    assert transaction.transaction_properties == {"by": "us"}
    assert lineage_break(before, table.head()) is None

    after = lance.write_dataset(rows(100, 103), dataset, mode="append")
    assert after.version == committed.version + 1
    after.validate()
    if kind != "Overwrite":
        stale = lance.write_dataset(rows(200, 202), stale, mode="append")
        assert stale.version == committed.version + 2
        expected = [*expected, 200, 201]
    ours = commit(table, Append(table.stage(rows(300, 301))), flavour)
    table.open().validate()
    assert table.ids() == sorted([*expected, 100, 101, 102, 300])
    assert ours.version == table.open().version
    schemes = {
        parsed[1].value for path in (table.path / "_versions").iterdir() if (parsed := parse_manifest_name(path.name))
    }
    assert schemes == {"V2" if flavour.v2 else "V1"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_earlier_versions_stay_readable(table: Table, flavour: Flavour, name: str) -> None:
    before = table.open()
    commit(table, OPERATIONS[name][0](table), flavour)
    assert table.ids(before.version) == IDS


def test_an_index_still_serves_queries(tmp_path: Path) -> None:
    flavour = FLAVOURS["indexed"]
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    commit(table, Append(table.stage(rows(20, 25))), flavour)
    commit(table, delete_rows(table.open(), "id = 3"), flavour)
    commit(table, UpdateConfig(MapUpdate({"k": "v"})), flavour)
    dataset = table.open()
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 7").explain_plan()
    assert dataset.to_table(filter="id in (3, 7, 22)", columns=["id"]).column(0).to_pylist() == [7, 22]
    commit(table, Overwrite(table.stage(rows(0, 3), "overwrite"), tuple(schema_fields(SCHEMA))), flavour)
    assert table.open().describe_indices() == []


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_an_index_does_not_serve_rewritten_columns(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=stable_row_ids)
    table.open().create_scalar_index("x", "BTREE")
    table.open().create_scalar_index("id", "BTREE")  # without it pylance would move the rows
    changed = pa.table({"id": pa.array([3], pa.int64()), "x": [103.0]})
    operation = merge_rows(table.open(), changed)
    assert operation.rewrites_columns
    commit(table, operation, Flavour())
    dataset = table.open()
    dataset.validate()
    assert dataset.to_table(filter="x = 3", columns=["id"]).num_rows == 0
    assert dataset.to_table(filter="x = 103", columns=["id"]).column(0).to_pylist() == [3]
    assert dataset.to_table(filter="x = 13", columns=["id"]).column(0).to_pylist() == [13]


def test_rows_keep_their_ids_and_creation_versions(tmp_path: Path) -> None:
    flavour = Flavour(stable_row_ids=True)
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=True)
    commit(table, Append(table.stage(rows(20, 22))), flavour)
    commit(table, merge_rows(table.open(), rows(3, 4)), flavour)
    commit(table, merge_rows(table.open(), rows(19, 23)), flavour)
    dataset = table.open()
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = {row["id"]: tuple(row.values())[1:] for row in dataset.to_table(columns=columns).to_pylist()}
    assert found[0] == (0, 1, 1)
    assert found[3] == (3, 1, 4)
    assert found[19] == (19, 2, 5)
    assert found[20] == (20, 3, 5)
    assert found[22] == (22, 5, 5)
    assert dataset._take_rows([3, 20, 22], columns=["id"]).column(0).to_pylist() == [3, 20, 22]  # type: ignore[attr-defined]


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_pylance_reads_a_table_created_by_this_engine(tmp_path: Path, stable_row_ids: bool) -> None:
    table = Table(tmp_path)
    operation = Overwrite(
        table.stage(rows(0, 5), "create"), tuple(schema_fields(SCHEMA)), {"k": b"v"}, {"lance.x": "y"}
    )
    transaction = encode_transaction(operation, read_version=0)
    committed = commit_transaction(table.store, "t", transaction, stable_row_ids=stable_row_ids)
    assert committed.version == 1
    dataset = lance.write_dataset(rows(5, 10), table.uri, mode="append")
    dataset.delete("id = 7")
    dataset.validate()
    assert table.ids() == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert dataset.schema.metadata == {b"k": b"v"}
    assert dataset.config() == {"lance.x": "y"}
    assert dataset.has_stable_row_ids is stable_row_ids
    assert dataset.data_storage_version == "2.2"


def test_pylance_reads_an_empty_table_created_by_this_engine(tmp_path: Path) -> None:
    table = Table(tmp_path)
    commit_transaction(
        table.store, "t", encode_transaction(Overwrite((), tuple(schema_fields(SCHEMA))), read_version=0)
    )
    assert table.open().schema == SCHEMA
    lance.write_dataset(rows(0, 3), table.uri, mode="append")
    table.open().validate()
    assert table.ids() == [0, 1, 2]
