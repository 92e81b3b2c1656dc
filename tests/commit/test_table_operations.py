"""Operations on the table as a whole, committed by this engine: stock pylance reads them and commits on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.heads import reservable_fragment_ids
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import (
    Append,
    Operation,
    Project,
    ReserveFragments,
    Restore,
    UpdateBases,
    encode_transaction,
)
from tests.commit.flavours import FLAVOURS, IDS, Flavour, commit, make
from tests.commit.outcomes import PYLANCE, outcome_of
from tests.transaction.tables import Table, make_table, rows


def dropping(table: Table, *names: str) -> Project:
    kept = (field for field in table.head().manifest.fields if field.name not in names)
    return Project(tuple(kept), preserves_nullability=True)


def renaming(table: Table) -> Project:
    fields = [pb.Field.FromString(field.SerializeToString()) for field in table.head().manifest.fields]
    fields[1].name = "y"
    return Project((fields[2], fields[0], fields[1]), preserves_nullability=True)


def elsewhere(table: Table) -> UpdateBases:
    return UpdateBases((pb.BasePath(name="elsewhere", path=str(table.root / "elsewhere")),))


OPERATIONS: dict[str, tuple[Callable[[Table], Operation], list[str]]] = {
    "drop": (lambda t: dropping(t, "s"), ["id", "x"]),
    "rename and reorder": (renaming, ["s", "id", "y"]),
    "reserve": (lambda _: ReserveFragments(3), ["id", "x", "s"]),
    "bases": (elsewhere, ["id", "x", "s"]),
    "restore": (lambda t: Restore(t.open().version), ["id", "x", "s"]),
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

    more = rows(100, 103).rename_columns(["id", "y" if "y" in columns else "x", "s"]).select(columns)
    lance.write_dataset(more, dataset, mode="append").validate()
    stale.update_config({"late": "1"})
    commit(table, Append(table.stage(more)), flavour)
    table.open().validate()
    assert table.ids() == sorted([*IDS, *[100, 101, 102] * 2])
    assert table.open().config() == {"late": "1"}


def test_indices_are_dropped_with_their_columns(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().create_scalar_index("id", "BTREE")
    table.open().create_scalar_index("s", "BTREE")
    commit(table, dropping(table, "s"), Flavour())
    assert [index.name for index in table.open().describe_indices()] == ["id_idx"]
    commit(table, Restore(3), Flavour())
    assert [index.name for index in table.open().describe_indices()] == ["id_idx", "s_idx"]
    assert table.open().to_table(filter="s = '7'")["id"].to_pylist() == [7]


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_restore_restores_rows_schema_config_and_indices(tmp_path: Path, stable_row_ids: bool) -> None:
    """Rows, schema, config, metadata; but no id is ever given again."""
    table = make_table(tmp_path, (0, 10), stable_row_ids=stable_row_ids)
    table.open().update_config({"k": "old"})
    table.open().add_columns({"y": "x"})
    table.open().update_config({"k": "new"})
    table.open().update_schema_metadata({"m": "n"})
    lance.write_dataset(rows(10, 20).append_column("y", pa.array([0.0] * 10)), table.uri, mode="append")
    commit(table, Restore(2), Flavour())
    dataset = table.open()
    dataset.validate()
    assert (dataset.version, dataset.config(), dataset.schema.metadata) == (7, {"k": "old"}, None)
    assert table.ids() == list(range(10))
    assert table.head().manifest.max_fragment_id == 1
    assert table.head().manifest.next_row_id == (20 if stable_row_ids else 0)
    lance.write_dataset(rows(20, 25), table.uri, mode="append").validate()
    assert [fragment.fragment_id for fragment in table.open().get_fragments()] == [0, 2]
    if stable_row_ids:
        assert table.open().to_table(columns=["_rowid"], filter="id >= 20")["_rowid"].to_pylist() == [*range(20, 25)]


def test_a_restore_of_a_missing_version_is_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    for version, expected in ((0, "expected one from 1 to 2"), (3, "expected one from 1 to 2")):
        with pytest.raises(InvalidTransaction, match=f"restore of version {version}: {expected}"):
            commit(table, Restore(version), Flavour())
    next((table.path / "_versions").glob("*614.manifest")).unlink()
    with pytest.raises(InvalidTransaction, match="restore of version 1, which does not exist"):
        commit(table, Restore(1), Flavour())


def test_reserved_fragment_ids_are_not_assigned(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    commit(table, ReserveFragments(3), Flavour())
    lance.write_dataset(rows(10, 20), table.uri, mode="append")
    assert [fragment.fragment_id for fragment in table.open().get_fragments()] == [0, 4]
    with pytest.raises(InvalidTransaction, match="4294967295 fragment ids are reserved"):
        commit(table, ReserveFragments((1 << 32) - 1), Flavour())


def test_no_reservation_leaves_no_ids(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    most = ((1 << 32) - 1) // 256
    with pytest.raises(InvalidTransaction, match=f"{most + 1} fragment ids are reserved after fragment 0: expected at"):
        commit(table, ReserveFragments(most + 1), Flavour())
    for _ in range(3):
        commit(table, ReserveFragments(reservable_fragment_ids(table.head().manifest.max_fragment_id)), Flavour())
    lance.write_dataset(rows(10, 20), table.uri, mode="append")
    assert table.open().count_rows() == 20


def test_reservations_one_after_another_always_leave_ids() -> None:
    mark = 0
    for _ in range(10_000):
        mark += reservable_fragment_ids(mark)
    assert (1 << 32) - 1 - mark >= 255


def test_base_path_ids_that_leave_none_are_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    with pytest.raises(InvalidTransaction, match="has id 4294967295: expected at most 2147483647"):
        commit(table, UpdateBases((pb.BasePath(id=(1 << 32) - 1, path="/a"),)), Flavour())
    commit(table, UpdateBases((pb.BasePath(id=(1 << 31) - 1, path="/a"),)), Flavour())
    commit(table, UpdateBases((pb.BasePath(path="/b"),)), Flavour())
    assert [base.id for base in table.head().manifest.base_paths] == [(1 << 31) - 1, 1 << 31]


def test_base_paths_are_numbered(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    commit(table, elsewhere(table), Flavour())
    commit(
        table, UpdateBases((pb.BasePath(path="/a"), pb.BasePath(id=7, path="/b"), pb.BasePath(path="/c"))), Flavour()
    )
    assert [(base.id, base.path[-2:]) for base in table.head().manifest.base_paths] == [
        (1, "re"),
        (2, "/a"),
        (7, "/b"),
        (8, "/c"),
    ]
    with pytest.raises(InvalidTransaction, match="version 3 has a base path called 'elsewhere' already"):
        commit(table, elsewhere(table), Flavour())


def test_a_projection_cannot_add_fields(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    fields = (*table.head().manifest.fields, pb.Field(id=9, parent_id=-1, name="z", logical_type="int64"))
    with pytest.raises(InvalidTransaction, match="project keeps field 9, which is not in version 1"):
        commit(table, Project(fields), Flavour())


OURS: dict[str, Callable[[Table], Operation]] = {
    "project": lambda t: Project(tuple(t.head().manifest.fields)[:2]),
    "restore": lambda _: Restore(1),
    "reserve": lambda _: ReserveFragments(2),
    "bases": elsewhere,
}

OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741

#                   project, restore, reserve, bases
EXPECTED: dict[str, tuple[str, str, str, str]] = {
    "append": (R, OK, OK, OK),
    "delete, same row": (OK, OK, OK, OK),
    "columns": (R, OK, OK, OK),
    "overwrite": (I, OK, I, OK),
    "create_index": (OK, OK, OK, OK),
    "rewrite": (OK, OK, OK, OK),
    "merge": (R, OK, OK, OK),
    "project": (R, OK, OK, OK),
    "restore": (I, OK, I, OK),
    "config, same key": (OK, OK, OK, OK),
    "schema metadata": (OK, I, OK, OK),
    "data_replacement": (R, OK, OK, OK),
}


@pytest.mark.parametrize("theirs", EXPECTED)
@pytest.mark.parametrize("ours", OURS)
def test_verdict_on_a_stale_table_operation(tmp_path: Path, ours: str, theirs: str) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().create_scalar_index("id", "BTREE")
    read_version = table.open().version
    operation = OURS[ours](table)
    PYLANCE[theirs](table.open())
    before = table.ids()
    expected = EXPECTED[theirs][list(OURS).index(ours)]
    assert outcome_of(table, operation, read_version) == expected
    table.open().validate()
    assert table.ids() == (list(range(10)) if (ours, expected) == ("restore", OK) else before)


def test_metadata_of_a_field_survives_a_projection(tmp_path: Path) -> None:
    """A projection brings its own copy of every field. Stock writers commit it, and the metadata is gone."""
    table = make_table(tmp_path, (0, 10))
    operation = dropping(table, "s")
    table.open().update_field_metadata({"id": {"k": "v"}})
    assert outcome_of(table, operation, 1) == R
    assert outcome_of(table, dropping(table, "s"), 2) == OK
    assert table.open().schema.field("id").metadata == {b"k": b"v"}


def test_pylance_judges_these_commits_by_the_same_rules(tmp_path: Path) -> None:
    """The other direction: ours is committed, a stale pylance comes after."""
    table = make_table(tmp_path, (0, 10), (10, 20))
    stale = [table.open() for _ in range(4)]
    commit(table, ReserveFragments(2), Flavour())
    commit(table, elsewhere(table), Flavour())
    lance.write_dataset(rows(20, 22), stale[0], mode="append")
    commit(table, dropping(table, "s"), Flavour())
    with pytest.raises(OSError, match="preempted by concurrent transaction Project"):
        lance.LanceDataset.commit(stale[1], lance.LanceOperation.Project(stale[1].lance_schema), read_version=5)
    commit(table, Restore(2), Flavour())
    with pytest.raises(OSError, match="incompatible with concurrent transaction Restore"):
        stale[2].delete("id = 3")
    table.open().validate()
    assert table.ids() == list(range(20))


def test_a_transaction_made_by_pylance_can_be_committed(tmp_path: Path) -> None:
    """What pylance committed at one place is encoded again and committed at another."""
    table = make_table(tmp_path / "a", (0, 10))
    other = table.copy(tmp_path / "b")
    table.open().drop_columns(["s"])
    transaction = table.head().transaction
    assert transaction is not None
    assert transaction.project.schema
    commit(other, Project(tuple(transaction.project.schema), transaction.project.preserves_nullability), Flavour())
    assert other.open().schema == table.open().schema
    assert encode_transaction(OURS["restore"](other), read_version=2).restore.version == 1
