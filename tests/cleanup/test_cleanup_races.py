"""Concurrent commits, tags and branches at every step of a clean-up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import lance
import pytest

from lance_core.compaction import compact
from lance_core.errors import LanceCoreError, ReferenceNotFound
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from tests.cleanup.tables import NOW, clean, contents, files, listed
from tests.cleanup.test_cleanup import stage
from tests.cleanup.test_cleanup_crash import Rewindable
from tests.storage.faults import FaultStore
from tests.transaction.tables import Table, rows

OLD = 4
"""A version that the cleanup wants to remove, with files that no version which stays needs."""


def tag(table: Table) -> None:
    table.open().tags.create("late", OLD)


def tag_ours(table: Table) -> None:
    Tags(table.store, "t").create("late", OLD)


def move_tag(table: Table) -> None:
    table.open().tags.update("t", OLD)


def branch(table: Table) -> None:
    lance.write_dataset(rows(200, 202), table.open().create_branch("late", OLD), mode="append")


def restore(table: Table) -> None:
    table.open(OLD).restore()


def append(table: Table) -> None:
    lance.write_dataset(rows(200, 202), table.uri, mode="append")


def overwrite(table: Table) -> None:
    lance.write_dataset(rows(200, 202), table.uri, mode="overwrite")


def other_cleanup(table: Table) -> None:
    clean(table, grace=NOW)


def busy_minute(table: Table) -> None:
    """Commits, a compaction, and stock pylance's clean-up of all that is superseded."""
    append(table)
    table.open().optimize.compact_files()
    table.open().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


ACTIONS: list[Callable[[Table], None]] = [
    tag,
    tag_ours,
    move_tag,
    branch,
    restore,
    append,
    overwrite,
    other_cleanup,
    busy_minute,
]


class Interruption:
    """Runs a concurrent client once, before the call with a given number."""

    def __init__(self, place: int, act: Callable[[], object]) -> None:
        self.succeeded = False
        self._left = place
        self._act = act

    def __call__(self, *_: str) -> None:
        self._left -= 1
        if self._left == -1:
            # A read of a version that was removed fails, and names it.
            with suppress(OSError, ValueError, LanceCoreError):
                self._act()
                self.succeeded = True


def steps(scene: Rewindable) -> int:
    """How many calls an undisturbed cleanup makes."""
    calls: list[str] = []
    store = FaultStore(scene.table.store)
    store.before(lambda verb, path: calls.append(f"{verb} {path}"))
    clean(scene.table, store=store, settled=lambda: calls.append("wait"))
    return len(calls)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_a_concurrent_change_at_any_step_of_a_cleanup_stays_complete(
    tmp_path: Path, action: Callable[[Table], None]
) -> None:
    scene = Rewindable(tmp_path, branch=False)
    count = steps(scene)
    succeeded = 0
    for place in range(0, count, 1 if action in {tag, restore} else 3):
        table = scene.rewind()
        store = FaultStore(table.store)
        arrive = Interruption(place, partial(action, table))
        store.before(arrive)
        try:
            clean(table, store=store, settled=arrive)
        except LanceCoreError:
            assert action in {other_cleanup, busy_minute}
        check(scene, table, action, arrive.succeeded)
        succeeded += arrive.succeeded
    assert succeeded > 3


def check(scene: Rewindable, table: Table, action: Callable[[Table], None], succeeded: bool) -> None:
    after = contents(table)
    for key in after.keys() & scene.before.keys():
        if key[0] == "tree/late":
            continue
        assert after[key] == scene.before[key]
    if not succeeded:
        return
    head = after[".", max(version for root, version in after if root == ".")]
    old = scene.before[".", OLD]
    if action in {tag, tag_ours, move_tag}:
        assert after[".", OLD] == old
        name = "t" if action is move_tag else "late"
        assert sorted(lance.dataset(table.uri, version=name).to_table()["id"].to_pylist()) == old
    elif action is branch:
        assert after[".", OLD] == old
        assert after["tree/late", OLD + 1] == sorted([*old, 200, 201])
    elif action is restore:
        assert head == old
    elif action in {append, busy_minute}:
        assert head == sorted([*scene.before[".", 9], 200, 201])
    elif action is overwrite:
        assert head == [200, 201]


def test_a_staged_version_that_is_published_during_a_cleanup_stays_complete(tmp_path: Path) -> None:
    scene = Rewindable(tmp_path)
    count = steps(scene)
    for place in range(0, count, 4):
        table = scene.rewind()
        path, number = stage(table, beside=True)
        target = path.with_name(path.name.partition("-")[0])
        store = FaultStore(table.store)
        store.before(Interruption(place, partial(path.rename, target)))
        clean(table, store=store, grace=NOW)
        if not path.exists():
            assert contents(table)[".", number] == sorted([*scene.before[".", 9], 50, 51, 52])


