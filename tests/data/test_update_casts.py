"""An update casts values to the types of its columns as pylance's own update does, and refuses what loses a part."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from table_data.arrow.fitting import fit
from table_data.staging.matching import matching_rows
from tests.data.arrow import ARROW, read, stream

NOON = dt.datetime(2020, 1, 1, 12, 30, 15, 123000, dt.UTC)
COLUMNS = {
    "flag": pa.array([True, None]),
    "small": pa.array([3, None], pa.int8()),
    "int": pa.array([3, None], pa.int32()),
    "long": pa.array([300, None], pa.int64()),
    "unsigned": pa.array([3, None], pa.uint64()),
    "half": pa.array([1.5, None], pa.float16()),
    "float": pa.array([1.5, None], pa.float32()),
    "double": pa.array([1.0, None], pa.float64()),
    "decimal": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal("1.50"), None], pa.decimal256(40, 2)),
    "text": pa.array(["a", None]),
    "long_text": pa.array(["12", None], pa.large_string()),
    "bytes": pa.array([b"ab", None]),
    "four": pa.array([b"abcd", None], pa.binary(4)),
    "day": pa.array([NOON.date(), None]),
    "day_ms": pa.array([NOON.date(), None], pa.date64()),
    "time": pa.array([NOON.time(), None], pa.time64("us")),
    "seconds": pa.array([dt.time(1), None], pa.time32("s")),
    "instant": pa.array([NOON, None], pa.timestamp("us")),
    "instant_ms": pa.array([NOON, None], pa.timestamp("ms")),
    "instant_utc": pa.array([NOON, None], pa.timestamp("us", "UTC")),
    "span": pa.array([5, None], pa.duration("us")),
    "word": pa.array(["x", None]).dictionary_encode(),
    "list": pa.array([[1], None], pa.list_(pa.int64())),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "struct": pa.array([{"k": 1}, None]),
}
ROWS = pa.table(COLUMNS)
EXPRESSIONS = (
    *COLUMNS,
    *("1", "-1", "1.5", "300", "true", "'yes'", "'12'", "'2020-01-01'", "'12:00:00'", "NULL", "'wxyz'", "[1.0, 2.0]"),
    *("'2020-01-01 00:00:00.123456789'", "x'61626364'", "`int` + 1", "`float` * 2", "concat(text, '!')", "1 -- one"),
)
EDGES = {
    pa.float64(): [float("nan"), float("inf"), 1e300, -0.5, -1.5, 3e9, 65519.0, 65520.0, 2.0**63],
    pa.int64(): [2**53 + 1, -(2**63), 2**63 - 1, 70_000],
    pa.uint64(): [2**64 - 1],
}
INTEGERS = ("small", "int", "long", "unsigned")
FRACTIONS = ("half", "float", "decimal", "wide", "1.5")
"""Expressions whose fraction pylance cuts off in a column of integers."""
NUMBERS = ("small", "int", "long", "unsigned", "half", "float", "double")
REFUSALS = (ValueError, OSError, RuntimeError, NotImplementedError)
_numbers = itertools.count()


def dataset_of(rows: pa.Table) -> lance.LanceDataset:
    return lance.write_dataset(rows, f"memory://casts-{next(_numbers)}")


def ours(dataset: lance.LanceDataset, column: str, expression: str) -> Any:
    try:
        (batch,) = matching_rows(dataset, {column: expression}, None, dataset.count_rows())
        return (
            fit(batch.select([column]), pa.schema([dataset.schema.field(column)]), checked=True).column(0).to_pylist()
        )
    except REFUSALS:
        return "refused"


def theirs(rows: pa.Table, column: str, expression: str) -> Any:
    dataset = dataset_of(rows)
    try:
        dataset.update({column: expression})
    except REFUSALS:
        return "refused"
    return dataset.to_table(columns=[column]).column(0).to_pylist()


@pytest.mark.parametrize("column", COLUMNS)
def test_every_expression_of_another_type_gives_the_same_value(column: str) -> None:
    dataset = dataset_of(ROWS)
    for expression in EXPRESSIONS:
        found, expected = ours(dataset, column, expression), theirs(ROWS, column, expression)
        if column in INTEGERS and expression in FRACTIONS:
            assert expected != "refused"
            expected = "refused"
        assert str(found) == str(expected), expression


@pytest.mark.parametrize("source", EDGES, ids=str)
def test_numbers_at_the_edges_of_other_types(source: pa.DataType) -> None:
    for value in EDGES[source]:
        rows = ROWS.select(NUMBERS).slice(0, 1).append_column("source", pa.array([value], source))
        dataset = dataset_of(rows)
        for column in NUMBERS:
            [expected] = theirs(rows, column, "source") if theirs(rows, column, "source") != "refused" else [None]
            loses_fraction = column in INTEGERS and value % 1 != 0
            is_too_large = expected in {float("inf"), float("-inf")} and not math.isinf(value)
            is_rounded = isinstance(value, int) and expected is not None and expected != value
            found = ours(dataset, column, "source")
            if expected is None or loses_fraction or is_too_large or is_rounded:
                assert found == "refused", (value, column)
            else:
                assert str(found) == str([expected]), (value, column)


@pytest.fixture(scope="module")
def casts(url: str) -> str:
    route = "/v1/table/w$casts"
    httpx.post(f"{url}{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    return route


def test_over_http(url: str, http: httpx.Client, casts: str) -> None:
    updates = [
        *(["instant", "now()"], ["instant_ms", "now()"], ["decimal", "1"], ["time", "'12:00:00'"], ["flag", "'yes'"]),
        *(["text", "1.0"], ["day", "1"], ["long", "decimal * 2"]),
    ]
    answer = http.post(f"{casts}/update", json={"updates": updates, "predicate": "small = 3"})
    assert answer.status_code == 200, answer.text
    row = next(row for row in read(url, casts).to_pylist() if row["small"] == 3)
    assert row["instant"].year == row["instant_ms"].year >= 2025
    assert (row["decimal"], row["long"], row["flag"]) == (Decimal("1.00"), 3, True)
    assert (row["time"], row["day"], row["text"]) == (dt.time(12), dt.date(1970, 1, 2), "1.0")


@pytest.mark.parametrize(
    ("column", "expression"), [("small", "300"), ("four", "'wxyz'"), ("int", "'one'"), ("seconds", "1")]
)
@pytest.mark.parametrize("predicate", ["small = 3", "small = 100"])
def test_a_literal_that_does_not_fit_is_refused_without_a_match_too(
    http: httpx.Client, casts: str, column: str, expression: str, predicate: str
) -> None:
    with pytest.raises((ValueError, OSError)):
        dataset_of(ROWS).update({column: expression}, where=predicate)
    answer = http.post(f"{casts}/update", json={"updates": [[column, expression]], "predicate": predicate})
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
