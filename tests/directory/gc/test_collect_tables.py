"""What a collection removes from tables, and what it keeps."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pytest
from lance.fragment import write_fragments
from lance_namespace import CreateNamespaceRequest
from lance_namespace.errors import TableNotFoundError, UnsupportedOperationError

from lance_core.cleanup.reachability import names_used
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.errors import CorruptFile, StorageError, StorageUnknown
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.tables.tags import Tags
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.doctor import Examination
from namespace_server.directory.gc import plan as stored_plan
from namespace_server.directory.gc.delete import Budget
from namespace_server.directory.gc.directories import place_of_manifest
from namespace_server.directory.gc.expired_versions import removed_rows
from namespace_server.directory.gc.lost_versions import references_of
from namespace_server.directory.gc.plan import Deleted, Removal, list_runs, read_plan, remove_all
from namespace_server.directory.gc.purges import claim_purges
from namespace_server.directory.gc.report import EXPIRED, INTERRUPTED, UNNAMED, GcReport, Total
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.entries import DROPPED, RecordEntry, changes_of
from namespace_server.directory.model.errors import CatalogBusy
from namespace_server.directory.model.retention import DROPPED_WINDOW
from namespace_server.directory.model.root_layout import GC_RUNS
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.flipping import open_manifest
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.gc.test_collect_history import flips
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.gc.unreferenced import contents, list_orphans
from tests.directory.tables import QUIET, Ground, rows
from tests.emulators import Emulator
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.manifests import MemoryManifestStore

T, U = ["g", "t"], ["g", "u"]
NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def two(ground: Ground) -> Ground:
    """A catalog with the tables `g.t`, of five versions, and `g.u`."""
    ground.make_table(*T)
    ground.make_table(*U)
    for first in (3, 6, 9):
        ground.write(T, rows(first, first + 3))
    ground.write(T, rows(0, 4), "overwrite")
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


def delete_versions(ground: Ground, first: int, end: int) -> None:
    ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": first, "end_version": end}])


def of_tables(report: GcReport) -> dict[str, int]:
    """The number of removed files by reason, without those of the catalog's own history."""
    return {reason: each.files for reason, each in report.removed.items() if "of the catalog" not in reason}


def files_of(ground: Ground, location: str) -> set[str]:
    return {str(path.relative_to(ground.root)) for path in (ground.root / location).rglob("*") if path.is_file()}


def test_a_quiet_catalog_loses_nothing(two: Ground) -> None:
    before = contents(two.root)
    let_pass(two)
    waits: list[float] = []
    report = Collector(two.catalog, sleep=waits.append).collect()
    assert (report.total.files, report.complete, dict(report.not_judged), waits) == (0, True, {}, [])
    assert contents(two.root) == before


def test_files_of_a_failed_write_go_once_they_are_old(two: Ground) -> None:
    lost, before = leave_fragment(two, T), contents(two.root)
    young = collect(two)
    assert (young.total.files, young.too_young.files, dict(young.held)) == (0, 1, {})
    let_pass(two)
    report = collect(two)
    assert of_tables(report) == {"named by no manifest": 1}
    assert not (two.root / lost).exists()
    assert contents(two.root) == before


def test_files_that_dead_writers_did_not_name_go_once_they_are_old(two: Ground) -> None:
    """Temporary files of this package, of pylance, and of object_store below it."""
    location = two.location(T)
    names = [f".{'0a' * 16}.tmp", ".tmpAb1Cd2", "0a1b.lance#1"]
    places = ["_staging", "_staging/gc", "__manifest/data", "__manifest/_versions", f"{location}/data"]
    places += [f"{location}/_versions", f"{location}/_transactions", f"{location}/_deletions"]
    left = [two.root / place / name for place in places for name in names]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    assert collect(two).total.files == 0
    assert all(path.exists() for path in left)
    let_pass(two)
    collect(two)
    assert not [path for path in left if path.exists()]
    assert two.ids(T) == [0, 1, 2, 3]


def test_directories_that_are_left_empty_go_once_they_are_old(two: Ground) -> None:
    old, young = (two.root / two.location(T) / "_indices" / str(uuid.UUID(int=number)) for number in (1, 2))
    old.mkdir(parents=True)
    let_pass(two)
    young.mkdir()
    collect(two)
    assert (old.exists(), young.exists()) == (False, True)


def test_files_that_are_needed_together_are_old_together(two: Ground) -> None:
    """Blobs are written before their data file, and a compaction writes its clone for minutes."""
    table, clone = two.root / two.location(T), f"_staging/{uuid.uuid4()}/{uuid.uuid4()}"
    blobs, copies = [table / "data/abc/1.blob", table / "data/abc.lance"], [two.root / clone / name for name in "abc"]
    for number, path in enumerate((*blobs, *copies)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - 86_400 * (number < 1) - number,) * 2)
    let_pass(two, timedelta(days=6, hours=12))
    assert collect(two).total.files == 0
    let_pass(two, timedelta(days=1))
    report = collect(two)
    assert (report.removed[UNNAMED].files, report.removed[INTERRUPTED].files) == (2, 3)
    assert not report.kept
    assert not any(path.exists() for path in (*blobs, *copies))


def test_a_deleted_version_goes_when_no_kept_catalog_version_has_it(two: Ground) -> None:
    delete_versions(two, 1, 4)
    let_pass(two)
    before = contents(two.root)
    assert of_tables(collect(two)) == {}  # earlier catalog versions still have the rows
    assert contents(two.root) == before
    forget_history(two)
    report = collect(two)
    assert of_tables(report) == {
        "manifest of a version that was deleted": 3,
        "named by no manifest": 3,  # transaction files; version 4 still has the data
    }
    assert two.canonical(T) == [4, 5]
    assert of_tables(collect(two)) == {}
    delete_versions(two, 4, 5)
    forget_history(two)
    assert sum(of_tables(collect(two)).values()) == 1 + 1 + 4
    assert two.ids(T) == [0, 1, 2, 3]
    assert list_orphans(two.root).orphans == ()


