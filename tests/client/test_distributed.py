"""Rows that other processes write for a transaction."""

from __future__ import annotations

import decimal
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest

from namespace_client import InvalidCall
from tests.client.scene import SCHEMA, Scene, rows

PARTS = [rows(1, 2), rows(3), rows(4, 5, 6)]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Processes that know nothing of the one with the transaction."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as made:
        yield made


def files(scene: Scene, name: str) -> set[str]:
    found = {path.name for path in Path(unquote(urlsplit(scene.uri(name)).path)).rglob("*.lance")}
    assert found
    return found


def test_appended(scene: Scene, pool: ProcessPoolExecutor) -> None:
    scene.make("t", 0)
    with scene.catalog.begin() as tx:
        writer = tx.row_writer("t")
        assert "secret" not in repr(writer)
        assert tx.add_written(writer, list(pool.map(writer.write, PARTS))) == 6
        assert tx.table("t").count_rows() == 7
        assert scene.ids() == [0]
    assert scene.ids() == [0, 1, 2, 3, 4, 5, 6]
    assert tx.result.tables[0].calls == ("append",)


def test_several_tables_in_one_batch(scene: Scene, pool: ProcessPoolExecutor) -> None:
    scene.make("t", 7, 8)
    with scene.catalog.begin() as tx:
        writers = [tx.row_writer("new", mode="create", properties={"a": "b"}), tx.row_writer("t", mode="overwrite")]
        found = [(writer, [pool.submit(writer.write, part) for part in PARTS]) for writer in writers]
        for writer, jobs in found:
            tx.add_written(writer, [job.result() for job in jobs])
    assert scene.ids("new") == scene.ids("t") == [1, 2, 3, 4, 5, 6]
    assert scene.catalog.describe("new").properties["a"] == "b"
    assert {table.version for table in tx.result.tables} == {1, 2}


def test_after_other_changes_of_the_transaction(local: Scene, pool: ProcessPoolExecutor) -> None:
    local.make("t", 0)
    with local.catalog.begin() as tx:
        tx.add_columns("t", {"w": "id * 2"})
        writer = tx.row_writer("t")
        part = pa.table({"id": [1], "v": [1.0], "w": [20]})
        tx.add_written(writer, list(pool.map(writer.write, [part])))
        tx.create("made", rows(1))
        again = tx.row_writer("made")
        tx.add_written(again, list(pool.map(again.write, [rows(2), rows(3)])))
        tx.delete("made", "id = 1")
    assert local.open().to_table(filter="id = 1")["w"].to_pylist() == [20]
    assert local.ids("made") == [2, 3]


def test_a_branch(local: Scene, pool: ProcessPoolExecutor) -> None:
    local.make("t", 0)
    local.catalog.create_branch("t", "b")
    with local.catalog.begin() as tx:
        writer = tx.row_writer("t", branch="b")
        tx.add_written(writer, list(pool.map(writer.write, PARTS)))
    assert local.ids() == [0]
    assert local.catalog.read("t", branch="b").num_rows == 7


def test_a_table_that_was_declared(local: Scene) -> None:
    local.stock().declare_table(DeclareTableRequest(id=["ml", "d"]))
    with pytest.raises(InvalidCall, match="declared already"), local.catalog.begin() as tx:
        tx.row_writer("d", mode="create", properties={"a": "b"})
    with pytest.raises(InvalidCall, match="no version"), local.catalog.begin() as tx:
        tx.row_writer("d")
    with local.catalog.begin() as tx:
        writer = tx.row_writer("d", mode="create", stable_row_ids=True)
        tx.add_written(writer, [writer.write(rows(1)), writer.write(rows(2))])
    assert local.ids("d") == [1, 2]
    assert local.open("d").has_stable_row_ids


def test_types_are_those_of_the_table(local: Scene) -> None:
    local.make("t", 0)
    with local.catalog.begin() as tx:
        writer = tx.row_writer("t")
        part = [
            pa.table({"v": pa.array([1.5], pa.float32()), "id": pa.array([1], pa.int8())}),
            pa.table({"id": [2]}),
        ]
        tx.add_written(writer, [writer.write_parts(part)])
        for wrong in ({"id": [2.5]}, {"id": ["x"], "v": [1.0]}, {"id": [1], "other": [1]}):
            with pytest.raises(InvalidCall, match=r"^ml\.t"):
                writer.write(wrong)
    assert local.values() == {0: 0.0, 1: 1.5, 2: None}


def test_a_schema(local: Scene) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.float32())])
    with local.catalog.begin() as tx:
        writer = tx.row_writer("t", mode="create", schema=schema)
        parts = [writer.write({"id": [1], "v": [None]}), writer.write({"id": [2]}), writer.write(rows(3))]
        for wrong in ({"id": [None], "v": [1.0]}, {"id": [1 << 40]}, {"v": [1.0]}):
            with pytest.raises(InvalidCall, match=r"^ml\.t"):
                writer.write(wrong)
        tx.add_written(writer, parts)
        empty = tx.row_writer("empty", mode="create", schema=schema)
        assert tx.add_written(empty, []) == 0
    assert local.open().schema == local.open("empty").schema == schema
    assert local.values() == {1: None, 2: None, 3: 3.0}


