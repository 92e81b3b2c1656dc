"""A whole catalog on a store that has nothing exclusive: an external manifest store decides.

The batch of the crash tests dies at every write to the objects and to the rows. At any time the directory alone, read
without the manifest store, is a sound catalog of what was visible so far.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lance
import pytest
from lance_namespace import connect
from lance_namespace.errors import ServiceUnavailableError

from lance_core.commit.handlers import ExternalManifestHandler, ManifestStore
from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.store.manifests import open_manifest_store
from tests.directory.invariants import check_always, check_progress, check_quiet
from tests.directory.scene import Scene, Try, make_scene
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore, Write
from tests.storage.limited import PlainStore
from tests.storage.manifests import FaultyManifestStore, MemoryManifestStore

CRASHES = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]


def plain(root: Path) -> PlainStore:
    return PlainStore(LocalStore(root, "none"))


@dataclass(frozen=True)
class OverRows(Try):
    """The batch on a root whose commits are decided by rows."""

    manifests: MemoryManifestStore = field(default_factory=MemoryManifestStore)

    def open(self) -> Ground:
        return self.over(plain(self.root), self.manifests)

    def over(self, objects: ObjectStore, manifests: ManifestStore) -> Ground:
        return Ground(self.root, ExternalManifestHandler(manifests).over(objects))

    def broken(self) -> tuple[Ground, FaultStore, FaultyManifestStore]:
        objects, manifests = FaultStore(plain(self.root)), FaultyManifestStore(self.manifests)
        return self.over(objects, manifests), objects, manifests

    def finish_and_check(self, *, applied: bool) -> None:
        """What died is finished by the sweep of another process; then the directory needs no rows any more."""
        check_always(self.root, since=self.before)
        assert self.applied() == applied
        self.recover()
        check_quiet(self.root, since=self.before)
        assert self.applied() == applied
        self.send(self.open())
        self.check_applied_once()
        self.recover()
        assert [row for row in self.manifests.rows if row.staged] == []
        check_quiet(self.root, since=self.before)
        check_progress(self.root)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def fresh(scene: Scene, tmp_path: Path) -> Callable[[str], OverRows]:
    """Roots, made without a manifest store, for the batch to be tried on over one."""

    def copy(name: str) -> OverRows:
        made = scene.copy(tmp_path / name)
        return OverRows(made.root, made.operations, made.before)

    return copy


def is_name(write: Write) -> bool:
    """A write of one of the four steps."""
    return "/_versions/" in write.path and ("manifest-" in write.path or write.path.endswith(".manifest"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", CRASHES)
def test_a_crash_at_any_write_of_a_step(fresh: Callable[[str], OverRows], fault: Fault) -> None:
    dry = fresh("dry")
    ground, objects, _ = dry.broken()
    dry.send(ground)
    steps = [write for write in objects.writes if is_name(write)]
    assert [write.verb for write in steps] == ["put", "put", "delete"] * 5, "the flip and four promotions"
    flip = steps[1].number
    for write in steps:
        attempt = fresh(f"{write.number}")
        ground, objects, _ = attempt.broken()
        objects.fail(fault, nth=write.number)
        with pytest.raises(Crashed):
            attempt.send(ground)
        attempt.finish_and_check(applied=write.number >= flip)


@pytest.mark.slow
@pytest.mark.parametrize("fault", CRASHES)
@pytest.mark.parametrize("verb", ["put_if_absent", "replace"])
def test_a_crash_at_any_row(fresh: Callable[[str], OverRows], fault: Fault, verb: str) -> None:
    for nth in range(4):
        attempt = fresh(f"{nth}")
        ground, _, manifests = attempt.broken()
        manifests.fail(fault, verb, after=nth)
        with pytest.raises(Crashed):
            attempt.send(ground)
        first = nth == 0 and verb == "put_if_absent"
        attempt.finish_and_check(applied=not first or fault is Fault.CRASH_AFTER)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED])
@pytest.mark.parametrize("verb", ["put_if_absent", "replace"])
def test_a_row_without_an_answer(fresh: Callable[[str], OverRows], fault: Fault, verb: str) -> None:
    for nth in range(4):
        attempt = fresh(f"{nth}")
        ground, _, manifests = attempt.broken()
        manifests.fail(fault, verb, after=nth)
        attempt.send(ground)
        manifests.deliver()
        attempt.finish_and_check(applied=True)


def test_a_manifest_store_that_says_nothing_leaves_the_batch_open(
    fresh: Callable[[str], OverRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_core.commit.slot.LONGEST_WAIT", 0.001)
    attempt = fresh("root")
    ground, _, manifests = attempt.broken()
    manifests.fail(Fault.DELAYED, "put_if_absent", times=99)
    with pytest.raises(BatchUnknown):
        attempt.send(ground)
    assert not attempt.applied()
    manifests.deliver()
    attempt.finish_and_check(applied=True)


def test_without_the_manifest_store_nothing_is_answered(fresh: Callable[[str], OverRows]) -> None:
    attempt = fresh("root")
    ground, _, manifests = attempt.broken()
    manifests.unreachable = True
    with pytest.raises((StorageError, ServiceUnavailableError)):
        attempt.send(ground)
    with pytest.raises(StorageError, match="does not answer"):
        ground.read("list_tables", id=["g"])
    manifests.unreachable = False
    attempt.send(ground)
    attempt.finish_and_check(applied=True)


# in a database


@pytest.fixture
def served(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], DirectoryNamespace]]:
    """Opens processes on a root that has no exclusive writes; the database decides."""
    monkeypatch.setattr("namespace_server.directory.properties.open_store", lambda root, *_, **__: plain(Path(root)))
    opened: list[DirectoryNamespace] = []

    def open_namespace() -> DirectoryNamespace:
        properties = {"root": str(tmp_path / "root"), "manifest_store": database, "sweep_interval_seconds": "0"}
        namespace = connect("namespace_server.directory.namespace.DirectoryNamespace", properties)
        assert isinstance(namespace, DirectoryNamespace)
        opened.append(namespace)
        return namespace

    yield open_namespace
    for namespace in opened:
        namespace.close()


def ground_of(namespace: DirectoryNamespace, root: Path) -> Ground:
    made = Ground(root)
    made.namespace = namespace
    return made


def test_a_catalog_lives_on_rows(served: Callable[[], DirectoryNamespace], tmp_path: Path, database: str) -> None:
    """Namespaces, stock writers, batches, tags, branches, drops: then the directory alone is the same catalog."""
    root = tmp_path / "root"
    ground = ground_of(served(), root)
    ground.make_namespace("g")
    person, knows = ground.make_table("g", "person"), ground.make_table("g", "knows")
    ground.write(person, rows(3, 5))
    ground.batch(
        {"assert_table_version": {"id": knows, "version": 1}},
        ground.stage(person, rows(5, 6)),
        ground.transaction(knows, rows(3, 4)),
        {"declare_table": {"id": ["g", "later"]}},
    )
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=person)
    dataset.tags.create("release", 2)
    dataset.create_branch("dev")
    on_branch = dataset.checkout_version(("dev", None))
    lance.write_dataset(rows(6, 7), on_branch, mode="append")
    ground.call("rename_table", id=knows, new_table_name="likes", new_namespace_id=["g"])
    ground.make_table("g", "gone")
    ground.call("drop_table", id=["g", "gone"])

    other = ground_of(served(), root)
    assert other.read("list_tables", id=["g"])["tables"] == ["later", "likes", "person"]
    assert (other.head(person), other.head(person, "dev"), other.head(["g", "likes"])) == (3, 4, 2)
    assert other.ids(person) == [0, 1, 2, 3, 4, 5]
    other.unmanaged_append(person, rows(9, 10))
    other.write(person, rows(10, 11))
    assert other.head(person) == 5, "a unmanaged commit is adopted"
    other.call("drop_table", id=["g", "later"])
    other.catalog.sweep()
    check_quiet(root)

    rows_left = open_manifest_store(database)
    assert rows_left.staged("file://", below=True) == rows_left.staged(f"file://{root}", below=True) == []
    assert rows_left.get(f"file://{root}/__manifest", 1) is not None
    rows_left.close()
    copy = shutil.copytree(root, tmp_path / "copy")
    assert lance.dataset(str(copy / other.location(person))).tags.list()["release"]["version"] == 2
    bare = Ground(copy)
    assert bare.read("list_tables", id=["g"])["tables"] == ["likes", "person"]
    bare.write(["g", "likes"], rows(4, 5))
    assert bare.ids(["g", "likes"]) == [0, 1, 2, 3, 4]


def test_two_processes_share_a_catalog(served: Callable[[], DirectoryNamespace], tmp_path: Path) -> None:
    """Each commits batches over the same two tables; both count, and every catalog version has one winner."""
    root = tmp_path / "root"
    grounds = [ground_of(served(), root) for _ in range(2)]
    grounds[0].make_namespace("g")
    tables = [grounds[0].make_table("g", name) for name in ("person", "knows")]
    failures: list[BaseException] = []

    def work(ground: Ground, start: int) -> None:
        try:
            for number in range(start, start + 15):
                operations = [ground.transaction(table, rows(number, number + 1)) for table in tables]
                while True:
                    try:
                        ground.batch(*operations)
                    except ServiceUnavailableError:
                        continue
                    break
        except BaseException as error:  # noqa: BLE001 - reported below, in the thread that can fail the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=item) for item in zip(grounds, (100, 200), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for table in tables:
        assert grounds[0].ids(table) == [0, 1, 2, *range(100, 115), *range(200, 215)]
    grounds[1].catalog.sweep()
    grounds[0].catalog.sweep()
    check_quiet(root, step=10)


def test_a_schema_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="run: lance-namespace migrate --manifest-store sqlite:///"):
        DirectoryNamespace(root=str(tmp_path), manifest_store=f"sqlite:///{tmp_path}/m.db")
    assert list(tmp_path.iterdir()) == []
