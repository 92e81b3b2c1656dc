"""Every type that a table has, through every format of files: the same values, or a refusal when they are written."""

from __future__ import annotations

import io
from contextlib import closing
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from namespace_server.cli.files.arrow_files import ArrowRows
from namespace_server.cli.files.csv_files import CsvRows
from namespace_server.cli.files.formats import FileFormat
from namespace_server.cli.files.json_files import JsonRows
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.row_writers import write_rows
from namespace_server.cli.files.sources import RowSource
from table_data.values.misfits import TypeRefused
from table_data.values.type_texts import schema_of, type_of

LISTS = [[1, None], None, [], [3]]
COLUMNS: dict[str, pa.Array] = {
    "bool": pa.array([True, None, False]),
    **{
        f"int{bits}": pa.array([-(2 ** (bits - 1)), None, 2 ** (bits - 1) - 1], f"int{bits}")
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": pa.array([0, None, 2**bits - 1], f"uint{bits}") for bits in (8, 16, 32, 64)},
    "float16": pa.array(np.array([0.1, 65504, -2], np.float16)),
    "float32": pa.array([0.1, None, 3.4e38, 1e-45, float("inf"), 16777217.0], pa.float32()),
    "float64": pa.array([0.1, None, 1e300, -0.0, 5e-324, float("-inf"), 1.2345678901234568e20, 2.0**63, 1 / 3]),
    "nan": pa.array([float("nan"), 1.0]),
    "string": pa.array(
        ["", None, "a,b", 'say "x"', "two\nlines\r\n", "null", "NA", " x ", "007", "ü\U0001f600", "2024-01-02"]
    ),
    "large_string": pa.array(["", None, "x"], pa.large_string()),
    "binary": pa.array([b"", None, b"\x00\xff", b"AP8="]),
    "large_binary": pa.array([b"", None, b"\x00\xff"], pa.large_binary()),
    "fixed_size_binary": pa.array([b"\x00\xff", None], pa.binary(2)),
    "decimal128": pa.array([Decimal("12345678901234567890.0123456789"), None, Decimal("0E-10")], pa.decimal128(38, 10)),
    "decimal256": pa.array([Decimal(10**60), None, Decimal(-1)], pa.decimal256(76, 3)),
    "date32": pa.array([0, None, -800_000, 10_000_000], pa.date32()),
    "date64": pa.array([0, None, 86_400_000], pa.date64()),
    "time32_s": pa.array([0, None, 86_399], pa.time32("s")),
    "time32_ms": pa.array([1, None, 86_399_999], pa.time32("ms")),
    "time64_us": pa.array([1, None, 86_399_999_999], pa.time64("us")),
    "time64_ns": pa.array([1, None, 86_399_999_999_999], pa.time64("ns")),
    **{
        f"timestamp_{unit}": pa.array([-1, None, 1_700_000_000], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")
    },
    "timestamp_far": pa.array([-(10**17), None, 3 * 10**17 + 1], pa.timestamp("us")),
    "timestamp_far_utc": pa.array([-(10**17), None, 3 * 10**17 + 1], pa.timestamp("us", "UTC")),
    "timestamp_ends": pa.array([1 - 2**63, None, 2**63 - 1], pa.timestamp("ns")),
    "timestamp_far_fraction": pa.array([205_000, None, 3 * 10**17 + 102_030], pa.timestamp("us")),
    "timestamp_utc": pa.array([1, None, 1_700_000_000_000_001], pa.timestamp("us", "UTC")),
    "timestamp_zone": pa.array([1, None, 1_700_000_000_000_000_001], pa.timestamp("ns", "Europe/Berlin")),
    "timestamp_far_zone": pa.array([1, None, 3 * 10**11], pa.timestamp("s", "America/New_York")),
    **{f"duration_{unit}": pa.array([-1, None, 2**63 - 1], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "list": pa.array(LISTS, pa.list_(pa.int64())),
    "large_list": pa.array(LISTS, pa.large_list(pa.int32())),
    "vector": pa.array([[0.1, 1e-45], None, [float("nan"), 3.0]], pa.list_(pa.float32(), 2)),
    "list_of_bytes": pa.array([[b"\xff", None], None, []], pa.list_(pa.binary())),
    "list_of_text": pa.array([["", None, "NA"], None, []]),
    "struct": pa.array(
        [{"a": 1, "t": 5, "l": ["x"]}, None, {"a": None, "t": None, "l": None}],
        pa.struct([("a", pa.int64()), ("t", pa.timestamp("ns")), ("l", pa.list_(pa.string()))]),
    ),
    "map": pa.array([[("k", 1), ("", None)], None, []], pa.map_(pa.string(), pa.int64())),
    "map_of_numbers": pa.array([[(1, b"\xff")], None, []], pa.map_(pa.int32(), pa.binary())),
}
"""One column for each type, with null, what is empty, the extremes, and what is easily taken for something else."""
NESTED = {name for name, column in COLUMNS.items() if pa.types.is_nested(column.type)}


class _Kept(io.BytesIO):
    def close(self) -> None:
        """Stay readable."""


def source_of(data: bytes, kind: FileFormat = "csv", name: str = "rows") -> RowSource:
    return RowSource(name, kind, lambda: pa.PythonFile(io.BytesIO(data), "r"), lambda: None)


def written(kind: FileFormat, table: pa.Table) -> bytes:
    stream = _Kept()
    write_rows(stream, kind, table.schema, iter(table.to_batches(max_chunksize=2)))
    return stream.getvalue()


def read_again(kind: FileFormat, data: bytes, schema: pa.Schema) -> pa.Table:
    source = source_of(data, kind)
    rows: Any = CsvRows(source) if kind == "csv" else JsonRows(source)
    return pa.Table.from_batches(rows.batches(schema), schema)


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether all values are equal, NaN to NaN."""
    return repr(raw(one)) == repr(raw(other))


def raw(table: pa.Table) -> list[Any]:
    """Values as Python has them, times as whole numbers: it has not all of them."""

    def plain(array: Any) -> Any:
        kind = array.type
        if pa.types.is_temporal(kind):
            return array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        if pa.types.is_struct(kind):
            return array.is_null().to_pylist(), [plain(child) for child in array.flatten()]
        return array.to_pylist()

    return [plain(column.combine_chunks()) for column in table.columns]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_what_is_written_as_text_is_read_again_as_it_was(kind: FileFormat, name: str) -> None:
    rows = pa.table({"id": range(len(COLUMNS[name])), name: COLUMNS[name]})
    for table in (rows, rows.select([name]), rows.slice(1)):  # a null alone in its line, and arrays that begin later
        if kind == "csv" and name in NESTED:
            with pytest.raises(FileRefused, match=f"column {name} holds lists"):
                written(kind, table)
            continue
        again = read_again(kind, written(kind, table), table.schema)
        assert again.schema == table.schema
        assert same(again, table), written(kind, table).decode()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_is_written_with_types_is_read_again_as_it_was(kind: FileFormat) -> None:
    for name, column in COLUMNS.items():
        table = pa.table({name: column})
        with closing(pa.BufferReader(written(kind, table))) as stream:
            again = pa.parquet.read_table(stream) if kind == "parquet" else pa.ipc.open_file(stream).read_all()
        assert same(again.cast(table.schema), table), name


def test_a_type_reads_as_it_is_printed() -> None:
    for column in COLUMNS.values():
        assert type_of(str(column.type)) == column.type
    found = schema_of("zip text, `two words` decimal(10, 2), at timestamp[us, UTC], v float[3], tags string[], d date")
    assert [str(each.type) for each in found] == [
        *("string", "decimal128(10, 2)", "timestamp[us, tz=UTC]", "fixed_size_list<item: float>[3]"),
        *("list<item: string>", "date32[day]"),
    ]
    assert found.names[1] == "two words"
    assert type_of("dictionary<values=int8, indices=int8, ordered=1>").ordered
    assert schema_of("größe text").names == ["größe"]
    for wrong in (
        "a timestamp[us, Nowhere/Else]",
        "a dictionary<value=string>",
        "a dictionary<indices=float>",
        "a float[²]",
        "a",
        "a nosuch",
        "a int64 b",
        "a decimal(99, 2)",
        "a int64, a text",
        "a struct<",
        "a timestamp[x]",
    ):
        with pytest.raises(TypeRefused):
            schema_of(wrong)


def test_dictionaries_of_several_batches_are_one_in_a_file() -> None:
    parts = [pa.table({"d": pa.array(values).dictionary_encode()}) for values in (["a"], ["b", "a"], [None, "c"])]
    stream = _Kept()
    write_rows(stream, "arrow", parts[0].schema, (part.to_batches()[0] for part in parts))
    assert pa.ipc.open_file(stream.getvalue()).read_all()["d"].to_pylist() == ["a", "b", "a", None, "c"]


def test_a_stream_of_arrow_that_is_cut_or_goes_on_is_refused() -> None:
    table = pa.table({"a": range(4)})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)
    data = stream.getvalue()
    old = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    legacy = io.BytesIO()
    with pa.ipc.new_stream(legacy, table.schema, options=old) as writer:
        writer.write_table(table)
    for whole in (data, legacy.getvalue()):
        batches = ArrowRows(source_of(whole, "arrow")).batches()
        assert pa.Table.from_batches(batches).equals(table)
    for wrong, said in (
        (data[:-8], "expected the mark at the end of an Arrow stream, found the end of the file"),
        (data + data, f"expected the end of the file after an Arrow stream, found {len(data):,} more bytes"),
        (data[: len(data) // 2], "not read as arrow"),
    ):
        with pytest.raises(FileRefused, match=said):
            list(ArrowRows(source_of(wrong, "arrow")).batches())


TEXTS: list[tuple[str, str, Any]] = [
    *[
        ("int64", text, value)
        for text, value in (("7", 7), ("007", 7), ("+7", 7), (" 7 ", 7), ("7.0", 7), ("1e3", 1000))
    ],
    *[
        ("int64", text, None)
        for text in ("2.9", "0x10", "x", "1_0", "1,0", "9223372036854775808", "true", "2024-01-02")
    ],
    *[("uint64", text, 2**64 - 1) for text in ("18446744073709551615.0", "1.8446744073709551615e19")],
    *[("double", "nan(7)", None), ("float", "NaN(x)", None)],
    *[("uint64", "18446744073709551615", 2**64 - 1), ("uint64", "-1", None), ("int8", "128", None)],
    *[("double", text, value) for text, value in (("+1.5", 1.5), ("1.", 1.0), ("Infinity", float("inf")))],
    *[("double", text, None) for text in ("1e400", "1e-400", "9007199254740993", "1,5", "0x10", "true")],
    *[
        ("float", "0.1", np.float32(0.1)),
        ("float", "16777217", None),
        ("float", "1e39", None),
        ("halffloat", "70000", None),
    ],
    *[("decimal128(10, 2)", text, Decimal(text)) for text in ("1.5", "1.500", "1e3", "99999999.99")],
    *[("decimal128(10, 2)", text, None) for text in ("1.234", "999999999.99", "NaN", "x")],
    *[("bool", text, True) for text in ("true", "TRUE", "t", "yes", "1")],
    *[("bool", text, None) for text in ("2", "ja", "1.0")],
    *[("date32", text, None) for text in ("2024-1-2", "2024-02-30", "2024-01-02T00:00:00", "01/02/2024", "20240102")],
    *[("timestamp[us]", text, None) for text in ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.1234567", "12:00", "5")],
    *[("timestamp[us, UTC]", text, None) for text in ("2024-01-02 03:04:05", "2024-01-02", "2024-01-02 25:00:00Z")],
    *[
        ("time64[us]", f"12:00:00.{fraction}", time.fromisoformat(f"12:00:00.{fraction:0<6}"))
        for fraction in ("205", "2050", "100001", "050", "000100", "102030")
    ],
    *[
        ("timestamp[us]", f"2024-01-02 12:00:00.{fraction}000", datetime.fromisoformat(f"2024-01-02T12:00:00.{micros}"))
        for fraction, micros in (("205", "205000"), ("100001", "100001"), ("0501", "050100"), ("000100", "000100"))
    ],
    *[
        (f"timestamp[{kind}]", f"2024-01-02T03:04:05{fraction}", None)
        for kind, fraction in (
            ("s", ".5"),
            ("s", "."),
            ("s, UTC", ".5Z"),
            ("s, UTC", ".5+00:00"),
            ("ms", ".0005"),
            ("ms, UTC", ".0005+01:00"),
            ("ns", ".1234567891"),
        )
    ],
    *[
        (f"timestamp[{unit}]", "2024-01-02T03:04:05.000", datetime.fromisoformat("2024-01-02T03:04:05"))
        for unit in ("s", "ms", "us")
    ],
    *[("time32[s]", text, None) for text in ("25:00:00", "10:00:00.5", "x")],
    *[
        (f"timestamp[{kind}]", text, None)
        for kind, text in (
            ("ns", "3000-01-01"),
            ("ns", "1600-01-01 00:00:00"),
            ("ns, UTC", "9999-12-31T23:59:59Z"),
            ("us", "400000-01-01 00:00:00"),
        )
    ],
    *[("time64[us]", text, None) for text in ("12", "1230", "12:30Z", "12:30:00+01:00", "2024-01-02T12:30")],
    *[("duration[us]", text, None) for text in ("1.0000001", "1h", "1e30")],
    *[("binary", text, None) for text in ("AP9", "x y", "ü")],
    *[("fixed_size_binary[2]", "AP9h", None)],
]


@pytest.mark.parametrize(("kind", "text", "value"), TEXTS)
def test_a_text_is_the_value_that_it_writes_or_is_refused_with_its_line(kind: str, text: str, value: Any) -> None:
    schema = schema_of(f"n int64, v {kind}")
    import json

    quoted = f'"{text}"'
    for form, data in (
        ("csv", f"n,v\n1,\n2,{quoted}\n"),
        ("jsonl", f'{{"n": 1}}\n{{"n": 2, "v": {json.dumps(text)}}}\n'),
    ):
        if value is not None:
            assert read_again(form, data.encode(), schema)["v"].to_pylist() == [None, value]
            continue
        with pytest.raises(FileRefused) as refused:
            read_again(form, data.encode(), schema)
        line = 3 if form == "csv" else 2
        assert str(refused.value).startswith(f"line {line}: column v: expected ")
        assert repr(text) in str(refused.value)


DICTIONARY_OF = {"string": "1.5", "double": 1.5, "binary": None, "int64": None}
JSON_VALUES: list[tuple[str, str, Any]] = [
    *[("string", text, text) for text in ("12345678901234567890123", "1.50", "1E5", "true", "-0")],
    *[("int64", text, int(float(text))) for text in ("7", "7.0", "1e3")],
    *[("int64", text, None) for text in ("2.9", "true", "[1]", "{}", "NaN", "1e30")],
    *[("double", text, float(text)) for text in ("1", "0.1", "1e300", "9007199254740992")],
    *[("double", text, None) for text in ("9007199254740993", "1e400", "1e-400", "true")],
    *[("decimal128(38, 2)", "1234567890123456789.01", Decimal("1234567890123456789.01"))],
    *[("bool", "true", True), ("bool", "1", None), ("bool", "0.0", None)],
    *[("list<int64>", "[1, null]", [1, None]), ("list<int64>", "1", None), ("list<int64>", '["x"]', None)],
    *[
        ("float[2]", "[1, 2]", [1, 2]),
        ("float[2]", "[1]", None),
        ("float[2]", "[1, 2, 3]", None),
        ("float[2]", "[1, 1e39]", None),
    ],
    *[("struct<a: int64>", "{}", {"a": None}), ("struct<a: float16, b: text>", "{}", {"a": None, "b": None})],
    *[("struct<a: int64>", '{"a": 1}', {"a": 1}), ("struct<a: int64>", '{"a": 1, "b": 2}', None)],
    *[("struct<a: int64>", '{"a": 1, "a": 2}', None), ("struct<a: int64>", "[]", None)],
    *[("list<struct<a: int64>>", '[{"b": 2}]', None), ("map<string, int64>", '{"k": 1}', [("k", 1)])],
    *[(kind, "12", None) for kind in ("time32[s]", "time64[us]", "date32", "timestamp[us]", "binary")],
    *[("binary", text, None) for text in ("1234", "Infinity", "true")],
    *[("float", text, None) for text in ("1e-46", "0." + "0" * 50 + "1")],
    *[("double", text, None) for text in ("0." + "0" * 400 + "1", "1e-0400")],
    *[("list<float>", "[1, 1e-46]", None), ("float[1]", "[0.0]", [0.0]), ("double", "1e-300", 1e-300)],
    *[(f"dictionary<values={of}, indices=int32, ordered=0>", "1.5", value) for of, value in DICTIONARY_OF.items()],
    ("dictionary<values=string, indices=int32, ordered=0>", "true", "true"),
    *[("map<string, int64>", '[["k", 1]]', [("k", 1)]), ("map<string, int64>", '[["k"]]', None)],
    *[
        ("timestamp[us]", "5", None),
        ("date32", "19000", None),
        ("string", '"\\ud800"', None),
        ("string", '["x"]', None),
    ],
]


@pytest.mark.parametrize(("kind", "text", "value"), JSON_VALUES)
def test_a_value_of_json_is_exact_or_refused_with_its_line(kind: str, text: str, value: Any) -> None:
    data = f'{{"n": 1}}\n\n{{"v": {text}, "n": 2}}\n'.encode()
    schema = schema_of(f"n int64, v {kind}")
    if value is not None:
        assert read_again("jsonl", data, schema)["v"].to_pylist() == [None, value]
        return
    with pytest.raises(FileRefused, match=r"^line 3: "):
        read_again("jsonl", data, schema)
