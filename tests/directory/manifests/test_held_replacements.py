"""A process is held inside a conditional replacement, between its comparison and the rename (G24)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace.errors import TableTagNotFoundError

from lance_core.format.naming import manifest_name
from lance_core.storage import renaming
from tests.directory.invariants import check_progress
from tests.directory.manifests.test_reused_branches import DEV, append, create, ids, make_again
from tests.directory.tables import Ground, rows
from tests.directory.taken_names import TABLE

_EXCHANGE = 2


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Hold the next replacement of a file with this in its path, and do something meanwhile."""
    rename = renaming._rename

    def hold(part: str, meanwhile: Callable[[], object]) -> None:
        def then_rename(source: str, target: str, flag: int) -> bool:
            if flag == _EXCHANGE and part in target:
                monkeypatch.setattr(renaming, "_rename", rename)
                meanwhile()
            return rename(source, target, flag)

        monkeypatch.setattr(renaming, "_rename", then_rename)

    return hold


Hold = Callable[[str, Callable[[], object]], None]


def tag(ground: Ground, operation: str, version: int | None = None) -> dict[str, Any]:
    request = {"id": TABLE, "tag": "v"} | ({} if version is None else {"version": version})
    return ground.namespace.change(f"{operation}_table_tag", request).body


@pytest.fixture
def table(ground: Ground) -> Ground:
    """A table with three versions."""
    ground.make_table(*TABLE)
    ground.write(TABLE, rows(3, 5))
    ground.write(TABLE, rows(5, 6))
    ground.catalog.sweep()
    return ground


def test_a_tag_that_is_deleted_meanwhile_does_not_come_back(table: Ground, held: Hold) -> None:
    tag(table, "create", 1)
    held("_refs/tags", lambda: tag(table.again(), "delete"))
    with pytest.raises(TableTagNotFoundError):
        tag(table, "update", 2)
    assert table.read("list_table_tags", id=TABLE) == {"tags": {}}


def test_a_tag_that_is_made_again_meanwhile_is_moved_as_it_is_now(table: Ground, held: Hold) -> None:
    tag(table, "create", 1)
    dataset = table.open(TABLE)
    made: list[Any] = []

    def make_tag_again() -> None:
        dataset.tags.delete("v")
        dataset.tags.create("v", 3)
        made.extend(dataset.tags.list().values())

    held("_refs/tags", make_tag_again)
    tag(table, "update", 2)
    [found] = dataset.tags.list().values()
    assert (found["version"], found["created_at"]) == (2, made[0]["created_at"])


def test_no_note_is_lost_to_another_process(table: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def note(ground: Ground, key: str) -> None:
        actions = [{"setPropertyAction": {"key": key, "value": "x"}}]
        ground.namespace.change("alter_transaction", {"id": [*TABLE, "2"], "actions": actions})

    lock = renaming._lock

    def note_and_lock(descriptor: int) -> None:
        monkeypatch.setattr(renaming, "_lock", lock)
        note(table.again(), "theirs")
        lock(descriptor)

    note(table, "first")
    monkeypatch.setattr(renaming, "_lock", note_and_lock)
    note(table, "ours")
    assert {"first", "theirs", "ours"} <= table.read("describe_transaction", id=[*TABLE, "2"])["properties"].keys()


def test_a_repair_that_is_held_puts_nothing_into_a_branch_that_was_made_again(ground: Ground, held: Hold) -> None:
    """It is about to replace another writer's file by the row's; others do so first, and use the number again."""
    ground.make_table(*TABLE)
    create(ground)
    ground.batch(append(ground, 100, 101))
    ground.catalog.sweep()
    path = f"{ground.location(TABLE)}/tree/{DEV}/_versions/{manifest_name(2)}"
    entry = ground.catalog.snapshot().head(tuple(TABLE), DEV)
    assert entry is not None
    ours = ground.store.get(path)
    ground.store.put(path, b"of another writer")
    other = ground.again()

    def finish_and_use_again() -> None:
        other.store.put(path, ours)  # as the repair of another server does
        make_again(other)

    held(path, finish_and_use_again)
    with pytest.raises(Exception, match=r"nothing to replace|expected e_tag"):
        ground.catalog.unmanaged_manifests.repair(entry, ours, b"of another writer")

    assert ids(ground.root) == [0, 1, 2, 200]
    check_progress(ground.root)
