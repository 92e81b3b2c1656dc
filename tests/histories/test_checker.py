"""What the checker finds in histories that are written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.histories.checker import check
from tests.histories.clients import is_repeated
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
    aside: frozenset[str | Effect] = frozenset(),
    again: frozenset[str | Effect] = frozenset(),
) -> set[str]:
    """The kinds of anomalies of a history of two tables, whose last catalog version has all of their versions."""
    whole = {**pins, max(pins) + 1: (max(zero), max(one))}
    walked = Walk(
        {n: {"t0": a, "t1": b} for n, (a, b) in whole.items()}, {"t0": dict(zero), "t1": dict(one)}, aside, again
    )
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


def test_two_versions_of_one_table_at_two_catalog_versions() -> None:
    chain = Event("a", "one", (Effect("t0", "insert", "x"), Effect("t0", "delete", "d")), 1, 2, "committed")
    assert kinds(chain, one={1: FIRST}, pins={1: (1, 1), 2: (2, 1), 3: (3, 1)}) == {"torn"}
    assert kinds(chain, one={1: FIRST}, pins={1: (1, 1), 2: (3, 1)}) == set()


def test_versions_of_another_transaction_between_those_of_one() -> None:
    chain = Event("a", "one", (Effect("t0", "insert", "x"), Effect("t0", "insert", "z")), 1, 9, "committed")
    other = Event("b", "two", (Effect("t0", "delete", "d"),), 1, 9, "committed")
    zero = {**ZERO, 4: (*ZERO[3], ("z", "a", 0))}
    assert kinds(chain, other, zero=zero, one={1: FIRST}, pins={1: (1, 1), 2: (4, 1)}) == {"torn"}


def test_one_version_with_changes_of_two_transactions() -> None:
    both = {1: FIRST, 2: ZERO[3]}
    alone = replace(A, effects=A.effects[:1])
    pins = {1: (1, 1), 2: (2, 1)}
    assert kinds(alone, replace(B, begun=1, catalog_version=2, versions={}), zero=both, one={1: FIRST}, pins=pins) == {
        "torn"
    }


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


def test_an_insert_of_other_content() -> None:
    assert kinds(A, B, zero={1: FIRST, 2: (*FIRST, ("x", "a", 5)), 3: (FIRST[0], ("x", "a", 5))}) == {"lost"}


def test_a_catalog_version_that_goes_back() -> None:
    assert kinds(A, B, pins={**PINS, 4: (3, 1)}) == {"lost"}


def test_a_version_that_is_not_in_the_catalog() -> None:
    walked = Walk({n: {"t0": a, "t1": b} for n, (a, b) in PINS.items()}, {"t0": {**ZERO, 4: ZERO[3]}, "t1": ONE})
    assert [anomaly.kind for anomaly in check([A, B], walked)] == ["lost"]
    walked.states["t0"] = {2: ZERO[2], 3: ZERO[3]}
    assert "lost" in {anomaly.kind for anomaly in check([B], walked)}


def test_order_in_time() -> None:
    assert kinds(replace(A, begun=5, ended=6), B) == {"reordered"}
    assert kinds(replace(A, begun=3, ended=6), B) == set()


def test_a_transaction_that_begins_after_it_was_read() -> None:
    early = Event("r", "three", (), 0, 0.5, "committed", read_at=2, reads={"t0": 2}, rows={"t0": ZERO[2]})
    assert kinds(A, B, early) == {"reordered"}
    assert kinds(A, B, replace(early, ended=1.5)) == set()
    assert kinds(replace(A, read_at=2), B) == {"reordered"}
    assert kinds(replace(A, read_at=1), B) == set()


def test_a_read_that_goes_back_behind_another_one() -> None:
    """Of a transaction that is not acknowledged, or never will be."""
    unknown = replace(B, outcome="unknown", ended=99)
    one = Event("r", "three", (), 5, 6, "committed", read_at=3, rows={"t0": ZERO[3]})
    other = Event("s", "four", (), 7, 8, "committed", read_at=2, rows={"t0": ZERO[2]})
    assert kinds(A, unknown, one, other) == {"stale"}
    assert kinds(A, unknown, one, replace(other, begun=5)) == set()
    at_head = replace(other, read_at=None, reads={"t0": 2}, at_heads=True)
    assert kinds(A, unknown, one, at_head) == {"stale"}
    assert kinds(A, unknown, one, replace(at_head, at_heads=False)) == set()


def test_a_repetition_that_is_answered_otherwise() -> None:
    assert kinds(A, replace(B, answered_otherwise=["catalog version 4, not 3"])) == {"misanswered"}


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
    assert kinds(A, B, Event("r", "three", (), 5, 6, "committed", read_at=9, reads={"t0": 3})) == {"misread"}


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


def test_three_serializable_transactions_in_one_flip_of_which_each_overlooks_the_next() -> None:
    tables = ("t0", "t1", "t2")
    events = [
        Event(f"e{n}", f"{n}", (Effect(tables[n], "insert", f"e{n}"),), 1, 9, "committed", serializable=True)
        for n in range(3)
    ]
    states = {tables[n]: {1: FIRST, 2: (*FIRST, (f"e{n}", f"e{n}", 0))} for n in range(3)}
    walked = Walk({1: dict.fromkeys(tables, 1), 2: dict.fromkeys(tables, 2)}, states)  # type: ignore[arg-type]
    ring = [replace(event, reads={tables[n]: 1, tables[(n + 1) % 3]: 1}) for n, event in enumerate(events)]
    assert [anomaly.kind for anomaly in check(ring, walked)] == ["skewed"]
    ring[0] = replace(ring[0], reads={"t0": 1})
    assert check(ring, walked) == []


def test_a_commit_by_path_that_is_not_there_is_reported() -> None:
    absent = Event("z", "one", (Effect("t1", "insert", "z"),), 1, 2, "committed", by_path=True)
    assert kinds(A, B, absent) == {"lost"}
    assert kinds(A, B, absent, aside=frozenset({"z"})) == set()
    assert kinds(A, B, replace(absent, by_path=False), aside=frozenset({"z"})) == {"lost"}


def test_what_is_there_is_not_reported_as_missing() -> None:
    by_path = replace(B, by_path=True, catalog_version=None)
    assert kinds(A, by_path) == set()
    assert kinds(A, by_path, aside=frozenset(B.effects)) == {"misanswered"}


def test_a_commit_by_path_that_was_committed_again_may_be_missing_meanwhile() -> None:
    """Under the number that it had before."""
    by_path = replace(B, by_path=True, catalog_version=None)
    read = Event("r", "three", (), 5, 6, "committed", reads={"t0": 2}, rows={"t0": ZERO[2]}, at_heads=True)
    assert kinds(A, by_path, read) == {"stale"}
    assert kinds(A, by_path, read, again=frozenset(B.effects)) == set()


def test_a_repeated_answer_may_name_the_place_of_a_manifest_that_had_none_at_first() -> None:
    def answer(path: str, version: int = 2) -> dict[str, object]:
        return {"results": [{"version": {"version": version, "manifest_path": path}}]}

    staged, place = "root/_staging/1b.2c.1-2", "root/t/_versions/3.manifest"
    assert is_repeated(answer(place), answer(place))
    assert is_repeated(answer(staged), answer(place))
    assert not is_repeated(answer(place), answer(staged))
    assert not is_repeated(answer(staged), answer(place, version=3))
    assert not is_repeated(answer(staged), answer("root/_staging/1b.2c.1-3"))
    assert not is_repeated(answer(staged), {"results": []})
