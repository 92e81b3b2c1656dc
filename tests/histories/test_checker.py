"""What the checker finds in histories that are written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.histories.checker import check
from tests.histories.history import Effect, Event, Row, Walk

FIRST: tuple[Row, ...] = (("c", "first", 0), ("d", "first", 0))
A = Event("a", "one", (Effect("t0", "insert", "x"), Effect("t1", "increment", "c")), 1, 2, "committed", 2)
B = Event("b", "two", (Effect("t0", "delete", "d"),), 3, 4, "committed", 3, {"t0": 3})
X: Row = ("x", "a", 0)
ZERO: dict[int, tuple[Row, ...]] = {1: FIRST, 2: (*FIRST, X), 3: (FIRST[0], X)}
ONE: dict[int, tuple[Row, ...]] = {1: FIRST, 2: (("c", "a", 1), FIRST[1])}
PINS = {1: (1, 1), 2: (2, 2), 3: (3, 2)}


def kinds(
    *events: Event,
    zero: Mapping[int, tuple[Row, ...]] = ZERO,
    one: Mapping[int, tuple[Row, ...]] = ONE,
    pins: Mapping[int, tuple[int, int]] = PINS,
) -> set[str]:
    """The kinds of anomalies of a history of two tables."""
    walked = Walk({n: {"t0": a, "t1": b} for n, (a, b) in pins.items()}, {"t0": dict(zero), "t1": dict(one)})
    return {anomaly.kind for anomaly in check(events, walked)}


def test_a_history_in_order_has_none() -> None:
    read = Event("r", "three", (), 5, 6, "committed", read_at=3, reads={"t0": 3}, rows={"t0": ZERO[3]})
    assert kinds(A, B, read) == set()


@pytest.mark.parametrize("outcome", ["rejected", "unknown", "committed"])
def test_what_is_not_there_was_not_acknowledged(outcome: str) -> None:
    absent = Event("z", "one", (Effect("t1", "insert", "z"),), 1, 2, outcome)  # type: ignore[arg-type]
    assert kinds(A, B, absent) == ({"lost"} if outcome == "committed" else set())


def test_what_is_there_was_not_rejected() -> None:
    assert kinds(A, replace(B, outcome="rejected")) == {"visible"}
    assert kinds(A, replace(B, outcome="unknown")) == set()


def test_half_a_transaction() -> None:
    assert kinds(replace(A, outcome="unknown"), B, one={1: FIRST}, pins={1: (1, 1), 2: (2, 1), 3: (3, 1)}) == {"torn"}


def test_tables_at_two_catalog_versions() -> None:
    assert kinds(replace(A, catalog_version=3), replace(B, begun=1), pins={1: (1, 1), 2: (2, 1), 3: (3, 2)}) == {"torn"}


def test_the_same_row_twice() -> None:
    assert kinds(A, B, zero={**ZERO, 4: (*ZERO[3], X)}) == {"doubled"}


def test_an_increment_twice() -> None:
    assert kinds(A, B, one={**ONE, 3: (("c", "a", 2), FIRST[1])}) == {"doubled"}


def test_a_row_goes_without_an_operation() -> None:
    assert "lost" in kinds(A, B, zero={**ZERO, 4: (FIRST[0],)})


def test_a_deleted_row_comes_back() -> None:
    assert "revived" in kinds(A, B, zero={**ZERO, 4: (*FIRST, X)})


def test_an_increment_over_another() -> None:
    other = Event("o", "two", (Effect("t1", "increment", "c"),), 1, 9, "committed")
    assert kinds(A, B, other, one={**ONE, 3: (("c", "o", 1), FIRST[1])}, pins={**PINS, 4: (3, 3)}) == {"lost"}


def test_order_in_time() -> None:
    assert kinds(replace(A, begun=5, ended=6), B) == {"reordered"}
    assert kinds(replace(A, begun=3, ended=6), B) == set()


def test_a_number_that_was_not_told() -> None:
    assert kinds(A, replace(B, versions={"t0": 2})) == {"misnumbered"}
    assert kinds(A, replace(B, catalog_version=2)) == {"misnumbered"}
    assert kinds(A, replace(B, catalog_version=4)) == {"misnumbered"}


def test_a_commit_by_path_may_move_behind_what_follows_it() -> None:
    moved = replace(B, begun=0, ended=0.5, catalog_version=None, by_path=True, versions={"t0": 2})
    assert kinds(A, moved) == set()
    assert kinds(A, replace(moved, versions={"t0": 3})) == {"reordered"}
    assert "lost" in kinds(A, moved, zero={1: FIRST, 2: ZERO[2]}, pins={1: (1, 1), 2: (2, 2)})


def test_a_read_of_what_is_no_longer_so() -> None:
    read = Event("r", "three", (), 5, 6, "committed", read_at=2, rows={"t0": ZERO[2]})
    assert kinds(A, B, read) == {"stale"}
    assert kinds(A, B, replace(read, begun=4)) == set()
    at_head = Event("r", "three", (), 5, 6, "committed", reads={"t0": 2}, at_heads=True)
    assert kinds(A, replace(B, by_path=True), at_head) == {"stale"}


def test_a_read_of_other_rows() -> None:
    assert kinds(A, B, Event("r", "three", (), 5, 6, "committed", read_at=3, rows={"t0": ZERO[2]})) == {"misread"}
    assert kinds(A, B, Event("r", "three", (), 5, 6, "committed", read_at=3, reads={"t0": 2})) == {"misread"}


def test_a_serializable_transaction_on_what_has_changed() -> None:
    later = replace(B, serializable=True, reads={"t0": 2, "t1": 2})
    assert kinds(A, later) == set()
    assert kinds(A, replace(later, reads={"t0": 2, "t1": 1})) == {"skewed"}
    assert kinds(A, replace(later, reads={"t0": 1})) == {"skewed"}


def test_two_serializable_transactions_in_one_flip_that_overlook_each_other() -> None:
    one = Event("p", "one", (Effect("t0", "insert", "p"),), 1, 9, "committed", serializable=True)
    other = Event("q", "two", (Effect("t1", "insert", "q"),), 1, 9, "committed", serializable=True)
    zero, tables = {1: FIRST, 2: (*FIRST, ("p", "p", 0))}, {1: FIRST, 2: (*FIRST, ("q", "q", 0))}
    both, alone = {"t0": 1, "t1": 1}, {"t1": 1}
    pins = {1: (1, 1), 2: (2, 2)}
    assert kinds(replace(one, reads=both), replace(other, reads=both), zero=zero, one=tables, pins=pins) == {"skewed"}
    assert kinds(replace(one, reads=both), replace(other, reads=alone), zero=zero, one=tables, pins=pins) == set()
