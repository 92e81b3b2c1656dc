"""On a bucket a flip stages its manifests in one object, which goes with the last open record (N5, M2)."""

from __future__ import annotations

import itertools
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from lance_namespace.errors import InvalidInputError

from lance_core.data import schema_fields
from lance_core.errors import StorageError
from lance_core.proto import lance_table_pb2 as table_pb2
from lance_core.proto import staged_manifests_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.gc.report import MarkResult
from namespace_server.directory.manifests import staged_bundles
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.gc.horizons import move_horizon
from tests.directory.gc.unreferenced import find_orphans
from tests.directory.invariants import check_always, check_quiet
from tests.directory.tables import QUIET, Ground, as_operation, rows
from tests.emulators import Emulator
from tests.staged_fragments import stage_fragments
from tests.storage.bucketlike import BucketLike
from tests.storage.faults import Crashed, Fault, FaultStore, Write

T, U = ["g", "t"], ["g", "u"]
ONE = "00000000-0000-4000-8000-000000000001"


class Scene:
    """Tables T and U at version 1, and processes on them whose store is asked as a bucket is."""

    def __init__(self, root: Path, *, collected: bool = True) -> None:
        self.root = root
        ground = Ground(root)
        ground.make_namespace("g")
        for table in (T, U):
            ground.make_table(*table)
        if collected:
            move_horizon(ground)
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
        for answer in self.ground.namespace.commit_calls(calls):
            if isinstance(answer, BaseException):
                raise answer

    def location(self, table: list[str]) -> str:
        return Ground(self.root).location(table)

    def keep_unpromoted(self, *tables: list[str]) -> Callable[[], None]:
        """No process of the scene's own can promote these; returns a function that ends that."""
        return refuse_promotion(self.store, *(f"{self.location(table)}/" for table in tables))

    def staged(self) -> list[str]:
        """What is staged, by the ends of the names."""
        names = (path.name for path in (self.root / "_staging").iterdir() if path.is_file())
        return sorted(name.partition(".")[2] for name in names if name != "newest.json")

    def bundle(self) -> Path:
        [found] = (self.root / "_staging").glob("*.manifests")
        return found

    def parts(self) -> dict[str, bytes]:
        """The manifests in the bundle, by their staged paths."""
        message = pb.StagedManifests.FromString(self.bundle().read_bytes())
        return {part.path: part.manifest for part in message.parts}

    def crash_before_promotion(self, *operations: dict[str, Any]) -> None:
        """Commit a batch, by default `appends`, in a process that dies right after the flip."""
        self.store.fail(Fault.CRASH_BEFORE, when=is_promotion)
        with pytest.raises(Crashed):
            self.ground.batch(*(operations or self.appends(self.ground)))

    def refusing(self, *tables: list[str]) -> Ground:
        """Another process, which cannot promote these tables, or any if none are given."""
        store = self.bucket()
        refuse_promotion(store, *(f"{self.location(table)}/" for table in tables))
        return Ground(self.root, store)

    def report(self, store: FaultStore | None = None) -> MarkResult:
        """What nothing names, a month later."""
        later = datetime.now(UTC) + timedelta(days=30)
        return find_orphans(store or self.bucket(), now=later, older_than=timedelta(days=7))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "root")


def refuse_promotion(store: FaultStore, *places: str) -> Callable[[], None]:
    """Canonical names below these places, or of all tables, are refused until the answer is called."""

    def refuse(verb: str, path: str) -> None:
        name = "/_versions/" in path and not path.startswith("__manifest/")
        if verb in {"publish", "put_if_absent"} and name and path.startswith(places or ("",)):
            raise StorageError("refused")

    return store.before(refuse)


def settle(ground: Ground) -> None:
    for _ in range(2):
        ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()


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
    scene.crash_before_promotion()
    check_always(scene.root)
    other = scene.other()
    assert other.canonical(T) == [1]

    settle(other)

    assert other.ids(T) == other.ids(U) == [*range(6)]
    assert scene.staged() == []
    other.open(T).validate()
    check_quiet(scene.root)


def test_a_process_reads_it_once_for_all_tables(scene: Scene) -> None:
    scene.crash_before_promotion()
    store = scene.bucket()
    read = list[str]()
    store.before(lambda verb, path: read.append(path) if verb == "get" and path.startswith("_staging/") else None)

    other = Ground(scene.root, store)
    other.batch(*(other.transaction(table, rows(6, 7), 2) for table in (T, U)))

    assert len([path for path in read if path.endswith(".manifests")]) == 1
    assert other.ids(T) == other.ids(U) == [*range(7)]


def test_a_catalog_that_was_copied_to_a_directory_is_finished_there(scene: Scene) -> None:
    scene.crash_before_promotion()

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
    assert told.read_bytes() == scene.parts()[f"_staging/{told.name}"]

    end()
    settle(scene.ground)
    assert scene.staged() == []
    check_quiet(scene.root)


