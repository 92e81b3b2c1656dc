"""Rows of one table by the keys of another, without a loop over rows."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from table_data.errors import InvalidCall
from table_data.queries.key_places import KeyPlaces


@pytest.mark.parametrize(
    "keys",
    [
        [30, 10, 20],
        ["c", "a", "ä"],
        [2.5, -1.0, 0.0],
        [date(2026, 3, 1), date(2025, 1, 1), date(2030, 1, 1)],
        [b"z", b"", b"a"],
        [True, False],
    ],
    ids=lambda keys: type(keys[0]).__name__,
)
def test_each_key_is_found_at_its_row(keys: list[Any]) -> None:
    places = KeyPlaces.of(pa.array(keys), "t")
    assert places.find(pa.array(keys)).tolist() == [*range(len(keys))]
    assert places.find(pa.array(keys[::-1])).tolist() == [*range(len(keys))][::-1]
    assert places.find(pa.array([keys[1], None, keys[0]])).tolist() == [1, -1, 0]


def test_a_key_that_is_not_there_has_no_place() -> None:
    places = KeyPlaces.of(pa.array([5, None, 1]), "t")
    assert places.find(pa.array([0, 1, 3, 5, 9])).tolist() == [-1, 2, -1, 0, -1]
    assert places.find(pa.array([], pa.int64())).tolist() == []
    assert KeyPlaces.of(pa.array([], pa.int64()), "t").find(pa.array([1])).tolist() == [-1]


def test_a_key_that_is_there_twice_is_named() -> None:
    with pytest.raises(InvalidCall, match="labels: expected each key once, found 7 twice"):
        KeyPlaces.of(pa.array([7, 1, None, None, 7]), "labels")
