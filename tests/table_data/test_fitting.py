"""What casts exactly is cast to the type of a column; all else is refused by column, row, type and value."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from table_data.arrow.fitting import fit, for_lance
from table_data.arrow.sources import rows_of
from table_data.errors import InvalidCall, SchemaMismatch

DAY, NOON, LATE = map(dt.datetime.fromisoformat, ("2020-01-01", "2020-01-01T12:00", "3000-01-01"))
PAIR = pa.struct([("a", pa.int32()), pa.field("b", pa.string())])
WORDS = pa.dictionary(pa.int32(), pa.string())
UTC = "UTC"

# type of the column | type of the values | values that are kept | a value that is refused (None: the type is)
CASTS: list[tuple[pa.DataType, pa.DataType, list[Any], Any]] = [
    (pa.int64(), pa.int32(), [1, -1, 2**31 - 1], ...),
    (pa.int32(), pa.int64(), [1, -(2**31)], 2**31),
    (pa.int64(), pa.uint64(), [0, 2**63 - 1], 2**63),
    (pa.uint8(), pa.int8(), [0, 127], -1),
    (pa.int64(), pa.float64(), [3.0, 2.0**53], 2.9),
    (pa.int64(), pa.float64(), [1.0], float("nan")),
    (pa.int8(), pa.float16(), [np.float16(3)], np.float16(3.5)),
    (pa.int32(), pa.decimal128(12, 2), [Decimal("7.00")], Decimal("7.01")),
    (pa.float64(), pa.int64(), [0, 2**53, 2**60], 2**53 + 1),
    (pa.float32(), pa.int64(), [2**24], 2**24 + 1),
    (pa.float16(), pa.int64(), [2048], 2049),
    (pa.float32(), pa.float64(), [0.5, float("inf")], 1e300),
    (pa.float16(), pa.float64(), [0.5], 1e6),
    (pa.float64(), pa.float32(), [0.5, 2.0**127], ...),
    (pa.float64(), pa.decimal128(20, 2), [Decimal("0.10")], Decimal("123456789012345678.25")),
    (pa.decimal128(10, 2), pa.int64(), [12345678], 123456789),
    (pa.decimal128(10, 2), pa.float64(), [0.25, 0.1], 2.675),
    (pa.decimal128(10, 2), pa.decimal128(20, 4), [Decimal("1.2500")], Decimal("1.2501")),
    (pa.decimal256(40, 2), pa.decimal128(10, 1), [Decimal("1.5")], ...),
    (pa.string(), pa.large_string(), ["a", ""], ...),
    (pa.large_string(), pa.string_view(), ["a", "long enough to be no prefix"], ...),
    (pa.string(), pa.dictionary(pa.int8(), pa.large_string()), ["a", "b", "a"], ...),
    (WORDS, pa.string(), ["a", "b", "a"], ...),
    (WORDS, pa.dictionary(pa.uint32(), pa.large_string()), ["a", "b"], ...),
    (pa.dictionary(pa.int32(), pa.int64()), pa.float64(), [1.0], 1.5),
    (pa.binary(), pa.binary_view(), [b"\xff"], ...),
    (pa.binary(2), pa.binary(), [b"ab"], b"abc"),
    (pa.binary(), pa.binary(2), [b"ab"], ...),
    (pa.date32(), pa.date64(), [dt.date(2020, 1, 1)], ...),
    (pa.date32(), pa.timestamp("ns"), [DAY], NOON),
    (pa.timestamp("us"), pa.date32(), [dt.date(2020, 1, 1), dt.date(1, 1, 1)], ...),
    (pa.timestamp("ns"), pa.timestamp("us"), [NOON], LATE),
    (pa.timestamp("s"), pa.timestamp("us"), [NOON], NOON.replace(microsecond=1)),
    (pa.timestamp("us", UTC), pa.timestamp("ms", "+02:00"), [NOON.replace(tzinfo=dt.UTC)], ...),
    (pa.time32("s"), pa.time64("ns"), [dt.time(1)], dt.time(1, 0, 0, 1)),
    (pa.duration("s"), pa.duration("us"), [dt.timedelta(1)], dt.timedelta(0, 0, 1)),
    (pa.list_(pa.string()), pa.large_list(pa.field("element", pa.large_string())), [["a", None], [], None], ...),
    (pa.list_(pa.float32(), 2), pa.list_(pa.float64()), [[1.0, 2.0], None, [3.0, None]], [1.0]),
    (pa.list_(pa.float32(), 2), pa.large_list(pa.int64()), [[1, 2]], [1, 2**24 + 1]),
    (pa.list_(pa.int32()), pa.list_(pa.int64(), 2), [[1, 2], None, [3, 4]], [1, 2**40]),
    (pa.list_(pa.int32()), pa.list_view(pa.int64()), [[1, 2], None, []], ...),
    (PAIR, pa.struct([("b", pa.large_string()), ("a", pa.int64())]), [{"b": "x", "a": 1}, None], {"b": "", "a": 2**40}),
    (PAIR, pa.struct([("b", pa.string())]), [{"b": "x"}, None], ...),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.large_string(), pa.int64()), [[("k", 1)], None, []], [("k", 2**40)]),
    (pa.list_(PAIR), pa.list_(pa.struct([("a", pa.float64())])), [[{"a": 1.0}], None], [{"a": 1.0}, {"a": 1.5}]),
    (pa.json_(), pa.string(), ["{}"], ...),
]
NEVER = [
    *((pa.int64(), kind) for kind in (pa.string(), pa.bool_(), pa.date32(), pa.duration("s"), pa.list_(pa.int64()))),
    *((pa.string(), kind) for kind in (pa.int64(), pa.binary(), pa.bool_(), pa.date32(), pa.float64())),
    *((pa.bool_(), kind) for kind in (pa.int8(), pa.string())),
    *((pa.binary(), kind) for kind in (pa.string(), pa.int8())),
    *((pa.float64(), kind) for kind in (pa.bool_(), pa.string())),
    *((pa.timestamp("us"), kind) for kind in (pa.timestamp("us", UTC), pa.int64(), pa.string(), pa.time64("us"))),
    *((pa.timestamp("us", UTC), kind) for kind in (pa.timestamp("us"), pa.date32())),
    (pa.date32(), pa.timestamp("us", UTC)),
    (pa.time64("us"), pa.timestamp("us")),
    (PAIR, pa.map_(pa.string(), pa.int32())),
    (pa.list_(pa.int64()), pa.int64()),
]  # fmt: skip


def fitted(kind: pa.DataType, column: Any) -> list[Any]:
    """The values of a column as they are stored in one of a type. As a table and as a batch."""
    rows = pa.table({"c": column})
    schema = pa.schema([("c", kind)])
    found = fit(rows, schema)
    assert found.schema == schema
    assert found.column(0).validate(full=True) is None
    [batch] = rows.combine_chunks().to_batches() or [None]
    if batch is not None:
        assert fit(batch, schema).column(0).to_pylist() == found["c"].to_pylist()
    values: list[Any] = found["c"].to_pylist()
    return values


def plain(value: Any) -> Any:
    """A value without what differs between types that hold the same."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in sorted(value.items()) if each is not None}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, (float, np.floating, Decimal)):
        return repr(round(float(value), 6))
    if isinstance(value, int):
        return repr(float(value))
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None) - (value.utcoffset() or dt.timedelta())
    return dt.datetime.fromisoformat(str(value)) if isinstance(value, dt.date) else value


