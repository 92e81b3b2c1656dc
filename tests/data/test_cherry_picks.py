"""Main takes what a branch changed: rows that keep their ids, processes that die, repeated requests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchNotFoundError,
)

from lance_core.storage.local import LocalStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.net_change import net_change, top_names
from tests.data.arrow import stream
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T = ["g", "t"]


def make(root: Path, *, stable: bool = False) -> Ground:
    """A table with ids 0 to 9 in two fragments, and a branch."""
    ground = Ground(root)
    ground.make_namespace("g")
    options = {"storage_options": {"new_table_enable_stable_row_ids": "true"}} if stable else {}
    ground.namespace.data.create_table({"id": T, **options}, stream(rows(0, 6)))
    change(ground, "insert_into_table", rows(6, 10), branch=None)
    ground.call("create_table_branch", id=T, name="dev")
    return ground


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return make(tmp_path / "root")


def change(ground: Ground, operation: str, data: pa.Table | None = None, **request: Any) -> dict[str, Any]:
    asked: Any = {"id": T, "branch": "dev", **request}
    body = None if data is None else stream(data)
    return ground.namespace.data.change(operation, asked, body).body


def change_branch(ground: Ground) -> None:
    """New rows, changed ones, deleted ones, and changes of those that are new."""
    change(ground, "insert_into_table", rows(20, 24))
    change(ground, "update_table", predicate="id in (2, 21)", updates=[["name", "'new'"]])
    change(ground, "delete_from_table", predicate="id in (0, 22)")
    change(ground, "update_table", predicate="id = 2", updates=[["name", "'newer'"]])


def pick(ground: Ground, **request: Any) -> dict[str, Any]:
    asked: Any = {"id": T, "from_branch": "dev", **request}
    return ground.namespace.data.change("cherry_pick_table_branch", asked).body


def by_id(ground: Ground, branch: str | None = None, **columns: bool) -> dict[int, tuple[Any, ...]]:
    dataset = ground.open(T)
    if branch is not None:
        dataset = dataset.checkout_version((branch, None))
    dataset.validate()
    table = dataset.scanner(columns=["id", "name"], **columns).to_table()
    return {row["id"]: tuple(row.values()) for row in table.to_pylist()}


class TestRowsThatKeepTheirIds:
    def test_changed_rows_have_the_ids_that_they_had(self, tmp_path: Path) -> None:
        ground = make(tmp_path / "root", stable=True)
        before = by_id(ground, with_row_id=True)
        change_branch(ground)
        change(ground, "insert_into_table", rows(40, 42), branch=None)
        assert pick(ground)["status"] == "cherry_picked"
        after = by_id(ground, with_row_id=True)
        assert {number: (row[0], row[1]) for number, row in after.items()} == {
            **by_id(ground, "dev"),
            **{number: (number, f"n{number}") for number in (40, 41)},
        }
        kept = before.keys() & after.keys()
        assert {number: after[number][2] for number in kept} == {number: before[number][2] for number in kept}
        assert len({row[2] for row in after.values()}) == len(after), "no two rows have one id"
        assert before[0][2] not in {row[2] for row in after.values()}

    def test_the_ids_lead_to_the_rows(self, tmp_path: Path) -> None:
        ground = make(tmp_path / "root", stable=True)
        change_branch(ground)
        pick(ground)
        for number, (_, name, row_id) in by_id(ground, with_row_id=True).items():
            taken = ground.open(T)._take_rows([row_id], columns={"id": "id", "name": "name"})
            assert taken.to_pylist() == [{"id": number, "name": name}]


def test_new_files_are_those_of_main_and_the_branch_may_go(ground: Ground) -> None:
    change_branch(ground)
    expected = by_id(ground, "dev")
    pick(ground)
    ground.namespace.change("delete_table_branch", {"id": T, "name": "dev"})
    ground.catalog.sweep()
    let_pass(ground)
    forget_history(ground)
    collect(ground)
    assert by_id(ground) == expected
    manifest = Dataset.open(str(ground.root / ground.location(T))).manifest
    assert not manifest.base_paths


def test_it_is_committed_once_under_a_key_and_in_the_history_as_one_change(ground: Ground) -> None:
    change_branch(ground)
    before = ground.catalog.snapshot().version
    done = pick(ground)
    assert (done["version"], ground.catalog.snapshot().version) == (3, before + 1)
    transaction = Dataset.open(str(ground.root / ground.location(T))).transaction
    assert transaction is not None
    assert transaction.transaction_properties["lance_namespace.cherry_pick"].startswith("dev 2 ")
    again = pick(ground)
    assert (again["status"], again["diff"]["errors"][0]["code"]) == ("failed", "nothing_to_apply")
    assert "transaction_id" not in again
    assert ground.catalog.snapshot().version == before + 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"from_branch": "nope"}, TableBranchNotFoundError),
        ({"from_branch": "main"}, InvalidInputError),
        ({"from_branch": "dev", "branch": "dev"}, InvalidInputError),
    ],
)
def test_requests_that_name_no_branch_beside_main(
    ground: Ground, request_: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        pick(ground, **request_)
    with pytest.raises(error):
        ground.namespace.row_reads.value("diff_table_branch", {"id": T, **request_})  # type: ignore[typeddict-item]


def test_versions_of_main_that_are_gone_may_have_taken_it(ground: Ground) -> None:
    change(ground, "insert_into_table", rows(20, 21))
    for number in range(3):
        change(ground, "insert_into_table", rows(30 + number, 31 + number), branch=None)
    ground.catalog.sweep()
    location = ground.root / ground.location(T)
    (location / "_versions" / f"{2**64 - 1 - 4}.manifest").unlink()
    refused = pick(ground)
    assert (refused["status"], refused["diff"]["errors"][0]["code"]) == ("failed", "base_moved")
    assert "version 4 was removed" in refused["diff"]["errors"][0]["message"]


def test_blobs_are_not_copied(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table({"id": [1], "b": [b"x"]}, schema=pa.schema([pa.field("id", pa.int64()), blob]))
    ground.namespace.data.create_table({"id": T}, stream(data))
    ground.call("create_table_branch", id=T, name="dev")
    change(ground, "insert_into_table", data)
    refused = pick(ground)
    assert (refused["status"], [each["code"] for each in refused["diff"]["errors"]]) == (
        "not_implemented",
        ["not_implemented"],
    )
    change(ground, "delete_from_table", predicate="id = 1")
    assert pick(ground)["status"] == "cherry_picked"


@pytest.mark.parametrize("column", [False, True])
def test_a_process_may_die_at_each_write_of_the_catalog(ground: Ground, tmp_path: Path, *, column: bool) -> None:
    if column:
        change(ground, "alter_table_add_columns", new_columns=[{"name": "n", "expression": "id + 1"}])
    else:
        change_branch(ground)
    expected = by_id(ground, "dev")
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    fates: set[tuple[str, bool]] = set()
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        number = 0
        while True:
            root = tmp_path / f"{fault.name}-{number}"
            shutil.copytree(ground.root, root)
            _move(root, ground.root)
            store = FaultStore(LocalStore(root, "none"))
            store.fail(fault, nth=number)
            try:
                pick(Ground(root, store))
            except Crashed:
                left = Ground(root)
                found = pick(left)
                there = found["status"] == "failed"
                if there:
                    assert found["diff"]["errors"][0]["code"] == "nothing_to_apply"
                fates.add((fault.name, there))
                assert by_id(left) == expected
                left.catalog.sweep()
                check_quiet(root)
                number += 1
                continue
            break
        assert number > 2
    assert {there for _, there in fates} == {False, True}


def _move(root: Path, before: Path) -> None:
    """Nothing of a root names itself but base paths of branches, which lead to the first one: it is still there."""
    assert root.exists()
    assert before.exists()


def test_what_was_written_for_a_rejected_one_goes(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    change_branch(ground)
    data = ground.root / ground.location(T) / "data"
    before = set(data.iterdir())

    def refuse(*_: object) -> Any:
        raise InvalidInputError("no")

    monkeypatch.setattr(ground.catalog.committer, "decide", refuse)
    with pytest.raises(LanceNamespaceError):
        pick(ground)
    assert set(data.iterdir()) == before


class TestNetChange:
    def test_of_versions_of_one_line(self, tmp_path: Path) -> None:
        place = str(tmp_path / "t")
        lance.write_dataset(rows(0, 4), place)
        lance.write_dataset(rows(4, 6), place, mode="append")
        lance.dataset(place).delete("id in (0, 4, 5)")
        lance.dataset(place).add_columns({"twice": "id * 2"})
        lance.write_dataset(lance.dataset(place).to_table().slice(0, 1), place, mode="append")
        first, last = (Dataset.open(place, version).file for version in (2, None))
        found = net_change(first, last)
        assert [field.name for field in found.added_fields] == ["twice"]
        assert (len(found.new_fragments), found.removed_ids, [each.id for each in found.deletions]) == (1, (1,), [0])
        assert (found.removed_fields, found.changed_fields, found.rewritten_ids) == ((), (), ())
        back = net_change(last, first)
        assert [field.name for field in back.removed_fields] == ["twice"]
        assert top_names(back.removed_fields, {field.id: field for field in back.removed_fields}) == ["twice"]
        same = net_change(last, last)
        assert not same.changes_rows
        assert not same.changes_fields

    def test_a_version_that_is_written_anew_shares_nothing(self, tmp_path: Path) -> None:
        place = str(tmp_path / "t")
        lance.write_dataset(rows(0, 4), place)
        lance.write_dataset(rows(0, 4), place, mode="overwrite")
        first, last = (Dataset.open(place, version).file for version in (1, 2))
        found = net_change(first, last)
        assert (len(found.new_fragments), found.removed_ids, found.deletions) == (1, (0,), ())
