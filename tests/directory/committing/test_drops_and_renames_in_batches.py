"""Tables that are dropped and renamed in a batch, together with other changes: all of it, or nothing."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError, TableNotFoundError

from namespace_server.directory.model.batch_requests import batch_operations
from namespace_server.directory.model.errors import BatchConflict
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.planning.plan_builder import Plan
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows

A, B, C = ["g", "a"], ["g", "b"], ["g", "c"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Three tables of 1, 2 and 3 rows."""
    found = Ground(tmp_path / "root")
    found.make_namespace("g")
    for count, table in enumerate((A, B, C), 1):
        found.make_table(*table, count=count)
    return found


def drop(table: list[str]) -> dict[str, Any]:
    return {"drop_table": {"id": table}}


def rename(table: list[str], new: list[str]) -> dict[str, Any]:
    return {"rename_table": {"id": table, "new_namespace_id": new[:-1], "new_table_name": new[-1]}}


def counts(ground: Ground) -> dict[str, int]:
    """The rows of each table, as stock pylance reads them through another process of the catalog."""
    namespace = ground.again().namespace
    names = ground.read("list_tables", id=["g"])["tables"]
    return {
        name: lance.dataset(namespace_client=namespace, table_id=["g", name]).count_rows() for name in sorted(names)
    }


def test_one_version_holds_all_of_it(ground: Ground) -> None:
    before = ground.catalog.snapshot().version
    done = ground.batch(
        drop(A), rename(B, ["g", "d"]), ground.stage(C, rows(3, 7)), {"declare_table": {"id": ["g", "new"]}}
    )
    assert [*map(list, done["results"])] == [
        ["drop_table"],
        ["rename_table"],
        ["create_table_version"],
        ["declare_table"],
    ]
    assert done["results"][0]["drop_table"]["location"].startswith("file:")
    assert ground.catalog.snapshot().version == before + 1
    ground.call("deregister_table", id=["g", "new"])
    assert counts(ground) == {"c": 7, "d": 2}
    ground.call("undrop_table", id=A)
    assert counts(ground) == {"a": 1, "c": 7, "d": 2}
    [event] = ground.read("list_catalog_events", since=before, limit=1)["events"]
    assert {tuple(each["id"]): each.get("dropped", False) for each in event["data"]["tables"]} == {
        ("g", "c"): False,
        ("g", "a"): True,
    }


def test_a_table_takes_the_name_of_a_dropped_one(ground: Ground) -> None:
    ground.batch(drop(B), rename(A, B))
    assert counts(ground) == {"b": 1, "c": 3}
    ground.write(B, rows(1, 5))
    assert counts(ground) == {"b": 5, "c": 3}
    ground.call("undrop_table", id=B, new_id=A)
    assert counts(ground) == {"a": 2, "b": 5, "c": 3}


def test_two_tables_exchange_their_names(ground: Ground) -> None:
    ground.batch(rename(A, ["g", "t"]), rename(B, A), rename(["g", "t"], B))
    assert counts(ground) == {"a": 2, "b": 1, "c": 3}
    ground.write(A, rows(2, 4))
    assert counts(ground) == {"a": 4, "b": 1, "c": 3}


def test_what_is_changed_in_a_batch_is_not_dropped_or_renamed_by_it(ground: Ground) -> None:
    staged, declared = ground.stage(A, rows(1, 2)), {"declare_table": {"id": ["g", "new"]}}
    before = ground.catalog.snapshot().version
    for operations in (
        (staged, drop(A)),
        (declared, drop(["g", "new"])),
        (rename(A, ["g", "d"]), drop(["g", "d"])),
    ):
        with pytest.raises(InvalidInputError, match="a batch cannot drop a table that it"):
            ground.batch(*operations)
    with pytest.raises(InvalidInputError, match="cannot remove or rename a version or table that it publishes"):
        ground.batch(staged, rename(A, ["g", "d"]))
    with pytest.raises(TableNotFoundError):
        ground.batch(drop(A), staged)
    with pytest.raises(TableNotFoundError):
        ground.batch(drop(B), drop(B))
    assert ground.catalog.snapshot().version == before
    assert counts(ground) == {"a": 1, "b": 2, "c": 3}


def test_a_batch_whose_last_operation_fails_drops_nothing(ground: Ground) -> None:
    with pytest.raises(TableNotFoundError):
        ground.batch(drop(A), rename(B, A), drop(["g", "none"]))
    assert counts(ground) == {"a": 1, "b": 2, "c": 3}