@pytest.mark.parametrize(("kind", "source", "values", "wrong"), CASTS, ids=lambda each: str(each)[:40])
def test_values_are_kept_or_refused(kind: pa.DataType, source: pa.DataType, values: list[Any], wrong: Any) -> None:
    column = pa.array([*values, None], source)
    assert plain(fitted(kind, column)) == plain([*values, None])
    assert fitted(kind, pa.chunked_array([column, column])) == fitted(kind, column) * 2
    assert fitted(kind, column.slice(1)) == fitted(kind, column)[1:]
    assert fitted(kind, column.slice(0, 0)) == []
    if wrong is ...:
        return
    rows = pa.chunked_array([pa.array(values, source), pa.array([*values, wrong, None], source)])
    place = f"row {2 * len(values) + 1}: expected "
    with pytest.raises(SchemaMismatch, match=rf"^column 'c[\w.]*', {place}"):
        fit(pa.table({"c": rows}), pa.schema([("c", kind)]))


@pytest.mark.parametrize(("kind", "source"), NEVER, ids=str)
def test_types_of_other_families_are_refused_without_a_look_at_values(kind: pa.DataType, source: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match=re.escape(f"column 'c': expected {kind}, found {source}")):
        fit(pa.table({"c": pa.nulls(2, source)}), pa.schema([("c", kind)]))


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in CASTS} | {kind for kind, _ in NEVER}, key=str), ids=str)
def test_a_column_of_no_type_fits_any(kind: pa.DataType) -> None:
    assert fitted(kind, pa.nulls(2)) == [None, None]
    assert fitted(kind, pa.nulls(0)) == []