@pytest.mark.parametrize("error", [StorageError("refused"), RuntimeError("can't start new thread")])
def test_a_description_does_not_fail_where_it_cannot_be_given_one(
    scene: Scene, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    scene.keep_unpromoted(T)
    scene.ground.batch(*scene.appends(scene.ground))
    staged = [path for path in (scene.root / "_staging").iterdir() if path.name.endswith("-2")]

    def refuse(verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.startswith("_staging/"):
            raise error

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


@pytest.mark.parametrize("damage", ["empty", "cut off", "another message", "not its rows"])
def test_a_damaged_one_publishes_nothing(scene: Scene, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is read again once it was put back, and a copy that is staged alone does as well."""
    scene.crash_before_promotion()
    whole, parts = scene.bundle().read_bytes(), scene.parts()
    swapped = zip(parts, reversed(parts.values()), strict=True)
    damaged = {
        "empty": b"",
        "cut off": whole[:-1],
        "another message": b"\xff" * 40,
        "not its rows": b"".join(data for _, data in staged_bundles.with_bundle(swapped)),
    }[damage]
    scene.bundle().write_bytes(damaged)

    other = scene.other()
    with caplog.at_level(logging.ERROR):
        settle(other)

    assert other.canonical(T) == other.canonical(U) == [1]
    expected = ["is damaged", "is not the manifest that was committed", "no manifest of"]
    assert any(text in caplog.text for text in expected)
    path = next(iter(parts))
    (scene.root / path).write_bytes(parts[path])
    settle(other)
    assert sorted([other.canonical(T), other.canonical(U)]) == [[1], [1, 2]]
    scene.bundle().write_bytes(whole)
    settle(scene.other())
    assert other.ids(T) == other.ids(U) == [*range(6)]
    check_quiet(scene.root)


def test_one_with_a_wrong_byte_has_manifests_or_is_damaged() -> None:
    [(_, whole)] = staged_bundles.with_bundle([(f"_staging/{ONE}.{ONE}.{n}-1", bytes([n] * 50)) for n in range(3)])
    for at in range(len(whole)):
        for value in (0, 0x7F, 0xFF, whole[at] ^ 1):
            with suppress(DecodeError):
                staged_bundles._decode(whole[:at] + bytes([value]) + whole[at + 1 :])


def test_several_threads_read_it_once(scene: Scene) -> None:
    scene.crash_before_promotion()
    read = list[str]()
    store = scene.bucket()

    def read_slowly(_verb: str, path: str) -> None:
        time.sleep(0.05)
        read.append(path)

    store.before(read_slowly)
    bundles = staged_bundles.StagedPaths(store)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda path: next(bundles.copies(path)), [*scene.parts()] * 4))

    assert found == [*scene.parts().values()] * 4
    assert len(read) == 1


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


def test_it_goes_where_another_server_flipped_before_the_closing_was_proved(scene: Scene) -> None:
    scene.ground.batch(*scene.appends(scene.ground))
    other, steps = scene.other(), ["wait"]

    def overtake(verb: str, path: str) -> None:
        if steps == ["sent"]:
            steps.clear()
            other.make_namespace("other")
        elif steps and verb == "put_if_absent" and path.startswith("__manifest/_versions/"):
            steps[:] = ["sent"]

    scene.store.before(overtake)
    settle(scene.ground)
    settle(scene.ground)

    assert steps == []
    assert not list(scene.ground.catalog.snapshot().open_records())
    assert scene.staged() == []


def test_it_goes_where_a_first_removal_failed(scene: Scene) -> None:
    scene.ground.batch(*scene.appends(scene.ground))
    failures = ["one"]

    def refuse(verb: str, path: str) -> None:
        if failures and verb == "delete" and path.endswith(".manifests"):
            failures.clear()
            raise StorageError("refused")

    scene.store.before(refuse)
    settle(scene.ground)
    assert failures == []
    scene.ground.catalog.sweep()

    assert scene.staged() == []


def test_no_client_stages_under_the_name_of_a_part(scene: Scene) -> None:
    """It would have two manifests, of which one is promoted."""
    scene.crash_before_promotion()
    path = next(iter(scene.parts()))
    other = scene.other()
    request = other.stage(U, rows(6, 9))
    staged = Path("/", request["create_table_version"]["manifest_path"])
    (scene.root / path).write_bytes(staged.read_bytes())
    request["create_table_version"]["manifest_path"] = str(scene.root / path)

    with pytest.raises(InvalidInputError, match="must be a staged manifest"):
        other.batch(request)


def test_another_process_tells_what_a_dead_one_staged(scene: Scene) -> None:
    scene.crash_before_promotion()
    version = scene.refusing().read("describe_table_version", id=T)["version"]

    told = Path("/", version["manifest_path"])
    assert told.read_bytes() == scene.parts()[f"_staging/{told.name}"]


def test_a_copy_that_is_told_does_not_outlive_its_record(scene: Scene) -> None:
    """The process is held before it writes the copy, while another one promotes, closes and clears up."""
    scene.crash_before_promotion()
    held = scene.refusing()
    waiting = ["once"]

    def hold(verb: str, path: str) -> None:
        if waiting and verb == "put_if_absent" and path.startswith("_staging/"):
            waiting.clear()
            settle(scene.other())

    assert isinstance(held.store, FaultStore)
    held.store.before(hold)
    version = held.read("describe_table_version", id=T)["version"]

    assert waiting == []
    assert version["manifest_path"].endswith(f"{2**64 - 3}.manifest")
    assert scene.staged() == []


def test_a_branch_that_only_a_bundle_has_is_not_taken_for_deleted(scene: Scene) -> None:
    uri = str(scene.root / scene.ground.location(T))
    fork = encode_transaction(Clone(uri, 1, None, "dev"), read_version=1, uuid=str(uuid.uuid4()))
    scene.crash_before_promotion(as_operation(T, fork, "dev"))

    other = scene.refusing()
    assert not other.catalog.deleted_branches.is_deleted(other.catalog.snapshot(), (tuple(T), "dev"))
    listed = other.read("list_table_versions", id=T, branch="dev")

    assert [version["version"] for version in listed["versions"]] == [1]
    settle(scene.other())
    assert scene.other().head(T, "dev") == 1


def test_a_table_whose_version_only_a_bundle_has_is_dropped_and_comes_back(scene: Scene) -> None:
    scene.crash_before_promotion()
    refusing = scene.refusing(T)
    refusing.call("drop_table", id=T)
    for _ in range(2):
        settle(refusing)
    assert list(scene.root.glob("_staging/*.manifests"))

    other = scene.other()
    other.batch({"undrop_table": {"id": T}})
    settle(other)

    assert other.ids(T) == other.ids(U) == [*range(6)]
    assert scene.staged() == []


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
    scene.crash_before_promotion()

    report = scene.report()

    assert not report.not_judged
    assert [orphan.path for orphan in report.orphans if "/data/" in orphan.path or "_staging/" in orphan.path] == []


def test_a_search_knows_what_was_committed_while_it_looked(scene: Scene) -> None:
    started = list[str]()

    def commit(verb: str, path: str) -> None:
        if not started and verb == "list" and path.startswith(scene.ground.location(T)):
            started.append(path)
            scene.crash_before_promotion()

    store = scene.bucket()
    store.before(commit)
    report = scene.report(store)

    assert started
    assert [orphan.path for orphan in report.orphans if "manifests" in orphan.path or "/data/" in orphan.path] == []


def test_a_search_finds_nothing_that_is_promoted_from_it_meanwhile(scene: Scene, tmp_path: Path) -> None:
    """At each of its calls; version 2 has rows that version 3 has not."""
    ground = scene.ground
    append = ground.transaction(T, rows(3, 6))
    overwrite = as_operation(T, pb_overwrite(ground, T, rows(7, 9)))
    scene.crash_before_promotion(append, overwrite)
    kept = tmp_path / "kept"
    shutil.copytree(scene.root, kept)
    calls, number = 1, 0
    while number < calls:
        shutil.rmtree(scene.root)
        shutil.copytree(kept, scene.root)
        store, seen = scene.bucket(), itertools.count()

        def promote(_verb: str, _path: str, seen: Iterator[int] = seen, at: int = number) -> None:
            if next(seen) == at:
                settle(scene.other())

        store.before(promote)
        report = scene.report(store)
        calls, number = next(seen), number + 1
        assert [orphan.path for orphan in report.orphans if "/data/" in orphan.path] == [], f"call {number}"
        assert not report.not_judged


def pb_overwrite(ground: Ground, table: list[str], data: pa.Table) -> table_pb2.Transaction:
    """An Overwrite of a table at version 1."""
    fragments = stage_fragments(data, str(ground.root / ground.location(table)), mode="append")
    message = table_pb2.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    message.overwrite.fragments.extend(fragments)
    message.overwrite.schema.extend(schema_fields(data.schema))
    return message


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
        catalog.flush_record_housekeeping()
        catalog.sweep()

        for table in (T, U):
            dataset = lance.dataset(f"{uri}/{scene.ground.location(table)}", storage_options=options)
            assert sorted(dataset.to_table()["id"].to_pylist()) == [*range(6)]
        assert [meta.path for meta in inner.list("_staging") if meta.path.endswith(".manifests")] == []
