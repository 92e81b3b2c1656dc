"""What each task of a read gets, without Spark."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_catalog.tables.splits import FragmentSize, Piece, Split, plan_splits

FRAGMENTS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 10**6)), max_size=12).map(
    lambda sizes: [FragmentSize(number * 3, rows, size) for number, (rows, size) in enumerate(sizes)]
)


def sizes(*rows: int, each: int = 10) -> list[FragmentSize]:
    return [FragmentSize(number, count, count * each) for number, count in enumerate(rows)]


def test_small_fragments_share_a_split_and_large_ones_are_divided() -> None:
    splits = plan_splits(sizes(10, 20, 250, 5), max_rows=100)
    assert [split.pieces for split in splits] == [
        (Piece(0), Piece(1)),
        (Piece(2, 0, 83),),
        (Piece(2, 83, 83),),
        (Piece(2, 166, 84),),
        (Piece(3),),
    ]
    assert [split.rows for split in splits] == [30, 83, 83, 84, 5]


def test_bytes_bound_a_split_as_rows_do() -> None:
    assert len(plan_splits(sizes(10, 10, 10, each=50), max_bytes=1000)) == 2
    assert len(plan_splits(sizes(10, each=1000), max_bytes=1000)) == 10
    assert len(plan_splits(sizes(2, each=10**6), max_bytes=1000)) == 2


def test_indivisible_fragments_are_splits_of_their_own() -> None:
    splits = plan_splits(sizes(10, 500, 10), max_rows=100, divisible=False)
    assert [split.pieces for split in splits] == [(Piece(0),), (Piece(1),), (Piece(2),)]


def test_a_table_without_rows_has_no_splits() -> None:
    assert plan_splits([]) == plan_splits(sizes(0, 0)) == plan_splits(sizes(5), limit=0) == []


def test_a_limit_ends_within_a_fragment() -> None:
    splits = plan_splits(sizes(10, 10, 10), limit=15)
    assert [split.pieces for split in splits] == [(Piece(0),), (Piece(1, 0, 5),)]


@given(FRAGMENTS, st.integers(1, 2000), st.integers(1, 10**5), st.booleans(), st.none() | st.integers(0, 20_000))
def test_every_row_is_in_one_split(
    fragments: list[FragmentSize], max_rows: int, max_bytes: int, divisible: bool, limit: int | None
) -> None:
    limit = limit if divisible else None
    splits = plan_splits(fragments, max_rows=max_rows, max_bytes=max_bytes, divisible=divisible, limit=limit)
    rows = {fragment.id: fragment.rows for fragment in fragments}
    expected = sum(rows.values()) if limit is None else min(limit, sum(rows.values()))
    assert sum(split.rows for split in splits) == expected
    pieces = [piece for split in splits for piece in split.pieces]
    assert [piece.fragment for piece in pieces] == sorted(piece.fragment for piece in pieces)
    for before, after in pairwise(pieces):
        if before.fragment == after.fragment:
            assert before.rows is not None
            assert before.start + before.rows == after.start
        else:
            assert after.start == 0
            assert before.rows is None or before.start + before.rows == rows[before.fragment]
    for split in splits:
        assert split.rows == sum(rows[piece.fragment] if piece.rows is None else piece.rows for piece in split.pieces)
        assert split.rows > 0


def test_a_split_of_many_fragments_stays_small_when_pickled() -> None:
    import pickle

    [split] = plan_splits(sizes(*[1] * 1000))
    assert isinstance(split, Split)
    assert len(pickle.dumps(split)) < 64_000
