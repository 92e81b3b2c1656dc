"""Indices, added columns and replaced data committed by this engine: stock pylance reads them and commits on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import Append, CreateIndex, DataReplacement, Merge, Operation
from tests.commit.flavours import FLAVOURS, IDS, Flavour, commit, make
from tests.commit.outcomes import PYLANCE, outcome_of
from tests.transaction.tables import Table, borrow, make_table, rows, stage_column


def index(table: Table, column: str = "x", **options: bool) -> Operation:
    return borrow(table, lambda d: d.create_scalar_index(column, "BTREE", **options))


def with_column(table: Table) -> Operation:
    return borrow(table, lambda d: d.add_columns({"y": "x * 2"}))


def with_null_column(table: Table) -> Operation:
    return borrow(table, lambda d: d.add_columns(pa.field("y", pa.float64())))


def new_data(table: Table) -> Operation:
    return DataReplacement((stage_column(table.open(), table.open().get_fragments()[1].fragment_id),))


OPERATIONS: dict[str, tuple[Callable[[Table], Operation], list[str]]] = {
    "index": (index, ["id", "x", "s"]),
    "column": (with_column, ["id", "x", "s", "y"]),
    "column of nulls": (with_null_column, ["id", "x", "s", "y"]),
    "data": (new_data, ["id", "x", "s"]),
}


@pytest.fixture(params=["plain", "stable row ids", "v1 names", "branch", "indexed"])
def flavour(request: pytest.FixtureRequest) -> Flavour:
    return FLAVOURS[request.param]


@pytest.fixture
def table(tmp_path: Path, flavour: Flavour) -> Table:
    return make(tmp_path, flavour, {"id": "BTREE", "s": "BTREE"})


@pytest.mark.parametrize("name", OPERATIONS)
def test_commits_of_pylance_and_this_engine_alternate(table: Table, flavour: Flavour, name: str) -> None:
    make, columns = OPERATIONS[name]
    operation = make(table)
    stale = table.open()
    before = table.head()
    committed = commit(table, operation, flavour)

    assert committed.version == before.version + 1
    dataset = table.open()
    dataset.validate()
    assert dataset.schema.names == columns
    assert table.ids() == IDS
    assert dataset.read_transaction(committed.version).transaction_properties == {"by": "us"}
    assert lineage_break(before, table.head()) is None
    found = {row["id"]: row for row in dataset.to_table().to_pylist()}
    assert found[12]["s"] == ("new" if name == "data" else "12")
    assert found[3]["s"] == "3"
    if "y" in columns:
        assert found[12]["y"] == (24.0 if name == "column" else None)
    assert dataset.to_table(filter="s = '12'").num_rows == (0 if name == "data" else 1)
    assert dataset.to_table(filter="x = 12", columns=["id"])["id"].to_pylist() == [12]

    lance.write_dataset(rows(100, 103), dataset, mode="append").validate()
    stale.update_config({"late": "1"})
    commit(table, Append(table.stage(rows(200, 201))), flavour)
    table.open().validate()
    assert table.ids() == sorted([*IDS, 100, 101, 102, 200])


def test_pylance_uses_an_index_committed_by_this_engine(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    commit(table, index(table), Flavour())
    assert "ScalarIndexQuery" in table.open().scanner(filter="x = 7").explain_plan()
    commit(table, index(table, replace=True), Flavour())
    assert table.open().to_table(filter="x in (7, 17)", columns=["id"])["id"].to_pylist() == [7, 17]
    [described] = table.open().describe_indices()
    assert described.name == "x_idx"
    commit(table, borrow(table, lambda d: d.drop_index("x_idx")), Flavour())
    assert table.open().describe_indices() == []
    assert table.head().indices is None


def test_a_column_that_replaces_an_indexed_one_is_not_covered(tmp_path: Path) -> None:
    """A Merge that puts an old field into another file: the index no longer covers the fragment."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("s", "BTREE")
    group = stage_column(table.open(), 1)
    head = table.head().manifest
    fragments = [pb.DataFragment.FromString(entry.SerializeToString()) for entry in head.fragments]
    fragments[1].files[0].fields[2] = -2
    fragments[1].files.append(group.new_file)
    commit(table, Merge(tuple(fragments), tuple(head.fields)), Flavour())
    table.open().validate()
    assert table.open().to_table(filter="s = '12'").num_rows == 0
    assert table.open().to_table(filter="s = 'new'").num_rows == 10
    assert table.open().to_table(filter="s = '2'", columns=["id"])["id"].to_pylist() == [2]


def changed(table: Table, **values: object) -> pb.DataFragment:
    fragment = pb.DataFragment.FromString(table.head().manifest.fragments[0].SerializeToString())
    for name, value in values.items():
        setattr(fragment, name, value)
    return fragment


def late_file(fields: list[int]) -> pb.DataFile:
    return pb.DataFile(path="f", fields=fields, column_indices=[0], file_major_version=2, file_minor_version=2)


def replacing(fragment: int, *fields: int) -> pb.Transaction.DataReplacementGroup:
    return pb.Transaction.DataReplacementGroup(fragment_id=fragment, new_file=late_file(list(fields)))


