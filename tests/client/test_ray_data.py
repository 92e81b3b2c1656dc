"""Ray datasets that are written into several tables of one transaction, by tasks of a real Ray."""

from __future__ import annotations

import decimal
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from namespace_client import InvalidCall
from tests.client.scene import Scene

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of Ray


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def sink(*arguments: Any, **options: Any) -> Any:
    from namespace_client.ray_data import TableSink

    return TableSink(*arguments, **options)


def vectors(batch: dict[str, Any]) -> dict[str, Any]:
    ids = batch["id"]
    return {
        "id": ids,
        "v": np.stack([ids, ids + 0.5], axis=1).astype(np.float32),
        "ragged": np.array([np.ones(int(number) % 3 + 1, np.float32) for number in ids], dtype=object),
        "half": [None if number % 2 else 0.5 for number in ids],
    }


VECTORS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.list_(pa.float32(), 2)),
        ("ragged", pa.list_(pa.float32())),
        ("half", pa.float64()),
    ]
)


def test_several_tables_move_together(ray: Any, scene: Scene) -> None:
    scene.make("t", -1)
    base = ray.data.range(60, override_num_blocks=4)
    with scene.catalog.begin(message="nightly") as tx:
        written = sink(tx, "embeddings", mode="create", schema=VECTORS, properties={"a": "b"})
        base.map_batches(vectors).write_datasink(written)
        base.map_batches(lambda batch: {"id": batch["id"], "v": batch["id"] * 1.0}).write_datasink(sink(tx, "t"))
        base.filter(lambda row: row["id"] < 10).write_datasink(sink(tx, "t"))
        base.write_datasink(sink(tx, "ids", mode="create"))
        assert written.rows == 60
        assert tx.table("t").count_rows() == 71
        assert scene.ids() == [-1]
    assert tx.result.catalog_version == scene.catalog_version()
    assert scene.ids() == sorted([-1, *range(60), *range(10)])
    assert scene.ids("ids") == list(range(60))
    made = scene.open("embeddings")
    assert made.schema == VECTORS
    assert made.to_table(filter="id = 7").to_pylist() == [
        {"id": 7, "v": [7.0, 7.5], "ragged": [1.0, 1.0], "half": None}
    ]
    assert scene.catalog.describe("embeddings").properties["a"] == "b"


def test_an_overwrite(ray: Any, local: Scene) -> None:
    local.make("t", 1)
    with local.catalog.begin() as tx:
        ray.data.range(5).write_datasink(sink(tx, "t", mode="overwrite"))
    assert local.ids() == [0, 1, 2, 3, 4]
    assert local.version() == 2
    with local.catalog.begin() as tx:
        ray.data.range(5).filter(lambda row: row["id"] > 9).write_datasink(
            sink(tx, "t", mode="overwrite", schema=pa.schema([("k", pa.int8())]))
        )
    assert local.open().schema.names == ["k"]
    assert local.open().count_rows() == 0


def test_rows_are_exact_when_a_task_dies_and_is_repeated(ray: Any, local: Scene, tmp_path: Path) -> None:
    local.make("t", -1)
    died = str(tmp_path / "died")

    def die_once(batch: dict[str, Any]) -> dict[str, Any]:
        if 30 in batch["id"]:
            try:
                Path(died).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return {"id": batch["id"], "v": batch["id"] * 1.0}

    with local.catalog.begin() as tx:
        ray.data.range(40, override_num_blocks=4).map_batches(die_once).write_datasink(sink(tx, "t"))
    assert Path(died).exists()
    assert local.ids() == [-1, *range(40)]


def test_a_job_that_fails_is_no_part_of_the_transaction(ray: Any, local: Scene) -> None:
    local.make("t", -1)
    local.make("u", -1)

    def fail(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 39:
            raise ValueError("a bad row")
        return {"id": row["id"], "v": 0.0}

    with local.catalog.begin() as tx:
        with pytest.raises(ray.exceptions.RayTaskError, match="a bad row"):
            ray.data.range(40, override_num_blocks=4).map(fail).write_datasink(sink(tx, "t"))
        ray.data.range(2).write_datasink(sink(tx, "u"))
    assert local.ids() == [-1]
    assert local.ids("u") == [-1, 0, 1]


def test_what_is_refused(ray: Any, local: Scene) -> None:
    local.make("t", -1)
    base = ray.data.range(4, override_num_blocks=2)
    with local.catalog.begin() as tx:
        once = sink(tx, "t")
        base.write_datasink(once)
        with pytest.raises(InvalidCall, match="was used"):
            base.write_datasink(once)
        for job, expected in (
            (lambda batch: {"id": batch["id"], "m": np.ones((len(batch["id"]), 2, 2))}, "tensors of one dimension"),
            (lambda batch: {"id": batch["id"], "other": batch["id"]}, "surplus .'other'."),
            (lambda batch: {"id": batch["id"] + 0.5}, "expected int64"),
        ):
            with pytest.raises(InvalidCall, match=expected):
                base.map_batches(job).write_datasink(sink(tx, "t"))
        with pytest.raises(InvalidCall, match="give a schema"):
            base.map(lambda row: {"id": row["id"] if row["id"] > 1 else 0.5}).write_datasink(
                sink(tx, "new", mode="create")
            )
        with pytest.raises(InvalidCall, match="no such table"):
            sink(tx, "absent")
    assert local.ids() == [-1, 0, 1, 2, 3]
    assert [name[-1] for name in local.catalog.tables()] == ["t"]


def test_decimals_in_the_memory_of_ray(ray: Any, local: Scene) -> None:
    value = decimal.Decimal("1.25")
    part = pa.table({"s": ["a", "bcd"], "d": pa.array([value, None], pa.decimal128(20, 2))})
    with local.catalog.begin() as tx:
        ray.data.from_arrow([part, part, part.slice(1)]).write_datasink(sink(tx, "t", mode="create"))
    assert sorted(map(str, local.open().to_table()["d"].to_pylist())) == ["1.25", "1.25", "None", "None", "None"]


def test_fewer_files(ray: Any, local: Scene) -> None:
    with local.catalog.begin() as tx:
        ray.data.range(40, override_num_blocks=8).write_datasink(sink(tx, "t", mode="create", min_rows_per_file=40))
    assert len(local.open().get_fragments()) == 1


def test_a_transaction_that_ends_with_an_exception_leaves_no_file(ray: Any, local: Scene) -> None:
    local.make("t", 1)
    place = Path(local.target) / local.uri().rpartition("/")[2] / "data"
    before = set(place.iterdir())
    assert before

    def change() -> None:
        with local.catalog.begin() as tx:
            ray.data.range(4, override_num_blocks=2).write_datasink(sink(tx, "t"))
            assert len(set(place.iterdir())) > len(before)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        change()
    assert set(place.iterdir()) == before
    assert local.ids() == [1]
