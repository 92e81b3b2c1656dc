"""What Lance would not give back is refused by the name of its column; all else comes back as it was given."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest

from table_data.arrow.body import ArrowBody
from table_data.arrow.dictionaries import widened
from table_data.arrow.storable import check_storable
from table_data.errors import InvalidCall
from table_data.staging import stage_rows, stage_table

VERSIONS = ("2.0", "2.1", "2.2")
EMPTY = pa.struct([])
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
FULL = {"a": 1, "b": "x"}
NESTED = pa.struct([("in", PAIR), ("n", pa.int64())])


def stored(uri: str, column: pa.Array | pa.ChunkedArray, version: str = "2.2") -> pa.Table:
    """A table of the column and others after it, written and read."""
    count = len(column)
    rows = pa.table({"c": column, "text": ["x"] * count, "list": pa.array([[1, 2]] * count, pa.list_(pa.int32()))})
    return opened(uri, stage_table(uri, rows, None, version, {}, exists=False)).to_table()


def opened(uri: str, operation: Any) -> lance.LanceDataset:
    from lance_core.data import arrow_schema, unpublished_uri
    from lance_core.proto import lance_table_pb2 as pb

    manifest = pb.Manifest(version=1, fields=operation.schema, fragments=operation.fragments)
    manifest.data_format.file_format, manifest.data_format.version = "lance", "2.2"
    assert arrow_schema(manifest.fields)
    encoded = manifest.SerializeToString()
    return lance.LanceDataset(unpublished_uri(uri, encoded), serialized_manifest=encoded)


@pytest.mark.parametrize(
    "kind",
    [
        EMPTY,
        pa.struct([("e", EMPTY), ("x", pa.int32())]),
        pa.list_(EMPTY),
        pa.map_(pa.string(), EMPTY),
        pa.list_(PAIR, 2),
        pa.list_(pa.string(), 2),
        pa.list_(pa.list_(PAIR, 1)),
        pa.list_(pa.float32(), 0),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("0", pa.int32())]),
        pa.list_view(pa.int32()),
        pa.decimal32(5, 2),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int32(), pa.date32()),
        pa.dictionary(pa.int32(), PAIR),
    ],
    ids=str,
)
def test_types_that_are_not_given_back_are_refused_by_name(kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("wrong", kind)])
    with pytest.raises(InvalidCall, match="column 'wrong"):
        check_storable(schema, "2.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_types_that_one_format_gives_back(version: str) -> None:
    """A format that does is not kept from it."""
    for kind, fits in ((EMPTY, {"2.0"}), (pa.binary(0), {"2.2"}), (pa.list_(pa.bool_(), 3), set(VERSIONS))):
        schema = pa.schema([("c", kind)])
        if version in fits:
            check_storable(schema, version)
        else:
            with pytest.raises(InvalidCall, match="column 'c'"):
                check_storable(schema, version)


@pytest.mark.parametrize("wrapped", [pa.list_, lambda kind: pa.struct([("f", kind)]), lambda kind: pa.list_(kind, 1)])
def test_a_type_of_more_levels_than_arrow_hands_on_is_refused(wrapped: Callable[[pa.DataType], pa.DataType]) -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(62):
        kind = wrapped(kind)
    check_storable(pa.schema([("c", kind)]), "2.2")
    with pytest.raises(InvalidCall, match=r"column 'c\..*: a type with more than 62 types in each other, which a data"):
        check_storable(pa.schema([("c", wrapped(kind))]), "2.2")


def _dictionary(index: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([index], pa.int32()), ["a"], safe=False)


def _text() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])


@pytest.mark.parametrize(
    "make",
    [
        _text,
        lambda: pa.ListArray.from_arrays([0, 1], _text()),
        lambda: pa.StructArray.from_arrays([_text()], names=["in"]),
        lambda: pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), _text(), safe=False),
        lambda: _dictionary(7),
        lambda: _dictionary(-1),
        lambda: pa.Array.from_buffers(
            pa.decimal128(3, 0), 1, [None, pa.py_buffer((10**20).to_bytes(16, "little"))]
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["table", "stream"])
def test_values_that_are_none_of_their_type(tmp_path: Any, make: Callable[[], pa.Array], form: str) -> None:
    table = pa.table({"id": [1], "wrong": make()})
    with pytest.raises(InvalidCall, match="column 'wrong': expected"):
        stage_table(
            str(tmp_path), table if form == "table" else table.to_reader(), None, "2.2", {}, exists=False
        )  # fmt: skip
    good = lance.write_dataset(table.slice(0, 0), f"memory://{uuid.uuid4().hex}")
    with pytest.raises(InvalidCall, match="column 'wrong': expected"):
        stage_rows(good, table if form == "table" else table.to_reader())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (NESTED, [{"in": FULL, "n": 1}, {"in": None, "n": None}, None, {"in": {"a": 4, "b": None}, "n": 4}]),
        (pa.list_(NESTED), [[{"in": FULL, "n": 1}], [], None, [None]]),
        (pa.struct([("m", pa.map_(pa.string(), PAIR))]), [{"m": [("k", FULL)]}, None, {"m": []}, {"m": None}]),
        (pa.struct([("f", pa.list_(pa.float32(), 2))]), [{"f": [1, 2]}, {"f": None}, None, {"f": [3, 4]}]),
        (pa.struct([("l", pa.large_list(pa.string()))]), [{"l": ["a", None]}, None, {"l": []}, {"l": ["b"]}]),
        (pa.list_(pa.list_(pa.decimal128(9, 2))), [[[Decimal("1.25")], None], None, [], [[None]]]),
        (pa.struct([("s", NESTED)]), [{"s": {"in": FULL, "n": 1}}, {"s": None}, None, {"s": None}]),
        (pa.timestamp("ns", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, None, None]),
        (pa.string_view(), ["a", None, "", "b"]),
        (pa.struct([("v", pa.string_view()), ("l", pa.list_(pa.int8()))]), [{"v": "a", "l": []}, None, None, None]),
        (pa.list_(pa.list_(pa.binary_view())), [[], None, [[b"a"], None], [[]]]),
        (pa.map_(pa.string_view(), pa.string_view()), [[], [("k", "v")], None, [("k", None)]]),
        (pa.null(), [None, None, None, None]),
    ],
    ids=lambda each: str(each)[:50],
)  # fmt: skip
def test_parts_of_columns_come_back(tmp_path: Any, kind: pa.DataType, values: list[Any]) -> None:
    whole = pa.array(values, kind)
    for start in range(4):
        for end in range(start + 1, 5):
            found = stored(f"{tmp_path}/{start}{end}", whole.slice(start, end - start))
            assert found["c"].to_pylist() == whole.slice(start, end - start).to_pylist()
            assert found["text"].to_pylist() == ["x"] * (end - start)


def test_names_that_are_not_utf8(tmp_path: Any) -> None:
    """Pyarrow decodes them when they are asked for."""
    for nested in (pa.array([{"QQQQ": 1}]), pa.array([[{"QQQQ": 1}]]), pa.array([1], pa.timestamp("us", "QQQQ"))):
        sink = pa.BufferOutputStream()
        table = pa.table({"id": [1], "c": nested})
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        data = pa.py_buffer(sink.getvalue().to_pybytes().replace(b"QQQQ", b"\xff\xfeQQ"))
        with pytest.raises(InvalidCall, match="column 1: expected names, time zones and metadata in UTF-8"):
            ArrowBody(data).rows()
        with pytest.raises(InvalidCall, match="expected names, time zones and metadata in UTF-8"):
            stage_table(str(tmp_path), pa.ipc.open_stream(data).read_all(), None, "2.2", {}, exists=False)
    for schema in (pa.schema([("a\0b", pa.int8())]), pa.schema([("c", pa.struct([("a\0b", pa.int8())]))])):
        with pytest.raises(InvalidCall, match=r"expected a name .*NUL"):
            check_storable(schema, "2.2")
    marked = table.schema.with_metadata({b"k": b"\xff"})
    with pytest.raises(InvalidCall, match="schema: expected metadata in UTF-8"):
        check_storable(marked, "2.2")


def test_what_is_whole_is_not_copied() -> None:
    from table_data.arrow.memory import readable_by_lance

    for column in (pa.array([{"in": {"a": 1, "b": "x"}}], pa.struct([("in", PAIR)])), pa.array(["a", "b"]).slice(1)):
        assert readable_by_lance(column) is column


def test_wide_indices_everywhere() -> None:
    narrow, wide = pa.dictionary(pa.uint8(), pa.string_view()), pa.dictionary(pa.int32(), pa.string())
    for of in (
        lambda kind: kind,
        lambda kind: pa.struct([("a", kind)]),
        pa.list_,
        pa.large_list,
        lambda kind: pa.map_(pa.string(), kind),
        lambda kind: pa.list_(pa.struct([("a", kind)]), 3),
    ):
        assert widened(pa.schema([("c", of(narrow))])).field("c").type == of(wide)
