"""Each way by which rows come in casts what casts exactly, and refuses all else by the names of column and row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from namespace_client import AlreadyExists, InvalidCall
from tests.client.scene import Scene

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("t", pa.string()),
        ("v", pa.list_(pa.float32(), 2)),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("at", pa.timestamp("us")),
    ]
)
ROW = {"id": 1, "n": 2, "t": "x", "v": [1.0, 2.0], "s": {"a": 1, "b": None}, "at": None}
LOOSE = pa.schema(
    [
        ("at", pa.null()),
        ("s", pa.struct([("a", pa.float64())])),
        ("v", pa.large_list(pa.field("element", pa.float64()))),
        ("t", pa.dictionary(pa.int8(), pa.large_string())),
        ("n", pa.float64()),
        ("id", pa.uint32()),
    ]
)
"""Other types of the same values, in another order."""
WRONG = {
    "fraction": pa.table({"id": [1, 2], "n": [1.0, 2.9]}),
    "range": pa.table({"id": [1, 2], "n": pa.array([1, 2**40], pa.int64())}),
    "text": pa.table({"id": [1, 2], "n": ["1", "2"]}),
    "null": pa.table({"id": pa.array([1, None], pa.int64())}),
    "column": pa.table({"id": [1], "nmae": [1]}),
    "field": pa.table({"id": [1], "s": [{"a": 1, "bb": "x"}]}),
    "zone": pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))}),
    "length": pa.table({"id": [1, 2], "v": [[1.0, 2.0], [1.0]]}),
}
NAMED = {
    "fraction": "column 'n', row 2: expected int32, found 2.9",
    "range": "column 'n', row 2: expected int32, found 1099511627776",
    "text": "column 'n': expected int32, found string",
    "null": "column 'id', row 2: expected no nulls, found 1 nulls among 2 rows",
    "column": "surplus ['nmae']",
    "field": "column 's.bb': expected one of the fields ['a', 'b']",
    "zone": "column 'at': expected timestamp[us], found timestamp[us, tz=UTC]",
    "length": "column 'v', row 2: expected fixed_size_list<item: float>[2], found a list of 1",
}
Way = Callable[[Scene, Any], object]


def append(scene: Scene, data: Any) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", schema=SCHEMA)
        tx.append("t", data)


def merge(scene: Scene, data: Any) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", schema=SCHEMA)
        tx.merge("t", data, on="id")


def overwrite(scene: Scene, data: Any) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", {"other": [1]})
        tx.overwrite("t", data, schema=SCHEMA)


def row_writer(scene: Scene, data: Any) -> None:
    with scene.catalog.begin() as tx:
        tx.create("t", schema=SCHEMA)
        writer = tx.row_writer("t")
        tx.add_written(writer, [writer.write(data)])


def row_writer_of_a_table(scene: Scene, data: Any) -> None:
    with scene.catalog.begin() as tx:
        writer = tx.row_writer("t", mode="create", schema=SCHEMA)
        tx.add_written(writer, [writer.write(data)])


WAYS: dict[str, Way] = {
    "append": append,
    "merge": merge,
    "create": lambda scene, data: scene.catalog.create("t", data, schema=SCHEMA),
    "overwrite": overwrite,
    "row writer": row_writer,
    "row writer of a table": row_writer_of_a_table,
}
FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda rows: rows,
    "reader": lambda rows: rows.to_reader(),
    "columns": lambda rows: rows.to_pydict(),
    "rows": lambda rows: rows.to_pylist(),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_fits_is_stored(local: Scene, way: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = pa.Table.from_pylist([ROW], schema=LOOSE)
    frame = pandas.DataFrame(
        {"id": [1], "n": [2.0], "t": pandas.Categorical(["x"]), "v": [np.array([1.0, 2.0])], "s": [{"a": 1.0}]},
        index=[7],
    )
    forms = {form: make(rows) for form, make in FORMS.items()} | {"pandas": frame, "polars": polars.from_arrow(rows)}
    for form, data in forms.items():
        WAYS[way](local, data)
        found = local.catalog.read("t")
        assert found.schema == SCHEMA, form
        assert found.to_pylist() == [ROW], form
        local.catalog.drop("t")


@pytest.mark.parametrize(
    ("way", "wrong"),
    # a merge with a key of null inserts a row, and is refused by another rule
    [(way, wrong) for way in WAYS for wrong in WRONG if (way, wrong) != ("merge", "null")],
)
def test_what_does_not_fit_is_refused_by_name(local: Scene, way: str, wrong: str) -> None:
    for form, make in FORMS.items():
        with pytest.raises(InvalidCall) as caught:
            WAYS[way](local, make(WRONG[wrong]))
        if form in {"table", "reader"}:
            assert NAMED[wrong] in str(caught.value), form
        else:
            assert NAMED[wrong].partition("'")[2].partition("'")[0].partition(".")[0] in str(caught.value), form
        assert local.catalog.tables() == []


@pytest.mark.parametrize("scene", ["http"], indirect=True)
def test_over_http(scene: Scene) -> None:
    scene.catalog.create("t", schema=SCHEMA)
    route = f"{scene.target}/v1/table/{scene.namespace}$t"
    headers = {"content-type": "application/vnd.apache.arrow.stream"}

    def send(call: str, rows: pa.Table) -> httpx.Response:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return httpx.post(f"{route}/{call}", content=sink.getvalue().to_pybytes(), headers=headers, timeout=60)

    calls = ("insert", "merge_insert?on=id&when_matched_update_all=true")
    for call in calls:
        assert send(call, pa.Table.from_pylist([ROW], schema=LOOSE)).status_code == 200
        assert scene.catalog.read("t").to_pylist() == [ROW]
    for call in calls:
        for name, rows in WRONG.items():
            if name == "null" and call != "insert":
                continue
            answer = send(call, rows)
            assert (answer.status_code, answer.json()["code"]) == (400, 20), answer.text
            assert NAMED[name] in answer.json()["error"]
    assert scene.catalog.read("t").to_pylist() == [ROW]


@pytest.mark.parametrize("way", WAYS)
def test_values_of_python_have_the_types_of_the_table(local: Scene, way: str) -> None:
    """Also where pyarrow would find another type for them."""
    column = pa.map_(pa.string(), pa.list_(pa.uint64()))
    schema = pa.schema([*SCHEMA, ("m", column)])
    rows = [{"id": 1, "m": {"a": [2**64 - 1]}}, {"id": 2, "m": {"b": []}}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.client.test_values.SCHEMA", schema)
        WAYS[way](local, rows)
    found = local.catalog.read("t").sort_by("id")
    assert found["m"].to_pylist() == [[("a", [2**64 - 1])], [("b", [])]]


def test_a_key_of_another_type_matches(local: Scene) -> None:
    local.catalog.create("t", {"id": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})
    with local.catalog.begin() as tx:
        counts = tx.merge("t", pa.table({"id": pa.array([2.0, 3.0]), "v": pa.array(["B", "C"])}), on="id")
    assert (counts.inserted, counts.updated) == (1, 1)
    with (
        pytest.raises(InvalidCall, match=r"column 'id', row 1: expected int64, found 2\.5"),
        local.catalog.begin() as tx,
    ):
        tx.merge("t", [{"id": 2.5, "v": "x"}], on="id")


def test_columns_that_rows_do_not_have(local: Scene) -> None:
    """They are null in new rows. Those of rows that a merge finds stay what they are."""
    local.catalog.create("t", {"id": [1], "a": ["a"], "b": ["b"]})
    with local.catalog.begin() as tx:
        tx.append("t", [{"id": 2, "a": "x"}, {"id": 3}])
        tx.merge("t", {"id": [1], "a": ["y"]}, on="id")
    assert local.catalog.read("t").sort_by("id").to_pylist() == [
        {"id": 1, "a": "y", "b": "b"},
        {"id": 2, "a": "x", "b": None},
        {"id": 3, "a": None, "b": None},
    ]


def test_keys_of_all_rows_make_a_table(local: Scene) -> None:
    local.catalog.create("t", [{"a": 1}, {"b": "x"}, {}])
    assert local.catalog.read("t").to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}]


def test_a_row_is_counted_over_all_batches(local: Scene) -> None:
    local.catalog.create("t", schema=pa.schema([("n", pa.int8())]))
    batches = [pa.record_batch({"n": pa.array([number] * 3)}) for number in (1, 2, 300)]
    for data in (pa.Table.from_batches(batches), pa.RecordBatchReader.from_batches(batches[0].schema, batches)):
        refused = pytest.raises(InvalidCall, match="column 'n', row 7: expected int8, found 300")
        with refused, local.catalog.begin() as tx:
            tx.append("t", data)


def test_arrays_of_two_dimensions_are_vectors(local: Scene) -> None:
    local.catalog.create("t", {"id": [1, 2], "v": np.ones((2, 4), np.float32)})
    assert local.catalog.read("t").schema.field("v").type == pa.list_(pa.float32(), 4)
    with local.catalog.begin() as tx:
        tx.append("t", {"id": [3], "v": np.ones((1, 4))})
        tx.append("t", {"id": [4], "v": [[1, 2, 3, 4]]})
    assert local.catalog.read("t")["v"].to_pylist() == [[1.0] * 4] * 3 + [[1.0, 2.0, 3.0, 4.0]]
    local.catalog.create("u", {"v": [[1, 2], [3, 4]]}, vectors=["v"])
    assert local.catalog.read("u").schema.field("v").type == pa.list_(pa.float32(), 2)
    with pytest.raises(InvalidCall, match="column 'v': expected lists of one length"):
        local.catalog.create("w", {"v": [[1, 2], [3]]}, vectors=["v"])


def test_values_of_an_update(local: Scene) -> None:
    local.catalog.create("t", {"n": pa.array([1], pa.int32()), "f": pa.array([2.9]), "i": [2**53 + 1]})
    for values, found in (
        ({"n": "f"}, r"column 'n': expected int32, found 2\.9"),
        ({"f": "i"}, "column 'f': expected double"),
    ):
        with pytest.raises(InvalidCall, match=found), local.catalog.begin() as tx:
            tx.update("t", values)


@pytest.mark.parametrize("name", ["*", "", "a.b", "`", "a\0b"])
def test_names_by_which_no_column_is_found(local: Scene, name: str) -> None:
    with pytest.raises(InvalidCall, match=r"column .*: expected a name that is not empty, is not '\*'|without NUL"):
        local.catalog.create("t", {name: [1], "v": [1]})


def test_a_name_that_is_taken(local: Scene) -> None:
    local.catalog.create("t", {"a": [1]})
    with pytest.raises(AlreadyExists, match=r"t exists: overwrite it, or append to it"):
        local.catalog.create("t", {"a": [1]})