def test_what_a_null_hides_is_not_looked_at() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1, 2**40])], names=["a"], mask=pa.array([False, True]))
    assert fitted(PAIR, hidden) == [{"a": 1, "b": None}, None]
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([1, 2**40]))
    assert fitted(pa.int32(), unused) == [1, 1]
    assert fitted(pa.dictionary(pa.int32(), pa.int32()), unused) == [1, 1]


@pytest.mark.parametrize("kind", [pa.string(), WORDS], ids=str)
def test_a_null_of_a_dictionary_is_one(kind: pa.DataType) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", None]))
    with pytest.raises(SchemaMismatch, match="column 'c', row 2: expected no nulls, found 1 nulls among 2 rows"):
        fit(pa.table({"c": words}), pa.schema([pa.field("c", kind, nullable=False)]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), words)
    with pytest.raises(SchemaMismatch, match=r"column 'c', row 2: expected .* that is not null, found null"):
        fit(pa.table({"c": lists}), pa.schema([("c", pa.list_(pa.field("item", kind, nullable=False)))]))


@pytest.mark.parametrize(
    ("kind", "values", "path"),
    [
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), [None, {"a": 1}, {"a": None}], "c.a"),
        (pa.list_(pa.field("item", pa.int32(), nullable=False)), [None, [1], [1, None]], "c"),
        (pa.map_(pa.string(), pa.field("v", pa.int32(), nullable=False)), [None, [("k", 1)], [("k", None)]], "c"),
    ],
)
def test_nulls_inside(kind: pa.DataType, values: list[Any], path: str) -> None:
    loose = pa.array(values) if not pa.types.is_map(kind) else pa.array(values, pa.map_(pa.string(), pa.int32()))
    with pytest.raises(SchemaMismatch, match=f"column '{path}', row 3: expected int32 that is not null, found null"):
        fit(pa.table({"c": loose}), pa.schema([("c", kind)]))
    assert fitted(kind, loose[:2]) == loose[:2].to_pylist()
    same = pa.array(values, kind)  # which Arrow makes, and validates
    with pytest.raises(SchemaMismatch, match=f"column '{path}', row 3: expected int32 that is not null, found null"):
        fit(pa.table({"c": same}), pa.schema([("c", kind)]))
    assert fitted(kind, same[:2]) == loose[:2].to_pylist()


def test_types_of_arrow_with_few_functions() -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    assert fitted(pa.bool_(), flags) == [True, False]
    with pytest.raises(SchemaMismatch, match="column 'c': expected int8, found bool"):
        fitted(pa.int8(), flags)
    assert fitted(pa.binary(2), pa.array([b"ab", None], pa.binary_view())) == [b"ab", None]
    with pytest.raises(SchemaMismatch, match="column 'c', row 1: expected fixed_size_binary"):
        fitted(pa.binary(2), pa.array([b"abc"], pa.binary_view()))
    with pytest.raises(SchemaMismatch, match="column 'c': expected lists of one value or more, found list"):
        fitted(pa.list_(pa.float32(), 0), pa.array([[], []], pa.list_(pa.float32())))


