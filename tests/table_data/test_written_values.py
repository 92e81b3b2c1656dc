"""Values of Arrow as values of JSON: of a slice of rows only the values in it are looked at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from table_data.values import written
from table_data.values.written import json_column

NESTED: dict[pa.DataType, list[Any]] = {
    pa.list_(pa.float32()): [[0.5, None], [], None, [1.5], [2.5, 3.5]],
    pa.large_list(pa.list_(pa.float64())): [[[0.5]], [], None, [[], None, [1.5]], [[2.5, 3.5]]],
    pa.list_(pa.float32(), 2): [[0.5, 1.5], None, [2.5, None], [3.5, 4.5], [5.5, 6.5]],
    pa.map_(pa.string(), pa.float64()): [[["a", 0.5]], [], None, [["b", None]], [["c", 2.5], ["d", 3.5]]],
    pa.struct([pa.field("a", pa.list_(pa.float64()))]): [{"a": [0.5]}, {"a": None}, None, {"a": []}, {"a": [1.5]}],
}


def array_of(kind: pa.DataType) -> pa.Array:
    rows = NESTED[kind]
    if pa.types.is_map(kind):
        rows = [row and [tuple(pair) for pair in row] for row in rows]
    return pa.array(rows, kind)


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_a_slice_has_its_rows(kind: pa.DataType) -> None:
    rows = NESTED[kind]
    whole = array_of(kind)
    for start in range(len(rows) + 1):
        for end in range(start, len(rows) + 1):
            assert json_column(whole.slice(start, end - start)) == rows[start:end]


@pytest.mark.parametrize("kind", [each for each in NESTED if not pa.types.is_struct(each)], ids=str)
def test_a_slice_takes_no_more_than_its_values(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    monkeypatch.setattr(written, "_number", lambda value: seen.append(value) or value)
    json_column(array_of(kind).slice(3, 1))
    assert len(seen) <= 2
