"""Hashes of keys, by which merges of one table find out that they insert the same key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table_data.staging.merge import _key_hashes

INTEGERS = st.integers(-(2**31), 2**31 - 1)
KEYS = st.lists(st.tuples(st.none() | INTEGERS, st.none() | INTEGERS), min_size=1, max_size=30)


def hashes(*columns: pa.Array) -> list[int]:
    return list(_key_hashes(columns))


@given(st.lists(INTEGERS, min_size=1, max_size=50), st.sampled_from([pa.int32(), pa.int64()]))
def test_each_integer_has_a_hash_of_its_own(keys: list[int], kind: pa.DataType) -> None:
    found = hashes(pa.array(keys, kind))
    assert len(set(found)) == len(set(keys))
    assert [hashes(pa.array([key], kind))[0] for key in keys] == found


@given(KEYS)
def test_equal_keys_of_two_columns_have_equal_hashes(keys: list[tuple[int | None, int | None]]) -> None:
    """Whatever stands beside them in their batch, and wherever they stand in it."""
    columns = [pa.array(column, pa.int64()) for column in zip(*keys, strict=True)]
    found = hashes(*columns)
    assert len(set(found)) == len(set(keys))
    assert found == [hashes(*(pa.array([part], pa.int64()) for part in key))[0] for key in keys]
    assert found[1:] == hashes(*(column.slice(1) for column in columns))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, 2**64 - 1], pa.uint64()),
        pa.array(["a", "b", None]),
        pa.array([b"a", b"b", b""]),
        pa.array([0.5, 1.5, None]),
        pa.array([True, False, None]),
    ],
)
def test_kinds_of_keys(column: pa.Array) -> None:
    found = hashes(column)
    assert len(set(found)) == 3
    assert all(0 <= each < 2**64 for each in found)
    assert hashes(column, column) == hashes(column, column)
    assert set(hashes(column, column)).isdisjoint(found)