@pytest.mark.parametrize("make", [pa.Table.to_reader, lambda rows: rows], ids=["reader", "table"])
def test_rows_without_columns(make: Any) -> None:
    rows = pa.table({"other": [1, 2]}).select([])
    with pytest.raises(SchemaMismatch, match="expected columns, found none in 2 rows"):
        next(iter(for_lance(rows_of(make(rows)), [], schema=pa.schema([("c", pa.int64())]), filled={"c"})))


# -- values of Python

PYTHON: list[tuple[pa.DataType, list[Any], Any]] = [
    (pa.int64(), [1, 2.0, None], 2.9),
    (pa.int64(), [1], True),
    (pa.int64(), [1], "7"),
    (pa.float64(), [1, 2.5], True),
    (pa.bool_(), [True, None], 1),
    (pa.uint64(), [2**64 - 1, 0], -1),
    (pa.list_(pa.uint64()), [[2**64 - 1], None], [-1]),
    (pa.float32(), [0.5, 1], 1e300),
    (pa.string(), ["a", None, ""], b"x"),
    (pa.string(), ["a"], 1),
    (pa.binary(), [b"a", bytearray(b"b")], "a"),
    (pa.date32(), [dt.date(2020, 1, 1)], NOON),
    (pa.timestamp("us"), [NOON], NOON.replace(tzinfo=dt.UTC)),
    (pa.timestamp("us", UTC), [NOON.replace(tzinfo=dt.UTC)], NOON),
    (pa.timestamp("s"), [NOON], NOON.replace(microsecond=1)),
    (pa.decimal128(10, 2), [1, Decimal("2.55")], Decimal("1.005")),
    (pa.list_(pa.float32(), 2), [[1, 2.5], None, (3.0, 4), np.ones(2)], [1.0]),
    (pa.map_(pa.string(), pa.int32()), [{"k": 1}, None, [("a", 2)]], {"k": 1.5}),
    (PAIR, [{"a": 1}, None, {"b": "x", "a": 2}], {"a": 1, "bb": "x"}),
    (pa.list_(PAIR), [[{"a": 1}], None], [{"a": 1}, {"c": 1}]),
    (pa.struct([("s", PAIR)]), [{"s": {"b": "x"}}, {"s": None}], {"s": {"b": 5}}),
    (WORDS, ["a", "b", "a", None], 1),
    (pa.time64("us"), [dt.time(1)], dt.time(1, tzinfo=dt.UTC)),
]


@pytest.mark.parametrize("form", ["rows", "columns", "object array"])
@pytest.mark.parametrize(("kind", "values", "wrong"), PYTHON, ids=lambda each: str(each)[:40])
def test_values_of_python(kind: pa.DataType, values: list[Any], wrong: Any, form: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("c", kind)])

    def stored(given: list[Any]) -> list[Any]:
        if form == "rows":
            data: Any = [{"c": value} for value in given]
        else:
            array = np.empty(len(given), object)
            array[:] = given
            data = {"c": given if form == "columns" else array}
        found: list[Any] = fit(rows_of(data, schema), pa.schema([schema.field("c")]))["c"].to_pylist()
        return found

    def listed(value: Any) -> Any:
        if isinstance(value, dict):
            return list(value.items()) if pa.types.is_map(kind) else value
        return list(value) if isinstance(value, (tuple, np.ndarray)) else value

    assert plain(stored(values)) == plain([bytes(v) if isinstance(v, bytearray) else listed(v) for v in values])
    with pytest.raises(SchemaMismatch, match=rf"^column 'c[\w.]*', row {len(values) + 1}: expected "):
        stored([*values, wrong])


