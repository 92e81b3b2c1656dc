"""A backup of one catalog version, and what is restored of it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import lance
import lance_namespace
import pytest
from lance_namespace.errors import InternalError, InvalidInputError, ServiceUnavailableError, TableVersionNotFoundError

from lance_core.errors import CorruptFile, NotFound, UnsupportedFeature
from lance_core.format.naming import manifest_name
from lance_core.format.refs import decode_tag
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.storage.wrappers.delegation import WrappedStore
from namespace_server.background.scheduler import JobResult
from namespace_server.directory.backup import BackupRun, Restoration, verify
from namespace_server.directory.backup.records import list_backups
from namespace_server.directory.backup.run import version_at
from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.doctor import Examination
from namespace_server.directory.model.entries import DROPPED, PURGED, PURGING
from namespace_server.directory.recovery.backup_note import BackupNote
from tests.directory.backup.catalogs import (
    BRANCH,
    CLONE,
    DECLARED,
    T,
    U,
    back_up,
    build,
    check_sound,
    content,
    out_of_reach,
    restore,
)
from tests.directory.gc.collecting import collect, forget_history, let_pass
from tests.directory.invariants import check_progress
from tests.directory.tables import QUIET, Ground, rows
from tests.storage.faults import FaultStore


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("backup") / "root").root


@pytest.fixture(scope="module")
def kept(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of that catalog, which is only read."""
    place = tmp_path_factory.mktemp("kept") / "backups"
    back_up(Ground(made), place)
    return place


@pytest.fixture
def ground(made: Path) -> Iterator[Ground]:
    """The catalog at the place where it was made, for a test that changes it."""
    before = made.with_name("before")
    shutil.copytree(made, before, symlinks=True)
    yield Ground(made)
    shutil.rmtree(made)
    before.rename(made)


def small(root: Path) -> Ground:
    """A catalog of one table with two versions."""
    ground = Ground(root)
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.write(T, rows(3, 6))
    ground.catalog.sweep()
    return ground


def findings(root: Path) -> set[str]:
    return {each.code for each in Examination(LocalStore(root, "none"), sleep=lambda _seconds: None).examine().findings}


def sizes(place: Path) -> dict[str, int]:
    return {str(path.relative_to(place)): path.stat().st_size for path in place.rglob("*") if path.is_file()}


def test_a_catalog_is_restored_elsewhere(made: Path, kept: Path, tmp_path: Path) -> None:
    ground = Ground(made)
    expected = content(ground)
    assert len(expected.versions) == 10
    restored = restore(kept, tmp_path / "other")
    with out_of_reach(ground):
        assert content(restored) == expected
        check_sound(tmp_path / "other")
    manifests = list(restored.root.rglob("*.manifest"))
    assert len(manifests) == 11
    assert not [path for path in manifests if str(made).encode() in path.read_bytes()]
    table = restored.root / restored.location(T)
    tag = decode_tag((table / "_refs/tags/branched.json").read_bytes())
    manifest = table / f"tree/{BRANCH}/_versions" / manifest_name(tag.version)
    assert tag.manifest_size == manifest.stat().st_size  # its base paths are longer or shorter than before
    [backup_id] = list_backups(LocalStore(kept))
    assert verify(LocalStore(kept)).problems == ()
    snapshot = restored.catalog.snapshot()
    before = ground.catalog.snapshot(snapshot.version)
    assert snapshot.timestamp_ms == before.timestamp_ms
    assert snapshot.collector.settings == {"gc.dropped.window": "400d"}
    assert [pin.name for pin in before.pins()] == [f"backup-{backup_id}", "p"]
    assert snapshot.pins() == []
    records = {each.batch_uuid: each for each in snapshot.records()}
    assert len(records) > 10
    assert records.keys() == {each.batch_uuid for each in before.records()}
    [tombstone] = [each for each in before.records() if each.state == DROPPED]
    assert records[tombstone.batch_uuid].state == PURGING


