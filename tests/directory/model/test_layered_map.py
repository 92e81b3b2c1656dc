"""A `LayeredMap` answers as a dictionary would, and leaves every older version as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namespace_server.directory.model.persistent.layered_map import LayeredMap

KEYS = st.integers(0, 12)
STEPS = st.lists(st.tuples(KEYS, st.none() | st.integers()), max_size=40)


def assert_is(found: LayeredMap[int, int], expected: dict[int, int]) -> None:
    assert dict(found.items()) == expected
    assert sorted(found.values()) == sorted(expected.values())
    assert len(found) == len(expected)
    for key in range(14):
        assert found.get(key) == expected.get(key)
        assert (key in found) == (key in expected)


@given(st.dictionaries(KEYS, st.integers()), STEPS)
def test_it_answers_like_a_dictionary(base: dict[int, int], steps: list[tuple[int, int | None]]) -> None:
    found = LayeredMap(dict(base))
    expected = dict(base)
    versions = [(found, dict(expected))]
    for key, value in steps:
        if value is not None:
            found = found.set(key, value)
            expected[key] = value
        elif key in expected:
            found = found.delete(key)
            del expected[key]
        else:
            with pytest.raises(KeyError):
                found.delete(key)
            with pytest.raises(KeyError):
                found[key]
        versions.append((found, dict(expected)))
    for version, state in versions:
        assert_is(version, state)
