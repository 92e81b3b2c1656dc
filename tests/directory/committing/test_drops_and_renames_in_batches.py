"""Tables that are dropped and renamed in a batch, together with other changes: all of it, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError, TableNotFoundError

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
