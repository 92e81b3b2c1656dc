"""Maintenance of the tables of a catalog: the same rows in fewer fragments, and never in the way of writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError

from lance_core.errors import ReferenceNotFound
from lance_core.storage.local import LocalStore
from namespace_server.directory.maintenance.report import MaintenanceReport, TableStatus
from namespace_server.directory.maintenance.run import Maintenance, TableSelection
from namespace_server.directory.manifest_table.table import ManifestTable
from tests.directory.gc.unreferenced import check_exact
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows
from tests.maintenance.tables import (
    COUNT,
    T,
    contents,
    found_by_index,
    maintain,
    maintenance,
    make_table,
    meet,
    served_ids,
)

ALL = list(range(3 * COUNT))


def statuses(report: MaintenanceReport) -> dict[str, TableStatus]:
    return {outcome.table: outcome.status for outcome in report.outcomes}


def count(ground: Ground, table_id: list[str] = T) -> int:
    return len(ground.open(table_id).get_fragments())


@pytest.mark.parametrize("stable", [False, True])
def test_rows_and_history_stay_the_same(ground: Ground, stable: bool) -> None:
    make_table(ground, stable=stable)
    head, before = ground.head(T), contents(ground.open(T))
    ids = ground.open(T).to_table(columns=["id"], with_row_id=True)
    report = maintain(ground)
    [outcome] = report.outcomes
    assert (outcome.status, outcome.commits, outcome.version) == (TableStatus.DONE, 1, head + 1)
    assert (outcome.removed_fragments, outcome.added_fragments, outcome.rewritten_indices) == (COUNT, 1, 0)
    ground.catalog.sweep()
    dataset = ground.open(T)
    dataset.validate()
    assert (dataset.version, count(ground)) == (head + 1, 1)
    assert contents(dataset) == before
    assert contents(ground.open(T, head)) == before
    assert served_ids(ground, T) == ALL
    if stable:
        assert dataset.to_table(columns=["id"], with_row_id=True) == ids
    [record] = [found for found in ground.catalog.snapshot().records() if found.message]
    assert record.message == "maintenance: compact"
    check_exact(ground.root)
    check_quiet(ground.root)
    assert maintain(ground).outcomes == ()


@pytest.mark.parametrize("stable", [False, True])
def test_indices_find_the_same_rows(ground: Ground, stable: bool) -> None:
    make_table(ground, index=True, stable=stable)
    before = contents(ground.open(T))
    [outcome] = maintain(ground).outcomes
    assert (outcome.status, outcome.removed_fragments, outcome.added_fragments) == (TableStatus.DONE, 6, 2)
    assert outcome.rewritten_indices == 1
    ground.catalog.sweep()
    dataset = ground.open(T)
    dataset.validate()
    assert contents(dataset) == before
    for number in (0, 7, 11, 13):
        assert found_by_index(dataset, number) == [number]
        assert served_ids(ground, T, f"id = {number}") == [number]
    check_exact(ground.root)
    ground.write(T, rows(100, 102))
    assert ground.ids(T) == [*ALL, 100, 101]


def test_deleted_rows_are_left_out(ground: Ground) -> None:
    ground.make_table(*T, count=20)
    ground.namespace.data.change("delete_from_table", {"id": T, "predicate": "id < 5"})
    [outcome] = maintain(ground).outcomes
    assert (outcome.small, outcome.deleted, outcome.commits) == (0, 1, 1)
    [fragment] = ground.open(T).get_fragments()
    assert (fragment.physical_rows, fragment.num_deletions) == (15, 0)
    assert ground.ids(T) == list(range(5, 20))


def test_a_plan_writes_nothing(ground: Ground) -> None:
    make_table(ground, index=True)
    make_table(ground, "g", "few", appends=1)
    ground.call("declare_table", id=["g", "declared"])
    before = {path: path.stat().st_mtime_ns for path in ground.root.rglob("*")}
    store = LocalStore(ground.root, "none")
    report = Maintenance(store, ManifestTable(store)).plan(forced=True)
    assert {path: path.stat().st_mtime_ns for path in ground.root.rglob("*")} == before
    assert (report.tables, statuses(report)) == (3, {"g$t": TableStatus.PLANNED})
    assert report.outcomes[0].small == COUNT
    assert list(report.lines())[-1].endswith("3 tables: 1 to do")
    left = Maintenance(store, ManifestTable(store)).plan()  # the index was made just now
    assert statuses(left) == {"g$t": TableStatus.BUSY}


@pytest.mark.parametrize("index", [False, True])
def test_an_append_meanwhile_is_rebased_over(ground: Ground, monkeypatch: pytest.MonkeyPatch, index: bool) -> None:
    make_table(ground, index=index)
    meet(ground, monkeypatch, "rewrite", lambda: ground.again().write(T, rows(100, 102)))
    [outcome] = maintain(ground).outcomes
    assert outcome.status is TableStatus.DONE
    ground.catalog.sweep()
    ground.open(T).validate()
    assert ground.ids(T) == served_ids(ground, T) == [*ALL, 100, 101]
    if index:
        assert found_by_index(ground.open(T), 7) == [7]
    check_exact(ground.root)


CHANGES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "delete_from_table": ({"predicate": "id = 4"}, [i for i in ALL if i != 4]),
    "update_table": ({"predicate": "id = 4", "updates": [["id", "400"]]}, sorted([*(i for i in ALL if i != 4), 400])),
}


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("operation", CHANGES)
def test_a_change_of_the_same_rows_wins(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, operation: str, index: bool
) -> None:
    make_table(ground, index=index)
    request, expected = CHANGES[operation]
    meet(ground, monkeypatch, "rewrite", lambda: ground.again().namespace.data.change(operation, {"id": T, **request}))
    report = maintain(ground)
    [outcome] = report.outcomes
    assert (outcome.status, outcome.commits, report.failed) == (TableStatus.GIVEN_UP, 0, False)
    assert outcome.reason is not None
    ground.catalog.sweep()
    assert ground.ids(T) == served_ids(ground, T) == expected
    assert check_exact(ground.root).orphans == (), "the files of what was given up are removed"
    assert maintain(ground).outcomes[0].status is TableStatus.DONE
    ground.catalog.sweep()
    assert ground.ids(T) == expected


def test_a_table_that_is_dropped_meanwhile(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(ground)
    meet(ground, monkeypatch, "rewrite", lambda: ground.again().call("drop_table", id=T))
    assert statuses(maintain(ground)) == {"g$t": TableStatus.GIVEN_UP}


def test_a_table_whose_rows_were_changed_just_now_is_left_to_its_writers(ground: Ground) -> None:
    make_table(ground)
    made = maintenance(ground)
    ground.namespace.data.change("delete_from_table", {"id": T, "predicate": "id = 4"})
    [outcome] = made.run().outcomes
    assert (outcome.status, outcome.commits) == (TableStatus.BUSY, 0)
    assert outcome.reason == f"version {ground.head(T)} was committed less than 60 s ago"
    later = maintenance(ground, now=lambda: 61 + ground.catalog.snapshot().timestamp_ms / 1000)
    assert statuses(later.run()) == {"g$t": TableStatus.DONE}


def test_appends_do_not_keep_a_table_from_being_compacted(ground: Ground) -> None:
    make_table(ground)
    assert statuses(maintenance(ground).run()) == {"g$t": TableStatus.DONE}


def test_a_rewrite_is_bounded(ground: Ground) -> None:
    """Each commit makes one fragment of two, the next begins where it ended."""
    make_table(ground, index=True)
    before = contents(ground.open(T))
    defaults = {"maintenance.target_rows": "6", "maintenance.rewrite_bytes": "1", "maintenance.min_fragments": "2"}
    [outcome] = maintenance(ground, defaults=defaults).run(forced=True).outcomes
    assert (outcome.commits, outcome.removed_fragments, outcome.added_fragments) == (3, 6, 3)
    ground.catalog.sweep()
    assert contents(ground.open(T)) == before
    assert found_by_index(ground.open(T), 7) == [7]
    versions = ground.read("list_table_versions", id=T)["versions"]
    assert outcome.version == max(version["version"] for version in versions)


def test_properties_decide(ground: Ground) -> None:
    ground.call("create_namespace", id=["still"], properties={"maintenance.compact": "false"})
    for path in (["g", "t"], ["g", "own"], ["g", "wrong"], ["still", "t"], ["still", "own"]):
        make_table(ground, *path)
    for path, properties in (
        (["g", "own"], {"maintenance.min_fragments": "7"}),
        (["g", "wrong"], {"maintenance.min_fragments": "few"}),
        (["still", "own"], {"maintenance.compact": "true"}),
    ):
        ground.batch({"set_table_properties": {"id": path, "properties": properties}})
    report = maintain(ground)
    assert statuses(report) == {
        "g$t": TableStatus.DONE,
        "g$wrong": TableStatus.FAILED,
        "still$own": TableStatus.DONE,
    }
    assert report.failed
    assert "property maintenance.min_fragments: expected an integer" in str(report.outcomes[1].reason)


def test_tables_and_namespaces_are_selected(ground: Ground) -> None:
    ground.make_namespace("g", "inner")
    for path in (["g", "t"], ["g", "u"], ["g", "inner", "t"]):
        make_table(ground, *path)
    below = TableSelection(namespaces=[("g", "inner")])
    assert statuses(maintenance(ground).plan(below)) == {"g$inner$t": TableStatus.PLANNED}
    assert statuses(maintain(ground, selection=TableSelection([("g", "u")]))) == {"g$u": TableStatus.DONE}
    assert statuses(maintain(ground)).keys() == {"g$t", "g$inner$t"}
    with pytest.raises(TableNotFoundError):
        maintain(ground, selection=TableSelection([("g", "none")]))
    with pytest.raises(NamespaceNotFoundError):
        maintain(ground, selection=TableSelection(namespaces=[("none",)]))


def test_a_run_ends_in_time_and_the_next_one_goes_on(ground: Ground) -> None:
    for name in ("a", "b", "c"):
        make_table(ground, "g", name)
    made = maintenance(ground)
    assert made.run(seconds=0) == MaintenanceReport(ground.catalog.store.uri, made.table.current.version, 0, 3, ())
    made.stopped = lambda: ground.head(["g", "a"]) > COUNT
    first = made.run()
    assert (statuses(first), first.left) == ({"g$a": TableStatus.DONE}, 2)
    made.stopped = lambda: ground.head(["g", "b"]) > COUNT
    assert statuses(made.run()) == {"g$b": TableStatus.DONE}
    made.stopped = lambda: False
    assert statuses(made.run()) == {"g$c": TableStatus.DONE}


def test_branches_stay(ground: Ground) -> None:
    make_table(ground)
    ground.call("create_table_branch", id=T, name="dev")
    before = contents(ground.open(T).checkout_version(("dev", None)))
    maintain(ground)
    assert count(ground) == 1
    assert contents(ground.open(T).checkout_version(("dev", None))) == before


def test_a_root_without_such_a_catalog_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, "none")
    with pytest.raises(ReferenceNotFound, match="expected a catalog that keeps the versions"):
        Maintenance(store, ManifestTable(store)).plan()
    lance.write_dataset(rows(0, 1), str(tmp_path / "t.lance"))
    with pytest.raises(ReferenceNotFound):
        Maintenance(store, ManifestTable(store)).plan()