INVALID: dict[str, tuple[Callable[[Table], Operation], str]] = {
    "unknown fragment": (
        lambda t: Merge((changed(t, id=7),), tuple(t.head().manifest.fields)),
        r"fragment 7 is not in the table \(version 1\)",
    ),
    "fragment twice": (
        lambda t: Merge((changed(t), changed(t)), tuple(t.head().manifest.fields)),
        "fragment 0 is named twice",
    ),
    "other size": (
        lambda t: Merge((changed(t, physical_rows=3),), tuple(t.head().manifest.fields)),
        "fragment 0 has 3 rows: expected the table's 10",
    ),
    "no schema": (lambda t: Merge((changed(t),), ()), "the schema has no field"),
    "index over nothing": (
        lambda _: CreateIndex((pb.IndexMetadata(name="i", fields=[9], uuid=pb.UUID(uuid=b"u" * 16)),)),
        "index 'i' is over field 9, which is not in version 1",
    ),
    "index without a uuid": (lambda _: CreateIndex((pb.IndexMetadata(name="i", fields=[1]),)), "a uuid of 16 bytes"),
    "data for an unknown fragment": (lambda _: DataReplacement((replacing(4, 1),)), "fragment 4 is not in the table"),
    "data for an unknown field": (lambda _: DataReplacement((replacing(0, 8),)), r"has fields \[8\]: expected some"),
    "data twice": (
        lambda _: DataReplacement((replacing(0, 1), replacing(0, 1))),
        "field 1 of fragment 0 is replaced twice",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_transaction_that_contradicts_the_table_is_refused(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path, (0, 10))
    make, expected = INVALID[name]
    with pytest.raises(InvalidTransaction, match=expected):
        commit(table, make(table), Flavour())
    assert table.open().version == 1


def test_the_id_of_a_dropped_field_is_not_reused(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().drop_columns(["s"])
    fields = (*table.head().manifest.fields, pb.Field(id=2, parent_id=-1, name="z", logical_type="string"))
    with pytest.raises(InvalidTransaction, match="new field 2 has the id of a dropped one"):
        commit(table, Merge(tuple(table.head().manifest.fragments), fields), Flavour())


OURS: dict[str, Callable[[Table], Operation]] = {
    "index": index,
    "merge": with_column,
    "data": new_data,
}

OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741

#                   index, merge, data
EXPECTED: dict[str, tuple[str, str, str]] = {
    "append": (OK, R, OK),
    "delete, same row": (OK, R, OK),
    "delete of the fragment": (OK, R, OK),
    "update, same row": (OK, R, OK),
    "columns": (OK, R, OK),
    "overwrite": (I, I, I),
    "create_index": (R, OK, OK),
    "rewrite": (R, R, R),
    "merge": (OK, R, R),
    "project": (OK, I, I),
    "restore": (I, I, I),
    "config, same key": (OK, OK, OK),
    "schema metadata": (OK, R, OK),
    "data_replacement": (OK, R, OK),
    "data_replacement elsewhere": (OK, R, R),
    "update_bases": (OK, OK, OK),
}


@pytest.mark.parametrize("theirs", EXPECTED)
@pytest.mark.parametrize("ours", OURS)
def test_verdict_on_a_stale_column_operation(tmp_path: Path, ours: str, theirs: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    read_version = table.open().version
    operation = OURS[ours](table)
    PYLANCE[theirs](table.open())
    before = table.ids()
    assert outcome_of(table, operation, read_version) == EXPECTED[theirs][list(OURS).index(ours)]
    table.open().validate()
    assert table.ids() == before


def test_an_index_on_a_dropped_column_conflicts(tmp_path: Path) -> None:
    """Stock writers commit it, and the index is on nothing."""
    table = make_table(tmp_path, (0, 10))
    operation = index(table, "s")
    table.open().drop_columns(["s"])
    assert outcome_of(table, operation, 1) == R


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_an_index_over_a_rewritten_column_is_rebased(tmp_path: Path, stable_row_ids: bool) -> None:
    """The segment is good for the fragments that were left alone, and says so."""
    table = make_table(tmp_path, (0, 10), (10, 20), stable_row_ids=stable_row_ids)
    table.open().create_scalar_index("id", "BTREE")
    read_version = table.open().version
    operation = index(table)
    changed = pa.table({"id": pa.array([4], pa.int64()), "x": [104.0]})
    table.open().merge_insert("id").when_matched_update_all().execute(changed)
    assert outcome_of(table, operation, read_version) == OK
    dataset = table.open()
    dataset.validate()
    assert "ScalarIndexQuery" in dataset.scanner(filter="x = 14").explain_plan()
    assert dataset.to_table(filter="x = 4").num_rows == 0
    assert dataset.to_table(filter="x in (104, 14)", columns=["id"])["id"].to_pylist() == [4, 14]


def test_pylance_judges_these_commits_by_the_same_rules(tmp_path: Path) -> None:
    """The other direction: ours is committed, a stale pylance comes after."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(4)]
    commit(table, index(table), Flavour())
    lance.write_dataset(rows(20, 22), stale[0], mode="append")
    with pytest.raises(OSError, match="preempted by concurrent transaction CreateIndex"):
        stale[1].create_scalar_index("x", "BTREE")
    commit(table, new_data(table), Flavour())
    with pytest.raises(OSError, match="preempted by concurrent transaction DataReplacement"):
        stale[2].create_scalar_index("s", "BTREE")
    commit(table, with_column(table), Flavour())
    with pytest.raises(OSError, match="Too many concurrent writers"):
        stale[3].delete("id = 3", conflict_retries=0)
    table.open().validate()
    assert table.ids() == list(range(22))
