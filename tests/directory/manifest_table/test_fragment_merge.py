"""Which fragments a flip takes over: few remain, and no row is copied often."""

from __future__ import annotations

import random

import pytest

from namespace_server.directory.manifest_table.fragment_merge import FAN_IN, MAX_SMALL_FRAGMENTS, TIERS, choose_merge


def run(sizes: list[int]) -> tuple[int, float]:
    """The most fragments at any time, and how many rows were copied for each row put."""
    live: list[int] = []
    most = copied = 0
    for rows in sizes:
        first = choose_merge(live, rows)
        copied += sum(live[first:])
        live = [*live[:first], sum(live[first:]) + rows]
        most = max(most, sum(size < TIERS[-1] for size in live))
    return most, copied / sum(sizes)


@pytest.mark.parametrize("rows", [1, 3, 17, 100, 250, 2_000])
def test_flips_of_one_size(rows: int) -> None:
    most, copies = run([rows] * 20_000)
    assert most <= MAX_SMALL_FRAGMENTS
    # A row is copied once per tier that it passes, and while it is among the newest few.
    assert copies < len(TIERS) + 16 / rows


def test_flips_of_mixed_sizes() -> None:
    source = random.Random(1)
    most, copies = run([int(10 ** source.uniform(0, 3.5)) for _ in range(20_000)])
    assert most <= MAX_SMALL_FRAGMENTS
    assert copies < 8


def test_fragments_that_deletions_shrink() -> None:
    source = random.Random(2)
    live: list[int] = []
    most = copied = put = 0
    for _ in range(30_000):
        rows = int(10 ** source.uniform(0, 3))
        if live and source.random() < 0.3:
            live[source.randrange(len(live))] = source.randrange(10)
        first = choose_merge(live, rows)
        copied += sum(live[first:])
        put += rows
        live = [*live[:first], sum(live[first:]) + rows]
        most = max(most, sum(size < TIERS[-1] for size in live))
    assert most <= MAX_SMALL_FRAGMENTS
    assert copied < 8 * put


def test_a_large_fragment_is_left_to_maintenance() -> None:
    assert choose_merge([TIERS[-1]] * 20, 3) == 20
    assert choose_merge([TIERS[-1], 100], TIERS[-1]) == 1
    assert choose_merge([TIERS[-1], *[100] * (FAN_IN - 1)], 100) == 1


def test_empty_fragments_are_merged_as_well() -> None:
    assert choose_merge([], 1) == 0
    assert choose_merge([500, 0, 0, 3], 2) == 1