def test_manifests_go_before_what_they_name(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plans of any size. The horizon flip of the run is the one that leaves the rows of the versions behind."""
    delete_versions(two, 1, 5)
    leave_fragment(two, T)
    flips(two, 120)
    let_pass(two)
    monkeypatch.setattr(stored_plan, "_ENTRIES", 9)
    store = FaultStore(LocalStore(two.root, "none"))
    collect(two.again(store))
    assert two.canonical(T) == [5]
    going = [each.path for each in store.writes if each.verb == "delete" and not each.path.startswith(GC_RUNS)]
    manifests = [path.endswith(".manifest") for path in going]
    assert 10 < sum(manifests) < len(manifests)
    assert manifests == sorted(manifests, reverse=True)
    first = next(number for number, each in enumerate(store.writes) if each.verb == "delete" and each.path == going[-1])
    for head in (f"{two.location(T)}/_versions/{manifest_name(5)}", "__manifest/_versions"):
        assert any(path.startswith(head) and number <= first for number, path in store.synced if number > 9)


def test_a_version_that_is_planned_stays_once_its_references_cannot_be_read(two: Ground) -> None:
    delete_versions(two, 1, 5)
    let_pass(two)
    forget_history(two)
    assert not Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0)).complete
    tag = two.root / two.location(T) / "_refs/tags/x.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{")
    collect(two)
    assert two.canonical(T) == [1, 2, 3, 4, 5]
    two.open(T, 3).validate()


def test_a_manifest_that_was_replaced_during_the_pause_is_read_again(two: Ground) -> None:
    """A commit by path was undone, and another one took its number."""
    place = str(two.root / two.location(T))
    two.unmanaged_append(T, rows(8, 9))
    fragments = write_fragments(rows(70, 71), place, mode="append")
    let_pass(two)
    leave_fragment(two, U)
    let_pass(two)

    def commit_again(_seconds: float) -> None:
        (two.root / two.location(T) / "_versions" / manifest_name(6)).unlink()
        lance.LanceDataset.commit(place, lance.LanceOperation.Append(fragments), 5)

    Collector(two.catalog, settle=timedelta(0), sleep=commit_again).collect()
    assert two.ids(T) == [0, 1, 2, 3, 70]


def test_two_runs_finish_one_plan(two: Ground) -> None:
    leave_fragment(two, T)
    let_pass(two)
    Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0))
    [plan] = list_runs(two.store).unfinished
    store, others = FaultStore(LocalStore(two.root, "none")), []

    def meanwhile(verb: str, path: str) -> None:
        if verb == "put_if_absent" and "/done-" in path and not others:
            others.append(path)
            collect(two)

    store.before(meanwhile)
    assert collect(two.again(store)).complete
    assert others
    assert plan not in list_runs(two.store).unfinished


def test_a_commit_by_path_during_the_pause_keeps_its_files(two: Ground) -> None:
    place = str(two.root / two.location(T))
    fragments = write_fragments(rows(70, 71), place, mode="append")
    let_pass(two)

    def commit(_seconds: float) -> None:
        lance.LanceDataset.commit(place, lance.LanceOperation.Append(fragments), 5)

    assert Collector(two.catalog, settle=timedelta(0), sleep=commit).collect().total.files == 0
    assert two.ids(T) == [0, 1, 2, 3, 70]


def test_a_version_stays_whose_row_another_program_removed_while_the_history_has_it(two: Ground) -> None:
    """Its version of the catalog does not say what changed."""
    row = two.catalog.snapshot().version_entry(tuple(T), None, 1)
    assert row is not None
    open_manifest(two.root).delete(f"object_id = '{row.object_id}'")
    let_pass(two)
    collect(two)
    assert two.canonical(T) == [1, 2, 3, 4, 5]
    forget_history(two)
    collect(two)
    assert two.canonical(T) == [2, 3, 4, 5]


def test_a_version_that_a_tag_names_stays_with_its_files(two: Ground) -> None:
    delete_versions(two, 1, 5)
    two.open(T, 3).tags.create("kept", 3)  # by stock pylance, after the row went
    let_pass(two)
    forget_history(two)
    assert collect(two).kept == ()  # it was not in the plan
    assert two.canonical(T) == [3, 5]
    assert two.open(T, 3).count_rows() == 9


def test_a_young_manifest_without_a_row_stays_with_its_old_files(two: Ground) -> None:
    let_pass(two)
    two.write(T, rows(20, 21))
    two.write(T, rows(30, 31), "overwrite")
    two.catalog.sweep()
    delete_versions(two, 1, 7)
    forget_history(two)
    collect(two)
    assert two.canonical(T) == [6, 7]
    assert two.open(T, 6).to_table()["id"].to_pylist() == [0, 1, 2, 3, 20]


def test_manifests_of_no_version_in_the_catalog_stay_with_their_files(two: Ground) -> None:
    """A detached one, and that of a branch that was made by path."""
    table = two.root / two.location(T)
    two.open(T).create_branch("b", 4)
    detached = table / "_versions/d9223372036854775809.manifest"
    shutil.copyfile(table / "_versions" / manifest_name(2), detached)
    delete_versions(two, 1, 4)
    let_pass(two)
    forget_history(two)
    assert collect(two).removed[EXPIRED].files == 3
    assert all((table / name).exists() for name in names_used(parse_manifest_file(detached.read_bytes())))
    assert two.open(T).checkout_version(("b", None)).count_rows() == 12


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (f"a/_versions/{manifest_name(2)}", (None, 2)),
        (f"a/tree/b/_versions/{manifest_name(2)}", ("b", 2)),
        (f"a/tree/b/c/_versions/{manifest_name(2)}", ("b/c", 2)),
        (f"a/copies/_versions/{manifest_name(2)}", None),
        ("a/_versions/d9223372036854775809.manifest", None),
        ("a/data/x.lance", None),
    ],
)
def test_a_manifest_is_of_a_branch_by_its_key(key: str, place: tuple[str | None, int] | None) -> None:
    assert place_of_manifest("a", key) == place


def test_tags_and_branches_may_name_the_main_branch(two: Ground) -> None:
    location = two.location(T)
    two.open(T).create_branch("b", 4)
    two.open(T, 3).tags.create("kept", 3)
    Tags(two.store, location).create("elsewhere", ("b", None))
    assert references_of(two.store, location) == {(None, 3), (None, 4), ("b", 4)}
    for path in (two.root / location / "_refs").rglob("*.json"):
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, ("branch" if "tags" in str(path) else "parentBranch"): "main"}))
    assert references_of(two.store, location) == {(None, 3), (None, 4)}


@pytest.mark.parametrize("entries", [10_000, 4])
@pytest.mark.parametrize("moment", ["plan-0", f"_versions/{manifest_name(3)}"])
def test_a_version_that_is_tagged_after_it_was_planned_stays_whole(
    two: Ground, moment: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files may stand in another plan than its manifest."""
    monkeypatch.setattr(stored_plan, "_ENTRIES", entries)
    delete_versions(two, 1, 5)
    let_pass(two)
    forget_history(two)
    location = two.location(T)
    store = FaultStore(LocalStore(two.root, "none"))

    tags = Tags(LocalStore(two.root, "none"), location)

    def tag(verb: str, path: str) -> None:
        if verb in {"rename_if_absent", "put_if_absent"} and path.endswith(moment) and not tags.list():
            tags.create("kept", 3)

    store.before(tag)
    collect(two.again(store))
    assert two.canonical(T) == [3, 5]
    was_away = any(each.verb == "rename_if_absent" and manifest_name(3) in each.path for each in store.writes)
    assert was_away == (moment != "plan-0")
    lance.dataset(str(two.root / location), version=3).validate()


@pytest.mark.parametrize(
    ("moment", "left"), [(("get", manifest_name(3)), []), (("put_if_absent", manifest_name(3)), [3])]
)
def test_a_version_is_tagged_while_two_runs_remove_its_manifest(
    two: Ground, moment: tuple[str, str], left: list[int]
) -> None:
    """The other run removes it before this one reads it, or puts it back before this one does."""
    delete_versions(two, 1, 5)
    let_pass(two)
    forget_history(two)
    manifest = two.root / two.location(T) / "_versions" / manifest_name(3)
    data, tags = manifest.read_bytes(), Tags(LocalStore(two.root, "none"), two.location(T))
    store = FaultStore(LocalStore(two.root, "none"))
    planned: list[str] = []

    def tag(verb: str, path: str) -> None:
        if path.endswith("plan-0"):
            planned.append(path)
        if planned and path.endswith(manifest_name(3)) and not tags.list():
            tags.create("kept", 3)
            if not left:
                manifest.unlink()
        if (verb, two.root / path) == ("put_if_absent", manifest) and left:
            manifest.write_bytes(data)

    store.before(tag)
    report = collect(two.again(store))
    assert tags.list()
    assert two.canonical(T) == [*left, 5]
    assert not [path for path in report.kept if path.endswith(manifest_name(3))]


def test_a_row_that_another_table_replaces_counts_as_removed(two: Ground) -> None:
    """Earlier versions of the catalog have it."""
    location, versions = two.location(T), two.canonical(T)
    for first in range(5):
        lance.write_dataset(rows(first, first + 1), str(two.root / "lake"), mode="append" if first else "create")
    collect(two)
    before = two.catalog.table.refresh().version
    two.call("register_table", id=T, location="lake", mode="overwrite")
    assert two.catalog.table.refresh().version == before + 1
    two.catalog.committer.commit_changes(lambda snapshot: changes_of([replace(snapshot.collector, oldest=before)]))
    gone = removed_rows(two.catalog.table, two.catalog.table.refresh())
    assert gone.keys() == {(location, None, version) for version in versions}


def test_a_version_that_is_tagged_after_it_was_planned_keeps_files_of_a_purged_table(two: Ground) -> None:
    """Its files lie at a place further down, where a registered table was."""
    clone, location = ["g", "clone"], "0a0b0c0d_g$clone"
    lance.write_dataset(rows(0, 2), str(two.root / "lake" / "mine"))
    two.call("register_table", id=["g", "mine"], location="lake/mine")
    two.call("declare_table", id=clone, location=f"{two.catalog.store.uri}/{location}")
    lance.dataset(str(two.root / "lake" / "mine")).shallow_clone(str(two.root / location), 1)
    lance.write_dataset(rows(5, 6), str(two.root / location), mode="overwrite")
    assert [each["version"] for each in two.read("list_table_versions", id=clone)["versions"]] == [1, 2]
    two.call("batch_delete_table_versions", id=clone, ranges=[{"start_version": 1, "end_version": 2}])
    two.call("drop_table", id=["g", "mine"])
    let_pass(two)
    forget_history(two)
    store, tags = FaultStore(LocalStore(two.root, "none")), Tags(LocalStore(two.root, "none"), location)

    def tag(_verb: str, path: str) -> None:
        if path.endswith("plan-0") and not tags.list():
            tags.create("kept", 1)

    store.before(tag)
    collect(two.again(store))
    assert lance.dataset(str(two.root / location), version="kept").to_table() == rows(0, 2)
    assert two.catalog.snapshot().table(("g", "mine")) is None


def test_a_table_with_an_unreadable_reference_keeps_its_versions(two: Ground) -> None:
    delete_versions(two, 1, 5)
    tag = two.root / two.location(T) / "_refs/tags/x.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{")
    let_pass(two)
    forget_history(two)
    collect(two)
    assert two.canonical(T) == [1, 2, 3, 4, 5]


