"""Indices of the tables of a catalog: extended to all rows, and never in the way of writers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from namespace_server.directory.maintenance.report import MaintenanceReport, TableStatus
from tests.directory.gc.collecting import collect, days_pass, forget_history, let_pass
from tests.directory.gc.unreferenced import check_exact, remove
from tests.directory.invariants import check_always, check_quiet
from tests.directory.tables import Ground
from tests.maintenance.tables import T, maintenance, meet
from tests.maintenance.test_kill import DyingStores, run_until_death
from tests.storage.faults import WRITES

POLICY = {
    "maintenance.compact": "false",
    "maintenance.unindexed_rows": "1",
    "maintenance.unindexed_share": "0",
    "maintenance.max_segments": "1",
}
INDICES = {
    "BTREE": "number",
    "BITMAP": "number",
    "ZONEMAP": "number",
    "BLOOM_FILTER": "number",
    "LABEL_LIST": "numbers",
    "NGRAM": "word",
    "FTS": "word",
    "IVF_FLAT": "vector",
    "IVF_PQ": "vector",
    "IVF_HNSW_SQ": "vector",
}
FILTERS = {"number": "number = {0}", "numbers": "array_has_any(numbers, [{0}])", "word": "contains(word, 'w{0:05d}')"}
COVERED, ROWS = 300, 320
"""Rows when the index is created, and after that."""


def some_rows(first: int, end: int) -> pa.Table:
    numbers = range(first, end)
    vectors = np.array([[number, number / 2, 1, 2] for number in numbers], np.float32)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "number": pa.array(numbers, pa.int64()),
            "numbers": pa.array([[number] for number in numbers], pa.list_(pa.int64())),
            "word": [f"w{number:05d}" for number in numbers],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4),
        }
    )


def make_table(ground: Ground, *kinds: str, stable: bool = False) -> None:
    """A table of three fragments, the first two of which indices cover; rows are deleted and moved since."""
    lance.write_dataset(
        some_rows(0, COVERED // 2),
        mode="create",
        namespace_client=ground.namespace,
        table_id=T,
        enable_stable_row_ids=stable,
    )
    ground.write(T, some_rows(COVERED // 2, COVERED))
    for kind in kinds:
        name = f"{kind}_i"
        request = {"id": T, "column": INDICES[kind], "index_type": kind, "name": name}
        ground.namespace.data.change("create_table_index", request)
    ground.write(T, some_rows(COVERED, ROWS))
    change(ground, "delete_from_table", predicate="id = 5 or id = 310")
    change(ground, "update_table", predicate="id = 7", updates=[["number", "7000"]])


def change(ground: Ground, operation: str, **request: Any) -> None:
    ground.namespace.data.change(operation, {"id": T, **request})


def optimize(ground: Ground, **given: Any) -> MaintenanceReport:
    return maintenance(ground, defaults=POLICY, **given).run(forced=True)


def scanner(dataset: lance.LanceDataset, column: str, number: int) -> Any:
    if column == "vector":
        query = np.array([number, number / 2, 1, 2], np.float32)
        nearest = {"column": column, "q": query, "k": 1, "refine_factor": 400, "minimum_nprobes": 100}
        return dataset.scanner(nearest=nearest, columns=["id"])
    return dataset.scanner(filter=FILTERS[column].format(number), columns=["id"])


def found(dataset: lance.LanceDataset, kind: str, number: int) -> list[int]:
    """The ids of the rows with a number, found by the index alone."""
    column = INDICES[kind]
    if kind == "FTS":
        made = dataset.scanner(full_text_query=f"w{number:05d}", columns=["id"])
    else:
        made = scanner(dataset, column, number)
    plan = made.explain_plan()
    assert any(node in plan for node in ("ScalarIndexQuery", "MatchQuery", "ANNSubIndex")), plan
    assert "KNNVectorDistance" not in plan.partition("ANNSubIndex")[2], plan
    assert "FlatMatchQuery" not in plan, plan
    assert "Union" not in plan, plan
    return sorted(made.to_table()["id"].to_pylist())


def check_found(dataset: lance.LanceDataset, kind: str) -> None:
    """What the index finds is what a scan finds."""
    dataset.validate()
    [index] = [each for each in dataset.describe_indices() if each.name == f"{kind}_i"]
    assert [set(segment.fragment_ids) for segment in index.segments] == [
        {fragment.fragment_id for fragment in dataset.get_fragments()}
    ]
    by_number = INDICES[kind] == "number"
    for number in (0, 200, 300, 319):
        assert found(dataset, kind, number) == [number]
    assert found(dataset, kind, 7000 if by_number else 7) == [7]
    for gone in (5, 310, *((7,) if by_number else ())):
        assert found(dataset, kind, gone) == [] or (INDICES[kind] == "vector" and found(dataset, kind, gone) != [gone])


@pytest.mark.parametrize("stable", [False, True])
def test_indices_cover_all_rows(ground: Ground, stable: bool) -> None:
    make_table(ground, *INDICES, stable=stable)
    head = ground.head(T)
    [outcome] = optimize(ground).outcomes
    assert (outcome.status, outcome.version, outcome.commits) == (TableStatus.DONE, head + 1, 1), outcome
    assert outcome.indices == tuple(sorted(f"{kind}_i" for kind in INDICES))
    assert (outcome.added_segments, outcome.removed_segments) == (len(INDICES), len(INDICES))
    assert f"{len(INDICES)} indices extended, in place of {len(INDICES)} segments" in outcome.line()
    ground.catalog.sweep()
    for kind in INDICES:
        check_found(ground.open(T), kind)
    messages = [record.message for record in ground.catalog.snapshot().records() if record.message]
    assert messages == ["maintenance: optimise indices"]
    assert check_exact(ground.root).orphans == (), "what was replaced is named by older versions"
    check_quiet(ground.root)
    assert optimize(ground).outcomes == ()
    ground.open(T, head).validate()
    ground.write(T, some_rows(400, 410))
    ground.catalog.sweep()
    shutil.copytree(ground.open(T).uri.removeprefix("file://"), copy := str(ground.root.parent / "copy"))
    lance.dataset(copy).optimize.optimize_indices(num_indices_to_merge=10)
    assert found(lance.dataset(copy), "BTREE", 405) == found(lance.dataset(copy), "IVF_PQ", 405) == [405]


def test_segments_of_others_become_one(ground: Ground) -> None:
    kinds = ("BTREE", "FTS", "IVF_FLAT")
    make_table(ground, *kinds)
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=T)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    ground.catalog.sweep()
    assert {len(index.segments) for index in ground.open(T).describe_indices()} == {2}
    [outcome] = optimize(ground).outcomes
    assert (outcome.unindexed_rows, outcome.added_segments, outcome.removed_segments) == (0, 3, 6)
    ground.catalog.sweep()
    for kind in kinds:
        check_found(ground.open(T), kind)


@pytest.mark.parametrize("kind", ["BTREE", "FTS", "IVF_FLAT"])
def test_values_that_were_replaced_in_place_are_not_found(ground: Ground, kind: str) -> None:
    """The old segment still has them. A segment over the other fragments alone would bring them back."""
    make_table(ground, kind)
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=T)
    changed = some_rows(9000, 9001).set_column(0, "id", pa.array([3], pa.int64()))
    column = INDICES[kind]
    fragment, fields = dataset.get_fragments()[0].update_columns(changed.select(["id", column]), "id", "id")
    update = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    lance.LanceDataset.commit(
        dataset, update, read_version=dataset.version, namespace_client=ground.namespace, table_id=T
    )
    [outcome] = optimize(ground).outcomes
    assert outcome.status is TableStatus.DONE, outcome
    ground.catalog.sweep()
    assert found(ground.open(T), kind, 9000) == [3]
    assert 3 not in found(ground.open(T), kind, 3)


def test_a_collection_removes_the_segments_that_were_replaced(ground: Ground) -> None:
    kinds = ("BTREE", "FTS", "IVF_PQ")
    make_table(ground, *kinds)
    optimize(ground)
    ground.catalog.sweep()
    directory = ground.root / ground.location(T) / "_indices"
    head = {str(segment.uuid) for index in ground.open(T).describe_indices() for segment in index.segments}
    assert {path.name for path in directory.iterdir()} > head
    days_pass(ground, 30)
    collect(ground.again(), {"gc.tables.count": "1"})
    forget_history(ground)
    let_pass(ground)
    for _ in range(2):
        collect(ground.again())
    assert {path.name for path in directory.iterdir()} == head
    for kind in kinds:
        check_found(ground.open(T), kind)


def test_a_table_is_compacted_first(ground: Ground) -> None:
    make_table(ground, "BTREE")
    defaults = {**POLICY, "maintenance.compact": "true", "maintenance.min_fragments": "2"}
    [outcome] = maintenance(ground, defaults=defaults).run(forced=True).outcomes
    assert (outcome.status, outcome.commits, outcome.removed_segments) == (TableStatus.DONE, 2, 1)
    assert len(ground.open(T).get_fragments()) == 2
    ground.catalog.sweep()
    check_found(ground.open(T), "BTREE")
    check_exact(ground.root)


def test_a_plan(ground: Ground) -> None:
    make_table(ground, "BTREE")
    head = ground.head(T)
    report = maintenance(ground, defaults=POLICY).plan(forced=True)
    [outcome] = report.outcomes
    assert (outcome.status, outcome.indices, outcome.unindexed_rows) == (TableStatus.PLANNED, ("BTREE_i",), 20)
    assert outcome.line() == "g$t: to do: 1 index to extend (20 rows not covered)"
    assert report.as_json()["outcomes"][0]["unindexed_rows"] == 20
    assert ground.head(T) == head


def test_an_index_that_was_made_just_now_is_left_to_its_writers(ground: Ground) -> None:
    make_table(ground, "BTREE")
    [outcome] = maintenance(ground, defaults=POLICY).run().outcomes
    assert (outcome.status, outcome.commits) == (TableStatus.BUSY, 0)
    later = maintenance(ground, defaults=POLICY, now=lambda: 61 + ground.catalog.snapshot().timestamp_ms / 1000)
    assert [each.status for each in later.run().outcomes] == [TableStatus.DONE]


def test_changes_of_rows_meanwhile_are_rebased_over(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(ground, "BTREE")

    def act() -> None:
        other = ground.again()
        other.write(T, some_rows(400, 402))
        change(other, "delete_from_table", predicate="id = 9")
        change(other, "update_table", predicate="id = 300", updates=[["number", "3000"]])

    meet(ground, monkeypatch, "create_index", act)
    [outcome] = optimize(ground).outcomes
    assert outcome.status is TableStatus.DONE
    ground.catalog.sweep()
    dataset = ground.open(T)
    dataset.validate()
    for number, expected in ((9, []), (300, []), (3000, [300]), (401, [401]), (319, [319])):
        assert scanner(dataset, "number", number).to_table()["id"].to_pylist() == expected
    check_exact(ground.root)


@pytest.mark.parametrize("act", ["compact", "drop", "index"])
def test_a_change_of_the_same_indices_or_fragments_wins(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    make_table(ground, "BTREE")

    def act_first() -> None:
        other = ground.again()
        if act == "drop":
            change(other, "drop_table_index", index_name="BTREE_i")
        elif act == "index":
            change(other, "optimize_indices", names=["BTREE_i"])
        else:
            defaults = {"maintenance.optimize_indices": "false", "maintenance.min_fragments": "2"}
            maintenance(other, defaults=defaults).run(forced=True)

    meet(ground, monkeypatch, "create_index", act_first)
    report = optimize(ground)
    [outcome] = report.outcomes
    assert (outcome.status, outcome.commits, report.failed) == (TableStatus.GIVEN_UP, 0, False), outcome
    ground.catalog.sweep()
    assert check_exact(ground.root).orphans == (), "the files of what was given up are removed"
    ground.open(T).validate()
    again = optimize(ground).outcomes
    assert [each.status for each in again] == ([TableStatus.DONE] if act == "compact" else [])


def test_at_every_write(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies before any write to storage: the table is whole, and what is left is collected."""
    make_table(ground, "BTREE")
    ground.batch({"set_table_properties": {"id": T, "properties": POLICY}})
    ground.catalog.sweep()
    whole = DyingStores()
    shutil.copytree(ground.root, tmp_path / "whole")
    run_until_death(tmp_path / "whole", whole, monkeypatch)
    for last in (number for number, verb in enumerate(whole.verbs) if verb in WRITES):
        root = tmp_path / f"dies-{last}"
        shutil.copytree(ground.root, root)
        run_until_death(root, DyingStores(last), monkeypatch)
        check_always(root, since=ground.catalog.snapshot().version)
        survivor = Ground(root)
        survivor.catalog.sweep()
        assert scanner(survivor.open(T), "number", 7000).to_table()["id"].to_pylist() == [7]
        optimize(survivor)
        survivor.catalog.sweep()
        check_found(survivor.open(T), "BTREE")
        remove(root, check_exact(root))
        check_found(survivor.open(T), "BTREE")
        check_quiet(root, since=survivor.catalog.snapshot().version)
        shutil.rmtree(root)