@pytest.mark.parametrize(
    "values",
    [
        [NOON, NOON.replace(tzinfo=dt.UTC)],
        [dt.date(2020, 1, 1), NOON],
        [1.5, True],
        [np.True_, 1],
        ["a", b"b"],
        [1, 2.5, "x"],
        [Decimal(1), 2.5],
        [[NOON], [NOON.replace(tzinfo=dt.UTC)]],
        [{"t": [1.5]}, {"t": [True]}],
        [{1, 2}],
        [dt.time(1, tzinfo=dt.UTC)],
        [1j],
        ["\ud800"],
        [{1: 2}],
        [Decimal("NaN")],
    ],
    ids=str,
)
def test_values_of_no_one_type(values: list[Any]) -> None:
    for data in ({"c": values}, [{"c": value} for value in values]):
        with pytest.raises(SchemaMismatch, match=r"^column 'c[\w.]*'(, row \d+)?: expected .*, found "):
            rows_of(data)


ARRAYS: list[tuple[pa.DataType, list[Any], Any]] = [
    (
        pa.list_(pa.int64()),
        [np.array([2**53 + 1]), np.array([1, 2], np.uint8), np.array([])],
        [[2**53 + 1], [1, 2], []],
    ),
    (pa.list_(pa.int64()), [np.array([2**53 + 1]), np.array([2.0])], "row 2: .*outside of the range"),
    (pa.list_(pa.float64()), [np.array([2**53 + 1]), np.array([0.5])], "row 2: .*outside of the range"),
    (pa.list_(pa.int64()), [np.array([7]), np.array([True])], "row 2: expected values of one type, as int, found bool"),
    (
        pa.list_(pa.string()),
        [np.array(["a"]), np.array([5])],
        "row 2: expected values of one type, as str, found int 5",
    ),
    (pa.list_(pa.float64()), [np.array([2**64 - 1], np.uint64), np.array([-1])], "row 1: expected double"),
    (pa.list_(pa.int64()), [np.array([5], np.uint64), np.array([-1])], [[5], [-1]]),
    (pa.list_(pa.float32(), 2), [np.ma.array([1.0, 9.0], mask=[False, True])] * 2, [[1.0, None]] * 2),
    (pa.list_(pa.int32()), [np.array([1, 2], ">i4")], [[1, 2]]),
    (pa.list_(pa.float64()), [np.array([1j])], "expected values of Arrow, found an array of complex128"),
    (pa.list_(pa.list_(pa.float32())), [np.ones((1, 2)), None], [[[1.0, 1.0]], None]),
    (pa.list_(pa.float32()), [np.array(1.0)], "row 1: expected lists, found float64"),
    (pa.float64(), [np.array(1.5), 2.0], [1.5, 2.0]),
    (pa.float64(), [np.uint64(2**64 - 1), 1.5], "row 1: .*18446744073709551615"),
    (pa.float64(), [np.float16(0.5), 1e300, np.float32(2)], [0.5, 1e300, 2.0]),
    (pa.float64(), [2**70, 1.5], "row 1: .*1180591620717411303424"),
    (pa.uint64(), [np.uint64(2**64 - 1), 7], [2**64 - 1, 7]),
    (pa.decimal128(5, 1), [1, Decimal("Infinity")], "row 2: .*Infinity"),
    (pa.string(), ["a", "\ud800"], r"row 2: .*ud800"),
    (pa.list_(pa.int64()), [[1], np.ma.masked], [[1], None]),
]


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(("kind", "values", "expected"), ARRAYS, ids=lambda each: str(each)[:40])
def test_values_that_numpy_or_pyarrow_would_change(
    kind: pa.DataType, values: list[Any], expected: Any, form: str
) -> None:
    data: Any = {"c": values} if form == "columns" else [{"c": value} for value in values]
    schema = pa.schema([("c", kind)])
    if not isinstance(expected, str):
        assert fit(rows_of(data, schema), schema)["c"].to_pylist() == expected
        return
    with pytest.raises(SchemaMismatch, match=f"^column 'c'(, )?(: )?{expected}"):
        fit(rows_of(data, schema), schema)


