"""Rows as tuples and as Arrow batches: the same rows, whichever way they went."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_core.data import read_rows
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.manifest_table.fragments import Fragment, live_rows, new_fragment
from namespace_server.directory.manifest_table.row_codec import Row
from namespace_server.directory.manifest_table.rows import (
    COMPRESSED_ROWS,
    FEW_ROWS,
    ROW_SCHEMA,
    Rows,
    batch_of,
    count_rows,
    encode_row_file,
    few_rows,
    join_rows,
)

TEXT = st.text(max_size=12)
ROWS = st.builds(Row, TEXT, st.sampled_from(["table", "namespace"]), st.none() | TEXT, st.none() | TEXT)
PARTS = st.lists(
    st.lists(ROWS, min_size=1, max_size=8).flatmap(
        lambda rows: st.tuples(st.just(tuple(rows)), st.sets(st.integers(0, len(rows) - 1)), st.booleans())
    ),
    min_size=1,
    max_size=5,
)


def fragment_of(rows: Rows, deleted: set[int], start: int = 0) -> Fragment:
    return Fragment(pb.DataFragment(physical_rows=count_rows(rows)), start, None, BitMap(deleted), rows)


def many(count: int) -> tuple[Row, ...]:
    return tuple(Row(f"row {number}", "table", f"place {number}", None) for number in range(count))


@given(PARTS)
def test_the_rows_that_are_there(parts: list[tuple[tuple[Row, ...], set[int], bool]]) -> None:
    """As tuples, as batches, and as some of each."""
    expected = tuple(row for rows, deleted, _ in parts for at, row in enumerate(rows) if at not in deleted)
    fragments = [fragment_of(rows, deleted) for rows, deleted, _ in parts]
    assert live_rows(fragments, [rows for rows, _, _ in parts]) == expected
    mixed = live_rows(fragments, [batch_of(rows) if in_arrow else rows for rows, _, in_arrow in parts])
    assert few_rows(batch_of(mixed)) == expected


@given(PARTS)
def test_serials_of_the_rows_that_are_there(parts: list[tuple[tuple[Row, ...], set[int], bool]]) -> None:
    for rows, deleted, _ in parts:
        there = [5 + at for at in range(len(rows)) if at not in deleted]
        assert fragment_of(rows, deleted, 5).live_serials() == there
        again = new_fragment(pb.DataFragment(physical_rows=len(there)), there, None)
        assert again.live_serials() == there
        assert [again.offset(serial) for serial in there] == list(range(len(there)))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("count", [1, 2, FEW_ROWS, FEW_ROWS + 1, COMPRESSED_ROWS])
def test_row_files(version: str, count: int) -> None:
    rows = join_rows([many(count)])
    assert isinstance(rows, tuple) is (count <= FEW_ROWS)
    assert read_rows(encode_row_file(rows, version)) == pa.Table.from_batches([batch_of(rows)])


def test_long_texts_are_encoded_by_pylance() -> None:
    rows = (Row("object", "table", None, "x" * 1_000_000),)
    assert read_rows(encode_row_file(rows, "2.2")) == pa.Table.from_batches([batch_of(rows)])


def test_base_objects_of_another_writer_stay() -> None:
    """Which tuples have no place for."""
    batch = batch_of(many(2))
    names = pa.array([["a", "b"], None], ROW_SCHEMA.field("base_objects").type)
    unmanaged = batch.set_column(4, ROW_SCHEMA.field("base_objects"), names)
    assert few_rows(unmanaged) is unmanaged
    joined = join_rows([many(1), unmanaged])
    assert batch_of(joined).column("base_objects").to_pylist() == [None, ["a", "b"], None]
    assert read_rows(encode_row_file(joined, "2.2"))["base_objects"].to_pylist() == [None, ["a", "b"], None]


def test_a_few_rows_of_many() -> None:
    rows = batch_of(many(FEW_ROWS + 1))
    assert few_rows(rows) is rows
    assert few_rows(rows.slice(1)) == many(FEW_ROWS + 1)[1:]
    assert few_rows(rows.select(["object_id"])).num_rows == FEW_ROWS + 1  # type: ignore[union-attr]
