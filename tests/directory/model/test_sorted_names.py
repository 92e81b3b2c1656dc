"""A `SortedNames` answers as a sorted list would, and an edit copies no more than the path to what it changes."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namespace_server.directory.model.persistent import sorted_names
from namespace_server.directory.model.persistent.sorted_names import LEAF_LIMIT, NODE_LIMIT, SortedNames

NAMES = st.text("ab c\u00e9$\U0001f600\uffee", max_size=4)
"""Short, of few characters: names come again, and some lie next to each other."""
EDITS = st.lists(st.tuples(st.sets(NAMES, max_size=60), st.sets(NAMES, max_size=60)), max_size=30)


def named(*numbers: int) -> list[str]:
    return [f"table_{number:07d}" for number in numbers]


def nodes_of(names: SortedNames) -> Iterator[object]:
    """Every node, inner ones included."""
    waiting = [names._root]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, sorted_names._Inner):
            waiting += node.children


def copied(before: SortedNames, after: SortedNames) -> int:
    """How many nodes of `after` are not nodes of `before`."""
    known = {id(node) for node in nodes_of(before)}
    return sum(id(node) not in known for node in nodes_of(after))


def depth(names: SortedNames) -> int:
    node, found = names._root, 1
    while isinstance(node, sorted_names._Inner):
        node, found = node.children[0], found + 1
    return found


def check_structure(names: SortedNames) -> None:
    """Leaves at one depth, widths within their limits, sizes and first names as they are."""

    def check(node: object, at_root: bool) -> tuple[int, int, str]:
        if isinstance(node, sorted_names._Inner):
            found = [check(child, False) for child in node.children]
            assert (2 if at_root else sorted_names._JOIN_BELOW) <= len(found) <= NODE_LIMIT
            assert len({height for height, _, _ in found}) == 1
            assert node.firsts == tuple(first for _, _, first in found)
            assert node.size == sum(size for _, size, _ in found)
            return found[0][0] + 1, node.size, node.firsts[0]
        assert isinstance(node, tuple)
        assert (0 if at_root else sorted_names._JOIN_BELOW) <= len(node) <= LEAF_LIMIT
        return 1, len(node), node[0] if node else ""

    check(names._root, True)


@given(st.sets(NAMES), EDITS, NAMES)
def test_it_answers_like_a_sorted_list(start: set[str], edits: list[tuple[set[str], set[str]]], probe: str) -> None:
    expected = set(start)
    names = SortedNames.from_sorted(sorted(expected))
    for add, remove in edits:
        names = names.edit(add=add, remove=remove)
        expected = (expected - remove) | add
    ordered = sorted(expected, key=str.encode)
    assert list(names) == ordered
    assert names == tuple(ordered)
    assert len(names) == len(ordered)
    assert (probe in names) == (probe in expected)
    assert all(name in names for name in ordered)
    assert list(names.starting_at(probe)) == ordered[bisect_left(ordered, probe) :]
    behind = ordered[bisect_right(ordered, probe) :]
    assert list(names.after(probe)) == behind
    for count in (0, 1, 100, len(ordered)):
        assert names.first(count) == ordered[:count]
        assert names.first(count, after=probe) == behind[:count]
    check_structure(names)


@pytest.mark.parametrize("seed", range(4))
def test_a_large_set_keeps_its_structure_through_growing_and_shrinking(seed: int) -> None:
    source = random.Random(seed)
    expected = set(named(*range(0, 60_000, 3)))
    names = SortedNames.from_sorted(sorted(expected))
    check_structure(names)
    for step in range(60):
        size = source.choice([1, 2, 50, 4_000])
        if step % 20 < 8:
            add, remove = set(named(*source.sample(range(60_000), size))), set[str]()
        elif step % 20 < 16:
            add, remove = set[str](), set(source.sample(sorted(expected), min(size, len(expected))))
        else:  # a contiguous range goes, so that whole subtrees do
            ordered = sorted(expected)
            first = source.randrange(len(ordered) or 1)
            add, remove = set[str](), set(ordered[first : first + size])
        names = names.edit(add=add, remove=remove)
        expected = (expected - remove) | add
        check_structure(names)
        assert list(names) == sorted(expected)
    names = names.edit(remove=expected)
    assert (len(names), list(names), names == ()) == (0, [], True)


def test_an_edit_of_one_name_copies_one_path() -> None:
    """Of a million names as of a thousand: that is what makes a flip cost what it changes."""
    for count in (1_000, 100_000, 1_000_000):
        names = SortedNames.from_sorted(named(*range(0, 2 * count, 2)))
        assert depth(names) <= 4
        for number in (1, count | 1, 2 * count - 1):
            [name] = named(number)
            grown = names.edit(add=[name])
            # A leaf or node that is full is split in two.
            assert copied(names, grown) <= 2 * depth(names)
            assert copied(grown, grown.edit(remove=[name])) <= 2 * depth(names)
            assert len(grown) == len(names) + 1


def test_a_run_of_edits_copies_paths_and_not_the_set() -> None:
    """Names spread over a set of 100,000, added one by one and then at once."""
    names = SortedNames.from_sorted(named(*range(0, 200_000, 2)))
    added = named(*random.Random(3).sample(range(1, 200_000, 2), 1_000))
    grown, total = names, 0
    for name in added:
        after = grown.edit(add=[name])
        total += copied(grown, after) if name in added[::100] else depth(after)
        grown = after
    assert total <= len(added) * (depth(names) + 1)
    at_once = names.edit(add=added)
    assert at_once == grown
    assert copied(names, at_once) <= len(added) * depth(names)
    shared = {id(leaf) for leaf in names.leaves()} & {id(leaf) for leaf in at_once.leaves()}
    assert len(shared) >= sum(1 for _ in names.leaves()) - len(added)


def test_an_edit_without_effect_gives_the_same_object() -> None:
    for count in (0, 1, 5_000):
        names = SortedNames.from_sorted(named(*range(count)))
        assert names.edit() is names
        assert names.edit(remove=["nothing", "", "zzz"]) is names
        assert names.edit(add=named(*range(0, count, 7)), remove=["~"]) is names


def test_a_page_reads_the_leaves_that_it_needs() -> None:
    """Iteration is lazy: the first names of a large set come without those behind them."""
    names = SortedNames.from_sorted(named(*range(100_000)))
    leaves = names.leaves()
    first = next(leaves)
    assert len(first) <= LEAF_LIMIT
    page = names.after(named(70_000)[0])
    assert [next(page) for _ in range(3)] == named(70_001, 70_002, 70_003)
