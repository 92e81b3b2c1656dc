"""What others committed by path is adopted where a transaction, a dataset or a read opens the table (rule P5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import lance
import pytest
from lance_namespace import (
    CountTableRowsRequest,
    DescribeTableRequest,
    DescribeTableVersionRequest,
    ListTableIndicesRequest,
)
from lance_namespace.errors import TableVersionNotFoundError

from namespace_client import InvalidCall, MultiTableTransaction, RetryableConflict
from namespace_client.history import CatalogBatch, CatalogChange, CatalogVersion
from namespace_client.names import Name
from table_data.batch_operations import Json, TableDeclaration
from tests.client.scene import SCHEMA, Scene, rows, seen

Call = Callable[[MultiTableTransaction], object]


def declare(scene: Scene, name: str) -> str:
    location = f"{scene.catalog.access.state().root}/0123abcd_{scene.namespace}${name}"
    declared = TableDeclaration((scene.namespace, name), location, {})
    scene.catalog.access.commit([declared], idempotency_key=location, message=None)
    return location


def make_by_path(scene: Scene, name: str = "t", *ids: int) -> None:
    """Declare a table and write its first version by path, as `CREATE TABLE` of the stock Spark connector does."""
    lance.write_dataset(rows(*ids), declare(scene, name), schema=SCHEMA)


def append_by_path(scene: Scene, name: str, *ids: int) -> None:
    lance.write_dataset(rows(*ids), scene.uri(name), mode="append")


FIRST_CALLS: dict[str, tuple[Call, list[int]]] = {
    "append": (lambda tx: tx.append("t", rows(3)), [1, 2, 3]),
    "overwrite": (lambda tx: tx.overwrite("t", rows(3)), [3]),
    "update": (lambda tx: tx.update("t", {"id": "id + 10"}), [11, 12]),
    "delete": (lambda tx: tx.delete("t", "id = 1"), [2]),
    "merge": (lambda tx: tx.merge("t", rows(2, 3), "id"), [1, 2, 3]),
    "add_columns": (lambda tx: tx.add_columns("t", {"w": "id"}), [1, 2]),
    "compact": (lambda tx: tx.compact("t"), [1, 2]),
}


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_a_table_whose_first_version_came_by_path_is_changed_at_once(scene: Scene, call: str) -> None:
    make_by_path(scene, "t", 1, 2)
    change, expected = FIRST_CALLS[call]
    with scene.catalog.begin() as tx:
        change(tx)
    assert scene.ids() == expected


def test_a_table_whose_first_version_came_by_path_is_read_at_once(scene: Scene) -> None:
    for name in ("r", "s", "t", "u"):
        make_by_path(scene, name, 1, 2)
    with scene.catalog.begin() as tx:
        assert seen(tx, "r") == [1, 2]
    assert scene.catalog.dataset("s").count_rows() == 2
    found = scene.catalog.datasets(["s", "t", "u"])
    assert [dataset.count_rows() for dataset in found.values()] == [2, 2, 2]


def test_creating_a_table_whose_first_version_came_by_path_says_that_it_exists(scene: Scene) -> None:
    make_by_path(scene, "t", 1)
    with scene.catalog.begin() as tx, pytest.raises(InvalidCall, match="exists: overwrite it, or append to it"):
        tx.create("t", rows(2))


def test_a_transaction_sees_what_a_read_sees(scene: Scene) -> None:
    scene.make("t", 1, 2)
    dataset = lance.dataset(scene.uri())
    dataset.add_columns({"x": "id * 2"})
    with scene.catalog.begin() as tx:
        tx.append("t", [{"id": 3, "v": 3.0, "x": 6}])
    lance.dataset(scene.uri()).delete("id = 1")
    with scene.catalog.begin() as tx:
        assert seen(tx) == [2, 3]
    assert scene.version() == 4
    assert lance.dataset(scene.uri()).to_table(columns=["x"]).column(0).to_pylist() == [4, 6]


def test_all_tables_of_a_transaction_are_of_one_catalog_version(scene: Scene) -> None:
    scene.make("a", 1)
    make_by_path(scene, "b", 1)
    append_by_path(scene, "a", 2)
    with scene.catalog.begin() as tx:
        began = tx.catalog_version
        assert not tx.exists("nowhere")
        assert seen(tx, "a") == [1, 2]
        first = tx.catalog_version
        assert seen(tx, "b") == [1]
        assert seen(tx, "a") == [1, 2]
        assert began < first < tx.catalog_version == scene.catalog_version()
        tx.append("a", rows(3))
        tx.append("b", rows(3))
    view = scene.catalog.at(tx.result.catalog_version)
    assert {name: view.dataset(name).count_rows() for name in "ab"} == {"a": 3, "b": 2}


@pytest.mark.parametrize("change", ["commit", "create", "drop"])
def test_where_an_opened_table_has_changed_the_point_stays(scene: Scene, change: str) -> None:
    """Else the tables of the transaction would be of two catalog versions."""
    scene.make("a", 1)
    scene.make("b", 1)
    with scene.catalog.begin() as tx:
        began = tx.catalog_version
        assert seen(tx, "a") == [1]
        assert not tx.exists("c")
        if change == "drop":
            scene.catalog.drop("a")
        else:
            with scene.catalog.begin() as other:
                other.append("a", rows(2)) if change == "commit" else other.create("c", rows(2))
        append_by_path(scene, "b", 2)
        assert seen(tx, "b") == [1]
        assert tx.catalog_version == began
    with scene.catalog.begin() as tx:
        assert seen(tx, "b") == [1, 2]


def test_a_first_version_that_the_transaction_cannot_have_is_a_retryable_conflict(scene: Scene) -> None:
    scene.make("a", 1)
    declare(scene, "b")
    attempts = 0
    for attempt in scene.catalog.retrying():
        with attempt as tx:
            attempts += 1
            tx.append("a", rows(attempts * 10))
            if attempts == 1:
                with scene.catalog.begin() as other:
                    other.append("a", rows(2))
                lance.write_dataset(rows(1), f"{scene.catalog.access.state().root}/0123abcd_{scene.namespace}$b")
                with pytest.raises(RetryableConflict, match="its first version was committed around the catalog"):
                    tx.append("b", rows(2))
            tx.append("b", rows(2))
    assert attempts == 2
    assert (scene.ids("a"), scene.ids("b")) == ([1, 2, 20], [1, 2])


def test_what_another_reader_adopted_after_the_begin_is_there(scene: Scene) -> None:
    make_by_path(scene, "t", 1)
    with scene.catalog.begin() as tx:
        assert scene.catalog.read("t").num_rows == 1
        tx.append("t", rows(2))
    assert scene.ids() == [1, 2]


def test_what_was_committed_in_the_catalog_after_the_begin_is_not_there(scene: Scene) -> None:
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        with scene.catalog.begin() as other:
            other.append("t", rows(2))
        append_by_path(scene, "t", 3)
        assert seen(tx) == [1]
    assert scene.ids() == [1, 2, 3]


def test_a_branch_that_was_made_by_path_is_there(scene: Scene) -> None:
    scene.make("t", 1)
    lance.dataset(scene.uri()).create_branch("dev")
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2), branch="dev")
        with pytest.raises(InvalidCall, match="nowhere"):
            tx.append("t", rows(2), branch="nowhere")
    assert scene.catalog.read("t", branch="dev").num_rows == 2


def test_an_earlier_catalog_version_stays_what_it_was(scene: Scene) -> None:
    scene.make("a", 1)
    declare(scene, "b")
    view = scene.catalog.at(scene.catalog_version())
    append_by_path(scene, "a", 2)
    lance.write_dataset(rows(1), f"{scene.catalog.access.state().root}/0123abcd_{scene.namespace}$b")
    assert view.dataset("a").count_rows() == view.read("a").num_rows == 1
    with pytest.raises(InvalidCall, match="has no version yet"):
        view.dataset("b")
    assert scene.catalog_version() == view.version + 2, "both were adopted beside the reads"
    assert scene.catalog.at(view.version + 2).dataset("b").count_rows() == 1


def test_the_requests_of_a_transaction_grow_with_the_tables_that_were_made_by_path(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them moves the point, and what was opened before is not asked for again."""
    names = [f"t{number}" for number in range(12)]
    for name in names:
        make_by_path(scene, name, 1)
    backend = scene.catalog.access._backend
    ask, asked = backend.ask, 0

    def count(operation: str, request: Json, *, at: int | None = None) -> Json:
        nonlocal asked
        asked += 1
        return ask(operation, request, at=at)

    monkeypatch.setattr(backend, "ask", count)
    with scene.catalog.begin() as tx:
        for name in names:
            tx.append(name, rows(2))
    assert asked <= 6 * len(names) + 6
    assert {name: scene.ids(name) for name in names} == {name: [1, 2] for name in names}


