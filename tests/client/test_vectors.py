"""Lists of numbers that become vectors of a fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from namespace_client import InvalidCall
from table_data.arrow.vectors import with_vectors
from tests.client.scene import Scene

LISTS = {"id": [1, 2], "embedding": [[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]], "tags": [["a"], ["b"]], "n": [[1], [2]]}
VECTOR = pa.list_(pa.float32(), 3)


@pytest.mark.parametrize(
    "data",
    [
        LISTS,
        [dict(zip(LISTS, row, strict=True)) for row in zip(*LISTS.values(), strict=True)],
        pd.DataFrame(LISTS),
        pa.table(LISTS),
        pa.table(LISTS).to_batches()[0],
    ],
    ids=lambda data: type(data).__name__,
)
@pytest.mark.parametrize("vectors", [{"embedding": 3}, "infer"], ids=["given", "infer"])
def test_lists_become_vectors(local: Scene, data: Any, vectors: Any) -> None:
    local.catalog.create("t", data, vectors=vectors)
    found = local.catalog.describe("t").schema
    assert found is not None
    assert found.field("embedding").type == VECTOR
    assert pa.types.is_list(found.field("n").type)
    assert local.catalog.read("t")["embedding"].to_pylist() == LISTS["embedding"]
    with local.catalog.begin() as tx:
        tx.append("t", LISTS)
    assert local.catalog.read("t")["embedding"].to_pylist() == LISTS["embedding"] * 2


def test_they_can_have_an_index_of_vectors(local: Scene) -> None:
    lists = np.random.default_rng(1).random((300, 8)).tolist()
    with local.catalog.begin() as tx:
        tx.create("t", {"v": lists}, vectors={"v": 8})
    with local.catalog.begin() as tx:
        tx.create_index("t", "v", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    [index] = local.catalog.describe("t").indices
    assert (index.columns, index.rows) == (("v",), 300)


def test_an_overwrite_has_them_too(local: Scene) -> None:
    local.make("t", 1)
    with local.catalog.begin() as tx:
        tx.overwrite("t", LISTS, vectors="infer")
    assert local.catalog.read("t").schema.field("embedding").type == VECTOR


def test_a_stream_stays_a_stream_where_dimensions_are_given() -> None:
    read: list[int] = []

    def batches() -> Any:
        for number in range(3):
            read.append(number)
            yield pa.record_batch({"v": [[float(number)] * 2, None]})

    made = with_vectors(
        pa.RecordBatchReader.from_batches(pa.schema({"v": pa.list_(pa.float64())}), batches()), {"v": 2}
    )
    assert isinstance(made, pa.RecordBatchReader)
    assert read == []
    assert made.read_next_batch().column(0).to_pylist() == [[0.0, 0.0], None]
    assert read == [0]


def test_small_floats_stay_small_and_what_is_no_vector_stays_a_list() -> None:
    table = pa.table(
        {
            "half": pa.array([[np.float16(1)]], pa.list_(pa.float16())),
            "uneven": [[1.0, 2.0]],
            "empty": pa.array([[]], pa.list_(pa.float64())),
        }
    )
    found = with_vectors(pa.concat_tables([table, table.set_column(1, "uneven", pa.array([[1.0]]))]), "infer").schema
    assert found.field("half").type == pa.list_(pa.float16(), 1)
    assert found.field("uneven").type == pa.list_(pa.float64())
    assert found.field("empty").type == pa.list_(pa.float64())


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ({"embedding": 4}, "expected lists of 4, found one of 3"),
        ({"absent": 3}, "expected one of"),
        ({"id": 3}, "expected lists of numbers, found int64"),
        ({"tags": 1}, "expected lists of numbers"),
        ({"embedding": 0}, "from 1 on"),
        ("guess", "or 'infer'"),
        (True, "or 'infer'"),
    ],
)
def test_what_cannot_be_is_refused(local: Scene, vectors: Any, reason: str) -> None:
    with pytest.raises(InvalidCall, match=reason):
        local.catalog.create("t", LISTS, vectors=vectors)
    with pytest.raises(InvalidCall, match="no schema"):
        local.catalog.create("t", LISTS, vectors="infer", schema=pa.schema([("id", pa.int64())]))
    assert local.catalog.tables() == []