def test_a_dropped_table_is_purged_after_its_window(two: Ground) -> None:
    location, other = two.location(T), contents(two.root, U)
    two.call("drop_table", id=T)
    unknown = two.root / location / "notes.txt"
    unknown.write_text("mine")
    before = files_of(two, location)
    assert collect(two).total.files == 0
    assert files_of(two, location) == before
    let_pass(two)
    estimate = Collector(two.catalog).estimate()
    assert (estimate.purged, estimate.is_dry_run, estimate.complete) == ((location,), True, True)
    report = collect(two)
    assert report.purged == (location,)
    assert of_tables(report) == {"of a table that was dropped": len(before) - 1}
    assert estimate.removed == report.removed
    assert files_of(two, location) == {f"{location}/notes.txt"}
    tombstone = two.catalog.snapshot().tombstone_at(location)
    assert tombstone is not None
    assert tombstone.state == "purged"
    assert abs(tombstone.timestamp_ms / 1_000 - time.time()) < 60  # from now on it keeps the location taken for 30 days
    assert contents(two.root, U) == other


def test_a_table_that_is_dropped_to_be_purged_goes_with_the_next_run(two: Ground) -> None:
    location = two.location(T)
    two.call("drop_table", id=T, purge=True)
    two.call("drop_table", id=U)
    assert collect(two).purged == (location,)