def named(operation: dict[str, Any], table: list[str]) -> dict[str, Any]:
    """The same operation on a table of another name."""
    [(name, request)] = operation.items()
    return {name: dict(request) | {"id": table}}


def of_versions(ground: Ground, table: list[str]) -> list[dict[str, Any]]:
    """What a batch may do with the versions of a table."""
    return [
        ground.stage(table, rows(1, 2)),
        ground.transaction(table, rows(1, 2)),
        {"assert_table_version": {"id": table, "version": ground.head(table)}},
        {"delete_table_versions": {"id": table, "ranges": [{"start_version": 1, "end_version": 2}]}},
        {"delete_table_versions": {"id": table, "ranges": [{"start_version": 1, "end_version": -1}]}},
    ]


@pytest.mark.parametrize("number", range(5))
def test_of_a_moved_table_no_version_is_touched_after_that(ground: Ground, number: int) -> None:
    """Storage was looked at under the names before (P5, P9), and a version before must hold what goes (G13)."""
    moved = ["g", "d"]
    ground.write(A, rows(1, 2))
    operation = of_versions(ground, A)[number]
    before = ground.catalog.snapshot().version
    for operations in (
        (rename(A, moved), named(operation, moved)),
        (drop(B), rename(A, B), named(operation, B)),
        (rename(A, moved), rename(B, A), rename(moved, B), named(operation, B)),
        (rename(A, moved), rename(moved, A), operation),
    ):
        with pytest.raises(InvalidInputError, match="a batch that renames a table, or brings it back, does nothing"):
            ground.batch(*operations)
    ground.call("drop_table", id=A)
    with pytest.raises(InvalidInputError, match="a batch that renames a table, or brings it back, does nothing"):
        ground.batch({"undrop_table": {"id": A, "new_id": moved}}, named(operation, moved))
    ground.call("undrop_table", id=A)
    assert ground.catalog.snapshot().version == before + 2
    assert counts(ground) == {"a": 2, "b": 2, "c": 3}


def test_versions_are_asserted_and_deleted_before_a_rename(ground: Ground) -> None:
    ground.write(A, rows(1, 2))
    deletion, assertion = of_versions(ground, A)[3], of_versions(ground, A)[2]
    ground.batch(deletion, assertion, rename(A, ["g", "d"]))
    assert counts(ground) == {"b": 2, "c": 3, "d": 2}
    ground.unmanaged_append(B, rows(2, 3))
    with pytest.raises(BatchConflict):
        ground.batch({"assert_table_version": {"id": B, "version": 1}}, rename(B, A))
    assert counts(ground) == {"b": 3, "c": 3, "d": 2}


def test_what_lies_above_a_head_stays_with_its_table(tmp_path: Path) -> None:
    """One batch of a group names a table of which another one drops the name: its versions are not the next one's."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    for table in (A, B):
        ground.call("declare_table", id=table)
    lance.write_dataset(rows(0, 0), str(ground.root / ground.location(B)))
    asked = ((drop(B), rename(A, B)), ({"assert_table_version": {"id": B, "version": 0}},))
    batches = [
        Batch(str(uuid.uuid4()), batch_operations({"operations": list(each)}, ground.namespace._rules), str(number))
        for number, each in enumerate(asked)
    ]
    first, second = ground.catalog.commit_batches(batches)
    assert isinstance(first.verdict, Plan)
    assert isinstance(second.verdict, Plan)
    assert ground.head(B) == 0
    ground.catalog.sweep()
    check_quiet(ground.root)


def test_an_assertion_follows_a_rename_of_its_group(ground: Ground) -> None:
    """Above the head of the table that was renamed by then nothing was looked for (P9)."""
    moved = ["g", "d"]
    ground.unmanaged_append(A, rows(1, 2))
    asked = ((rename(A, moved),), ({"assert_table_version": {"id": moved, "version": 1}},))
    batches = [
        Batch(str(uuid.uuid4()), batch_operations({"operations": list(each)}, ground.namespace._rules), str(number))
        for number, each in enumerate(asked)
    ]
    first, second = ground.catalog.commit_batches(batches)
    assert isinstance(first.verdict, Plan)
    assert isinstance(second.verdict, BatchConflict)
    assert ground.head(moved) == 2
