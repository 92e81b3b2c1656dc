"""A `NameIndex` finds what a look at every name would find, the best first, and an edit makes it as if made anew."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from namespace_server.directory.model import table_names
from namespace_server.directory.model.entries import NamespaceEntry, TableEntry, changes_of
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent import name_index
from namespace_server.directory.model.persistent.name_index import NameIndex, words_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.table_names import IndexedNames

NAMES = st.text("abO ß\u0130\n\0.\U0001f600", min_size=1, max_size=5)
"""Of few characters, so that parts of them are found; also such as other writers have made."""
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
TEXTS = st.text("aboS .$\u0130", max_size=6)


def made(paths: Iterable[ObjectId]) -> NameIndex:
    below: dict[ObjectId, list[str]] = {}
    for path in sorted(paths, key=lambda each: (each[:-1], each[-1])):
        below.setdefault(path[:-1], []).append(path[-1])
    return NameIndex.of(below.items())


def looked_through(paths: Iterable[ObjectId], words: Sequence[str]) -> list[ObjectId]:
    """What a look at every name finds, in the order of the kinds of matches."""

    def plain(text: str) -> str:
        return text.casefold().replace("\n", " ").replace("\0", " ")

    def kind(path: ObjectId) -> int:
        name = plain(path[-1])
        return 0 if words and name == words[-1] else 1 if not words or name.startswith(words[-1]) else 2

    found = [path for path in paths if all(any(word in plain(part) for part in path) for word in words)]
    return sorted(found, key=lambda path: (kind(path), path[:-1], path[-1]))


@given(st.sets(PATHS, max_size=40), TEXTS)
def test_it_finds_what_a_look_at_every_name_finds(paths: set[ObjectId], text: str) -> None:
    words = words_of(text)
    assert made(paths).search(words, 1_000) == looked_through(paths, words)


@given(st.sets(PATHS, max_size=40), TEXTS, st.integers(1, 5))
def test_the_first_are_the_best(paths: set[ObjectId], text: str, most: int) -> None:
    words = words_of(text)
    assert made(paths).search(words, most) == looked_through(paths, words)[:most]


@given(st.sets(PATHS, max_size=60), st.dictionaries(PATHS, st.booleans(), max_size=30), TEXTS)
@settings(max_examples=200)
def test_an_edit_makes_it_as_if_made_anew(paths: set[ObjectId], changes: dict[ObjectId, bool], text: str) -> None:
    with patch.object(name_index, "_BLOCK", 4):
        edited = made(paths).edited(changes)
        left = {path for path in paths if changes.get(path, True)} | {path for path in changes if changes[path]}
        assert len(edited) == len(left)
        assert edited.search(words_of(text), 1_000) == looked_through(left, words_of(text))


@given(st.sets(PATHS, max_size=60), st.sets(PATHS, max_size=3), TEXTS)
def test_it_looks_below_its_roots_alone(paths: set[ObjectId], roots: set[ObjectId], text: str) -> None:
    namespaces = [root for root in sorted(roots) if not any(root[:end] in roots for end in range(1, len(root)))]
    with patch.object(name_index, "_BLOCK", 4):
        found = made(paths).search(words_of(text), 1_000, below=namespaces)
    below = {path for path in paths if any(path[: len(root)] == root and path != root for root in namespaces)}
    assert sorted(found) == sorted(looked_through(below, words_of(text)))


def test_other_tables_are_found_beside_them() -> None:
    index = made([("a", "orders"), ("a", "parts"), ("b", "orders")])
    found = index.search(["ord"], 9, below=[("b",)], beside=made([("a", "orders"), ("c", "x_order")]))
    assert found == [("b", "orders"), ("a", "orders"), ("c", "x_order")]
    assert index.search(["orders"], 9, below=[], beside=made([("a", "parts")])) == []
    assert index.search(["orders"], 9, wanted=lambda path: path[0] == "b") == [("b", "orders")]


def test_blocks_that_cannot_match_are_not_looked_at() -> None:
    index = made([(f"n{number % 7}", f"table_{number:05}") for number in range(20_000)] + [("n3", "the_only_one")])
    assert index._may_have(name_index._LinePattern("", ["only"])).sum() == 1
    assert not index._may_have(name_index._LinePattern("", ["nothing"])).any()


def test_words_that_are_common_and_never_together_pass_few_digests() -> None:
    """Else each such search would look at the text of every table."""
    index = made([("n", f"t{number:05}_{'left' if number % 2 else 'right'}") for number in range(5_000)])
    pattern = name_index._LinePattern("", ["left", "right"])
    passed = [((block.digests & pattern.digest) == pattern.digest).all(axis=0).sum() for block in index._blocks]
    assert index._may_have(pattern).all()
    assert sum(passed) < 250
    assert index.search(["left", "right"], 9) == []


class TestSnapshots:
    def test_each_finds_its_own_tables(self) -> None:
        one = CatalogSnapshot(1).apply(changes_of([NamespaceEntry(("a",)), table("a", "orders"), table("a", "parts")]))
        assert one.find_tables(["ORDERS".casefold()], 9) == [("a", "orders")]
        two = one.apply(changes_of([table("a", "old_orders")], ["a$parts"]))
        three = two.apply(changes_of([], ["a$orders"]))
        assert three.find_tables(["orders"], 9) == [("a", "old_orders")]
        assert two.find_tables(["orders"], 9) == [("a", "orders"), ("a", "old_orders")]
        assert one.find_tables(["parts"], 9) == [("a", "parts")]
        assert two.find_tables(["parts"], 9) == []
        assert two.apply(changes_of([table("a", "parts")])).find_tables(["parts"], 9) == [("a", "parts")]

    def test_a_change_of_no_name_keeps_the_index(self) -> None:
        one = CatalogSnapshot(1).apply(changes_of([NamespaceEntry(("a",)), table("a", "orders")]))
        one.find_tables(["orders"], 9)
        assert one.apply(changes_of([NamespaceEntry(("b",))])).state.names is one.state.names

    def test_an_index_that_is_far_behind_is_made_anew(self) -> None:
        one = CatalogSnapshot(1).apply(changes_of([table(f"t{number}") for number in range(70_000)]))
        assert one.find_tables(["t69999"], 9) == [("t69999",)]


class TestPreparing:
    def test_it_is_made_once(self) -> None:
        one = loaded(table("a", "orders"))
        assert one.prepare_search(threading.Event())
        assert not one.prepare_search(threading.Event())
        with patch.object(NameIndex, "of", side_effect=AssertionError("made again")):
            assert one.find_tables(["orders"], 9) == [("a", "orders")]

    def test_what_follows_while_it_is_made_is_edited(self) -> None:
        """A catalog whose tables change all the time would else have no index ever."""
        one = loaded(table("a", "orders"))
        following: list[CatalogSnapshot] = []
        stopping = threading.Event()
        with patch.object(stopping, "is_set", lambda: following.append(one.apply(changes_of([table("a", "parts")])))):
            assert one.prepare_search(stopping)
        with patch.object(NameIndex, "of", side_effect=AssertionError("made again")):
            assert following[0].find_tables(["a"], 9) == [("a", "orders"), ("a", "parts")]

    def test_many_changes_are_made_ahead(self) -> None:
        one = loaded(table("a", "orders"))
        one.prepare_search(threading.Event())
        few = one.apply(changes_of([table(f"t{number}") for number in range(1_000)]))
        assert not few.prepare_search(threading.Event())
        many = few.apply(changes_of([table(f"u{number}") for number in range(1_000)]))
        assert many.prepare_search(threading.Event())
        assert not many.prepare_search(threading.Event())
        assert many.find_tables(["u999"], 9) == [("u999",)]

    def test_what_was_given_up_is_made_by_the_next_search(self) -> None:
        one = loaded(table("a", "orders"))
        stopping = threading.Event()
        stopping.set()
        assert not one.prepare_search(stopping)
        two = one.apply(changes_of([table("a", "parts")]))
        assert two.find_tables(["parts"], 9) == [("a", "parts")]
        assert one.find_tables(["a"], 9) == [("a", "orders")]

    def test_a_search_that_waits_ends_the_pauses(self) -> None:
        one = loaded(*(table(f"t{number}") for number in range(2_000)))
        with patch.object(table_names, "_PAUSE", 1e9):
            made_ahead = threading.Thread(target=one.prepare_search, args=(threading.Event(),))
            made_ahead.start()
            assert one.find_tables(["t1999"], 9) == [("t1999",)]
            made_ahead.join(60)
        assert not made_ahead.is_alive()


def loaded(*entries: TableEntry) -> CatalogSnapshot:
    """As it is after a start: without an index of its names."""
    made = CatalogSnapshot(1).apply(changes_of([NamespaceEntry(("a",)), *entries]))
    return CatalogSnapshot(1, state=made.state._replace(names=IndexedNames()))


def table(*path: str) -> TableEntry:
    return TableEntry(path, "$".join(path), {})