def test_the_restored_catalog_goes_on(kept: Path, tmp_path: Path) -> None:
    restored = restore(kept, tmp_path / "other")
    version = restored.catalog.snapshot().version
    restored.batch(restored.transaction(T, rows(30, 33)), restored.transaction(CLONE, rows(30, 33)))
    branch = restored.open(T).checkout_version((BRANCH, None))
    branch.delete("id = 5")
    restored.read("list_table_versions", id=T, branch=BRANCH)
    assert restored.head(T, BRANCH) == 6
    assert restored.catalog.snapshot().version == version + 2
    assert content(restored, restored.catalog.snapshot(version)) != content(restored)
    restored.call("drop_table", id=DECLARED)
    restored.catalog.sweep()
    check_progress(tmp_path / "other", cleaned=True)
    assert findings(tmp_path / "other") == set()


def test_files_of_a_dropped_table_stay_as_long_as_its_clone(tmp_path: Path) -> None:
    """Of the dropped table the restored catalog has what the clone names; with the clone that goes, too."""
    ground = small(tmp_path / "root")
    place = str(ground.root / ground.location(T))
    ground.namespace.change("clone_table", {"id": CLONE, "source_location": place})
    ground.call("drop_table", id=T, purge=True)
    back_up(ground, tmp_path / "backup")
    restored = restore(tmp_path / "backup", tmp_path / "other")
    shutil.rmtree(ground.root)
    assert findings(restored.root) == set()
    source = restored.root / Path(place).name
    for _ in range(2):
        let_pass(restored)
        collect(restored.again())
        assert restored.again().ids(CLONE) == [0, 1, 2, 3, 4, 5]
    restored.call("drop_table", id=CLONE, purge=True)
    restored.catalog.sweep()
    for _ in range(2):
        let_pass(restored)
        forget_history(restored)
        collect(restored.again())
    assert not source.exists()
    assert {each.state for each in restored.again().catalog.snapshot().records() if each.state != "closed"} == {PURGED}


def test_no_version_below_the_restored_one_is_answered(made: Path, kept: Path, tmp_path: Path) -> None:
    restored = restore(kept, tmp_path / "other")
    version = restored.catalog.snapshot().version
    with pytest.raises(TableVersionNotFoundError):
        restored.catalog.snapshot(version - 1)
    [entry] = restored.catalog.table.history(10)
    [before] = Ground(made).catalog.table.history(1, version + 1)
    assert (entry.version, entry.batches, entry.outline) == (before.version, before.batches, before.outline)
    assert len(entry.batches) == 1


def test_a_second_backup_copies_new_files_only(ground: Ground, tmp_path: Path) -> None:
    first = back_up(ground, tmp_path / "backups")
    before = sizes(tmp_path / "backups")
    ground.write(U, rows(3, 6))
    ground.catalog.sweep()
    root, store = (
        CountingStore(LocalStore(ground.root, "none")),
        CountingStore(LocalStore(tmp_path / "backups", "none")),
    )
    second = back_up(Ground(ground.root, root), store)
    after = sizes(tmp_path / "backups")
    new = {key: size for key, size in after.items() if key not in before}
    assert {key: size for key, size in after.items() if key in before} == before
    written = {key: size for key, size in new.items() if key.startswith(("files/", "manifests/"))}
    assert second.written == sum(written.values())
    location = ground.location(U)
    of_table = [key for key in written if key.startswith(f"files/{location}/")]
    assert sorted(key.split("/")[2] for key in of_table) == ["_transactions", "data"]
    assert second.written < first.written / 2
    tables = [each for each in root.cost.by_verb if each not in {"find", "list", "head"}]
    assert root.cost.by_verb["get"] + root.cost.by_verb["get_range"] <= 4 * len(written) + 10, tables
    assert back_up(ground, tmp_path / "backups").record.tables == second.record.tables


def test_a_version_and_a_time(ground: Ground, tmp_path: Path) -> None:
    earlier = ground.catalog.snapshot()
    expected = content(ground)
    ground.write(U, rows(3, 6))
    ground.catalog.sweep()
    done = back_up(ground, tmp_path / "backups", earlier.version)
    assert done.record.catalog_version == earlier.version
    assert version_at(ground.again().catalog, earlier.timestamp_ms) == earlier.version
    assert version_at(ground.again().catalog, earlier.timestamp_ms - 1) < earlier.version
    with pytest.raises(TableVersionNotFoundError, match="at or before 1970"):
        version_at(ground.again().catalog, 1)
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert content(restored) == expected
    with pytest.raises(TableVersionNotFoundError):
        back_up(ground, tmp_path / "backups", 10**6)


