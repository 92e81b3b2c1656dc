"""Pins keep a catalog version with all rows and files (rule G10)."""

from __future__ import annotations

from dataclasses import replace

import lance
import pytest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from lance_core.errors import ReferenceNotFound
from lance_core.storage.local import LocalStore
from namespace_server.directory.model.entries import Changes, changes_of
from namespace_server.directory.model.root_layout import KEPT_VERSIONS
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.collecting import WEEK, collect, let_pass
from tests.directory.gc.test_collect_history import flips
from tests.directory.tables import Ground, rows
from tests.storage.faults import FaultStore

T = ["g", "t"]


@pytest.fixture
def filled(ground: Ground) -> Ground:
    """A catalog with `g.t`, of three versions."""
    ground.make_table(*T)
    ground.write(T, rows(3, 6))
    ground.write(T, rows(0, 2), "overwrite")
    ground.catalog.sweep()
    return ground


def read_all(ground: Ground, version: int) -> dict[int, list[int]]:
    """The ids in each version that a catalog version has of `g.t`, by stock pylance."""
    snapshot = ground.catalog.snapshot(version)
    table = snapshot.table(tuple(T))
    assert table is not None
    uri = str(ground.root / table.location)
    return {
        row.version: sorted(lance.dataset(uri, version=row.version).to_table()["id"].to_pylist())
        for row in snapshot.versions(tuple(T))
    }


def pin(ground: Ground, name: str = "p", **fields: object) -> int:
    answer = ground.call("pin_catalog_version", name=name, **fields)
    return int(answer["pin"]["version"])


def end_all(ground: Ground) -> None:
    """Let the time of all pins be over."""

    def plan(snapshot: CatalogSnapshot) -> Changes:
        return changes_of(replace(each, until_ms=1, set_in=0) for each in snapshot.pins())

    ground.catalog.committer.commit_changes(plan)


def test_a_pinned_version_stays_readable_with_all_its_files(filled: Ground) -> None:
    version = pin(filled, reason="audit")
    wanted = read_all(filled, version)
    filled.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 3}])
    flips(filled, 120)
    let_pass(filled)
    assert collect(filled).oldest > version
    let_pass(filled)
    collect(filled)
    for process in (filled, filled.again()):
        assert read_all(process, version) == wanted
        with pytest.raises(ReferenceNotFound):
            process.catalog.table.at(version + 1)
    filled.call("unpin_catalog_version", name="p")
    collect(filled)
    collect(filled)
    assert filled.canonical(T) == [3]
    with pytest.raises(TableVersionNotFoundError):
        filled.catalog.snapshot(version)
    assert list((filled.root / "_staging/gc/kept").glob("*")) == []


def test_a_pinned_version_is_not_copied_while_it_is_kept_anyway(filled: Ground) -> None:
    oldest = filled.catalog.snapshot().collector.oldest
    filled.call("pin_catalog_version", name="first", version=oldest)
    filled.call("pin_catalog_version", name="newest")
    assert collect(filled).oldest == oldest
    assert not (filled.root / KEPT_VERSIONS).exists()


def test_a_dropped_table_that_a_pin_may_name_is_not_purged(filled: Ground) -> None:
    version = pin(filled)
    wanted = read_all(filled, version)
    filled.call("drop_table", id=T, purge=True)
    let_pass(filled)
    assert collect(filled).purged == ()
    assert read_all(filled, version) == wanted
    end_all(filled)
    assert collect(filled).purged == ()  # the horizon flip that ends the pin still sees it
    assert len(collect(filled).purged) == 1


def test_a_pin_without_a_version_is_of_the_one_that_its_flip_makes(filled: Ground) -> None:
    assert pin(filled) == filled.catalog.snapshot().version


def test_a_pin_ends_with_a_horizon_flip_after_its_time(filled: Ground) -> None:
    pin(filled, "short", seconds=60)
    pin(filled, "lasting")
    end = filled.catalog.snapshot().pin("short")
    assert end is not None
    assert end.until_ms - end.timestamp_ms == 60_000
    collect(filled)
    assert [each["name"] for each in filled.read("list_catalog_pins")["pins"]] == ["lasting", "short"]
    filled.catalog.committer.commit_changes(
        lambda _: changes_of([replace(end, until_ms=end.timestamp_ms - 2_000, set_in=0)])
    )
    collect(filled)
    assert [each["name"] for each in filled.read("list_catalog_pins")["pins"]] == ["lasting"]


def test_only_what_is_kept_can_be_pinned(filled: Ground) -> None:
    newest = filled.catalog.snapshot().version
    with pytest.raises(TableVersionNotFoundError, match=f"from 1 to {newest}"):
        pin(filled, version=newest + 1)
    assert pin(filled, "n", version=newest) == newest
    first = pin(filled, version=2)
    flips(filled, 120)
    let_pass(filled)
    oldest = collect(filled).oldest
    with pytest.raises(TableVersionNotFoundError, match=f"from {oldest} to"):
        pin(filled, "q", version=3)
    assert pin(filled, "q", version=first) == 2  # the other pin keeps it
    assert pin(filled, "r", version=oldest) == oldest
    for wrong in ({"name": "a b"}, {"name": ""}, {"name": "p", "seconds": 0}, {"name": "p", "seconds": 2_592_001}):
        with pytest.raises(InvalidInputError):
            filled.call("pin_catalog_version", **wrong)
    with pytest.raises(TableVersionNotFoundError, match="there is no pin nobody"):
        filled.call("unpin_catalog_version", name="nobody")


def test_a_pin_that_comes_between_the_look_and_the_horizon_flip_is_kept(filled: Ground) -> None:
    """The horizon flip is planned again, and stays below what was not copied."""
    flips(filled, 120)
    let_pass(filled, WEEK)
    store = FaultStore(LocalStore(filled.root, "none"))
    pinned: list[int] = []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("__manifest/data/") and not pinned:
            pinned.append(pin(filled.again(), "late", version=5))

    store.before(meanwhile)
    report = collect(filled.again(store))
    assert pinned
    assert report.oldest == 5
    assert filled.again().catalog.snapshot(5).version == 5
    assert collect(filled).oldest > 5
    assert filled.again().catalog.snapshot(5).version == 5
