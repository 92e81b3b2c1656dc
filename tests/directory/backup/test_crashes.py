"""A backup and a restoration die at each write, and the same command completes them."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.errors import StorageUnknown
from lance_core.storage.local import LocalStore
from namespace_server.directory.backup import BackupRun, Restoration, verify
from namespace_server.directory.backup.records import list_backups
from namespace_server.directory.doctor import Examination
from tests.directory.backup.catalogs import BRANCH, T, back_up, content, out_of_reach, restore
from tests.directory.tables import Ground, rows
from tests.steps import SOME_OR_EVERY, numbers
from tests.storage.faults import Crashed, Fault, FaultStore

DEATHS = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
SILENCE = [Fault.LOST_ANSWER, Fault.LOST_REQUEST]


@dataclass(frozen=True)
class Scene:
    """A catalog with a branch and a tag, what it holds, a backup of it, and the writes that each way makes."""

    ground: Ground
    backups: Path
    to_destination: int
    to_root: int


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    place = tmp_path_factory.mktemp("crashes")
    ground = Ground(place / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.namespace.data.change("delete_from_table", {"id": T, "predicate": "id = 1"})
    ground.namespace.change("create_table_tag", {"id": T, "tag": "first", "version": 1})
    ground.call("create_table_branch", id=T, name=BRANCH, from_version=2)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    destination, root = (FaultStore(LocalStore(place / name, "none")) for name in ("backups", "other"))
    BackupRun(ground.again().catalog, destination).make()
    Restoration(destination, root).restore()
    return Scene(ground, place / "backups", len(destination.writes), len(root.writes))


def test_there_are_enough_writes(scene: Scene) -> None:
    assert scene.to_destination >= 13
    assert scene.to_root >= 14


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", DEATHS)
def test_a_backup_dies_at_each_write_to_the_destination(scene: Scene, tmp_path: Path, fault: Fault, step: int) -> None:
    for nth in itertools.count(step=step):
        place = tmp_path / f"backups{nth}"
        store = FaultStore(LocalStore(place, "none"))
        store.fail(fault, nth=nth)
        try:
            BackupRun(scene.ground.again().catalog, store).make()
        except Crashed:
            recorded = list_backups(LocalStore(place))
            assert recorded == [] or (fault is Fault.CRASH_AFTER and store.writes[nth].path.startswith("backups/"))
            again = back_up(scene.ground, place)
            assert list_backups(LocalStore(place)) == [*recorded, again.record.id]
            assert verify(LocalStore(place)).problems == ()
        else:
            break
    assert nth >= scene.to_destination - 2


def test_what_was_copied_is_not_copied_again(scene: Scene, tmp_path: Path) -> None:
    """Each file has the inode of the first run after the second, also those of a table without an inventory."""
    store = FaultStore(LocalStore(tmp_path, "none"))
    location = scene.ground.location(T)
    store.fail(Fault.CRASH_BEFORE, when=lambda write: write.path.startswith(f"tables/{location}"))
    with pytest.raises(Crashed):
        BackupRun(scene.ground.again().catalog, store).make()
    copied = {path: path.stat().st_ino for part in ("files", "manifests") for path in (tmp_path / part).rglob("*")}
    back_up(scene.ground, tmp_path)
    assert {path: path.stat().st_ino for path in copied} == copied


@pytest.mark.parametrize("fault", DEATHS)
def test_a_backup_dies_at_each_write_to_the_catalog(scene: Scene, tmp_path: Path, fault: Fault) -> None:
    """The pin that it leaves ends by itself; the next run has its own."""
    root = scene.ground.root
    for nth in itertools.count():
        faults = FaultStore(LocalStore(root, "none"))
        faults.fail(fault, nth=nth)
        try:
            BackupRun(Ground(root, faults).catalog, LocalStore(tmp_path, "none")).make()
        except Crashed:
            left = {pin.name for pin in Ground(root).catalog.snapshot().pins()}
            back_up(Ground(root), tmp_path)
            pins = Ground(root).catalog.snapshot().pins()
            assert {pin.name for pin in pins} == left
            assert all(pin.until_ms for pin in pins)
        else:
            break
    assert nth >= 4
    assert verify(LocalStore(tmp_path)).problems == ()


@SOME_OR_EVERY
@pytest.mark.parametrize("fault", DEATHS)
def test_a_restoration_dies_at_each_write(scene: Scene, tmp_path: Path, fault: Fault, step: int) -> None:
    """Until it is complete no catalog is there, and none can be made; then it is all there."""
    expected = content(scene.ground)
    with out_of_reach(scene.ground):
        for nth in numbers(scene.to_root, step):
            root = tmp_path / f"root{nth}"
            store = FaultStore(LocalStore(root, "none"))
            store.fail(fault, nth=nth)
            with pytest.raises(Crashed):
                Restoration(LocalStore(scene.backups, "none"), store).restore()
            _check_half(root)
            if any(root.glob("*")) and not (root / "_staging/restore.json").exists():
                continue  # it died after its last write
            restored = restore(scene.backups, root)
            assert content(restored) == expected
            assert Examination(LocalStore(root, "none"), sleep=lambda _seconds: None).examine().findings == ()


def _check_half(root: Path) -> None:
    if (root / "_staging/restore.json").exists() and not (root / "__manifest/_versions").exists():
        with pytest.raises(ServiceUnavailableError, match="a backup is being restored"):
            Ground(root).make_namespace("mine")
    else:
        snapshot = Ground(root).catalog.snapshot()
        assert snapshot.version == 0 or snapshot.table(tuple(T)) is not None


@pytest.mark.parametrize("fault", SILENCE)
def test_answers_are_lost(scene: Scene, tmp_path: Path, fault: Fault) -> None:
    """Each write once: it is made again, or the command says that it is not known and is repeated."""
    for nth in range(max(scene.to_destination, scene.to_root)):
        place, root = tmp_path / f"backups{nth}", tmp_path / f"root{nth}"
        destination, target = (FaultStore(LocalStore(path, "none")) for path in (place, root))
        for store in (destination, target):
            store.fail(fault, nth=nth)
        try:
            BackupRun(scene.ground.again().catalog, destination).make()
        except StorageUnknown:
            back_up(scene.ground, place)
        try:
            Restoration(LocalStore(place, "none"), target).restore()
        except StorageUnknown:
            if (root / "_staging/restore.json").exists():
                restore(place, root)
        assert Ground(root).ids(T) == [0, 2]
        assert Ground(root).catalog.snapshot().table(tuple(T)) is not None
        assert not (root / "_staging/restore.json").exists()


def test_the_catalog_does_not_say_whether_it_is_pinned(scene: Scene, tmp_path: Path) -> None:
    """The pin is set again."""
    faults = FaultStore(LocalStore(scene.ground.root, "none"))
    faults.fail(Fault.LOST_REQUEST, when=lambda write: write.path.startswith("__manifest/_versions"), times=8)
    done = BackupRun(Ground(scene.ground.root, faults).catalog, LocalStore(tmp_path, "none")).make()
    assert list_backups(LocalStore(tmp_path)) == [done.record.id]


def test_the_power_fails(scene: Scene, tmp_path: Path) -> None:
    """Files that were not durable yet have their sizes and no content: the next run writes them again."""
    store = FaultStore(LocalStore(tmp_path, "none"))

    def fail(verb: str, _path: str) -> None:
        if verb == "sync" and any(write.path.startswith("tables/") for write in store.writes):
            raise Crashed("the power fails")

    store.before(fail)
    with pytest.raises(Crashed):
        BackupRun(scene.ground.again().catalog, store).make()
    durable = {path for _, path in store.synced}
    lost = {write.path for write in store.writes if write.path.startswith(("files/", "manifests/"))} - durable
    assert {path.partition("/")[0] for path in lost} == {"files", "manifests"}
    for path in lost:
        (tmp_path / path).write_bytes(bytes((tmp_path / path).stat().st_size))
    back_up(scene.ground, tmp_path)
    assert verify(LocalStore(tmp_path)).problems == ()


def test_files_are_durable_before_their_inventory(scene: Scene, tmp_path: Path) -> None:
    store = FaultStore(LocalStore(tmp_path, "none"))
    BackupRun(scene.ground.again().catalog, store).make()
    inventories = [write.number for write in store.writes if write.path.startswith("tables/")]
    copies = [write for write in store.writes if write.path.startswith(("files/", "manifests/"))]
    assert len(inventories) == 2
    for write in copies:
        following = min(number for number in inventories if number > write.number)
        assert any(path == write.path and write.number < at <= following for at, path in store.synced), write


def test_files_are_durable_before_the_catalog(scene: Scene, tmp_path: Path) -> None:
    store = FaultStore(LocalStore(tmp_path, "none"))
    Restoration(LocalStore(scene.backups, "none"), store).restore()
    [commit] = [write.number for write in store.writes if write.path.startswith("__manifest/_versions")]
    copies = {write.path for write in store.writes if not write.path.startswith(("__manifest", "_staging"))}
    assert copies <= {path for at, path in store.synced if at <= commit}


def test_another_backup_is_being_restored(scene: Scene, tmp_path: Path) -> None:
    shutil.copytree(scene.backups, tmp_path / "backups")
    [first] = list_backups(LocalStore(scene.backups))
    store = FaultStore(LocalStore(tmp_path / "root", "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: "_versions" in write.path)
    with pytest.raises(Crashed):
        Restoration(LocalStore(tmp_path / "backups", "none"), store).restore(first)
    back_up(scene.ground, tmp_path / "backups")
    with pytest.raises(Exception, match=f"backup {first} is being restored there: complete that, or empty the root"):
        restore(tmp_path / "backups", tmp_path / "root")
    assert restore(tmp_path / "backups", tmp_path / "root", first).ids(T) == [0, 2]


def test_rows_that_are_appended_meanwhile_are_in_the_next_backup(scene: Scene, tmp_path: Path) -> None:
    """A run that died is continued at a newer version."""
    shutil.copytree(scene.ground.root, tmp_path / "root")
    ground = Ground(tmp_path / "root")
    ground.namespace.change("delete_table_branch", {"id": T, "name": BRANCH})  # its base path leads to the other root
    store = FaultStore(LocalStore(tmp_path / "backups", "none"))
    store.fail(Fault.CRASH_BEFORE, when=lambda write: write.path.startswith("tables/"))
    with pytest.raises(Crashed):
        BackupRun(ground.again().catalog, store).make()
    ground.write(T, rows(7, 9))
    ground.catalog.sweep()
    back_up(ground, tmp_path / "backups")
    assert restore(tmp_path / "backups", tmp_path / "other").ids(T) == [0, 2, 7, 8]
