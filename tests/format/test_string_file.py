"""Data files of strings that are encoded without pylance: pylance writes the same bytes, or reads the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader

from lance_core.data import encode_rows, read_rows, schema_fields
from lance_core.format.string_file import (
    MOST_CHARACTERS,
    MOST_ROWS,
    VERSION,
    Column,
    describe_fields,
    encode_strings,
    fits,
)

LISTS = pa.list_(pa.field("item", pa.string()))
TEXTS = st.text(max_size=40) | st.text("ab$", max_size=4) | st.text("é\U0001f600", max_size=300)


def table_of(columns: Sequence[Column], rows: int) -> pa.Table:
    fields = [
        pa.field(f"c{at}", LISTS if values is None else pa.string(), nullable=values is None or None in values)
        for at, values in enumerate(columns)
    ]
    arrays = [pa.nulls(rows, LISTS) if values is None else pa.array(values, pa.string()) for values in columns]
    return pa.table(arrays, schema=pa.schema(fields))


def encoded(columns: Sequence[Column], rows: int) -> bytes:
    assert fits(columns, rows)
    return encode_strings(columns, rows, describe_fields(schema_fields(table_of(columns, rows).schema)))


@st.composite
def some_columns(draw: st.DrawFn) -> tuple[list[Column], int]:
    rows = draw(st.integers(1, 40) | st.just(MOST_ROWS))
    pool = draw(st.lists(TEXTS | st.none(), min_size=1, max_size=30))
    strings = st.lists(st.sampled_from(pool), min_size=rows, max_size=rows)
    return draw(st.lists(strings | st.none(), min_size=1, max_size=5)), rows


@given(some_columns())
def test_pylance_reads_the_rows(given: tuple[list[Column], int]) -> None:
    columns, rows = given
    assert read_rows(encoded(columns, rows)) == table_of(columns, rows)


@pytest.mark.parametrize("rows", [2, 3, 5, 16, 64])
@pytest.mark.parametrize("nulls", [0, 1, 2])
@pytest.mark.parametrize("length", [0, 1, 7, 25])
def test_short_strings_give_the_bytes_that_pylance_writes(rows: int, nulls: int, length: int) -> None:
    values: list[str | None] = [f"{at:02}" + "x" * ((at * 31) % (length + 1)) for at in range(rows)]
    some = [None if nulls and at % (nulls + 1) == 1 else value for at, value in enumerate(values)]
    columns: list[Column] = [values, some if rows > 3 else values, [None] * rows]
    assert encoded(columns, rows) == encode_rows(table_of(columns, rows), VERSION)


def test_null_lists_give_the_bytes_that_pylance_writes() -> None:
    columns: list[Column] = [["a", "bc"], None, ["d", ""]]
    assert encoded(columns, 2) == encode_rows(table_of(columns, 2), VERSION)


def test_some_rows_and_columns_are_read_alone(tmp_path: Path) -> None:
    texts = [None if at % 3 else "x" * (7 * at) for at in range(MOST_ROWS)]
    path = tmp_path / "rows.lance"
    path.write_bytes(encoded([[f"row {at}" for at in range(MOST_ROWS)], None, texts], MOST_ROWS))
    reader = LanceFileReader(str(path), columns=["c2"])
    wanted = [0, 1, 60, 126, 127]
    assert reader.take_rows(wanted).to_table()["c2"].to_pylist() == [texts[at] for at in wanted]
    assert reader.read_range(50, 3).to_table()["c2"].to_pylist() == texts[50:53]
    assert reader.metadata().num_rows == MOST_ROWS


def test_bounds() -> None:
    assert not fits([[]], 0)
    assert fits([["a"] * MOST_ROWS], MOST_ROWS)
    assert not fits([["a"] * (MOST_ROWS + 1)], MOST_ROWS + 1)
    assert not fits([["a"], ["a" * MOST_CHARACTERS]], 1)
    largest: list[Column] = [["\U0001f600" * MOST_CHARACTERS]]
    assert read_rows(encoded(largest, 1)) == table_of(largest, 1)
