"""Versions of tables with indices, blobs and branches expire: what stays is read row by row, and by its indices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from tests.directory.gc.collecting import collect, forget_history
from tests.directory.gc.test_table_retention import days_pass
from tests.directory.gc.unreferenced import name_of, needs, versions
from tests.directory.tables import Ground

T = ["g", "t"]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("color", pa.string()),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), 8)),
        blob_field("blob"),
    ]
)
FILTERS = ("id < 20", "id = 33", "color = 'red'", "color in ('green', 'blue') and id > 40")


def some(start: int, stop: int) -> pa.Table:
    """Rows with a blob of their own file each, one in ten of them large."""
    numbers = range(start, stop)
    vectors = np.random.default_rng(start).random((stop - start) * 8, dtype=np.float32)
    columns = [
        pa.array(numbers, pa.int64()),
        pa.array([("red", "green", "blue")[number % 3] for number in numbers]),
        pa.array([f"word{number % 7} and more" for number in numbers]),
        pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8),
        blob_array([b"%d" % number * (40_000 if number % 10 == 0 else 1) for number in numbers]),
    ]
    return pa.table(columns, schema=SCHEMA)


def read(dataset: lance.LanceDataset) -> dict[str, Any]:
    """What a version answers: rows, filters with and without indices, searches, and the bytes of blobs."""
    dataset.validate()
    found = dataset.to_table(columns=["id", "color", "text", "vector"], with_row_id=True).sort_by("id")
    blobs = dataset.take_blobs("blob", ids=found["_rowid"].to_pylist())
    answers: dict[str, Any] = {"rows": found.to_pylist(), "blobs": [blob.read() for blob in blobs]}
    for text in FILTERS:
        by_index, by_scan = (
            sorted(dataset.scanner(columns=["id"], filter=text, use_scalar_index=use).to_table()["id"].to_pylist())
            for use in (True, False)
        )
        assert by_index == by_scan
        answers[text] = by_index
    indexed = {name for index in dataset.describe_indices() for name in index.field_names}
    if "text" in indexed:
        answers["words"] = sorted(dataset.to_table(columns=["id"], full_text_query="word3")["id"].to_pylist())
    if "vector" in indexed:
        nearest = {"column": "vector", "q": [0.5] * 8, "k": 5, "nprobes": 2}
        answers["nearest"] = sorted(dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist())
    return answers


def contents(ground: Ground) -> dict[tuple[str | None, int], dict[str, Any]]:
    """What each version answers that is a row of the catalog, by branch and number."""
    snapshot, uri = ground.catalog.snapshot(), str(ground.root / ground.location(T))
    return {
        (branch, row.version): read(lance.dataset(uri).checkout_version((branch, row.version)))
        for branch in snapshot.chains(tuple(T))
        for row in snapshot.versions(tuple(T), branch)
    }


def left_of(table: Path) -> set[str]:
    """The names of the files that are left, by which versions need them: blobs go with their data file."""
    names = {name_of(str(path.relative_to(table)).removeprefix("tree/dev/")) for path in table.rglob("*.*")}
    names = {f"{name}.lance" if name.startswith("data/") and "." not in name else name for name in names}
    return {name for name in names if not name.startswith(("_versions", "_refs"))}


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_what_is_kept_of_a_table_with_indices_and_blobs_is_whole(ground: Ground, stable_row_ids: bool) -> None:
    def write(data: pa.Table, mode: str = "append") -> None:
        options: dict[str, Any] = {"data_storage_version": "2.2", "enable_stable_row_ids": stable_row_ids}
        lance.write_dataset(data, mode=mode, namespace_client=ground.namespace, table_id=T, **options)

    def table() -> lance.LanceDataset:
        return lance.dataset(namespace_client=ground.namespace, table_id=T)

    write(some(0, 60), "create")
    table().create_scalar_index("id", "BTREE")
    table().create_scalar_index("color", "BITMAP")
    table().create_scalar_index("text", "INVERTED")
    table().create_index("vector", "IVF_FLAT", num_partitions=2)
    write(some(60, 80))
    table().optimize.optimize_indices()
    path = Path(ground.root / ground.location(T))
    lance.dataset(str(path)).tags.create("optimized", table().version)
    table().delete("id % 7 = 3")
    table().create_branch("dev", table().version)
    table().optimize.compact_files()
    write(some(100, 110), "overwrite")
    write(some(110, 120))
    days_pass(ground, 8)
    before = contents(ground)
    collect(ground, {"gc.tables.count": "1"})
    for _ in range(2):
        days_pass(ground, 8)
        forget_history(ground)
        collect(ground)
    after = contents(ground)
    assert after == {place: before[place] for place in after}
    assert list(after) == [(None, 7), (None, 8), (None, ground.head(T)), ("dev", 8)]  # a tag, a branch, the heads
    assert left_of(path) == {name for dataset in versions(path) for name in needs(dataset)}