def test_a_tag_that_moved_is_in_the_next_backup(ground: Ground, tmp_path: Path) -> None:
    """Nothing else changed: no version, no file."""
    first = back_up(ground, tmp_path / "backups").record
    ground.namespace.change("update_table_tag", {"id": T, "tag": "second", "version": 3})
    second = back_up(ground, tmp_path / "backups").record
    tags = [
        content(restore(tmp_path / "backups", tmp_path / each.id, each.id)).references[tuple(T)][0]["second"]
        for each in (first, second)
    ]
    assert tags == [(None, 2), (None, 3)]


def test_an_unchanged_table_is_not_read(made: Path, tmp_path: Path) -> None:
    """Of a changed one, only what no inventory has."""
    ground = Ground(made)
    back_up(ground, tmp_path / "backups")
    root = FaultStore(LocalStore(made, "none"))
    calls: list[str] = []
    root.before(lambda verb, path: calls.append(path) if verb in {"get", "get_range", "find"} else None)
    back_up(Ground(made, root), tmp_path / "backups")
    tables = [path for path in calls if not path.startswith(("__manifest", "_staging"))]
    assert tables
    assert all("/_refs/" in path for path in tables)
    shutil.rmtree(tmp_path / "backups/tables" / ground.location(U))
    inventories = tmp_path / "backups/tables" / ground.location(T)
    [inventory] = inventories.iterdir()
    inventory.rename(inventories / "0.json")  # that of another state
    calls.clear()
    back_up(Ground(made, root), tmp_path / "backups")
    assert [path for path in calls if path.startswith(f"{ground.location(T)}/data")] == []
    assert [path for path in calls if path.startswith(f"{ground.location(U)}/data")]


def test_references_of_later_versions_are_left_out(tmp_path: Path) -> None:
    """Tags and branches have no history: those that the version has no version for would lead nowhere."""
    ground = small(tmp_path / "root")
    earlier = ground.catalog.snapshot().version
    ground.namespace.change("create_table_tag", {"id": T, "tag": "before", "version": 1})
    ground.write(T, rows(6, 9))
    ground.namespace.change("create_table_tag", {"id": T, "tag": "after", "version": 3})
    ground.call("create_table_branch", id=T, name=BRANCH, from_version=2)
    done = back_up(ground, tmp_path / "backups", earlier)
    [left_out] = done.record.left_out
    assert left_out == (
        f"{ground.location(T)}/_refs/tags/after.json",
        "names version 3, which is not part of the backup",
    )
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert content(restored).references[tuple(T)] == ({"before": (None, 1)}, {})
    assert findings(tmp_path / "other") == set()


def test_the_newest_versions_alone(made: Path, tmp_path: Path) -> None:
    ground = Ground(made)
    back_up(ground, tmp_path / "backups", heads=True)
    restored = restore(tmp_path / "backups", tmp_path / "other")
    every, found = content(ground), content(restored)
    assert found.versions.keys() < every.versions.keys()
    assert all(found.versions[key] == every.versions[key] for key in found.versions)
    assert [version for table, branch, version in found.versions if table == tuple(T) and branch is None] == [2, 4, 5]
    assert found.references == every.references
    assert findings(tmp_path / "other") == set()