@pytest.mark.parametrize("change", ["adoption", "drop", "rename"])
def test_the_point_stays_where_the_history_tells_a_change_of_an_opened_table(scene: Scene, change: str) -> None:
    scene.make("a", 1)
    declare(scene, "b")
    with scene.catalog.begin() as tx:
        began = tx.catalog_version
        assert seen(tx, "a") == [1]
        if change == "adoption":
            append_by_path(scene, "a", 2)
            assert scene.catalog.read("a").num_rows == 2
        elif change == "drop":
            scene.catalog.drop("a")
        else:
            scene.catalog.rename("a", "c")
        lance.write_dataset(rows(1), scene.uri("b"))
        with pytest.raises(RetryableConflict, match="its first version was committed around the catalog"):
            tx.append("b", rows(2))
        assert tx.catalog_version == began
        tx.abandon()


TABLE, OTHER = Name(["n", "t"]), Name(["n", "u"])
MADE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "number", "may"),
    [
        ((CatalogChange("commit_transaction", OTHER),), 1, False),
        ((CatalogChange("commit_transaction", TABLE),), 1, True),
        ((CatalogChange("rename_table", OTHER, TABLE),), 1, True),
        ((CatalogChange("drop_namespace", Name(["n"])),), 1, True),
        ((CatalogChange("drop_namespace", Name(["n", "t", "x"])),), 1, False),
        ((CatalogChange("register_intent"), CatalogChange("pin_catalog_version", pin="p")), 2, False),
        ((CatalogChange("of a later release"),), 1, True),
        ((CatalogChange("commit_transaction", OTHER),), 201, True),
        ((), 0, True),
    ],
)
def test_what_a_batch_in_the_history_may_have_changed(
    changes: tuple[CatalogChange, ...], number: int, may: bool
) -> None:
    batch = CatalogBatch("uuid", None, None, changes, number)
    assert CatalogVersion(7, MADE, (batch,)).may_have_changed(TABLE) is may


