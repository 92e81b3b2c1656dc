"""Rows that only one of two catalog versions has, exactly: after changes of every kind, compared with all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest

from namespace_client import Catalog, NotFound, RowDiff
from tests.client.scene import Scene


def rows(*ids: int, word: str = "w") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "word": [word] * len(ids)})


def written_again(catalog: Catalog) -> None:
    """The same rows in other files, and one row more."""
    with catalog.begin() as tx:
        tx.compact("t")
    catalog.append("t", rows(1_000))


def restored(catalog: Catalog) -> None:
    """A row that was deleted before is back."""
    with catalog.begin() as tx:
        tx.restore("t", 3)


CHANGES: dict[str, Callable[[Catalog], Any]] = {
    "append": lambda catalog: catalog.append("t", rows(7, 7, 100)),
    "deletion": lambda catalog: catalog.delete("t", "id % 7 = 3"),
    "update": lambda catalog: catalog.update("t", {"word": "'new'"}, where="id IN (5, 25)"),
    "update to the same values": lambda catalog: catalog.update("t", {"word": "word"}, where="id < 15"),
    "compaction and append": written_again,
    "restoration": restored,
    "overwrite": lambda catalog: catalog.overwrite("t", rows(3, 4, 200)),
    "overwrite without a row": lambda catalog: catalog.overwrite("t", rows()),
    "no column in common": lambda catalog: catalog.overwrite("t", pa.table({"a": [1, 2]})),
    "upsert": lambda catalog: catalog.merge("t", rows(4, 300, word="merged"), on="id"),
    "fragments in between": lambda catalog: catalog.delete("t", "id >= 10 AND id < 20"),
}


def counted_rows(table: pa.Table, columns: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in columns) for row in table.to_pylist())


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_difference_is_that_of_all_rows(local: Scene, change: str, stable: bool) -> None:
    catalog = local.catalog
    catalog.create("t", rows(*range(10)), stable_row_ids=stable)
    for start in range(10, 40, 10):
        catalog.append("t", rows(*range(start, start + 10)))
    catalog.delete("t", "id IN (2, 3)")
    before = local.catalog_version()
    CHANGES[change](catalog)
    after = local.catalog_version()

    found = catalog.row_diff("t", before, after, limit=100)

    was, now = catalog.at(before).read("t"), catalog.at(after).read("t")
    columns = [name for name in now.schema.names if name in was.schema.names]
    assert (found.num_before, found.num_after) == (was.num_rows, now.num_rows)
    if not columns:
        assert found.not_compared == "rows are not compared: the versions have no column in common"
        return
    old, new = counted_rows(was, columns), counted_rows(now, columns)
    assert counted_rows(found.removed_rows, columns) == old - new
    assert counted_rows(found.added_rows, columns) == new - old
    assert (found.num_removed, found.num_added) == ((old - new).total(), (new - old).total())


def renamed(scene: Scene, column: str, name: str) -> None:
    address = f"{scene.target}/v1/table/{scene.namespace}$t/alter_columns"
    httpx.post(address, json={"alterations": [{"path": column, "rename": name}]}).raise_for_status()


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_columns_that_change_their_names_are_compared_by_their_values(scene: Scene) -> None:
    scene.catalog.create("t", pa.table({"a": [1, 2], "b": [3, 2]}))
    before = scene.catalog_version()
    for column, name in (("a", "c"), ("b", "a"), ("c", "b")):
        renamed(scene, column, name)
    found = scene.catalog.row_diff("t", before, scene.catalog_version())
    assert (found.num_added, found.num_removed, found.removed_rows.num_rows) == (1, 1, 1)


def test_columns_that_one_version_has_are_not_compared(local: Scene) -> None:
    local.catalog.create("t", pa.table({"a": [1, 2], "b": [3, 2]}))
    before = local.catalog_version()
    with local.catalog.begin() as tx:
        tx.add_columns("t", {"other": "a"})
        tx.drop_columns("t", ["a"])
    found = local.catalog.row_diff("t", before, local.catalog_version(), compared=0)
    assert ([each.name for each in found.columns], found.num_added, found.num_removed) == (["b"], 0, 0)


def test_added_rows_are_counted_however_many_they_are(local: Scene) -> None:
    local.catalog.create("t", rows(1))
    before = local.catalog_version()
    local.catalog.append("t", rows(*range(20_000)))
    found = local.catalog.row_diff("t", before, local.catalog_version(), limit=2, compared=0)
    assert (found.num_added, found.num_removed, found.added_rows["id"].to_pylist()) == (20_000, 0, [0, 1])
    assert found.not_compared is None


def test_too_many_rows_are_not_compared_and_it_is_said(local: Scene) -> None:
    local.catalog.create("t", rows(*range(20)))
    before = local.catalog_version()
    local.catalog.overwrite("t", rows(*range(1, 21)))
    found = local.catalog.row_diff("t", before, local.catalog_version(), compared=19)
    assert (found.num_added, found.num_removed, found.removed, found.added) == (None, None, (), ())
    assert found.table_parts()[2] == ("ml.t: 20 rows, now 20; rows are not compared: 20 may differ, of at most 19")
    whole = local.catalog.row_diff("t", before, local.catalog_version(), compared=20)
    assert (whole.num_added, whole.num_removed) == (1, 1)


def test_long_rows_are_not_compared(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_client.row_differences.MOST_BYTES", 1 << 10)
    local.catalog.create("t", rows(1, 2, word="x" * 2_000))
    before = local.catalog_version()
    local.catalog.overwrite("t", rows(1, 3, word="x" * 2_000))
    found = local.catalog.row_diff("t", before, local.catalog_version(), compared=2)
    assert found.not_compared is not None
    assert "expected at most 1,024 bytes" in found.not_compared


def test_rows_in_many_places_are_not_compared(local: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_client.row_differences._MOST_RUNS", 1)
    local.catalog.create("t", rows(0))
    for number in range(1, 4):
        local.catalog.append("t", rows(number))
    before = local.catalog_version()
    local.catalog.delete("t", "id IN (1, 3)")
    found = local.catalog.row_diff("t", before, local.catalog_version())
    assert found.not_compared == "rows are not compared: they lie in 2 places, of at most 1"


def test_all_kinds_of_values_are_compared(scene: Scene) -> None:
    values = {
        "id": pa.array([1, 2], pa.int64()),
        "real": pa.array([float("nan"), 0.1]),
        "late": pa.array([2**62, None], pa.timestamp("us")),
        "nested": pa.array([{"a": [1]}, None], pa.struct({"a": pa.list_(pa.int8())})),
        "data": pa.array([b"\x00", b"\xff"]),
    }
    scene.catalog.create("t", pa.table(values))
    before = scene.catalog_version()
    scene.catalog.overwrite("t", pa.table(values | {"data": pa.array([b"\x00", b"\xfe"])}))
    found: RowDiff = scene.catalog.row_diff("t", before, scene.catalog_version())
    assert (found.removed_rows["id"].to_pylist(), found.added_rows["id"].to_pylist()) == ([2], [2])
    assert [row.cells[-1].text for row in (*found.removed, *found.added)] == ["ff", "fe"]
    assert repr(found).splitlines()[1].split()[:2] == ["-", "2"]


def test_a_table_without_a_version_has_no_rows_to_compare(scene: Scene) -> None:
    stock = scene.stock()
    stock.declare_table(DeclareTableRequest(id=[scene.namespace, "d"]))
    made = scene.catalog_version()
    with pytest.raises(NotFound):
        scene.catalog.row_diff("d", made, made)