MICROSECONDS = pa.timestamp("us")


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "s", "ms", "us", "ns", "25s"])
def test_times_of_numpy_in_each_unit(unit: Any) -> None:
    """Those that Arrow does not have are times in seconds, a multiple of a unit is what it is."""
    day = np.datetime64("2020-01-02", unit)
    other = np.datetime64("NaT")
    for values in (np.array([day, other]), [day, None], [other, day, other], np.array([[day, other]])):
        kind = pa.list_(MICROSECONDS, 2) if getattr(values, "ndim", 1) == 2 else MICROSECONDS
        schema = pa.schema([("c", kind)])
        [found, *_] = fit(rows_of({"c": values}, schema), schema)["c"].to_pylist()
        found = found[0] if isinstance(found, list) else found
        assert found in {day.astype("M8[us]").item(), None}
    long = np.timedelta64(3, unit)
    for lengths in (np.array([long]), [long, None]):
        schema = pa.schema([("c", pa.duration("us"))])
        expected = None if unit == "ns" else long.astype("m8[us]").item()
        if expected is None:
            with pytest.raises(SchemaMismatch, match=r"row 1: expected duration\[us\]"):
                fit(rows_of({"c": lengths}, schema), schema)
        else:
            assert fit(rows_of({"c": lengths}, schema), schema)["c"][0].as_py() == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            [np.datetime64("2020-01-01", "s"), np.datetime64(1, "ns")],
            r"row 2: expected .*\[s\], found datetime64\[ns\]",
        ),
        ([NOON, np.datetime64(1, "ns")], r"row 2: expected .* as datetime, found datetime64\[ns\]"),
        ([None, np.timedelta64(1, "ns"), dt.timedelta(1)], r"row 3: expected .*\[ns\], found timedelta"),
        ([np.timedelta64(1, "s"), 5], "row 2: expected values of one type, as timedelta, found int"),
        (np.array(["2020"], "M8[Y]"), r"expected values of Arrow, found an array of datetime64\[Y\]"),
        (np.array([1], "m8[ps]"), r"expected values of Arrow, found an array of timedelta64\[ps\]"),
        (np.array([2**60], "M8[h]"), r"expected values of Arrow, found an array of datetime64\[h\]"),
        (np.zeros((2, 0)), "expected vectors of one value or more"),
        (bytearray(b"ab"), "expected a list or an array of values, found bytearray"),
    ],
)
def test_times_and_arrays_that_are_refused(values: Any, reason: str) -> None:
    for kind in (None, MICROSECONDS):
        schema = None if kind is None else pa.schema([("c", kind)])
        with pytest.raises(SchemaMismatch, match=f"^column 'c'(, )?(: )?{reason}"):
            rows_of({"c": values}, schema)


def test_pairs_of_a_map() -> None:
    schema = pa.schema([("c", pa.map_(pa.string(), pa.int32()))])
    assert rows_of([{"c": [["k", 1]]}], schema)["c"].to_pylist() == [[("k", 1)]]
    with pytest.raises(SchemaMismatch, match="column 'c', row 2: expected keys that are not null, found null"):
        rows_of([{"c": {}}, {"c": [(None, 1)]}], schema)


def test_missing_values_of_pandas_at_any_depth() -> None:
    pandas = pytest.importorskip("pandas")
    schema = pa.schema([("c", pa.list_(PAIR))])
    rows = [{"c": pandas.NA}, {"c": [pandas.NA, {"a": pandas.NA, "b": pandas.NaT}]}]
    assert rows_of(rows, schema)["c"].to_pylist() == [None, [None, {"a": None, "b": None}]]
    assert rows_of({"c": [pandas.NA, [1]]})["c"].to_pylist() == [None, [1]]


