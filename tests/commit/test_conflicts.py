"""Our stale commits over what pylance really committed: the matrix again, end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.lance import DatasetBasePath

from lance_core.commit.loop import commit_transaction
from lance_core.data import schema_fields
from lance_core.errors import CommitConflict, RetryableConflict
from lance_core.transaction.operations import (
    Append,
    MapUpdate,
    Operation,
    Overwrite,
    UpdateConfig,
    encode_transaction,
)
from tests.transaction.tables import SCHEMA, Table, delete_rows, make_table, merge_rows, replace_data, rows


def rewrite_column(dataset: lance.LanceDataset, start: int) -> None:
    """New values for column x of two rows; the index on id makes pylance write a column instead of moving rows."""
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.execute(rows(start, start + 2).drop(["s"]))
    assert lance.dataset(dataset.uri).read_transaction(dataset.version).operation.fields_modified == [1]


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()


PYLANCE: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda d: lance.write_dataset(rows(90, 95), d, mode="append"),
    "delete, other row": lambda d: d.delete("id = 4"),
    "delete, same row": lambda d: d.delete("id = 3"),
    "delete elsewhere": lambda d: d.delete("id = 14"),
    "delete of the fragment": lambda d: d.delete("id < 10"),
    "update, other row": lambda d: d.update({"x": "7"}, where="id = 4"),
    "update, same row": lambda d: d.update({"x": "7"}, where="id = 3"),
    "upsert": lambda d: (
        d.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(19, 22))
    ),
    "columns": lambda d: rewrite_column(d, 4),
    "columns elsewhere": lambda d: rewrite_column(d, 14),
    "overwrite": lambda d: lance.write_dataset(rows(0, 2), d, mode="overwrite"),
    "create_index": lambda d: d.create_scalar_index("x", "BTREE"),
    "rewrite": compact,
    "merge": lambda d: d.add_columns({"y": "x"}),
    "project": lambda d: d.drop_columns(["s"]),
    "restore": lambda d: lance.dataset(d.uri, version=1).restore(),
    "config, other key": lambda d: d.update_config({"other": "1"}),
    "config, same key": lambda d: d.update_config({"k": "1"}),
    "schema metadata": lambda d: d.update_schema_metadata({"k": "1"}),
    "data_replacement": lambda d: replace_data(d, 0),
    "data_replacement elsewhere": lambda d: replace_data(d, 1),
    "update_bases": lambda d: d.add_bases([DatasetBasePath("/nowhere", name="n")]),
}

OURS: dict[str, Callable[[Table], Operation]] = {
    "append": lambda t: Append(t.stage(rows(50, 53))),
    "overwrite": lambda t: Overwrite(t.stage(rows(60, 62), "overwrite"), tuple(schema_fields(SCHEMA))),
    "delete": lambda t: delete_rows(t.open(), "id = 3"),
    "update": lambda t: merge_rows(t.open(), rows(3, 4)),
    "config": lambda _: UpdateConfig(MapUpdate({"k": "v"})),
}

OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741

#                              append, overwrite, delete, update, config
EXPECTED: dict[str, tuple[str, str, str, str, str]] = {
    "append": (OK, OK, OK, OK, OK),
    "delete, other row": (OK, OK, OK, OK, OK),
    "delete, same row": (OK, OK, R, R, OK),
    "delete elsewhere": (OK, OK, OK, OK, OK),
    "delete of the fragment": (OK, OK, R, R, OK),
    "update, other row": (OK, OK, OK, OK, OK),
    "update, same row": (OK, OK, R, R, OK),
    "upsert": (OK, OK, OK, OK, OK),
    "columns": (OK, OK, R, R, OK),
    "columns elsewhere": (OK, OK, OK, OK, OK),
    "overwrite": (I, R, I, I, OK),
    "create_index": (OK, OK, OK, OK, OK),
    "rewrite": (OK, OK, R, R, OK),
    "merge": (OK, OK, R, R, OK),
    "project": (OK, OK, OK, OK, OK),
    "restore": (I, OK, I, I, OK),
    "config, other key": (OK, OK, OK, OK, OK),
    "config, same key": (OK, OK, OK, OK, I),
    "schema metadata": (OK, OK, OK, OK, OK),
    "data_replacement": (OK, OK, R, R, OK),
    "data_replacement elsewhere": (OK, OK, OK, OK, OK),
    "update_bases": (OK, OK, OK, OK, OK),
}


def commit(table: Table, operation: Operation, read_version: int) -> str:
    transaction = encode_transaction(operation, read_version=read_version)
    try:
        commit_transaction(table.store, "t", transaction)
    except CommitConflict as error:
        named = error.version == table.open().version  # the one commit that stands in the way is the newest
        return f"{R if isinstance(error, RetryableConflict) else I}{'' if named else ' with the wrong version'}"
    return OK


@pytest.mark.parametrize("theirs", EXPECTED)
@pytest.mark.parametrize("ours", OURS)
def test_cell(tmp_path: Path, ours: str, theirs: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    read_version = table.open().version
    operation = OURS[ours](table)
    PYLANCE[theirs](table.open())
    between = table.open()
    before = table.ids()
    values = {row["id"]: row["x"] for row in between.to_table(columns=["id", "x"]).to_pylist()}

    assert commit(table, operation, read_version) == EXPECTED[theirs][list(OURS).index(ours)]

    table.open().validate()
    if table.open().version == between.version:
        assert table.ids() == before
        return
    match ours:
        case "append":
            assert table.ids() == sorted([*before, 50, 51, 52])
        case "overwrite":
            assert table.ids() == [60, 61]
        case "delete":
            assert table.ids() == [i for i in before if i != 3]
        case "update":
            assert table.ids() == before
            now = {row["id"]: row["x"] for row in table.open().to_table(columns=["id", "x"]).to_pylist()}
            assert now == {**values, 3: 3.0}
        case "config":
            assert table.ids() == before
            assert table.open().config()["k"] == "v"


def test_a_restore_of_the_schema_s_ground(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    PYLANCE["restore"](table.open())
    assert commit(table, UpdateConfig(schema_metadata=MapUpdate({"k": "v"})), 2) == I


def test_metadata_for_a_field_that_was_dropped(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().drop_columns(["s"])
    assert commit(table, UpdateConfig(field_metadata={2: MapUpdate({"k": "v"})}), 1) == I
    assert commit(table, UpdateConfig(field_metadata={1: MapUpdate({"k": "v"})}), 1) == OK


def test_pylance_sees_our_commits_in_its_way_as_we_see_its(tmp_path: Path) -> None:
    """The other direction: ours is committed, a stale pylance comes after."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(4)]
    assert commit(table, delete_rows(table.open(), "id = 3"), 2) == OK
    stale[0].delete("id = 4")
    lance.write_dataset(rows(20, 22), stale[1], mode="append")
    with pytest.raises(OSError, match="Too many concurrent writers"):
        stale[2].update({"x": "1"}, where="id = 3", conflict_retries=0)
    assert commit(table, Overwrite(table.stage(rows(0, 2), "overwrite"), tuple(schema_fields(SCHEMA))), 4) == OK
    with pytest.raises(OSError, match="ncompatible"):
        lance.write_dataset(rows(30, 31), stale[3], mode="append")
    table.open().validate()
    assert table.ids() == [0, 1]
    assert table.ids(5) == [i for i in range(22) if i not in (3, 4)]
