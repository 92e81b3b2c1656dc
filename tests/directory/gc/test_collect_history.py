"""The history of the catalog itself is collected, and what is kept of it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pytest

from lance_core.errors import ReferenceNotFound
from lance_core.format.naming import NamingScheme, manifest_name
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectMeta
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.directory.gc.history import (
    CatalogVersionFile,
    list_catalog_versions,
    needed_versions,
    oldest_to_keep,
    unnamed_files,
)
from namespace_server.directory.gc.plan import list_runs
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import DROPPED, RecordEntry, changes_of
from namespace_server.directory.model.root_layout import KEPT_VERSIONS
from tests.directory.flipping import open_manifest
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore

T = ["g", "t"]
GRACE = GcSettings().grace.total_seconds()
NOW = datetime(2026, 7, 1, tzinfo=UTC)


def version(number: int, hours_ago: float) -> CatalogVersionFile:
    return CatalogVersionFile(
        number, NamingScheme.V2, ObjectMeta(str(number), 1, None, NOW - timedelta(hours=hours_ago))
    )


@pytest.mark.parametrize(
    ("count", "age", "oldest"),
    [(2, 1, 4), (1, 1, 4), (4, 1, 2), (9, 1, 1), (1, 4.5, 4), (1, 5, 3), (1, 6, 2), (1, 99, 1)],
)
def test_versions_are_kept_by_count_and_by_when_they_were_superseded(count: int, age: float, oldest: int) -> None:
    versions = [version(1, 20), version(2, 10), version(3, 5.5), version(4, 4.5), version(5, 0.5)]
    settings = GcSettings(catalog_age=timedelta(hours=age), catalog_count=count)
    assert oldest_to_keep(versions, settings, NOW) == oldest
    assert oldest_to_keep(versions[:1], settings, NOW) == 1
    assert oldest_to_keep([], settings, NOW) == 1


def test_a_version_that_is_dated_before_its_predecessor_counts_as_young_as_the_next_one() -> None:
    settings = GcSettings(catalog_age=timedelta(hours=1), catalog_count=1)
    back = version(3, 9_999)
    assert oldest_to_keep([version(1, 20), version(2, 10), back, version(4, 0.5)], settings, NOW) == 2
    assert oldest_to_keep([version(1, 20), version(2, 10), back, version(4, 5)], settings, NOW) == 4
    assert oldest_to_keep([version(1, 20), version(2, 10), back], settings, NOW) == 2


def flips(ground: Ground, count: int, name: str = "n") -> None:
    for number in range(count):
        ground.make_namespace(f"{name}{number}")


def files(root: Path, *directories: str) -> set[str]:
    return {
        f"{directory}/{path.name}"
        for directory in directories
        for path in (root / "__manifest" / directory).glob("*")
        if path.is_file()
    }


def needs(root: Path) -> Iterator[str]:
    """Row files and deletion files of all versions that are there, by stock pylance."""
    for each in lance.dataset(str(root / "__manifest")).versions():
        dataset = lance.dataset(str(root / "__manifest"), version=each["version"])
        dataset.validate()
        for fragment in dataset.get_fragments():
            yield from (f"data/{file.path}" for file in fragment.data_files())
            deletion = fragment.deletion_file()
            if deletion is not None:
                yield f"_deletions/{Path(deletion).name}"


def test_versions_and_rows_that_nothing_keeps_go(ground: Ground) -> None:
    flips(ground, 120)
    keys = ("__manifest/notes.txt", "__manifest/other/data/x.lance")
    copies = (f"{KEPT_VERSIONS}/{name}" for name in ("notes.txt", "\N{SUPERSCRIPT TWO}.manifest"))
    unknown = [ground.root / key for key in (*keys, *copies)]
    for path in unknown:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    let_pass(ground)
    flips(ground, 40, "k")
    ground.make_table(*T)
    let_pass(ground)
    flips(ground, 80, "m")
    before = {entry.object_id for entry in ground.catalog.snapshot().entries()}
    report = collect(ground)
    newest = ground.catalog.snapshot()
    assert report.oldest == report.catalog_version - 100
    assert report.not_judged == {}
    assert all(path.exists() for path in unknown)
    assert report.removed["earlier version of the catalog"].files == report.oldest - 1
    oldest = (ground.root / "__manifest/_versions" / manifest_name(report.oldest)).stat().st_mtime
    unneeded = files(ground.root, "data", "_deletions") - set(needs(ground.root))
    assert all((ground.root / "__manifest" / key).stat().st_mtime > oldest - GRACE for key in unneeded)
    assert len(unneeded) < 40
    assert {entry.object_id for entry in newest.entries()} == {*before, "$transactions$gc"}
    for process in (ground, ground.again()):
        assert process.catalog.snapshot(report.oldest).version == report.oldest
        with pytest.raises(ReferenceNotFound):
            process.catalog.table.at(report.oldest - 1)
        history = process.catalog.table.history(1_000)
        assert history[-1].version == report.oldest
    flips(ground.again(), 3, "z")
    assert ground.ids(T) == [0, 1, 2]


def test_what_the_oldest_kept_version_names_stays_if_no_later_one_does(ground: Ground) -> None:
    flips(ground, 6)
    oldest = ground.catalog.snapshot().version
    open_manifest(ground.root).optimize.compact_files()
    flips(ground, 2, "k")
    snapshot = ground.again().catalog.snapshot()
    kept = snapshot.apply(changes_of([replace(snapshot.collector, oldest=oldest)]))
    later, versions = datetime.now(UTC) + timedelta(days=1), list_catalog_versions(ground.store)
    going = unnamed_files(ground.store, versions, kept, later, timedelta(0))
    assert {each.path.split("/")[1] for each in going} == {"data"}  # and no manifest
    whole = open_manifest(ground.root).checkout_version(oldest)
    assert {f"__manifest/data/{file.path}" for each in whole.get_fragments() for file in each.data_files()}.isdisjoint(
        each.path for each in going
    )
    assert unnamed_files(ground.store, versions[:1], kept, later, timedelta(0)) == []  # another run is far ahead


def test_a_tombstone_of_a_release_that_noted_no_version_needs_none(ground: Ground) -> None:
    tombstone = RecordEntry("00000000-0000-4000-8000-000000000001", DROPPED)
    assert needed_versions(ground.catalog.snapshot().apply(changes_of([tombstone]))) == set()


def test_a_process_that_saw_nothing_of_it_finds_the_newest_version(ground: Ground) -> None:
    flips(ground, 120)
    let_pass(ground)
    stale = ground.again()
    stale.catalog.snapshot(5)
    flips(ground, 110, "m")
    collect(ground)
    assert stale.catalog.table.refresh().version == ground.catalog.snapshot().version
    stale.make_namespace("late")
    assert ground.catalog.snapshot().namespace(("late",)) is not None


def test_a_version_that_a_dropped_table_needs_is_read_from_a_copy(ground: Ground) -> None:
    ground.make_table(*T)
    ground.write(T, rows(3, 5))
    ground.call("drop_table", id=T)
    [tombstone] = [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]
    before = ground.catalog.table.at(tombstone.catalog_version)
    wanted = {entry.object_id: entry for entry in before.entries()}
    flips(ground, 120)
    let_pass(ground)
    report = collect(ground, {"gc.dropped.window": "30d"})
    assert report.oldest > tombstone.catalog_version
    for process in (ground, ground.again()):
        kept = process.catalog.table.kept(tombstone.catalog_version)
        assert {entry.object_id for entry in kept.entries()} == wanted.keys()
        assert kept.head(tuple(T)) == before.head(tuple(T))
        with pytest.raises(ReferenceNotFound):
            process.catalog.table.at(tombstone.catalog_version)
    let_pass(ground)
    collect(ground, {"gc.dropped.window": "1h"})
    collect(ground)
    with pytest.raises(ReferenceNotFound, match="there is no copy"):
        ground.catalog.table.kept(tombstone.catalog_version)
    assert list((ground.root / "_staging/gc/kept").glob("*")) == []


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_run_dies_at_some_of_its_writes(ground: Ground, fault: Fault) -> None:
    ground.make_table(*T)
    ground.call("drop_table", id=T)
    flips(ground, 110)
    let_pass(ground)
    deaths = 0
    for deaths in range(200):
        store = FaultStore(LocalStore(ground.root, "none"))
        store.fail(fault, nth=deaths)
        try:
            collect(ground.again(store), {"gc.dropped.window": "30d"})
        except Crashed:
            newest = ManifestTable(LocalStore(ground.root, "none")).refresh()
            numbers = sorted(each["version"] for each in lance.dataset(str(ground.root / "__manifest")).versions())
            assert numbers == list(range(numbers[0], newest.version + 1))
            assert numbers[0] <= newest.collector.oldest
        else:
            break
    assert 5 < deaths < 199
    assert list_runs(ground.store).unfinished == []
    assert set(needs(ground.root)) <= files(ground.root, "data", "_deletions")


def test_requests_of_a_run(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    flips(ground, 300)
    let_pass(ground)
    store = CountingStore(LocalStore(ground.root, "none"))
    other = ground.again(store)
    other.catalog.snapshot()
    store.reset()
    report = collect(other)
    assert store.cost.requests < 2.2 * report.total.files + 100
    store.reset()
    assert collect(other).total.files <= 2
    assert store.cost.requests < 100