def test_types_that_are_found() -> None:
    pandas = pytest.importorskip("pandas")
    for values, kind in (
        ([2**70, 1], pa.decimal128(22, 0)),
        ([1, None, 2.5], pa.float64()),
        ([pandas.Timestamp("2020-01-01 00:00:00.123456789"), pandas.NaT], pa.timestamp("ns")),
        ([pandas.Timedelta(1, "ns")], pa.duration("ns")),
        ([NOON, None], pa.timestamp("us")),
        ([pandas.NA, 1], pa.int64()),
        ([[{"a": 1}], [{"b": 2}]], pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))),
    ):
        found = rows_of({"c": values})["c"]
        assert found.type == kind
        assert found.null_count == sum(value is None or value is pandas.NaT or value is pandas.NA for value in values)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([{"id": 1}, {"nmae": 2}], r"row 2: expected columns \['id'\], found 'nmae'"),
        ([{}, {}], "expected columns, found none in 2 rows"),
        ([{"id": 1}, 2], "row 2: expected a dict, found int"),
        ([{1: 1}], "expected columns"),
        ({"id": [1], "other": [1, 2]}, r"columns of one length, found \[\('id', 1\), \('other', 2\)\]"),
        ({"id": 5}, "column 'id': expected a list or an array of values, found int"),
        ({"id": {1, 2}}, "column 'id': expected a list or an array of values, found set"),
        ({"id": "abc"}, "column 'id': expected a list or an array of values, found str"),
        ({"id": np.zeros((1, 1, 1))}, "column 'id': expected an array of one or two dimensions, found one of 3"),
        ({"id": np.array([1j])}, "column 'id': expected values of Arrow, found an array of complex128"),
        (5, "rows of type int: expected Arrow data"),
        ({"\ud800": [1]}, r"column '\\ud800': expected a name in UTF-8"),
        ([{"id": 1}, None], "row 2: expected a dict, found NoneType"),
    ],
)
def test_rows_that_are_none(data: Any, reason: str) -> None:
    with pytest.raises(InvalidCall, match=reason):
        rows_of(data, pa.schema([("id", pa.int64())]))


# -- frames


class TestPandas:
    """Frames of pandas."""

    pandas = pytest.importorskip("pandas")

    @pytest.mark.parametrize(
        ("kind", "column"),
        [
            (pa.int64(), [30.0, None]),
            (pa.string(), [None, None]),
            (pa.string(), [float("nan"), "a"]),
            (pa.list_(pa.float32(), 2), [np.ones(2), None]),
            (pa.timestamp("ns"), [NOON, None]),
            (pa.bool_(), [True, None]),
        ],
    )
    def test_types_that_drift(self, kind: pa.DataType, column: list[Any]) -> None:
        rows = rows_of(self.pandas.DataFrame({"c": column}), pa.schema([("c", kind)]))
        found = fit(rows, pa.schema([("c", kind)]))["c"].to_pylist()
        missing = [self.pandas.isna(value) if not isinstance(value, np.ndarray) else False for value in column]
        assert [value is None for value in found] == missing

    def test_categories_are_their_texts(self) -> None:
        assert fitted(pa.string(), rows_of(self.pandas.DataFrame({"c": self.pandas.Categorical(["a", None])}))["c"])

    def test_an_index_is_a_column_if_it_has_a_name(self) -> None:
        frame = self.pandas.DataFrame({"n": [1, 2, 3], "k": ["a", "b", "c"]})
        assert rows_of(frame[frame.n > 1]).schema.names == ["n", "k"]
        assert rows_of(frame.set_index("k")).schema.names == ["k", "n"]
        assert rows_of(frame.set_index("k", drop=False)).schema.names == ["n", "k"]
        assert rows_of(frame.set_index(["k", "n"])).to_pydict() == {"k": ["a", "b", "c"], "n": [1, 2, 3]}
        assert rows_of(frame.rename_axis("row")).to_pydict()["row"] == [0, 1, 2]

    def test_columns_of_other_kinds(self) -> None:
        pd = self.pandas
        for column, kind, expected in (
            (pd.arrays.SparseArray([1.0, np.nan, 2.0]), pa.int64(), [1, None, 2]),
            (np.array([1, 2], ">i8"), pa.int64(), [1, 2]),
            (pd.Categorical(["a", None]), pa.string(), ["a", None]),
            (pd.array([1, None], dtype="Int64"), pa.int32(), [1, None]),
        ):
            schema = pa.schema([("c", kind)])
            for data in (pd.DataFrame({"c": column}), {"c": column}):
                assert fit(rows_of(data, schema), schema)["c"].to_pylist() == expected

    def test_columns_with_names_of_methods(self) -> None:
        names = ["scanner", "to_reader", "__arrow_c_stream__", "schema", "isna", "index"]
        assert rows_of(self.pandas.DataFrame({name: [1] for name in names})).schema.names == names

    @pytest.mark.parametrize(
        ("make", "reason"),
        [
            (lambda pd: pd.DataFrame([[1, 2]]), "column 0: expected a text as its name, found int"),
            (lambda pd: pd.DataFrame([[1, 2]], columns=["a", "a"]), "expected columns with different names"),
            (lambda pd: pd.DataFrame({"a": [1]}).rename_axis(5), "column 5: expected a text as its name, found int"),
            (
                lambda pd: pd.DataFrame({"v": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["a", "a"])),
                r"expected columns with different names, found \['a', 'a', 'v'\]",
            ),
            (lambda pd: pd.DataFrame(index=[1, 2]), "expected columns, found none in 2 rows"),
            (
                lambda pd: pd.DataFrame({"o": [1, "a"]}),
                "column 'o', row 2: expected values of one type, as int, found str",
            ),
            (lambda pd: pd.DataFrame({"o": [NOON, NOON.replace(tzinfo=dt.UTC)]}, dtype=object), "column 'o', row 2"),
            (
                lambda pd: pd.DataFrame({"o": [1j]}),
                "column 'o': expected values of Arrow, found a column of complex128",
            ),
        ],
    )
    def test_what_is_refused(self, make: Any, reason: str) -> None:
        with pytest.raises(InvalidCall, match=reason):
            rows_of(make(self.pandas))


