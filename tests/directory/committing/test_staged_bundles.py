"""On a bucket a flip stages its manifests in one object, which goes with the last open record (N5, M7)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.committing import staged_bundles
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.orphans import OrphanReport, find_orphans
from tests.directory.collection.fences import fence
from tests.directory.invariants import check_always, check_quiet
from tests.directory.tables import QUIET, Ground, rows
from tests.emulators import Emulator
from tests.storage.bucketlike import BucketLike
from tests.storage.faults import Crashed, Fault, FaultStore, Write

T, U = ["g", "t"], ["g", "u"]


class Scene:
    """Tables T and U at version 1, and processes on them whose store is asked as a bucket is."""

    def __init__(self, root: Path, *, collected: bool = True) -> None:
        self.root = root
        ground = Ground(root)
        ground.make_namespace("g")
        for table in (T, U):
            ground.make_table(*table)
        if collected:
            fence(ground)
        settle(ground)
        self.store = self.bucket()
        self.ground = Ground(root, self.store)

    def bucket(self) -> FaultStore:
        return FaultStore(BucketLike(LocalStore(self.root, "none")))

    def other(self) -> Ground:
        """Another process."""
        return Ground(self.root, self.bucket())

    def appends(self, ground: Ground) -> list[dict[str, Any]]:
        return [ground.transaction(table, rows(3, 6)) for table in (T, U)]

    def commit_two_batches(self) -> None:
        """A batch for each table, committed by one flip."""
        bodies = [{"operations": [operation]} for operation in self.appends(self.ground)]
        calls = [self.ground.namespace.prepare("batch_commit_tables", body) for body in bodies]
        for answer in self.ground.namespace.commit(calls):
            if isinstance(answer, BaseException):
                raise answer

    def keep_unpromoted(self, *tables: list[str]) -> Callable[[], None]:
        """No process of the scene's own can promote these; returns a function that ends that."""
        places = tuple(f"{self.ground.location(table)}/_versions/" for table in tables)

        def refuse(verb: str, path: str) -> None:
            if verb in {"publish", "put_if_absent"} and path.startswith(places):
                raise StorageError("refused")

        return self.store.before(refuse)

    def staged(self) -> list[str]:
        """What is staged, by the ends of the names."""
        names = (path.name for path in (self.root / "_staging").iterdir() if path.is_file())
        return sorted(name.partition(".")[2] for name in names if name != "newest.json")

    def bundle(self) -> Path:
        [found] = (self.root / "_staging").glob("*.manifests")
        return found

    def report(self) -> OrphanReport:
        """What nothing names, a month later."""
        later = datetime.now(UTC) + timedelta(days=30)
        return find_orphans(self.bucket(), now=later, older_than=timedelta(days=7))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "root")


def settle(ground: Ground) -> None:
    for _ in range(2):
        ground.catalog.sweep()
    ground.catalog.flush_record_maintenance()


def test_a_catalog_that_was_never_collected_has_none(tmp_path: Path) -> None:
    """Servers of the release before may still commit to it, and read none."""
    scene = Scene(tmp_path / "root", collected=False)
    scene.commit_two_batches()
    assert [name.rpartition("-")[2] for name in scene.staged()] == ["2", "2"]

    settle(scene.ground)

    assert scene.staged() == []
    check_quiet(scene.root)


def is_promotion(write: Write) -> bool:
    return write.verb == "publish"


def test_one_object_has_the_manifests_of_all_batches_of_a_flip_and_goes_with_their_records(scene: Scene) -> None:
    scene.commit_two_batches()
    assert scene.staged() == ["manifests"]
    assert scene.ground.ids(T) == scene.ground.ids(U) == [*range(6)]

    scene.ground.catalog.sweep()

    assert scene.staged() == []
    check_quiet(scene.root)


def test_another_process_promotes_from_it_what_a_dead_one_committed(scene: Scene) -> None:
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))
    check_always(scene.root)
    other = scene.other()
    assert other.canonical(T) == [1]

    settle(other)

    assert other.ids(T) == other.ids(U) == [*range(6)]
    assert scene.staged() == []
    other.open(T).validate()
    check_quiet(scene.root)