def test_parts_with_different_columns(local: Scene) -> None:
    with local.catalog.begin() as tx:
        writer = tx.row_writer("t", mode="create")
        one, other = writer.write({"id": [1]}), writer.write({"id": [1.5]})
        with pytest.raises(InvalidCall, match=r"^ml\.t: .*found id int64 and id double: give a schema"):
            tx.add_written(writer, [one, other])
        with pytest.raises(InvalidCall, match="found id int64 and id double: give a schema"):
            writer.write_parts([pa.table({"id": [1]}), pa.table({"id": [1.5]})])
        with pytest.raises(InvalidCall, match="a schema, found neither"):
            tx.add_written(writer, [])
        with pytest.raises(InvalidCall, match="a schema, found neither"):
            writer.write_parts([])
        assert tx.add_written(writer, [one]) == 1
    assert local.ids() == [1]


def test_parts_are_added_once_and_to_their_transaction(local: Scene) -> None:
    local.make("t", 0)
    with local.catalog.begin() as tx:
        writer, new = tx.row_writer("t"), tx.row_writer("new", mode="create")
        one, two, other = writer.write(rows(1)), writer.write(rows(2)), new.write(rows(3))
        with pytest.raises(InvalidCall, match=r"^ml\.t: expected each part once"):
            tx.add_written(writer, [one, one])
        tx.add_written(writer, [one])
        with pytest.raises(InvalidCall, match="expected each part once"):
            tx.add_written(writer, [two, one])
        tx.add_written(writer, [two])
    assert local.ids() == [0, 1, 2]
    with local.catalog.begin() as tx:
        again = tx.row_writer("new", mode="create")
        with pytest.raises(InvalidCall, match="expected parts of mode create, found others"):
            tx.add_written(again, [one])
        with pytest.raises(InvalidCall, match="expected parts of mode append, found others"):
            tx.add_written(writer, [other])
        with pytest.raises(InvalidCall, match="a writer of this transaction"):
            tx.add_written(new, [other])
    assert [name[-1] for name in local.catalog.tables()] == ["t"]


def test_a_table_is_created_once(local: Scene) -> None:
    with local.catalog.begin() as tx:
        writers = [tx.row_writer("t", mode="create") for _ in range(2)]
        tx.add_written(writers[0], [writers[0].write(rows(1))])
        with pytest.raises(InvalidCall, match="was created before"):
            tx.add_written(writers[1], [writers[1].write(rows(2))])
    assert local.ids() == [1]


def test_blobs(local: Scene) -> None:
    marked = pa.schema([("id", pa.int64()), pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    with local.catalog.begin() as tx:
        made = tx.row_writer("t", mode="create", schema=marked)
        tx.add_written(made, [made.write({"id": [1], "x": [b"a"]})])
        writer = tx.row_writer("t")
        given = pa.table({"id": [3], "x": pa.array([b"c"], pa.large_binary())}, schema=marked)
        tx.add_written(writer, [writer.write(part) for part in ({"id": [2], "x": [b"b"]}, given, {"id": [4]})])
    found = local.open().take_blobs("x", indices=range(4))
    assert [blob and blob.readall() for blob in found] == [b"a", b"b", b"c", None]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"mode": "append", "schema": SCHEMA}, "expected none"),
        ({"mode": "overwrite", "properties": {"a": "b"}}, "new table only"),
        ({"mode": "append", "stable_row_ids": True}, "new table only"),
        ({"mode": "create"}, "exists"),
        ({"mode": "upsert"}, "expected one of"),
        ({"table": "u"}, "no such table"),
    ],
)
def test_calls_that_are_refused(local: Scene, arguments: dict[str, Any], expected: str) -> None:
    local.make("t", 0)
    with pytest.raises(InvalidCall, match=expected), local.catalog.begin() as tx:
        tx.row_writer(**{"table": "t"} | arguments)
    assert local.ids() == [0]


def test_nothing_to_add(local: Scene) -> None:
    local.make("t", 0)
    with local.catalog.begin() as tx:
        writer = tx.row_writer("t")
        assert tx.add_written(writer, [writer.write(rows())]) == 0
        tx.row_writer("never", mode="create")
    assert local.version() == 1
    assert [name[-1] for name in local.catalog.tables()] == ["t"]


def test_files_go_with_a_transaction_that_is_not_committed(local: Scene) -> None:
    local.make("t", 0)
    before = files(local, "t")

    def change() -> None:
        with local.catalog.begin() as tx:
            writer = tx.row_writer("t", mode="overwrite")
            tx.add_written(writer, [writer.write(part) for part in PARTS])
            assert len(files(local, "t")) == len(before) + 3
            raise InterruptedError

    with pytest.raises(InterruptedError):
        change()
    assert files(local, "t") == before


def test_decimals_that_arrow_has_not_aligned(local: Scene) -> None:
    """Lance needs them at multiples of 16 bytes, whatever wrote them; an Arrow stream has them at multiples of 8."""
    schema = pa.schema([("s", pa.string()), ("d", pa.decimal128(20, 2)), ("n", pa.list_(pa.decimal128(20, 2)))])
    value = decimal.Decimal("1.25")
    made = pa.table({"s": ["ab"], "d": [value], "n": [[value, None]]}, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(made)
    data = sink.getvalue().to_pybytes()
    held = bytearray(len(data) + 32)
    for shift in (0, 8):
        start = -pa.py_buffer(held).address % 16 + shift
        held[start : start + len(data)] = data
        read = pa.ipc.open_stream(pa.py_buffer(memoryview(held)[start : start + len(data)])).read_all()
        with local.catalog.begin() as tx:
            tx.create(f"t{shift}", read)
            tx.append(f"t{shift}", read.to_reader())
            tx.merge(f"t{shift}", read.set_column(0, "s", pa.array(["c"])), on="s")
            writer = tx.row_writer(f"t{shift}")
            tx.add_written(writer, [writer.write(read)])
        assert local.open(f"t{shift}").to_table()["d"].to_pylist() == [value] * 4
