"""Cursors: moved by compare-and-set, kept with the history that their consumers need, within bounds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from namespace_server.directory.model.errors import BatchConflict, HistoryGone
from tests.directory.gc.collecting import WEEK, collect, let_pass
from tests.directory.tables import Ground, rows


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    found = Ground(tmp_path / "root")
    for number in range(5):
        found.make_namespace(f"n{number}")
    return found


def put(ground: Ground, version: int | None = None, name: str = "c", **fields: Any) -> int:
    given = {} if version is None else {"version": version}
    answer = ground.call("advance_cursor", name=name, **given, **fields)
    return int(answer["cursor"]["version"])


def at(ground: Ground, name: str = "c") -> int | None:
    return next((each["version"] for each in ground.read("list_cursors")["cursors"] if each["name"] == name), None)


def fill(ground: Ground, count: int = 130) -> None:
    for number in range(count):
        ground.make_namespace(f"m{ground.catalog.snapshot().version}_{number}")


def test_a_cursor_is_made_moved_listed_and_removed(ground: Ground) -> None:
    assert put(ground, 2) == 2
    assert put(ground.again(), 4, expected=2) == 4
    [listed] = ground.read("list_cursors")["cursors"]
    assert (listed["name"], listed["version"], listed["lag"]) == ("c", 4, ground.catalog.snapshot().version - 4)
    assert ground.again().read("list_cursors")["cursors"] == [listed]
    ground.call("delete_cursor", name="c")
    assert ground.again().read("list_cursors") == {"cursors": []}
    with pytest.raises(TableVersionNotFoundError, match="no cursor c"):
        ground.call("delete_cursor", name="c")


def test_without_a_version_it_is_put_at_the_one_that_the_change_makes(ground: Ground) -> None:
    before = ground.catalog.snapshot().version
    assert put(ground) == before + 1 == ground.catalog.snapshot().version


def test_it_is_moved_by_compare_and_set(ground: Ground) -> None:
    put(ground, 2)
    with pytest.raises(BatchConflict, match="it is at catalog version 2: expected it at catalog version 1") as refused:
        put(ground, 4, expected=1)
    assert refused.value.failures[0]["kind"] == "incompatible"
    assert (refused.value.failures[0]["expected"], refused.value.failures[0]["actual"]) == (1, 2)
    with pytest.raises(BatchConflict, match="there is none"):
        put(ground, 4, "d", expected=1)
    assert at(ground) == 2


def test_a_move_that_was_made_already_changes_nothing(ground: Ground) -> None:
    put(ground, 2)
    put(ground, 3, expected=2)
    before = ground.catalog.snapshot().version
    assert put(ground, 3, expected=2) == 3
    assert ground.catalog.snapshot().version == before


def test_it_goes_back_only_where_that_is_said(ground: Ground) -> None:
    put(ground, 4)
    with pytest.raises(BatchConflict, match="`backwards` is not set"):
        put(ground, 2)
    assert put(ground, 2, backwards=True) == 2
    assert at(ground.again()) == 2


def test_a_version_to_come_is_refused(ground: Ground) -> None:
    version = ground.catalog.snapshot().version
    with pytest.raises(InvalidInputError, match=f"up to {version}, found {version + 1}"):
        put(ground, version + 1)
    with pytest.raises(InvalidInputError, match="found -1"):
        put(ground, -1)
    with pytest.raises(InvalidInputError, match="1 to 128 letters"):
        put(ground, 1, "a b")


def test_it_moves_with_what_a_consumer_writes_in_the_same_batch_or_not_at_all(ground: Ground) -> None:
    table = ground.make_table("n0", "t")
    put(ground, 2)
    transaction = ground.transaction(table, rows(3, 5))
    with pytest.raises(BatchConflict):
        ground.batch(transaction, {"advance_cursor": {"name": "c", "version": 4, "expected": 3}})
    assert (ground.head(table), at(ground)) == (1, 2)
    ground.batch(transaction, {"advance_cursor": {"name": "c", "version": 4, "expected": 2}})
    assert (ground.head(table), at(ground)) == (2, 4)


@pytest.mark.parametrize("expected", [{}, {"expected": 2}])
def test_two_consumers_of_a_cursor_do_not_both_write_for_the_same_version(
    ground: Ground, expected: dict[str, int]
) -> None:
    table = ground.make_table("n0", "t")
    put(ground, 2)
    move = {"advance_cursor": {"name": "c", "version": 4, **expected}}
    first, second = ground.transaction(table, rows(3, 5)), ground.transaction(table, rows(3, 5))
    ground.batch(first, move, key="first")
    with pytest.raises(BatchConflict, match="it is at catalog version 4"):
        ground.batch(second, move, key="second")
    assert ground.ids(table) == [0, 1, 2, 3, 4]
    ground.batch(first, move, key="first")  # the same batch again, whose answer was lost
    ground.batch(move, {"advance_cursor": {"name": "d", "version": 4}})  # moves alone do nothing twice
    assert (ground.ids(table), at(ground), at(ground, "d")) == ([0, 1, 2, 3, 4], 4, 4)


def test_what_a_cursor_needs_stays_and_goes_once_it_moved(ground: Ground) -> None:
    put(ground, 3)
    fill(ground)
    let_pass(ground)
    assert collect(ground).oldest == 3  # from there on changes of rows can be read, too
    assert ground.read("list_catalog_events", since=3)["events"][0]["data"]["catalog_version"] == 4
    version = ground.catalog.snapshot().version
    put(ground, version, expected=3)
    assert collect(ground).oldest > 4


def test_tables_can_be_read_as_of_the_versions_that_a_cursor_keeps(ground: Ground) -> None:
    table = ground.make_table("n0", "t")
    ground.catalog.sweep()
    version = ground.catalog.snapshot().version
    put(ground, version)
    ground.call("drop_table", id=table)
    fill(ground)
    let_pass(ground)
    collect(ground)
    let_pass(ground, timedelta(days=2))
    collect(ground)
    entry = ground.catalog.snapshot(version + 1).head(tuple(table))
    assert entry is not None
    assert (ground.root / entry.canonical_path).exists()
    put(ground, ground.catalog.snapshot().version, expected=version)
    collect(ground)
    assert not (ground.root / entry.canonical_path).exists()


def test_a_cursor_that_is_too_old_keeps_nothing_and_is_told_to_be_expired(ground: Ground) -> None:
    put(ground, 3)
    put(ground, ground.catalog.snapshot().version, "new")
    fill(ground)
    let_pass(ground, timedelta(days=31))
    oldest = collect(ground).oldest
    assert oldest > 4
    by_name = {each["name"]: each.get("expired", False) for each in ground.read("list_cursors")["cursors"]}
    assert by_name["c"] is True
    with pytest.raises(HistoryGone):
        ground.read("list_catalog_events", since=3)
    with pytest.raises(HistoryGone):
        put(ground, 4, expected=3)
    assert put(ground, oldest - 1, expected=3) == oldest - 1


@pytest.mark.parametrize("settings", [{"gc.cursors.count": "50"}, {"gc.cursors.age": "1d"}])
def test_its_bounds_are_settings_of_the_catalog(ground: Ground, settings: dict[str, str]) -> None:
    put(ground, 3)
    fill(ground)
    let_pass(ground, WEEK)
    assert collect(ground, settings).oldest > 4


def test_a_cursor_that_is_put_while_a_run_is_under_way_keeps_what_it_needs(ground: Ground) -> None:
    """The run has listed the versions, and decides on the snapshot that it flips."""
    fill(ground)
    let_pass(ground)
    other = ground.again()
    commit, planned = ground.catalog.committer.commit_changes, []

    def late(plan: Any, **options: Any) -> Any:
        if not planned:
            planned.append(put(other, 3))
        return commit(plan, **options)

    ground.catalog.committer.commit_changes = late  # type: ignore[method-assign]
    assert collect(ground).oldest == 3
    assert planned == [3]


def test_a_restored_catalog_has_no_cursors_of_the_other_root(ground: Ground) -> None:
    from namespace_server.directory.backup.relocated_catalog import restored_entries
    from namespace_server.directory.model.collector_rows import CursorEntry

    put(ground, 3)
    snapshot = ground.catalog.snapshot()
    assert any(isinstance(entry, CursorEntry) for entry in snapshot.entries())
    assert not any(isinstance(entry, CursorEntry) for entry in restored_entries(snapshot, {}))


def test_the_figures_of_a_server_have_the_cursors(ground: Ground) -> None:
    put(ground, 1)
    put(ground, 3, "d")
    figures = ground.catalog.state()
    assert figures is not None
    assert (figures.cursors, figures.cursor_lag) == ((2, 0), ground.catalog.snapshot().version - 1)