def test_a_process_reads_it_once_for_all_tables(scene: Scene) -> None:
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))
    store = scene.bucket()
    read = list[str]()
    store.before(lambda verb, path: read.append(path) if verb == "get" and path.startswith("_staging/") else None)

    other = Ground(scene.root, store)
    other.batch(*(other.transaction(table, rows(6, 7), 2) for table in (T, U)))

    assert len([path for path in read if path.endswith(".manifests")]) == 1
    assert other.ids(T) == other.ids(U) == [*range(7)]


def test_a_catalog_that_was_copied_to_a_directory_is_finished_there(scene: Scene) -> None:
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))

    local = Ground(scene.root)
    assert local.read("describe_table_version", id=T)["version"]["version"] == 2
    settle(local)

    assert local.ids(T) == local.ids(U) == [*range(6)]
    check_quiet(scene.root)


def test_it_stays_while_the_record_of_one_batch_is_open(scene: Scene) -> None:
    """The process that closes the last one removes it, also if it is another one."""
    end = scene.keep_unpromoted(U)
    scene.commit_two_batches()
    for _ in range(3):
        settle(scene.ground)
    assert "manifests" in scene.staged()
    assert [record.state for record in scene.ground.catalog.snapshot().records()].count("open") == 1
    check_always(scene.root)

    other = scene.other()
    settle(other)

    assert scene.staged() == []
    assert scene.ground.ids(U) == [*range(6)]
    end()
    settle(scene.ground)
    check_quiet(scene.root)


def test_what_a_client_is_told_before_promotion_is_an_object_of_its_own(scene: Scene) -> None:
    """Stock clients read the manifest at the path that they are told (M3)."""
    end = scene.keep_unpromoted(T)
    [answer, _] = scene.ground.batch(*scene.appends(scene.ground))["results"]
    version = scene.ground.read("describe_table_version", id=T)["version"]

    assert answer["commit_transaction"]["version"]["manifest_path"] == version["manifest_path"]
    told = Path("/", version["manifest_path"].removeprefix("file://"))
    assert told.parent == scene.root / "_staging"
    bundled = staged_bundles.StagedBundles(scene.bucket()).find(f"_staging/{told.name}")
    assert told.read_bytes() == bundled

    end()
    settle(scene.ground)
    assert scene.staged() == []
    check_quiet(scene.root)


def test_a_description_does_not_fail_where_it_cannot_be_given_one(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.keep_unpromoted(T)
    scene.ground.batch(*scene.appends(scene.ground))
    staged = [path for path in (scene.root / "_staging").iterdir() if path.name.endswith("-2")]

    def refuse(verb: str, path: str) -> None:
        if verb == "put" and path.startswith("_staging/"):
            raise StorageError("refused")

    scene.store.before(refuse)
    version = scene.ground.read("describe_table_version", id=T)["version"]

    assert version["manifest_path"].endswith(staged[0].name)
    assert "is not at the staged path that is answered" in caplog.text


def test_manifests_without_room_in_it_are_staged_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.ground.batch(*scene.appends(scene.ground))
    size = scene.ground.catalog.snapshot().head(tuple(T)).size  # type: ignore[union-attr]
    settle(scene.ground)
    monkeypatch.setattr(staged_bundles, "_MOST_BYTES", size + size // 2)
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*(scene.ground.transaction(table, rows(6, 9)) for table in (T, U)))
    assert [name.rpartition(".")[2] for name in scene.staged()] == ["1-3", "manifests"]
    check_always(scene.root)

    other = scene.other()
    settle(other)

    assert other.ids(T) == other.ids(U) == [*range(9)]
    assert scene.staged() == []


@pytest.mark.parametrize("damage", [b"", b"ARROW1 and nothing else", None])
def test_a_damaged_one_publishes_nothing(scene: Scene, damage: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    """With None it has another manifest than the row names."""
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))
    whole = scene.bundle().read_bytes()
    paths = staged_bundles._decode("", whole)
    swapped = dict(zip(paths, reversed(list(paths.values())), strict=True))
    scene.bundle().write_bytes(staged_bundles._encode(list(swapped.items())) if damage is None else damage)

    other = scene.other()
    with caplog.at_level(logging.ERROR):
        settle(other)

    assert other.canonical(T) == other.canonical(U) == [1]
    assert "is damaged" in caplog.text or "is not the manifest that was committed" in caplog.text
    scene.bundle().write_bytes(whole)
    settle(scene.other())
    assert other.ids(T) == other.ids(U) == [*range(6)]
    check_quiet(scene.root)


