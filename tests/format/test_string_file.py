"""Data files of strings that are encoded without pylance: pylance writes the same bytes, or reads the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lance.file import LanceFileReader

from lance_core.data import encode_rows, read_rows, schema_fields
from lance_core.format.string_file import MOST_BYTES, MOST_ROWS, VERSION, describe_fields, encode_strings, fits

LISTS = pa.list_(pa.field("item", pa.string()))
TEXTS = st.text(max_size=40) | st.text("ab$", max_size=4) | st.text("é\U0001f600", max_size=300)


def batch_of(*columns: list[str | None], lists: bool = False) -> pa.RecordBatch:
    fields = [pa.field(f"c{at}", pa.string(), nullable=None in values) for at, values in enumerate(columns)]
    arrays = [pa.array(values, pa.string()) for values in columns]
    if lists:
        fields.insert(1, pa.field("lists", LISTS))
        arrays.insert(1, pa.nulls(len(columns[0]), LISTS))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def encoded(batch: pa.RecordBatch) -> bytes:
    assert fits(batch)
    return encode_strings(batch, describe_fields(schema_fields(batch.schema)))


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(st.integers(1, 40) | st.sampled_from([255, 256, 257, MOST_ROWS]))
    pool = draw(st.lists(TEXTS | st.none(), min_size=1, max_size=30))
    columns = [
        [draw(st.sampled_from(pool)) if rows <= 40 else pool[(at + step) % len(pool)] for at in range(rows)]
        for step in range(draw(st.integers(1, 4)))
    ]
    batch = batch_of(*columns, lists=draw(st.booleans()))
    assume(fits(batch))
    return batch


@given(batches())
def test_pylance_reads_the_rows(batch: pa.RecordBatch) -> None:
    assert read_rows(encoded(batch)) == pa.Table.from_batches([batch])


@given(batches(), st.data())
def test_a_part_of_a_longer_batch_is_encoded_alone(batch: pa.RecordBatch, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, batch.num_rows - 1))
    part = batch.slice(begin, data.draw(st.integers(1, batch.num_rows - begin)))
    assert encoded(part) == encoded(pa.RecordBatch.from_pylist(part.to_pylist(), schema=part.schema))


@pytest.mark.parametrize("rows", [2, 3, 5, 16, 64])
@pytest.mark.parametrize("nulls", [0, 1, 2])
@pytest.mark.parametrize("length", [0, 1, 7, 50])
def test_short_strings_give_the_bytes_that_pylance_writes(rows: int, nulls: int, length: int) -> None:
    values: list[str | None] = [f"{at:02}" + "x" * ((at * 31) % (length + 1)) for at in range(rows)]
    some = [None if nulls and at % (nulls + 1) == 1 else value for at, value in enumerate(values)]
    batch = batch_of(values, some if rows > 3 else values, [None] * rows)
    assert encoded(batch) == encode_rows(pa.Table.from_batches([batch]), VERSION)


def test_null_lists_give_the_bytes_that_pylance_writes() -> None:
    batch = batch_of(["a", "bc"], ["d", ""], lists=True)
    assert encoded(batch) == encode_rows(pa.Table.from_batches([batch]), VERSION)


def test_some_rows_and_columns_are_read_alone(tmp_path: Path) -> None:
    batch = batch_of(
        [f"row {at}" for at in range(1000)], [None if at % 3 else "x" * (at % 97) for at in range(1000)], lists=True
    )
    path = tmp_path / "rows.lance"
    path.write_bytes(encoded(batch))
    reader = LanceFileReader(str(path), columns=["c1"])
    wanted = [0, 1, 501, 998, 999]
    expected = [batch.column("c1")[at].as_py() for at in wanted]
    assert reader.take_rows(wanted).to_table()["c1"].to_pylist() == expected
    assert reader.read_range(500, 3).to_table()["c1"].to_pylist() == batch.column("c1").slice(500, 3).to_pylist()
    assert reader.metadata().num_rows == 1000


def test_bounds() -> None:
    assert not fits(batch_of([]))
    assert fits(batch_of(["a"] * MOST_ROWS))
    assert not fits(batch_of(["a"] * (MOST_ROWS + 1)))
    assert fits(batch_of(["a" * (MOST_BYTES - 1000)]))
    assert not fits(batch_of(["a" * MOST_BYTES]))
    assert not fits(pa.RecordBatch.from_pydict({"number": [1]}))
    assert not fits(pa.RecordBatch.from_pydict({"lists": pa.array([["a"], None], LISTS)}))
    largest = batch_of(["é" * (MOST_BYTES // 2 - 1000)])
    assert read_rows(encoded(largest)) == pa.Table.from_batches([largest])