def test_while_batches_are_committed(tmp_path: Path) -> None:
    """Each batch appends the same rows to two tables; what is restored is the version, whole."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    for table in (T, U):
        ground.make_table(*table)
    stop = threading.Event()

    servers = [ground.again(), ground.again()]

    def commit(number: int) -> None:
        own, start = servers[number % 2], 1_000 * (number + 1)
        while not stop.is_set():
            start += 1
            own.batch(own.transaction(T, rows(start, start + 1)), own.transaction(U, rows(start, start + 1)))

    writers = [threading.Thread(target=commit, args=(number,)) for number in range(16)]
    for each in writers:
        each.start()
    try:
        done = [back_up(ground, tmp_path / "backups") for _ in range(3)]
    finally:
        stop.set()
        for each in writers:
            each.join()
    assert len({each.record.catalog_version for each in done}) == 3
    for number, each in enumerate(done):
        restored = restore(tmp_path / "backups", tmp_path / f"other{number}", each.record.id)
        then = ground.catalog.snapshot(each.record.catalog_version)
        assert content(restored) == content(ground, then)
        assert restored.ids(T) == restored.ids(U)
        assert findings(restored.root) == set()
    assert verify(LocalStore(tmp_path / "backups")).problems == ()


def test_a_batch_at_each_call_of_a_backup(tmp_path: Path) -> None:
    ground = small(tmp_path / "root")
    ground.make_table(*U)
    faults = FaultStore(LocalStore(ground.root, "none"))
    other, number = ground.again(), [100]

    def commit(_verb: str, _path: str) -> None:
        number[0] += 1
        start = number[0]
        other.batch(other.transaction(T, rows(start, start + 1)), other.transaction(U, rows(start, start + 1)))

    catalog = Ground(ground.root, faults).catalog
    catalog.snapshot()
    remove = faults.before(
        lambda verb, path: None if path.startswith(("__manifest", "_staging")) else commit(verb, path)
    )
    done = BackupRun(catalog, LocalStore(tmp_path / "backups", "none")).make()
    remove()
    assert number[0] > 108
    other.catalog.sweep()
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert content(restored) == content(other, other.catalog.snapshot(done.record.catalog_version))
    assert restored.ids(T)[3:] == [3, 4, 5, *restored.ids(U)[3:]]


def test_a_table_and_a_branch_are_dropped_meanwhile(ground: Ground, tmp_path: Path) -> None:
    """The files of the table stay while the version is pinned; those of the branch go at once."""
    expected = content(ground)
    faults = FaultStore(LocalStore(ground.root, "none"))
    dropped: list[str] = []

    def drop(_verb: str, path: str) -> None:
        if path.startswith(ground.location(T)) and not dropped:
            dropped.append(path)
            other = ground.again()
            other.call("drop_table", id=U)
            other.namespace.change("delete_table_tag", {"id": T, "tag": "branched"})
            other.namespace.change("delete_table_branch", {"id": T, "name": BRANCH})
            other.catalog.sweep()

    faults.before(drop)
    done = BackupRun(Ground(ground.root, faults).catalog, LocalStore(tmp_path / "backups", "none")).make()
    assert [each.what for each in done.record.left_out] == [f"g$t version {n} of branch {BRANCH}" for n in (4, 5)]
    found = content(restore(tmp_path / "backups", tmp_path / "other"))
    assert found.versions.keys() == {key for key in expected.versions if key[1] is None}
    assert all(found.versions[key] == expected.versions[key] for key in found.versions)
    assert findings(tmp_path / "other") == set()


def test_two_backups_at_once(ground: Ground, tmp_path: Path) -> None:
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(back_up(ground, tmp_path / "backups").record.id)) for _ in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(done) == list_backups(LocalStore(tmp_path / "backups"))
    assert len(done) == 2
    assert verify(LocalStore(tmp_path / "backups")).problems == ()
    assert [pin.name for pin in ground.again().catalog.snapshot().pins()] == ["p"]


def test_a_branch_that_was_made_again_has_names_twice(ground: Ground, tmp_path: Path) -> None:
    """Its manifests have the names of those of the deleted branch; each backup has its own."""
    ground.namespace.change("delete_table_tag", {"id": T, "tag": "branched"})
    first, before = back_up(ground, tmp_path / "backups").record, content(ground)
    ground.namespace.change("delete_table_branch", {"id": T, "name": BRANCH})
    ground.call("create_table_branch", id=T, name=BRANCH, from_version=4)
    branch = ground.open(T).checkout_version((BRANCH, None))
    branch.delete("id = 6")
    ground.read("list_table_versions", id=T, branch=BRANCH)
    ground.catalog.sweep()
    second, after = back_up(ground, tmp_path / "backups").record, content(ground)
    assert before.versions.keys() == after.versions.keys()
    assert before != after
    assert content(restore(tmp_path / "backups", tmp_path / "one", first.id)) == before
    assert content(restore(tmp_path / "backups", tmp_path / "two", second.id)) == after


def test_a_version_that_a_client_removed_is_left_out_and_named(ground: Ground, tmp_path: Path) -> None:
    ground.write(U, rows(10, 13), "overwrite")
    ground.catalog.sweep()
    lance.dataset(str(ground.root / ground.location(U))).cleanup_old_versions(retain_versions=1)
    done = back_up(ground, tmp_path / "backups")
    [left_out] = done.record.left_out
    assert left_out.what == "g$u version 1"
    assert "expected its manifest, found none" in left_out.reason
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert [version["version"] for version in restored.read("list_table_versions", id=U)["versions"]] == [2]
    assert restored.ids(U) == [10, 11, 12]


def test_a_newest_version_that_is_not_whole_ends_the_backup(ground: Ground, tmp_path: Path) -> None:
    data = next((ground.root / ground.location(U) / "data").iterdir())
    data.unlink()
    with pytest.raises(CorruptFile, match=rf"table g\$u: version 1, the newest of its branch: .*{data.name}"):
        back_up(ground, tmp_path / "backups")
    assert list_backups(LocalStore(tmp_path / "backups")) == []
    assert [pin.name for pin in ground.again().catalog.snapshot().pins()] == ["p"]


def test_what_lies_outside_of_the_root(ground: Ground, tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 3), str(tmp_path / "far"))
    lance.dataset(str(tmp_path / "far")).shallow_clone(str(ground.root / "near"), 1)
    options = CatalogOptions(sweep_interval=QUIET.sweep_interval, allowed_locations=(str(tmp_path),))
    Ground(ground.root, options=options).call("register_table", id=["g", "near"], location="near")
    with pytest.raises(UnsupportedFeature, match=f"table at near: .* outside of the root, below {tmp_path}/far"):
        back_up(ground, tmp_path / "backups")
    done = back_up(ground, tmp_path / "backups", keep_outside=True)
    assert done.record.outside == (str(tmp_path / "far"),)
    assert back_up(ground, tmp_path / "backups", keep_outside=True).record.tables == done.record.tables
    with pytest.raises(UnsupportedFeature):  # also where the destination knows the table
        back_up(ground, tmp_path / "backups")
    restored = restore(tmp_path / "backups", tmp_path / "other", done.record.id)
    assert restored.ids(["g", "near"]) == [0, 1, 2]


def test_destinations_that_are_refused(made: Path, tmp_path: Path) -> None:
    ground = Ground(made)
    for place in (made, made / "backups", made.parent):
        with pytest.raises(InvalidInputError, match="expected a destination apart from the root"):
            back_up(ground, place)
    lance_namespace.connect("dir", {"root": str(tmp_path / "stock")}).create_namespace(
        lance_namespace.CreateNamespaceRequest(id=["g"])
    )
    with pytest.raises(InvalidInputError, match="expected a managed catalog: run `lance-namespace adopt`"):
        back_up(Ground(tmp_path / "stock"), tmp_path / "backups")
    with pytest.raises(InvalidInputError, match="expected a catalog, found none"):
        back_up(Ground(tmp_path / "mistyped"), tmp_path / "backups")
    assert not (tmp_path / "backups").exists()


def test_roots_that_are_refused(kept: Path, tmp_path: Path) -> None:
    root = tmp_path / "other"
    with pytest.raises(NotFound, match="expected a backup, found no record of one"):
        restore(tmp_path / "nothing", root)
    with pytest.raises(NotFound, match="expected backup x, found 2"):
        restore(kept, root, "x")
    root.mkdir()
    (root / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"expected an empty root, found notes\.txt"):
        restore(kept, root)
    assert [path.name for path in root.iterdir()] == ["notes.txt"]
    (root / "notes.txt").unlink()
    restore(kept, root)
    with pytest.raises(InvalidInputError, match="expected an empty root, found "):
        restore(kept, root)


def test_no_catalog_is_made_where_one_is_restored(kept: Path, tmp_path: Path) -> None:
    """Not by a server that opened the empty root before, nor by one that starts during the restoration."""
    root = tmp_path / "other"
    early = Ground(root)
    assert early.catalog.snapshot().version == 0
    faults = FaultStore(LocalStore(root, "none"))
    met = list[str]()

    def serve(_verb: str, path: str) -> None:
        if (
            path.startswith(("_staging/restore", "__manifest/_versions/1"))
            or not (root / "_staging/restore.json").exists()
        ):
            return
        if not (root / "__manifest/_versions").exists():
            for ground in (early, Ground(root)):
                with pytest.raises(ServiceUnavailableError, match="a backup is being restored at this root"):
                    ground.make_namespace("mine")
            met.append(path)

    faults.before(serve)
    done = Restoration(LocalStore(kept, "none"), faults).restore()
    assert len(met) > 40
    assert Ground(root).catalog.snapshot().version == done.record.catalog_version
    early.make_namespace("mine")  # its first commit meets the restored catalog
    assert (
        Ground(root).catalog.snapshot().version == early.catalog.snapshot().version == done.record.catalog_version + 1
    )
    assert early.catalog.snapshot().table(tuple(T)) is not None


class BeforeTheTables(WrappedStore):
    """The store of a server that looked at the root before anything was restored there."""

    def directories(self, prefix: str) -> Sequence[str]:
        return () if not prefix else super().directories(prefix)


def test_a_server_that_looks_later_makes_no_catalog_beside_restored_tables(kept: Path, tmp_path: Path) -> None:
    root, told = tmp_path / "other", list[str]()
    faults = FaultStore(LocalStore(root, "none"))

    def make(_verb: str, path: str) -> None:
        if path.startswith("__manifest/data") and not told:
            claim = (root / "_staging/restore.json").read_bytes()
            (root / "_staging/restore.json").unlink()
            with pytest.raises(InternalError) as refused:
                Ground(root).make_namespace("mine")
            (root / "_staging/restore.json").write_bytes(claim)
            told.append(str(refused.value))

    faults.before(make)
    Restoration(LocalStore(kept, "none"), faults).restore()
    assert "expected the catalog that made the table at" in told[0]
    assert Ground(root).catalog.snapshot().namespace(("mine",)) is None


def test_a_catalog_that_came_first_stays(kept: Path, tmp_path: Path) -> None:
    """A server that looked before the claim makes a catalog at the last moment."""
    root, made = tmp_path / "other", list[int]()
    faults = FaultStore(LocalStore(root, "none"))

    def make(_verb: str, path: str) -> None:
        if path.startswith("__manifest/data") and not made:
            claim = (root / "_staging/restore.json").read_bytes()
            (root / "_staging/restore.json").unlink()
            Ground(root, BeforeTheTables(LocalStore(root, "none"))).make_namespace("mine")
            (root / "_staging/restore.json").write_bytes(claim)
            made.append(1)

    faults.before(make)
    with pytest.raises(InvalidInputError, match="expected no catalog, found one at version 1"):
        Restoration(LocalStore(kept, "none"), faults).restore()
    assert Ground(root).catalog.snapshot().namespace(("mine",)) is not None


def test_the_time_of_a_backup_is_noted_at_the_root_for_its_servers(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    assert ground.catalog.state().backed_up_at is None
    assert ground.catalog.recovery.run(threading.Event()) is JobResult.DONE
    done = BackupRun(ground.catalog, LocalStore(tmp_path / "backups", "none")).make()

    later = ground.again()
    later.catalog.snapshot()
    assert later.catalog.state().backed_up_at is None  # no look at storage
    assert later.catalog.recovery.run(threading.Event()) is JobResult.DONE
    assert later.catalog.state().backed_up_at == done.record.created_ms / 1_000
    note = later.catalog.backup_note
    note.write(1.0)  # an older one that ends later
    assert BackupNote(later.catalog.store)._find() == done.record.created_ms / 1_000
    later.catalog.store.put("_staging/backup.json", b"{}")
    assert BackupNote(later.catalog.store)._find() is None