def test_a_window_that_cannot_be_read_is_that_of_the_catalog() -> None:
    """Another program wrote the property."""
    tombstone = RecordEntry(str(uuid.UUID(int=1)), DROPPED, properties={DROPPED_WINDOW: "soon"}, timestamp_ms=0)
    snapshot = CatalogSnapshot(1).apply(changes_of([tombstone]))
    claims = [claim_purges(snapshot, timedelta(days=7), days * 86_400_000) for days in (6, 8)]
    assert [bool(claim) for claim in claims] == [False, True]


def test_a_purge_of_several_tables_ends_when_all_their_files_are_gone(two: Ground) -> None:
    locations = two.location(T), two.location(U)
    two.open(T).shallow_clone(str(two.root / "clone"), 5)
    two.call("drop_namespace", id=["g"], behavior="Cascade")
    let_pass(two)
    assert collect(two).purged == (locations[1],)
    tombstone = two.catalog.snapshot().tombstone_at(locations[1])
    assert tombstone is not None
    assert ({party.location for party in tombstone.participants}, tombstone.state) == (set(locations), "purging")
    shutil.rmtree(two.root / "clone")
    assert collect(two).purged == tuple(sorted(locations))


def test_files_of_a_dropped_table_that_a_clone_names_stay(two: Ground) -> None:
    location = two.location(T)
    two.open(T).shallow_clone(str(two.root / "clone"), 5)
    two.call("register_table", id=["g", "c"], location="clone")
    two.call("drop_table", id=T)
    let_pass(two)
    report = collect(two)
    assert report.purged == ()
    assert sorted(lance.dataset(str(two.root / "clone")).to_table()["id"].to_pylist()) == [0, 1, 2, 3]
    two.call("deregister_table", id=["g", "c"])
    assert collect(two).purged == ()  # its directory may be registered again
    two.namespace.close()
    assert files_of(two, f"{location}/_versions") == set()


def test_a_registered_table_that_was_dropped_is_purged_and_a_dataset_inside_its_directory_stays(two: Ground) -> None:
    place, inside = two.root / "lake" / "mine", two.root / "lake" / "mine" / "copies" / "clone"
    lance.write_dataset(rows(0, 1), str(place))
    two.call("register_table", id=["g", "mine"], location="lake/mine")
    lance.write_dataset(rows(5, 6), str(two.root / "lake" / "beside"))
    lance.dataset(str(place)).shallow_clone(str(inside), 1)
    two.call("drop_table", id=["g", "mine"])
    let_pass(two)
    assert collect(two).purged == ()
    assert lance.dataset(str(inside)).to_table() == rows(0, 1)
    assert lance.dataset(str(two.root / "lake" / "beside")).to_table() == rows(5, 6)
    assert not list(place.glob("_versions/*"))
    shutil.rmtree(inside)
    lance.write_dataset(rows(5, 6), str(inside))  # names no file of the table
    own = files_of(two, "lake/mine/copies")
    assert collect(two).purged == ("lake/mine",)
    assert files_of(two, "lake/mine") == own


def test_a_deregistered_table_is_never_touched(two: Ground) -> None:
    location = two.location(T)
    two.call("deregister_table", id=T)
    before = files_of(two, location)
    let_pass(two)
    assert collect(two).total.files == 0
    assert files_of(two, location) == before


def test_a_run_that_ends_early_is_continued_without_a_new_look(two: Ground) -> None:
    lost = [leave_fragment(two, T) for _ in range(5)]
    let_pass(two)
    forget_history(two)
    first = Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0))
    assert (first.total.files, first.complete) == (0, False)
    assert len(list_runs(two.store).unfinished) == 1
    report = collect(two)
    assert (of_tables(report), report.complete) == ({UNNAMED: 5}, True)
    assert not any((two.root / key).exists() for key in lost)
    assert list_runs(two.store).unfinished == []