def test_that_of_a_lost_attempt_goes(scene: Scene) -> None:
    operations = scene.appends(scene.ground)
    other, waiting = scene.other(), [True]

    def overtake(verb: str, path: str) -> None:
        if waiting and verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            waiting.clear()
            other.make_namespace("other")

    scene.store.before(overtake)
    scene.ground.batch(*operations)
    assert scene.staged() == ["manifests"] * 2

    scene.ground.catalog.sweep()

    assert scene.staged() == []
    check_quiet(scene.root)


def test_that_of_a_dropped_table_stays_until_it_comes_back(scene: Scene) -> None:
    """It has the only copy of the version that could not be promoted before the drop."""
    scene.keep_unpromoted(T)
    scene.commit_two_batches()
    scene.ground.call("drop_table", id=T)
    other = scene.other()
    for _ in range(2):
        settle(other)
    assert "manifests" in scene.staged()
    assert [orphan.kind for orphan in scene.report().orphans].count("staged manifests") == 0

    other.batch({"undrop_table": {"id": T}})
    settle(other)

    assert other.ids(T) == [*range(6)]
    assert scene.staged() == []


def test_one_that_no_open_record_names_is_an_orphan(scene: Scene) -> None:
    scene.store.fail(Fault.CRASH_BEFORE, when=lambda write: write.path.startswith("__manifest/_versions/"))
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))

    [found] = [orphan for orphan in scene.report().orphans if orphan.path.startswith("_staging/")]

    assert (scene.root / found.path, found.kind) == (scene.bundle(), "staged manifests")
    assert found.reason == "staged, and not committed"


def test_what_its_manifests_name_is_needed(scene: Scene) -> None:
    scene.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
    with pytest.raises(Crashed):
        scene.ground.batch(*scene.appends(scene.ground))

    report = scene.report()

    assert not report.not_judged
    assert [orphan.path for orphan in report.orphans if "/data/" in orphan.path or "_staging/" in orphan.path] == []


def test_on_a_real_bucket_stock_pylance_reads_what_was_promoted_from_it(moto_server: Emulator, tmp_path: Path) -> None:
    scene = Scene(tmp_path / "root")
    uri, options = moto_server.new_root(), moto_server.storage_options
    with closing(open_store(uri, options)) as inner:
        for path in scene.root.rglob("*"):
            if path.is_file():
                inner.put(str(path.relative_to(scene.root)), path.read_bytes())
        operations = scene.appends(scene.ground)
        for location in (scene.ground.location(T), scene.ground.location(U)):
            for path in (scene.root / location / "data").iterdir():
                inner.put(f"{location}/data/{path.name}", path.read_bytes())
        store = FaultStore(inner)
        store.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            DirectoryNamespace(catalog=StoredCatalog(store, QUIET)).commit_batch({"operations": operations})
        assert [meta.path.rpartition(".")[2] for meta in inner.list("_staging") if meta.path.count("/") == 1] == [
            "manifests",
            "json",
        ]

        catalog = StoredCatalog(inner, QUIET)
        for _ in range(2):
            catalog.sweep()
        catalog.flush_record_maintenance()
        catalog.sweep()

        for table in (T, U):
            dataset = lance.dataset(f"{uri}/{scene.ground.location(table)}", storage_options=options)
            assert sorted(dataset.to_table()["id"].to_pylist()) == [*range(6)]
        assert [meta.path for meta in inner.list("_staging") if meta.path.endswith(".manifests")] == []