def test_a_version_tagged_while_manifests_are_read_is_not_removed(tmp_path: Path) -> None:
    """It is not even removed and put back: a reader of it notices nothing."""
    table = Rewindable(tmp_path, branch=False).table
    store = FaultStore(table.store)
    reads = Interruption(3, partial(tag, table))
    store.before(lambda verb, path: reads() if verb == "get" and path.endswith(".manifest") else None)
    report = clean(table, store=store)
    assert reads.succeeded
    assert report.kept[OLD] == "tag late"
    assert not [write for write in store.writes if write.path.endswith(manifest_name(OLD))]


def test_a_version_restored_just_before_its_removal_keeps_its_files(tmp_path: Path) -> None:
    """The manifest is removed, and a writer that had read it restores it while the clean-up waits."""
    scene = Rewindable(tmp_path, branch=False)
    table = scene.table
    old = table.manifests()[OLD]
    late = pb.Manifest()
    late.CopyFrom(old.manifest)
    late.version, late.max_fragment_id = 10, 9

    def commit() -> None:
        assert OLD not in listed(table.path)
        (table.path / "_versions" / manifest_name(10)).write_bytes(encode_manifest_file(late, old.transaction))

    clean(table, settled=commit)
    assert contents(table)[".", 10] == scene.before[".", OLD]


def test_a_version_of_a_branch_restored_just_before_its_removal_keeps_its_files(tmp_path: Path) -> None:
    table = Rewindable(tmp_path).table
    branch = table.branch("dev")
    for start in (110, 120):
        lance.write_dataset(rows(start, start + 5), branch.open(), mode="append")
    old = branch.manifests()[7]
    compact(table.uri, branch="dev")
    before = contents(table)
    head = branch.open().version
    late = pb.Manifest()
    late.CopyFrom(old.manifest)
    late.version, late.max_fragment_id = head + 1, 99

    def commit() -> None:
        path = table.path / "tree/dev/_versions" / manifest_name(head + 1)
        path.write_bytes(encode_manifest_file(late, old.transaction))

    clean(table, branch="dev", settled=commit)
    assert contents(table)["tree/dev", head + 1] == before["tree/dev", 7]


def test_a_version_that_is_replaced_meanwhile_is_another_one(tmp_path: Path) -> None:
    """Other bytes stand under its name before it is removed."""
    table = Rewindable(tmp_path, branch=False).table
    path = table.path / "_versions" / manifest_name(OLD)

    def replace() -> None:
        other = path.with_name("other")
        other.write_bytes(path.read_bytes())
        other.replace(path)

    store = FaultStore(table.store)
    reads = Interruption(3, replace)
    store.before(lambda verb, path: reads() if verb == "get" and path.endswith(".manifest") else None)
    clean(table, store=store)
    assert reads.succeeded
    assert listed(table.path) == [2, OLD, 9]


def test_a_file_that_is_replaced_meanwhile_stays(tmp_path: Path) -> None:
    scene = Rewindable(tmp_path, branch=False)
    before = files(scene.table)
    clean(scene.table)
    removed = {scene.table.path / name for name in before - files(scene.table) if name.startswith("data/")}
    path = min(removed)
    scene.rewind()

    def replace() -> None:
        path.with_name("other").write_bytes(path.read_bytes())
        path.with_name("other").replace(path)

    clean(scene.table, settled=replace)
    assert {each for each in removed if each.exists()} == {path}


NAMING: dict[str, Callable[[Tags | Branches], object]] = {
    "tag": lambda names: names.create("late", OLD),
    "branch": lambda names: names.create("late", OLD),
    "moved tag": lambda names: names.update("t", OLD),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", NAMING)
def test_a_cleanup_at_any_step_of_naming_a_version(tmp_path: Path, name: str) -> None:
    """The other way round: either the version is found gone, and nothing refers to it, or it stays."""
    scene = Rewindable(tmp_path, branch=False)
    outcomes = set()
    for place in range(100):
        table = scene.rewind()
        store = FaultStore(table.store)
        cleaner = Interruption(place, partial(clean, table))
        store.before(cleaner)
        names = Branches(store, "t") if name == "branch" else Tags(store, "t")
        try:
            NAMING[name](names)
        except ReferenceNotFound:
            outcomes.add("gone")
            assert listed(table.path) == [2, 9]
            assert not list((table.path / "_refs").rglob("late.json"))
        else:
            outcomes.add("stays")
            assert OLD in listed(table.path)
        check(scene, table, append, False)
        for reference in table.open().tags.list():
            lance.dataset(table.uri, version=reference).validate()
        if not cleaner.succeeded:
            break
    assert outcomes == {"gone", "stays"}
