"""The conflict matrix end to end: stale commits of this engine after real commits of pylance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from lance_core.data import schema_fields
from lance_core.transaction.operations import (
    Append,
    MapUpdate,
    Operation,
    Overwrite,
    UpdateConfig,
)
from tests.commit.outcomes import OK, PYLANCE, I, R, outcome_of
from tests.transaction.tables import SCHEMA, Table, delete_rows, make_table, merge_rows, rows

OURS: dict[str, Callable[[Table], Operation]] = {
    "append": lambda t: Append(t.stage(rows(50, 53))),
    "overwrite": lambda t: Overwrite(t.stage(rows(60, 62), "overwrite"), tuple(schema_fields(SCHEMA))),
    "delete": lambda t: delete_rows(t.open(), "id = 3"),
    "update": lambda t: merge_rows(t.open(), rows(3, 4)),
    "config": lambda _: UpdateConfig(MapUpdate({"k": "v"})),
}

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


@pytest.mark.parametrize("theirs", EXPECTED)
@pytest.mark.parametrize("ours", OURS)
def test_verdict_on_a_stale_commit(tmp_path: Path, ours: str, theirs: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    read_version = table.open().version
    operation = OURS[ours](table)
    PYLANCE[theirs](table.open())
    between = table.open()
    before = table.ids()
    values = {row["id"]: row["x"] for row in between.to_table(columns=["id", "x"]).to_pylist()}

    assert outcome_of(table, operation, read_version) == EXPECTED[theirs][list(OURS).index(ours)]

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


def test_a_restore_conflicts_with_a_change_of_schema_metadata(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    PYLANCE["restore"](table.open())
    assert outcome_of(table, UpdateConfig(schema_metadata=MapUpdate({"k": "v"})), 2) == I


def test_metadata_for_a_dropped_field_conflicts(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().drop_columns(["s"])
    assert outcome_of(table, UpdateConfig(field_metadata={2: MapUpdate({"k": "v"})}), 1) == I
    assert outcome_of(table, UpdateConfig(field_metadata={1: MapUpdate({"k": "v"})}), 1) == OK


def test_pylance_judges_our_commits_by_the_same_rules(tmp_path: Path) -> None:
    """The other direction: ours is committed, a stale pylance comes after."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(4)]
    assert outcome_of(table, delete_rows(table.open(), "id = 3"), 2) == OK
    stale[0].delete("id = 4")
    lance.write_dataset(rows(20, 22), stale[1], mode="append")
    with pytest.raises(OSError, match="Too many concurrent writers"):
        stale[2].update({"x": "1"}, where="id = 3", conflict_retries=0)
    assert outcome_of(table, Overwrite(table.stage(rows(0, 2), "overwrite"), tuple(schema_fields(SCHEMA))), 4) == OK
    with pytest.raises(OSError, match="ncompatible"):
        lance.write_dataset(rows(30, 31), stale[3], mode="append")
    table.open().validate()
    assert table.ids() == [0, 1]
    assert table.ids(5) == [i for i in range(22) if i not in (3, 4)]
