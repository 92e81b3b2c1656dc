"""Every kept version of the catalog stays whole, whatever else happens while its history is collected."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from lance_core.cleanup.reachability import names_used
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.errors import LanceCoreError
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name, parse_manifest_name
from lance_core.storage.local import LocalStore
from namespace_server.directory.gc.delete import Budget
from namespace_server.directory.gc.history import list_catalog_versions, needed_versions, unnamed_files
from namespace_server.directory.gc.plan import list_runs
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.manifest_table.row_codec import Row, encode_entry
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import DROPPED, NamespaceEntry
from namespace_server.directory.model.root_layout import KEPT_VERSIONS
from tests.directory.flipping import open_manifest
from tests.directory.gc.collecting import WEEK, collect, let_pass
from tests.directory.gc.test_collect_history import files, flips, needs
from tests.directory.gc.test_mark import leave_fragment
from tests.directory.manifest_table.test_manifest_table_other_writers import arrow
from tests.directory.tables import Ground
from tests.directory.tables import rows as table_rows
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.manifests import MemoryManifestStore

T, U = ["g", "t"], ["g", "u"]
DAY_OF_GRACE = {"gc.uncommitted.grace": "1d"}
Rows = Mapping[int, list[Row]]


def spread(root: Path, gap: timedelta = timedelta(hours=3)) -> None:
    """Date the files of `__manifest` as if one version had been made in each `gap`, until now."""
    placed: set[str] = set()
    newest = ManifestTable(LocalStore(root, "none")).refresh().version
    for version in range(1, newest + 1):
        file = root / "__manifest/_versions" / manifest_name(version)
        if file.exists():
            written = time.time() - (newest - version) * gap.total_seconds()
            os.utime(file, (written, written))
            for name in names_of(file) - placed:
                path = root / "__manifest" / name
                if path.exists():
                    os.utime(path, (written - 1, written - 1))
                placed.add(name)


def names_of(manifest: Path) -> set[str]:
    return set(names_used(parse_manifest_file(manifest.read_bytes())))


def read_kept(root: Path) -> Rows:
    """The rows of each version that is kept or needed, as a new process reads them."""
    table = ManifestTable(LocalStore(root, "none"))
    newest = table.refresh()
    kept = {*range(newest.collector.oldest, newest.version + 1), *needed_versions(newest)}
    return {version: sorted(map(encode_entry, table.kept(version).entries())) for version in sorted(kept)}


def check_rows(root: Path, before: Rows) -> None:
    """What is kept can be read, and is what it was; versions from the oldest kept one on are one unbroken run."""
    after = read_kept(root)
    both = before.keys() & after.keys()
    assert [version for version in both if before[version] != after[version]] == []


def check_whole(root: Path, before: Rows) -> None:
    """What is kept can be read, by stock pylance too, and is what it was."""
    check_rows(root, before)
    assert set(needs(root)) <= files(root, "data", "_deletions", "_transactions")


def check_exact(root: Path, grace: timedelta) -> None:
    """What is left in `__manifest` is what kept versions need, or is younger than what a slow writer may still name."""
    newest = ManifestTable(LocalStore(root, "none")).refresh()
    standing = {
        named[0]: path
        for path in (root / "__manifest/_versions").iterdir()
        if (named := parse_manifest_name(path.name)) is not None
    }
    assert set(standing) == set(range(newest.collector.oldest, newest.version + 1))
    copies = {int(path.stem): path for path in (root / KEPT_VERSIONS).glob("*.manifest")}
    needed = needed_versions(newest)
    assert set(copies) == {version for version in needed if version < newest.collector.oldest}
    named = {name for path in (*standing.values(), *copies.values()) for name in names_of(path)}
    found = files(root, "data", "_deletions", "_transactions")
    assert named <= found
    before = standing[newest.collector.oldest].stat().st_mtime - grace.total_seconds()
    assert {name for name in found - named if (root / "__manifest" / name).stat().st_mtime < before} == set()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks with a flip in every three hours; a pin, a dropped table, a compaction and rows of a stock writer."""
    ground = Ground(tmp_path_factory.mktemp("history") / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.make_table(*U)
    ground.call("pin_catalog_version", name="audit")
    flips(ground, 20)
    ground.call("drop_table", id=T)
    flips(ground, 30, "k")
    lance.write_dataset(stock_row("stock"), open_manifest(ground.root), mode="append")
    flips(ground, 10, "l")
    open_manifest(ground.root).optimize.compact_files()
    flips(ground, 100, "m")
    spread(ground.root)
    return ground.root


def stock_row(name: str) -> pa.Table:
    return arrow([encode_entry(NamespaceEntry((name,)))])


def test_files_of_a_slow_writer_are_kept_with_its_version(ground: Ground) -> None:
    """Its row file is older than the oldest kept version, which does not name it, nor does the newest one."""
    flips(ground, 8)
    base = open_manifest(ground.root)
    [fragment] = write_fragments(stock_row("slow"), base.uri, mode="append")
    flips(ground, 7, "k")
    version = lance.LanceDataset.commit(base, lance.LanceOperation.Append([fragment]), base.version).version
    flips(ground, 5, "l")
    open_manifest(ground.root).optimize.compact_files()
    flips(ground, 90, "m")
    spread(ground.root)
    [file] = [ground.root / "__manifest/data" / file.path for file in fragment.files]
    os.utime(file, (file.stat().st_mtime - 40 * 3_600,) * 2)
    before = read_kept(ground.root)
    report = collect(ground)
    assert report.oldest < version
    check_whole(ground.root, before)


def test_the_newest_version_keeps_its_files_however_slow_its_writer_was(ground: Ground) -> None:
    base = open_manifest(ground.root)
    fragments = write_fragments(stock_row("slow"), base.uri, mode="append")
    lance.LanceDataset.commit(base, lance.LanceOperation.Append(fragments), base.version)
    [file] = [ground.root / "__manifest/data" / file.path for each in fragments for file in each.files]
    os.utime(file, (file.stat().st_mtime - 40 * 86_400,) * 2)
    versions, snapshot = list_catalog_versions(ground.store), ground.again().catalog.snapshot()
    assert unnamed_files(ground.store, versions, snapshot, datetime.now(UTC), timedelta(days=7)) == []


def test_a_version_from_the_future_makes_no_row_file_old(ground: Ground) -> None:
    """The clock of the store was wrong when the oldest kept version was written."""
    flips(ground, 3)
    later = time.time() + 30 * 86_400
    os.utime(ground.root / "__manifest/_versions" / manifest_name(1), (later, later))
    staged = write_fragments(stock_row("slow"), open_manifest(ground.root).uri, mode="append")[0].files[0].path
    collect(ground)
    assert (ground.root / "__manifest/data" / staged).exists()


def test_a_version_from_the_future_is_reported_and_stops_nothing(ground: Ground) -> None:
    """The newest one, of a server whose clock was wrong, or after its date was changed by a copy of the root."""
    ground.make_table(*T)
    flips(ground, 120)
    let_pass(ground)
    lost = ground.root / leave_fragment(ground, T)
    let_pass(ground)
    newest = f"__manifest/_versions/{manifest_name(ground.catalog.snapshot().version)}"
    later = time.time() + 365 * 86_400
    os.utime(ground.root / newest, (later, later))
    before = read_kept(ground.root)
    for report in (Collector(ground.catalog).estimate(), collect(ground), collect(ground)):
        assert list(report.not_judged) == [newest]
        assert "ahead of the time of this run" in report.not_judged[newest]
        assert report.horizon < datetime.now(UTC)
    assert not lost.exists()
    check_whole(ground.root, before)
    ground.write(T, table_rows(3, 4))
    assert ground.ids(T) == [0, 1, 2, 3]


def test_a_copy_that_a_later_run_made_is_not_removed_by_an_earlier_one(ground: Ground) -> None:
    """The earlier run is held after its horizon flip. The later one made a copy for a pin that it does not know."""
    flips(ground, 130)
    let_pass(ground)
    store = FaultStore(LocalStore(ground.root, "none"))
    pinned: list[int] = []

    def meanwhile(verb: str, path: str) -> None:
        if (verb, path) == ("list", KEPT_VERSIONS) and not pinned:
            other = ground.again()
            pinned.append(other.catalog.table.refresh().collector.oldest)
            other.call("pin_catalog_version", name="late", version=pinned[0])
            flips(other, 10, "k")
            assert Collector(other.catalog, settle=timedelta(0)).collect(None, Budget(removals=0)).oldest > pinned[0]

    store.before(meanwhile)
    collect(ground.again(store))
    collect(ground)
    assert ground.again().catalog.snapshot(pinned[0]).version == pinned[0]


def test_a_process_that_was_idle_finds_the_copy(ground: Ground) -> None:
    ground.make_table(*T)
    ground.call("pin_catalog_version", name="p")
    idle, other, behind = ground.again(), ground.again(), ground.again()
    version = idle.catalog.snapshot().version
    assert behind.catalog.snapshot().collector.oldest == 1
    ground.call("pin_catalog_version", name="first", version=1)
    flips(ground, 130)
    idle.catalog.snapshot()
    flips(ground, 10, "k")
    let_pass(ground)
    assert collect(ground).oldest > version
    assert other.catalog.snapshot(version).version == version
    assert idle.catalog.snapshot(version).version == version
    assert behind.catalog.table.at(1).version == 1  # the oldest version that this process knows to be kept


def test_a_copy_is_read_if_its_version_goes_meanwhile(ground: Ground) -> None:
    """The process looks for a version that its newest snapshot has, and a collection comes before the read."""
    ground.make_table(*T)
    ground.call("drop_table", id=T)
    [tombstone] = [each for each in ground.catalog.snapshot().records() if each.state == DROPPED]
    flips(ground, 120)
    let_pass(ground)
    idle = ground.again()
    idle.catalog.snapshot()
    collect(ground, {"gc.dropped.window": "30d"})
    assert idle.catalog.table.kept(tombstone.catalog_version).version == tombstone.catalog_version


def test_a_version_that_was_written_below_the_oldest_kept_one_delays_nothing(ground: Ground) -> None:
    """A held server wins the slot of a version that was removed, and dies before it sees that it is not the newest."""
    flips(ground, 150)
    let_pass(ground)
    store = FaultStore(LocalStore(ground.root, "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: write.path == f"__manifest/_versions/{manifest_name(30)}")
    with suppress(Crashed):
        collect(ground.again(store))
    flips(ground, 110, "k")
    let_pass(ground)
    (ground.root / "__manifest/_versions" / manifest_name(31)).touch()
    report = collect(ground)
    assert report.oldest == report.catalog_version - 100


def test_rows_of_an_external_store_go_after_the_files_of_their_versions(tmp_path: Path) -> None:
    """A collector dies between the two; the next one removes the row."""
    manifests = MemoryManifestStore()
    local = FaultStore(LocalStore(tmp_path / "root", "none"))
    handler = ExternalManifestHandler(manifests)
    ground = Ground(tmp_path / "root", handler.over(LocalStore(tmp_path / "root", "none")))
    ground.make_namespace("g")
    flips(ground, 120)
    let_pass(ground)
    local.fail(Fault.CRASH_AFTER, when=lambda write: write.verb == "delete" and write.path.endswith(".manifest"))
    with pytest.raises(Crashed):
        collect(ground.again(handler.over(local)))
    oldest = collect(ground).oldest
    numbers = {row.version for row in manifests.rows if row.base_uri.endswith("__manifest")}
    assert numbers == set(range(oldest, ground.catalog.table.refresh().version + 1))


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
def test_a_lost_or_damaged_copy_stops_the_rows_of_the_catalog_and_no_table_while_it_is_needed(
    ground: Ground, is_there: bool, deletes: bool
) -> None:
    """Nor does a version of a table expire that has no row, which the copy may have."""
    ground.make_table(*T)
    ground.write(T, table_rows(3, 6), "overwrite")
    ground.call("pin_catalog_version", name="p")
    flips(ground, 120)
    let_pass(ground)
    collect(ground)
    lost = ground.root / leave_fragment(ground, T)
    [copy] = (ground.root / KEPT_VERSIONS).iterdir()
    if is_there:
        copy.write_bytes(b"damaged")
    else:
        copy.unlink()
    if deletes:
        ground.call("batch_delete_table_versions", id=T, ranges=[{"start_version": 1, "end_version": 2}])
        ground.catalog.sweep()
    flips(ground, 120, "k")
    spread(ground.root)
    let_pass(ground)
    before = files(ground.root, "data", "_deletions", "_transactions")
    for number in range(2):
        report = collect(ground)
        assert list(report.not_judged) == ["__manifest"]
        assert ("named by no manifest" in report.removed) == (number == 0)
        assert ground.canonical(T) == [1, 2]
    assert not lost.exists()
    assert before <= files(ground.root, "data", "_deletions", "_transactions")
    ground.call("unpin_catalog_version", name="p")
    assert collect(ground).not_judged == {}
    assert ground.canonical(T) == ([2] if deletes else [1, 2])
    assert not copy.exists()
    check_exact(ground.root, WEEK)


def pins_drops_and_collects(ground: Ground, _store: FaultStore) -> None:
    """What an hour brings: another run copies what a pin and a drop need, moves the horizon, and removes some of it."""
    snapshot = ground.catalog.table.refresh()
    oldest = max(snapshot.collector.oldest, snapshot.version - 99)
    ground.call("pin_catalog_version", name="late", version=oldest)
    with suppress(LanceCoreError):
        ground.call("drop_table", id=U)
    flips(ground, 8, "late")
    Collector(ground.catalog, settle=timedelta(0)).collect(DAY_OF_GRACE, Budget(removals=64))


def collects_all(ground: Ground, _store: FaultStore) -> None:
    flips(ground, 3, "late")
    collect(ground, DAY_OF_GRACE)
    ground.call("unpin_catalog_version", name="audit")
    collect(ground, DAY_OF_GRACE)


def dies(_ground: Ground, store: FaultStore) -> None:
    store.crashed = True


Meanwhile = Callable[[Ground, FaultStore], None]


def runs(scene: Path, place: Path, meanwhile: Meanwhile, calls: Iterable[int]) -> Iterator[Ground]:
    """A fresh copy of the scene for each of these calls, before which a run was held until others were done."""
    for number in calls:
        root = place / f"{number}"
        shutil.copytree(scene, root)
        store = FaultStore(LocalStore(root, "none"))
        left = [number]

        def hold(_verb: str, _path: str, left: list[int] = left, store: FaultStore = store, root: Path = root) -> None:
            left[0] -= 1
            if left[0] == -1:
                meanwhile(Ground(root), store)

        store.before(hold)
        with suppress(LanceCoreError, Crashed):  # it may be overtaken, and is started again
            collect(Ground(root, store), DAY_OF_GRACE)
        assert left[0] < 0
        yield Ground(root)
        shutil.rmtree(root)


LOOKS = 14
"""Calls of a run before it copies what is needed."""
SWEEPS = 52
"""Calls of a run before it stores its plan."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meanwhile", "calls"),
    [
        (pins_drops_and_collects, [LOOKS, SWEEPS + 40]),
        (collects_all, [LOOKS + 24, SWEEPS + 150]),
        (dies, [SWEEPS + 1, SWEEPS + 176]),
        pytest.param(pins_drops_and_collects, [*range(LOOKS + 17, SWEEPS, 17), SWEEPS + 170], marks=pytest.mark.long),
        pytest.param(collects_all, [LOOKS, SWEEPS + 30], marks=pytest.mark.long),
        pytest.param(dies, [LOOKS + 1, SWEEPS + 10, SWEEPS + 93, SWEEPS + 259], marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_held_or_dies_leaves_what_is_kept(
    scene: Path, tmp_path: Path, meanwhile: Meanwhile, calls: Iterable[int]
) -> None:
    before = read_kept(scene)
    for ground in runs(scene, tmp_path, meanwhile, calls):
        check_rows(ground.root, before)
        for _ in range(2):
            collect(ground, DAY_OF_GRACE)
        check_whole(ground.root, before)
        check_exact(ground.root, timedelta(days=1))
        assert list_runs(ground.store).unfinished == []
