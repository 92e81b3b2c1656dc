"""Sets of integer keys, compared with sets of Python."""

from __future__ import annotations

import itertools
import math
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_catalog.graph_writes.integer_keys import IntegerKeys, has_repeats

NUMBERS = (
    st.integers(-2, 2),
    st.integers(-5, 2**20),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 0, 2**62])),
)


def columns(keys: list[tuple[int, ...]], width: int) -> list[pa.Array]:
    return [pa.array([key[place] for key in keys], pa.int64()) for place in range(width)]


@st.composite
def key_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]:
    width = draw(st.integers(1, 3))
    numbers = draw(st.sampled_from(NUMBERS))
    keys = st.lists(st.tuples(*[numbers] * width), max_size=30)
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


@pytest.mark.parametrize("width", [1, 2, 3])
def test_keys_next_to_those_of_a_set_are_not_in_it(width: int) -> None:
    known = [key for key in itertools.product(range(3), repeat=width) if sum(key) % 2 == 0]
    asked = list(itertools.product(range(-2, 5), repeat=width))
    keys = IntegerKeys.of(columns(known, width))
    assert keys is not None
    found = keys.contains(columns(asked, width))
    assert found is not None
    assert found.tolist() == [key in known for key in asked]
    assert has_repeats(columns(known, width)) is False


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