def test_a_run_that_finds_nothing_is_not_complete_while_an_earlier_plan_waits(two: Ground) -> None:
    leave_fragment(two, T)
    let_pass(two)
    collector = Collector(two.catalog, settle=timedelta(0))
    collector.collect(None, Budget(removals=0))
    assert not collector.collect(None, Budget(removals=0), tables=[("g", "u")]).complete
    assert collector.collect(tables=[("g", "u")]).complete
    assert list_orphans(two.root).orphans == ()


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_run_dies_at_each_of_its_writes(two: Ground, fault: Fault) -> None:
    delete_versions(two, 1, 5)
    two.call("drop_table", id=U)
    leave_fragment(two, T)
    let_pass(two)
    forget_history(two)
    deaths = 0
    while True:
        store = FaultStore(LocalStore(two.root, "none"))
        store.fail(fault, nth=deaths)
        try:
            collect(two.again(store))
        except Crashed:
            deaths += 1
        else:
            break
        two.open(T).validate()
        assert two.ids(T) == [0, 1, 2, 3]
    assert deaths > 5
    collect(two)
    assert two.canonical(T) == [5]
    assert list_orphans(two.root).orphans == ()
    assert list_runs(two.store).unfinished == []


def test_a_file_that_was_replaced_since_it_was_planned_stays(two: Ground) -> None:
    lost = two.root / leave_fragment(two, T)
    let_pass(two)
    collector = Collector(two.catalog, settle=timedelta(0))
    collector.collect(None, Budget(removals=0))
    lost.write_bytes(lost.read_bytes() + b"x")
    report = collect(two)
    assert (report.total.files, len(report.kept)) == (0, 1)
    assert lost.exists()


@pytest.mark.parametrize("change", ["size", "date"])
def test_another_object_than_was_planned_is_kept(two: Ground, change: str) -> None:
    lost = two.root / leave_fragment(two, T)
    planned = Removal(str(lost.relative_to(two.root)), *two.store.head(str(lost.relative_to(two.root)))[1:2], NOW, "")
    written = NOW.timestamp() + 2 * (change == "date")
    lost.write_bytes(lost.read_bytes() + b"x" * (change == "size"))
    os.utime(lost, (written, written))
    deleted = Deleted()
    remove_all(two.store, [planned], deleted)
    assert (deleted.kept, lost.exists()) == ([planned.path], True)


def planned_manifest(ground: Ground, version: int) -> Removal:
    meta = ground.store.head(f"{ground.location(T)}/_versions/{manifest_name(version)}")
    return Removal(meta.path, meta.size, meta.last_modified, "")


def test_a_name_that_may_come_back_is_not_removed_after_it_was_vacant(two: Ground) -> None:
    planned = planned_manifest(two, 1)
    (two.root / planned.path).unlink()
    store = FaultStore(two.store)
    remove_all(store, [planned], Deleted(), names_come_back=True)
    assert store.writes == []


@pytest.mark.parametrize("after", [b"another", None])
def test_a_manifest_that_is_replaced_during_its_removal_is_kept(two: Ground, after: bytes | None) -> None:
    """Or another run removes it first."""
    planned, path = planned_manifest(two, 1), two.root / planned_manifest(two, 1).path
    store = FaultStore(two.store)

    def replace(verb: str, key: str) -> None:
        if verb == "rename_if_absent" and key.endswith(planned.path):
            go_on()
            path.unlink()
            if after is not None:
                path.write_bytes(after)

    go_on = store.before(replace)
    deleted = Deleted()
    remove_all(store, [planned], deleted, names_come_back=True)
    assert (deleted.kept, deleted.refused) == ([planned.path] if after else [], {})
    assert (path.read_bytes() if path.exists() else None) == after


def test_a_removal_of_unknown_outcome_ends_the_run(two: Ground) -> None:
    """The store did not refuse it."""
    lost = leave_fragment(two, T)
    let_pass(two)
    store = FaultStore(LocalStore(two.root, "none"))
    store.fail(Fault.LOST_REQUEST, when=lambda write: (write.verb, write.path) == ("delete", lost))
    with pytest.raises(StorageUnknown):
        collect(two.again(store))
    assert collect(two).total.files == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"format": 2, "removals": []}', "expected format 1, found 2"),
        *((damaged, "expected a plan") for damaged in (b"{", b"{}", b"[]", b'{"format": 1, "removals": [[]]}')),
        *((gzip.compress(b"{}", mtime=0)[:end] + b"\xff" * 20, "expected a plan") for end in (2, 9, 10)),
    ],
)
def test_a_plan_that_cannot_be_read_is_not_carried_out(ground: Ground, content: bytes, said: str) -> None:
    ground.store.put("_staging/gc/x/plan-0", content)
    with pytest.raises(CorruptFile, match=said):
        read_plan(ground.store, "_staging/gc/x/plan-0")


def test_plans_of_a_run_are_carried_out_in_order(ground: Ground) -> None:
    plans = [f"{GC_RUNS}/{uuid.UUID(int=1)}/plan-{number}" for number in range(12)]
    for plan in reversed(plans):
        ground.store.put(plan, b"")
    assert list_runs(ground.store).unfinished == plans


def test_a_budget_is_spent_by_removals_or_by_time() -> None:
    budget = Budget(removals=2, until=time.monotonic() + 60)
    spent = []
    for _ in range(3):
        spent.append(budget.is_spent)
        budget.spend(1)
    assert spent == [False, False, True]
    assert Budget(until=time.monotonic() - 1).is_spent
    assert not Budget().is_spent


