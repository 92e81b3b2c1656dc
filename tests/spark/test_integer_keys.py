"""Sets of integer keys, compared with sets of Python."""

from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_catalog.integer_keys import IntegerKeys, has_repeats

NUMBERS = st.one_of(
    st.integers(-5, 30),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, 0, 2**62]),
)


def columns(keys: list[tuple[int, ...]], width: int) -> list[pa.Array]:
    return [pa.array([key[place] for key in keys], pa.int64()) for place in range(width)]


@st.composite
def key_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]:
    width = draw(st.integers(1, 3))
    keys = st.lists(st.tuples(*[NUMBERS] * width), max_size=30)
    known = draw(keys)
    return width, known, draw(keys) + draw(st.lists(st.sampled_from(known or [(0,) * width]), max_size=5))


@given(key_lists())
def test_a_set_contains_its_keys_and_no_other(lists: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
    width, known, asked = lists
    keys = IntegerKeys.of(columns(known, width))
    if keys is None:
        assert math.prod(max(column) - min(column) + 1 for column in zip(*known, strict=True)) >= 2**63 or not known
        return
    found = pickle.loads(pickle.dumps(keys)).contains(columns(asked, width))
    assert found.tolist() == [key in set(known) for key in asked]


@given(key_lists())
def test_repeated_keys_are_noticed(lists: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
    width, known, _ = lists
    found = has_repeats(columns(known, width))
    assert found in (None, len(set(known)) < len(known))


@pytest.mark.parametrize("step", [1, 2**40], ids=["bitmap", "sorted"])
def test_narrow_types_and_chunks_are_keys_too(step: int) -> None:
    known = pa.chunked_array([pa.array([0, step]), pa.array([3 * step])])
    keys = IntegerKeys.of([known])
    assert keys is not None
    assert (keys.present is None) == (step > 1)
    found = keys.contains([pa.array([0, 1, 3], pa.int16())])
    assert found is not None
    assert found.tolist() == ([True, True, True] if step == 1 else [True, False, False])


@pytest.mark.parametrize(
    "other", [pa.array(["a"]), pa.array([1, None]), pa.array([1], pa.uint64()), pa.array([1.5])], ids=str
)
def test_other_values_are_left_to_others(other: pa.Array) -> None:
    assert IntegerKeys.of([other]) is None
    assert has_repeats([other]) is None
    keys = IntegerKeys.of([pa.array([1])])
    assert keys is not None
    assert keys.contains([other]) is None