def test_what_other_versions_in_the_history_may_have_changed() -> None:
    assert not CatalogVersion(7, MADE, ()).may_have_changed(TABLE)
    assert CatalogVersion(7, MADE, (), unmanaged=True).may_have_changed(TABLE)
    assert CatalogVersion(7, MADE, (), (CatalogChange("adopt", TABLE, version=2),)).may_have_changed(TABLE)
    assert not CatalogVersion(7, MADE, (), (CatalogChange("adopt", OTHER, version=2),)).may_have_changed(TABLE)


BY_NUMBER: dict[str, Any] = {
    "describe_table": DescribeTableRequest,
    "describe_table_version": DescribeTableVersionRequest,
    "count_table_rows": CountTableRowsRequest,
    "list_table_indices": ListTableIndicesRequest,
}


@pytest.mark.parametrize("operation", BY_NUMBER)
def test_a_version_that_was_committed_by_path_is_found_by_its_number(local: Scene, operation: str) -> None:
    local.make("t", 1)
    append_by_path(local, "t", 2)
    call, request = getattr(local.stock(), operation), BY_NUMBER[operation]
    with pytest.raises(TableVersionNotFoundError):
        call(request(id=[local.namespace, "t"], version=3))
    append_by_path(local, "t", 3)
    call(request(id=[local.namespace, "t"], version=3))


def test_a_read_of_a_version_that_was_committed_by_path(scene: Scene) -> None:
    scene.make("t", 1)
    append_by_path(scene, "t", 2)
    assert scene.catalog.read("t", version=2).num_rows == 2
    append_by_path(scene, "t", 3)
    assert scene.catalog.dataset("t", version=3).count_rows() == 3