def test_what_the_store_refuses_to_remove_stays_and_the_rest_goes(two: Ground) -> None:
    """A file of a dropped table, and the manifest of a deleted version, which keeps its files."""
    lost, dropped = leave_fragment(two, T), two.location(U)
    delete_versions(two, 1, 3)
    two.call("drop_table", id=U)
    let_pass(two)
    forget_history(two)
    manifest = f"{two.location(T)}/_versions/{manifest_name(2)}"
    refused = {min(files_of(two, f"{dropped}/data")), manifest}
    store = FaultStore(LocalStore(two.root, "none"))

    def refuse(verb: str, path: str) -> None:
        if (
            path.endswith(tuple(refused))
            and GC_RUNS not in path
            and verb in {"delete", "delete_if", "rename_if_absent"}
        ):
            raise StorageError(f"{path}: permission denied")

    store.before(refuse)
    report = collect(two.again(store))
    assert report.refused == {path: f"{path}: permission denied" for path in refused}
    assert (report.purged, report.complete, refused & set(report.kept)) == ((), True, set())
    assert f"not removed: {manifest}: {manifest}: permission denied" in report.lines()
    assert report.as_json()["refused"] == report.refused
    assert files_of(two, dropped) == refused - {manifest}
    assert not (two.root / lost).exists()
    assert two.canonical(T) == [2, 3, 4, 5]
    assert two.open(T, 2).to_table().num_rows == 6
    assert collect(two).purged == (dropped,)
    assert two.canonical(T) == [3, 4, 5]


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("dies", [False, True])
def test_a_catalog_version_that_cannot_be_removed_stays_with_its_rows_and_the_rest_goes(
    two: Ground, number: int, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another process goes on with the plans of the run that met it."""
    monkeypatch.setattr(stored_plan, "_ENTRIES", 3)
    location = two.location(U)
    two.call("drop_table", id=U, purge=True)
    lost = two.root / leave_fragment(two, T)
    let_pass(two)
    forget_history(two)
    kept = f"__manifest/_versions/{manifest_name(number)}"
    needed = set(names_used(parse_manifest_file((two.root / kept).read_bytes())))
    rows_of_it = {f"__manifest/{name}" for name in needed} & files_of(two, "__manifest")
    store = FaultStore(LocalStore(two.root, "none"))

    def refuse(verb: str, path: str) -> None:
        if path == kept and verb == "delete":
            raise StorageError(f"{path}: permission denied")

    store.before(refuse)
    if dies:
        dying = FaultStore(store)
        dying.fail(Fault.CRASH_BEFORE, when=lambda write: write.verb == "delete" and "__manifest/data" in write.path)
        with pytest.raises(Crashed):
            collect(two.again(dying))
    for _ in range(2):
        report = collect(two.again(store))
        assert report.refused == {kept: f"{kept}: permission denied"}
        assert report.complete
    assert not lost.exists()
    assert not files_of(two, location)
    versions = {path.stem for path in (two.root / "__manifest/_versions").glob("*.manifest")}
    assert manifest_name(number).removesuffix(".manifest") in versions
    assert len([each for each in versions if 2**64 - 1 - int(each) < two.catalog.snapshot().collector.oldest]) == 1
    assert rows_of_it <= files_of(two, "__manifest")
    assert lance.dataset(str(two.root / "__manifest"), version=number).to_table().num_rows > 0
    assert collect(two).refused == {}
    assert not (two.root / kept).exists()


def test_nothing_goes_if_its_plan_cannot_be_stored(two: Ground) -> None:
    lost = two.root / leave_fragment(two, T)
    let_pass(two)
    store = FaultStore(LocalStore(two.root, "none"))

    def refuse(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith(GC_RUNS):
            raise StorageError("no")

    store.before(refuse)
    with pytest.raises(StorageError):
        collect(two.again(store))
    assert lost.exists()


def collect_later(store: ObjectStore) -> GcReport:
    """One run as if it were a month from now: the dates of a bucket cannot be changed."""
    catalog = StoredCatalog(store, QUIET)
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    return Collector(catalog, settle=timedelta(0), clock=lambda _store, _run: later).collect()


def test_over_an_external_manifest_store(tmp_path: Path) -> None:
    manifests = MemoryManifestStore()
    store = ExternalManifestHandler(manifests).over(LocalStore(tmp_path / "root", "none"))
    ground = Ground(tmp_path / "root", store)
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.make_table(*U)
    for number in range(110):
        ground.make_namespace(f"n{number}")
    ground.write(T, rows(3, 5))
    ground.call("drop_table", id=U)
    ground.catalog.sweep()
    lost = leave_fragment(ground, T)
    report = collect_later(store)
    assert (report.oldest > 10, len(report.purged), report.complete) == (True, 1, True)
    assert not (ground.root / lost).exists()
    assert ground.again(store).ids(T) == [0, 1, 2, 3, 4]
    assert ground.again(store).catalog.table.refresh_by_listing().version == report.catalog_version + 1
    again = collect_later(store)
    assert {reason for reason in again.removed if "catalog" not in reason} == set()


@pytest.mark.services
@pytest.mark.parametrize("service", ["moto_server", "azurite"])
def test_on_a_bucket(request: pytest.FixtureRequest, service: str) -> None:
    emulator: Emulator = request.getfixturevalue(service)
    root, options = emulator.new_root(), emulator.storage_options
    properties = {f"storage.{name}": value for name, value in options.items()}
    namespace = DirectoryNamespace(root=root, sweep_interval_seconds="0", **properties)
    namespace.create_namespace(CreateNamespaceRequest(id=["g"]))
    for table in (T, U):
        lance.write_dataset(
            rows(0, 3), mode="create", namespace_client=namespace, table_id=table, storage_options=options
        )
    dataset = lance.dataset(namespace_client=namespace, table_id=T, storage_options=options)
    write_fragments(rows(70, 71), dataset.uri, mode="append", storage_options=options)
    namespace.write("drop_table", {"id": U})
    for number in range(110):
        namespace.create_namespace(CreateNamespaceRequest(id=[f"n{number}"]))
    namespace.catalog.sweep()
    with closing(open_store(root, options)) as store:
        report = collect_later(store)
        assert report.removed["named by no manifest"].files == 1
        assert len(report.purged) == 1
        assert store.first(report.purged[0]) is None
        assert report.removed["earlier version of the catalog"].files == report.oldest - 1 > 10
        assert StoredCatalog(store, QUIET).snapshot(report.oldest).version == report.oldest
        again = collect_later(store)
        assert of_tables(again) == {}
    numbers = [each["version"] for each in lance.dataset(f"{root}/__manifest", storage_options=options).versions()]
    assert min(numbers) == again.oldest
    assert namespace.catalog.snapshot().version == max(numbers)
    assert namespace.catalog.table.history(1_000)[-1].version == again.oldest
    assert lance.dataset(dataset.uri, storage_options=options).count_rows() == 3
    namespace.close()


def test_on_google_cloud_storage(fake_gcs: Emulator) -> None:
    """Without pylance, which does not speak to the emulator: a dropped table, a lost file, and history."""
    root, options = fake_gcs.new_root(), fake_gcs.storage_options
    properties = {f"storage.{name}": value for name, value in options.items()}
    namespace = DirectoryNamespace(root=root, sweep_interval_seconds="0", **properties)
    namespace.create_namespace(CreateNamespaceRequest(id=["g"]))
    for table in (T, U):
        namespace.write("declare_table", {"id": table})
    with closing(open_store(root, options)) as store:
        kept, dropped = (_location(namespace, table) for table in (T, U))
        for location in (kept, dropped):
            store.put(f"{location}/data/{'01' * 12}{'0a' * 13}.lance", b"rows")
        namespace.write("drop_table", {"id": U})
        for number in range(110):
            namespace.create_namespace(CreateNamespaceRequest(id=[f"n{number}"]))
        report = collect_later(store)
        assert report.purged == (dropped,)
        assert report.removed["named by no manifest"].files == 1
        assert sorted(store.directories("")) == ["__manifest", "_staging"]
        assert report.removed["earlier version of the catalog"].files == report.oldest - 1 > 10
        assert of_tables(collect_later(store)) == {}
    assert namespace.catalog.snapshot().table(tuple(T)) is not None
    namespace.close()


def _location(namespace: DirectoryNamespace, table: list[str]) -> str:
    found = namespace.catalog.snapshot().table(tuple(table))
    assert found is not None
    return found.location


def test_a_run_looks_at_some_tables_only(two: Ground) -> None:
    lost = [two.root / leave_fragment(two, table) for table in (T, U)]
    let_pass(two)
    collector = Collector(two.catalog, settle=timedelta(0))
    assert collector.estimate(tables=[tuple(T)]).total.files == 1
    assert collector.collect(tables=[tuple(T)]).total.files == 1
    assert [path.exists() for path in lost] == [False, True]
    assert collect(two).total.files == 1
    assert not lost[1].exists()


def test_a_run_does_not_look_at_tables_of_others(two: Ground) -> None:
    lance.write_dataset(rows(0, 1), str(two.root / "mine"))
    two.call("register_table", id=["g", "m"], location="mine")
    collector = Collector(two.catalog)
    with pytest.raises(ValueError, match="did not choose mine"):
        collector.collect(tables=[("g", "m")])
    for run in (collector.collect, collector.estimate):
        with pytest.raises(TableNotFoundError):
            run(tables=[("g", "none")])


def test_an_estimate_lists_the_orphans_of_tables_of_others_and_that_they_stay(two: Ground) -> None:
    lance.write_dataset(rows(0, 1), str(two.root / "mine"))
    two.call("register_table", id=["g", "m"], location="mine")
    paths = leave_fragment(two, ["g", "m"]), leave_fragment(two, T)
    let_pass(two)
    collector = Collector(two.catalog)
    report = collector.estimate(tables=[("g", "m"), tuple(T)])
    assert report.marked is not None
    found = {orphan.path: (orphan.table, orphan.is_owned) for orphan in report.marked.orphans}
    assert found == {paths[0]: ("g$m", False), paths[1]: ("g$t", True)}
    assert report.total.files == 1
    kept = "orphan, kept: the catalog did not choose the location of its table: g$m  mine/data/"
    assert [line for line in report.lines() if line.startswith(kept)]
    everything = collector.estimate()
    assert everything.marked is not None
    assert [orphan.path for orphan in everything.marked.orphans] == [paths[1]]
    assert everything.marked.not_owned == {"mine": "g$m"}


@pytest.mark.parametrize(("age", "found"), [(None, 0), (timedelta(days=30), 0), (timedelta(minutes=90), 1)])
def test_an_estimate_may_judge_by_any_age(two: Ground, age: timedelta | None, found: int) -> None:
    lost = leave_fragment(two, T)
    let_pass(two, timedelta(hours=2))
    report = Collector(two.catalog).estimate(older_than=age)
    assert report.marked is not None
    assert [orphan.path for orphan in report.marked.orphans] == [lost] * found
    assert [orphan.path for orphan in report.marked.young if orphan.kind == "data file"] == [lost] * (1 - found)
    assert report.total.files == found


def test_the_plans_of_earlier_runs_go_when_they_are_done(two: Ground) -> None:
    lost = [leave_fragment(two, T) for _ in range(3)]
    let_pass(two)
    assert Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0)).complete is False
    unfinished = list_runs(two.store).unfinished
    let_pass(two, timedelta(days=2))
    assert collect(two).total.files == 3
    let_pass(two, timedelta(hours=1))
    collect(two)
    assert files_of(two, GC_RUNS) >= set(unfinished)
    let_pass(two, timedelta(days=2))
    store = FaultStore(LocalStore(two.root, "none"))
    collect(two.again(store))
    gone = [each.path for each in store.writes if each.verb == "delete"]
    for plan in unfinished:  # one without its note would be carried out again
        assert gone.index(plan) < gone.index(plan.replace("/plan-", "/done-"))
    assert not files_of(two, GC_RUNS) & set(unfinished)
    assert len({path.split("/")[2] for path in files_of(two, GC_RUNS)} - {"locations", "kept", "periods"}) == 1
    assert not any((two.root / key).exists() for key in lost)


def test_a_plan_that_is_damaged_is_given_up(two: Ground) -> None:
    """What it names is found anew, and the next run is not held up."""
    lost = two.root / leave_fragment(two, T)
    let_pass(two)
    Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0))
    [plan] = list_runs(two.store).unfinished
    path = two.root / plan
    path.write_bytes(path.read_bytes()[:-9])
    report = collect(two)
    assert "expected a plan" in report.not_judged[plan]
    assert not lost.exists()
    report = collect(two)
    assert (report.not_judged, list_runs(two.store).unfinished) == ({}, [])


def test_after_a_damaged_plan_no_other_of_its_run_is_carried_out(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first plan has a manifest, the second its files; by now a tag names the version."""
    two.write(T, rows(9, 10), "overwrite")
    two.catalog.sweep()
    head = two.head(T)
    delete_versions(two, 1, head)
    forget_history(two)
    let_pass(two)
    monkeypatch.setattr(stored_plan, "_ENTRIES", head - 1)
    Collector(two.catalog, settle=timedelta(0)).collect(None, Budget(removals=0))
    plans = list_runs(two.store).unfinished
    assert len(plans) > 1
    Tags(LocalStore(two.root, "none"), two.location(T)).create("kept", 1)
    (two.root / plans[0]).write_bytes(b"damaged")
    collect(two)
    assert list_runs(two.store).unfinished == []
    assert len(two.open(T, 1).to_table()) > 0
    two.open(T, 1).validate()


def test_a_run_waits_while_writers_win_each_race(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = two.root / leave_fragment(two, T)
    let_pass(two)
    other = two.again()
    commit, busy, waited = other.catalog.committer.commit_changes, [1] * 3, []

    def lose(*given: Any, **more: Any) -> Any:
        if busy:
            busy.pop()
            raise CatalogBusy("horizon flip", 20)
        return commit(*given, **more)

    monkeypatch.setattr(other.catalog.committer, "commit_changes", lose)
    Collector(other.catalog, settle=timedelta(0), sleep=waited.append).collect()
    assert not lost.exists()
    assert len(waited) == 3 + 1  # the last one is the settling time


def test_a_run_ends_when_writers_win_all_races(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = two.root / leave_fragment(two, T)
    let_pass(two)

    def lose(*_given: Any, **_more: Any) -> Any:
        raise CatalogBusy("horizon flip", 20)

    monkeypatch.setattr(two.catalog.committer, "commit_changes", lose)
    with pytest.raises(CatalogBusy):
        Collector(two.catalog, settle=timedelta(0), sleep=lambda _: None).collect()
    assert lost.exists()


def test_a_catalog_that_stock_clients_made_is_looked_at_only(tmp_path: Path) -> None:
    stock = lance_namespace.connect("dir", {"root": str(tmp_path)})
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    lance.write_dataset(rows(0, 1), namespace_client=stock, table_id=["g", "t"])
    ground = Ground(tmp_path)
    lost = leave_fragment(ground, T)
    collector = Collector(ground.catalog)
    with pytest.raises(UnsupportedOperationError, match="made by another implementation"):
        collector.collect()
    report = collector.estimate(now=datetime.now(UTC) + timedelta(days=8))
    assert report.marked is not None
    assert (report.total.files, [orphan.path for orphan in report.marked.orphans]) == (0, [lost])
    assert "adopt" in report.not_judged["__manifest"]


def purge(ground: Ground, *table: str) -> GcReport:
    ground.call("drop_table", id=list(table), purge=True)
    return collect(ground)


def doctor(ground: Ground) -> set[tuple[str, str]]:
    found = Examination(LocalStore(ground.root, "none"), sleep=lambda _seconds: None).examine().findings
    return {(each.code, each.place) for each in found}


def test_the_write_ahead_log_of_a_table_goes_with_it_alone(two: Ground) -> None:
    """It has datasets of its own."""
    log = two.root / two.location(U) / "_mem_wal" / str(uuid.uuid4())
    lance.write_dataset(rows(0, 5), str(log / "gen_1"))
    (log / "wal").mkdir()
    (log / "wal" / "1.arrow").write_bytes(b"rows")
    before = files_of(two, two.location(U))
    let_pass(two)
    report = collect(two)
    assert (report.unknown, files_of(two, two.location(U))) == (0, before)
    location = two.location(U)
    report = purge(two, *U)
    assert (report.purged, dict(report.left_behind)) == ((location,), {})
    assert not (two.root / location).exists()
    assert not [each for each in doctor(two) if each[1] == location]


def test_what_a_purge_leaves_is_told_by_each_run_and_by_the_doctor(two: Ground) -> None:
    location, elsewhere = two.location(U), two.root.parent / "elsewhere"
    table = two.root / location
    (table / "notes.txt").write_bytes(b"of a user")
    shutil.move(table / "data", elsewhere)
    (table / "data").symlink_to(elsewhere)
    assert "link-out-of-root" in {code for code, _ in doctor(two)}
    for changed in (False, True, True):
        report = (
            purge(two, *U) if not changed else Collector(two.catalog, settle=timedelta(0)).collect(everywhere=False)
        )
        assert dict(report.left_behind) == {location: (Total(1, 9), (f"{location}/data",))}
        [line] = [line for line in report.lines() if line.startswith("left behind")]
        assert f"{location}: 1 file, 9 bytes of unknown names" in line
        assert f"symbolic links {location}/data" in line
        assert report.as_json()["left_behind"] == {location: {"files": 1, "size": 9, "links": [f"{location}/data"]}}
        assert ("left-behind", location) in doctor(two)
    (table / "notes.txt").unlink()
    assert dict(collect(two).left_behind) == {location: (Total(0, 0), (f"{location}/data",))}
    (table / "data").unlink()
    assert dict(collect(two).left_behind) == {}
    assert ("left-behind", location) not in doctor(two)
    assert list(elsewhere.iterdir())
