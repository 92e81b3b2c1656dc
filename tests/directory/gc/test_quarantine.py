"""Quarantined files go after 30 days, and never the manifest of a version."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pytest

from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from namespace_server.directory.gc.quarantine import find_quarantined
from namespace_server.directory.gc.report import QUARANTINED
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.root_layout import QUARANTINE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

T = ["g", "t"]


@pytest.fixture(params=["a place of its own", "a place further down"])
def table(ground: Ground, request: pytest.FixtureRequest) -> Ground:
    """A table of two versions, which the catalog made or which was registered."""
    if request.param == "a place of its own":
        ground.make_table(*T)
    else:
        lance.write_dataset(rows(0, 3), str(ground.root / "lake" / "mine"))
        ground.call("register_table", id=T, location="lake/mine")
    ground.write(T, rows(3, 4))
    ground.catalog.sweep()
    return ground


def quarantined(ground: Ground, source: Path, version: int = 7) -> Path:
    """A copy of a file in quarantine, of which a name says that it is a version."""
    there = ground.root / f"_staging/foreign/{uuid.uuid4()}/{ground.location(T)}/_versions/{manifest_name(version)}"
    there.parent.mkdir(parents=True)
    shutil.copyfile(source, there)
    return there


def manifest(ground: Ground, version: int) -> Path:
    return ground.root / ground.location(T) / "_versions" / manifest_name(version)


def stranger(tmp_path: Path, *, fragment: int = 4) -> Path:
    """A manifest of one fragment with this id."""
    for number in range(fragment + 1):
        lance.write_dataset(rows(number, number + 1), str(tmp_path / "other"), mode="append" if number else "create")
    made = lance.dataset(str(tmp_path / "other"))
    if fragment:
        made.delete(f"id < {fragment}")
    assert [each.fragment_id for each in made.get_fragments()] == [fragment]
    return tmp_path / "other/_versions" / manifest_name(made.version)


def test_it_goes_after_thirty_days(table: Ground, tmp_path: Path) -> None:
    left = quarantined(table, stranger(tmp_path))
    let_pass(table, timedelta(days=29))
    assert QUARANTINED not in collect(table).removed
    let_pass(table, timedelta(days=2))
    assert collect(table).removed[QUARANTINED].files == 1
    assert not left.exists()


def test_it_stays_while_it_tells_that_an_id_was_that_of_two_fragments(table: Ground, tmp_path: Path) -> None:
    """A writer by path may hold a handle of it, and remove the fragment by its id."""
    left = quarantined(table, stranger(tmp_path, fragment=0))
    let_pass(table, timedelta(days=90))
    assert QUARANTINED not in collect(table).removed
    assert left.exists()
    table.write(T, rows(8, 9), "overwrite")
    table.catalog.sweep()
    let_pass(table, timedelta(days=90))
    collect(table)
    assert not left.exists()


def test_it_stays_for_the_grace_time(table: Ground, tmp_path: Path) -> None:
    quarantined(table, stranger(tmp_path))
    let_pass(table, timedelta(days=40))
    assert QUARANTINED not in collect(table, {"gc.uncommitted.grace": "50d"}).removed


def test_the_manifest_of_a_version_stays_whatever_its_name_says(table: Ground) -> None:
    """A process died before it put the file back; here even its row's name is taken."""
    left = quarantined(table, manifest(table, 1))
    let_pass(table, timedelta(days=90))
    assert QUARANTINED not in collect(table).removed
    assert left.exists()


def test_the_manifest_of_a_version_of_a_branch_stays(table: Ground) -> None:
    table.call("create_table_branch", id=T, name="b", from_version=1)
    table.catalog.sweep()
    left = quarantined(table, table.root / table.location(T) / "tree/b/_versions" / manifest_name(1))
    let_pass(table, timedelta(days=90))
    assert QUARANTINED not in collect(table).removed
    assert left.exists()


def test_where_a_row_does_not_say_what_its_manifest_is_all_stay(table: Ground, tmp_path: Path) -> None:
    """A release before rows had hashes wrote it."""
    left = quarantined(table, stranger(tmp_path))

    def forget(snapshot: CatalogSnapshot) -> Changes:
        row = snapshot.version_entry(tuple(T), None, 1)
        assert row is not None
        return changes_of([replace(row, sha256="")])

    table.catalog.committer.commit_changes(forget)
    let_pass(table, timedelta(days=90))
    assert QUARANTINED not in collect(table).removed
    assert left.exists()


def test_that_of_a_dropped_table_stays_while_it_can_come_back(table: Ground, tmp_path: Path) -> None:
    left = quarantined(table, stranger(tmp_path))
    table.call("drop_table", id=T)
    let_pass(table, timedelta(days=40))
    assert QUARANTINED not in collect(table, {"gc.dropped.window": "50d"}).removed
    assert left.exists()
    let_pass(table, timedelta(days=20))
    collect(table)
    assert collect(table).removed[QUARANTINED].files == 1


def test_one_that_is_put_back_meanwhile_does_not_go(table: Ground, tmp_path: Path) -> None:
    left = quarantined(table, stranger(tmp_path))
    store = FaultStore(LocalStore(table.root, "none"))
    store.before(lambda _verb, path: left.unlink() if path.startswith(f"{QUARANTINE}/") else None)
    later = datetime.now(UTC) + timedelta(days=40)
    assert list(find_quarantined(store, table.catalog.snapshot(), later, later)) == []
    assert not left.exists()