class TestPolars:
    """Frames of polars."""

    polars = pytest.importorskip("polars")

    def frame(self) -> Any:
        pl = self.polars
        enum = pl.Enum(["x", "y"])
        return pl.DataFrame(
            {
                "c": pl.Series(["a", None], dtype=pl.Categorical),
                "e": pl.Series(["x", "y"], dtype=enum),
                "l": pl.Series([["a"], None], dtype=pl.List(pl.Categorical)),
                "s": pl.Series([{"e": "x"}, {"e": "y"}], dtype=pl.Struct({"e": enum})),
                "scanner": ["u", None],
                "v": pl.Series([[1.0, 2.0], None], dtype=pl.Array(pl.Float64, 2)),
            }
        )

    @pytest.mark.parametrize("lazy", [False, True])
    def test_categories_as_texts(self, lazy: bool) -> None:
        frame = self.frame()
        rows = rows_of(frame.lazy() if lazy else frame)
        text = pa.string()
        schema = pa.schema(
            [
                *(("c", text), ("e", text), ("l", pa.list_(text)), ("s", pa.struct([("e", text)])), ("scanner", text)),
                ("v", pa.list_(pa.float32(), 2)),
            ]
        )
        assert fit(rows.read_all(), schema).to_pylist() == frame.to_dicts()

    def test_objects_are_refused(self) -> None:
        frame = self.polars.DataFrame({"o": self.polars.Series([object()], dtype=self.polars.Object)})
        with pytest.raises(InvalidCall, match="column 'o': expected values of Arrow, found objects of Python"):
            rows_of(frame)

    def test_what_is_no_frame_or_no_type_of_arrow(self) -> None:
        pl = self.polars
        for data in (pl.Series([1]), pl.DataFrame({"c": pl.Series([5], dtype=pl.Int128)})):
            reason = f"rows of type {type(data).__name__}: expected columns of types of Arrow"
            with pytest.raises(InvalidCall, match=reason):
                rows_of(data)
