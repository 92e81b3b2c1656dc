"""What is listed beside other writers, after crashes, and where something cannot be understood."""

from __future__ import annotations

import copy
import errno
import itertools
import os
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pytest
from lance.fragment import write_fragments
from lance_namespace import CreateNamespaceRequest
from lance_namespace.errors import TableNotFoundError

from lance_core.cleanup import survey
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.compaction.scratch import Scratch
from lance_core.errors import StorageError
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import NamingScheme, manifest_name
from lance_core.storage.local import LocalStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.versions import find_latest, read_manifest
from namespace_server.directory.gc.report import MarkResult
from namespace_server.directory.model.errors import BatchConflict, BatchUnknown
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.breaking import is_promotion
from tests.directory.gc.unreferenced import (
    check_exact,
    contents,
    expected,
    find_orphans,
    list_orphans,
    name_of,
    needs,
    remove,
    versions,
)
from tests.directory.scene import Scene, Try, make_scene
from tests.directory.tables import Ground, rows
from tests.emulators import Emulator
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.manifests import MemoryManifestStore

T, U = ["g", "t"], ["g", "u"]
STAGED = "_staging/00000000-0000-4000-8000-000000000001.00000000-0000-4000-8000-000000000002.0-4"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def two(ground: Ground) -> Ground:
    """A catalog with the tables `g.t`, of three versions, and `g.u`; nothing is left of any write."""
    ground.make_table(*T)
    ground.make_table(*U)
    ground.write(T, rows(3, 6))
    lance.dataset(namespace_client=ground.namespace, table_id=T).delete("id = 1")
    ground.catalog.sweep()
    assert list_orphans(ground.root).orphans == ()
    return ground


def uri(ground: Ground, table: list[str]) -> Path:
    return ground.root / ground.location(table)


def leave_fragment(ground: Ground, table: list[str]) -> str:
    """A data file that no transaction names; its key."""
    [fragment] = write_fragments(rows(70, 71), str(uri(ground, table)), mode="append")
    [file] = fragment.files
    return f"{ground.location(table)}/data/{file.path}"


def clean_up(ground: Ground) -> None:
    """What the clean-up of a client leaves that died after manifests: it removes transaction files first."""
    kept = ground.catalog.snapshot().head(tuple(T))
    assert kept is not None
    for file in (uri(ground, T) / "_transactions").glob("*.txn"):
        if not file.stem.endswith(kept.transaction_uuid):
            file.unlink()
    for file in (uri(ground, T) / "_versions").glob("*.manifest"):
        if 2**64 - 1 - int(file.stem) < ground.head(T):
            file.unlink()


def paths(ground: Ground) -> list[str]:
    report = list_orphans(ground.root)
    assert report.not_judged == {}
    return [orphan.path for orphan in report.orphans]


def test_lost_files_are_found_among_many(two: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are listed before there are many."""
    lost = [leave_fragment(two, T) for _ in range(3)]
    files = sum(path.is_file() for path in uri(two, T).rglob("*"))
    monkeypatch.setattr(survey, "_MANY", files - 1)
    assert sorted(paths(two)) == sorted(lost)


@pytest.mark.parametrize("moves", [3, 99])
def test_a_manifest_that_has_another_name_at_each_reading(two: Ground, moves: int) -> None:
    """What it names is known once it is read, or the table is not judged."""
    two.write(T, rows(9, 10), "overwrite")  # version 3 alone names its deletion file
    two.catalog.sweep()
    names = [uri(two, T) / "_versions" / manifest_name(3, scheme) for scheme in (NamingScheme.V2, NamingScheme.V1)]
    left = iter(range(moves))
    store = FaultStore(LocalStore(two.root, "none"))

    def move(verb: str, path: str) -> None:
        there, free = names if names[0].exists() else reversed(names)
        if verb != "list" and two.root / path == there and next(left, None) is not None:
            there.rename(free)

    store.before(move)
    report = find_orphans(store, now=datetime.now(UTC) + timedelta(days=30), older_than=timedelta(days=7))
    assert report.orphans == ()
    assert list(report.not_judged) == ([two.location(T)] if moves == 99 else [])


def test_a_staged_manifest_that_is_committed_after_it_was_read(two: Ground) -> None:
    """It stays the only name of its version: its promotion is lost."""
    request = two.stage(T, rows(6, 7))
    staged = two.store.relative_path(request["create_table_version"]["manifest_path"])
    lossy, store = (FaultStore(LocalStore(two.root, "none")) for _ in range(2))
    lossy.fail(Fault.LOST_REQUEST, when=is_promotion, times=99)
    read: list[str] = []

    def commit(verb: str, path: str) -> None:
        if path == staged:
            read.append(verb)
        elif read and two.head(T) == 3:
            two.again(lossy).batch(request)

    store.before(commit)
    report = find_orphans(store, now=datetime.now(UTC) + timedelta(days=30), older_than=timedelta(days=7))
    assert two.head(T) == 4
    assert (report.orphans, report.not_judged) == ((), {})


# -- crashes, lost answers and rejected batches


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_batch_dies_at_each_of_its_writes(scene: Scene, tmp_path: Path, fault: Fault) -> None:
    """Before recovery nothing is listed that a committed row needs; after it exactly what is left over."""
    left = set()
    for write in scene.writes:
        attempt = scene.copy(tmp_path / str(write.number))
        ground, store = attempt.faulty()
        store.fail(fault, nth=write.number)
        with pytest.raises(Crashed):
            attempt.send(ground)
        before = list_orphans(attempt.root)
        assert before.not_judged == {}
        early = {orphan.path for orphan in before.orphans}
        attempt.recover()
        report = check_exact(attempt.root)
        left |= {orphan.kind for orphan in report.orphans}
        if attempt.applied():
            assert early <= {orphan.path for orphan in report.orphans}, write
        remove(attempt.root, report)
    assert left >= {"data file", "transaction file", "staged manifest", "deletion file"}


def test_an_outcome_that_is_unknown_and_later_committed_leaves_nothing(two: Ground) -> None:
    transaction = two.transaction(T, rows(10, 12))
    store = FaultStore(LocalStore(two.root, "none"))
    store.fail(Fault.DELAYED, when=lambda write: write.path.startswith("__manifest/_versions/"), times=100)
    with pytest.raises(BatchUnknown):
        two.again(store).batch(transaction)
    young = list_orphans(two.root, later=timedelta(0))
    assert young.orphans == ()
    store.deliver()
    two.catalog.sweep()
    assert check_exact(two.root).orphans == ()
    assert two.ids(T) == [0, 2, 3, 4, 5, 10, 11]


def test_a_rejected_batch_leaves_its_data_and_what_was_staged(two: Ground) -> None:
    operations = [two.transaction(T, rows(10, 12)), two.stage(U, rows(3, 4))]
    with pytest.raises(BatchConflict):
        two.batch(*operations, {"assert_table_version": {"id": U, "version": 9}})
    report = check_exact(two.root)
    assert {(orphan.table, orphan.kind, orphan.reason) for orphan in report.orphans} >= {
        ("g$t", "data file", "named by no manifest"),
        ("g$u", "staged manifest", "staged, and not committed"),
        ("g$u", "data file", "named only by a staged manifest that was not committed"),
    }
    remove(two.root, report)


def test_a_row_that_is_not_promoted_needs_its_files(two: Ground) -> None:
    transaction = two.transaction(T, rows(10, 12))
    store = FaultStore(LocalStore(two.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    with pytest.raises(Crashed):
        two.again(store).batch(transaction)
    assert two.canonical(T) == [1, 2, 3]
    path = leave_fragment(two, T)
    report = list_orphans(two.root)
    assert [orphan.path for orphan in report.orphans] == [path]
    assert report.not_judged == {}


def test_a_quarantined_manifest_needs_its_files(two: Ground) -> None:
    two.unmanaged_append(T, rows(10, 11))
    key = f"{two.location(T)}/_versions/{2**64 - 1 - 4}.manifest"
    aside = two.root / "_staging" / "foreign" / "00000000-0000-4000-8000-000000000001" / key
    aside.parent.mkdir(parents=True)
    (two.root / key).rename(aside)
    assert paths(two) == []
    aside.write_bytes(b"damaged")
    report = list_orphans(two.root)
    assert report.orphans == ()
    assert list(report.not_judged) == [two.location(T)]
    aside.unlink()
    assert [orphan.kind for orphan in list_orphans(two.root).orphans] == ["transaction file", "data file"]


@pytest.mark.usefixtures("few_or_many")
@pytest.mark.parametrize("is_put_back", [True, False])
def test_a_manifest_that_is_quarantined_or_put_back_meanwhile_needs_its_files(two: Ground, is_put_back: bool) -> None:
    """It moves at each request of the search in turn."""
    two.unmanaged_append(T, rows(10, 11))
    key = two.root / two.location(T) / "_versions" / f"{2**64 - 1 - 4}.manifest"
    aside = two.root / "_staging" / "foreign" / "00000000-0000-4000-8000-000000000001" / key.relative_to(two.root)
    aside.parent.mkdir(parents=True)
    begin, end = (aside, key) if is_put_back else (key, aside)
    if is_put_back:
        key.rename(aside)
    for number in itertools.count():
        store = FaultStore(LocalStore(two.root, "none"))
        requests = _at_request(store, number, partial(begin.rename, end))
        assert look(store).orphans == (), number
        if len(requests) <= number:
            break
        end.rename(begin)
    assert number > 10


def test_a_manifest_of_a_dataset_inside_a_table_needs_its_files(two: Ground) -> None:
    two.unmanaged_append(T, rows(10, 11))
    name = f"{2**64 - 1 - 4}.manifest"
    nested = uri(two, T) / "nested" / "_versions"
    nested.mkdir(parents=True)
    (uri(two, T) / "_versions" / name).rename(nested / name)
    assert paths(two) == []


@pytest.mark.parametrize("at_root", [True, False])
def test_a_clone_of_an_interrupted_compaction(two: Ground, at_root: bool) -> None:
    """While it is young it needs the version that it was made from; then it goes as a whole."""
    location = two.location(T)
    store = two.store if at_root else LocalStore(two.root / location, "none")
    base = location if at_root else ""
    Scratch(store, base, read_manifest(store, find_latest(store, base)), None).__enter__()
    [manifest] = (two.root if at_root else two.root / location).glob("_staging/*/*/_versions/*")
    clone = manifest.parent.parent
    (clone / "data").mkdir()
    (clone / "data" / "x.lance").write_bytes(b"rows")
    lance.dataset(namespace_client=two.namespace, table_id=T).optimize.compact_files()
    two.catalog.sweep()
    clean_up(two)
    old = time.time() - 8 * 86_400
    for path in uri(two, T).rglob("*.*"):
        os.utime(path, (old, old))
    os.utime(manifest, None)
    young = list_orphans(two.root, later=timedelta(0))
    assert "data file" not in {orphan.kind for orphan in young.orphans}
    assert {orphan.kind for orphan in young.young} == {"compaction clone"}
    assert "data file" not in {orphan.kind for orphan in look_from_date_of(manifest, two.root).orphans}
    os.utime(manifest, (old, old))
    os.utime(clone / "data" / "x.lance", (old, old))
    report = list_orphans(two.root, later=timedelta(0))
    left = {(orphan.path, orphan.table) for orphan in report.orphans if "interrupted" in orphan.reason}
    table = None if at_root else "g$t"
    expected_left = {str(file.relative_to(two.root)) for file in clone.rglob("*") if file.is_file()}
    assert left == {(path, table) for path in expected_left}
    assert "data file" in {orphan.kind for orphan in report.orphans}


# -- other writers meanwhile


@pytest.fixture(params=["few", "many"])
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are searched as those with few files, or as those with many."""
    if request.param == "many":
        monkeypatch.setattr(survey, "_MANY", 2)


@pytest.mark.usefixtures("few_or_many")
def test_nothing_is_listed_that_is_committed_before_the_rows_are_read(scene: Scene, tmp_path: Path) -> None:
    """A batch commits, and is promoted, at each request of the search in turn."""
    number, seen = 0, set()
    while True:
        attempt = scene.copy(tmp_path / str(number))
        store = FaultStore(LocalStore(attempt.root, "none"))
        requests = _at_request(store, number, partial(_commit, attempt))
        report = look(store)
        if len(requests) <= number:
            break
        tables = [path for path in attempt.root.iterdir() if path.name not in {"__manifest", "_staging"}]
        needed = {name for table in tables for dataset in versions(table) for name in needs(dataset)}
        listed = {name_of(orphan.path.partition("/")[2]) for orphan in report.orphans}
        seen.add(report.catalog_version > scene.before)
        if report.catalog_version > scene.before:
            assert not listed & needed, number
        number += 1
    assert seen == {True, False}
    assert number > 20


def _at_request(store: FaultStore, number: int, act: Callable[[], object]) -> list[str]:
    """Act before the request with this number. The requests, as they come."""
    requests: list[str] = []

    def arrive(verb: str, path: str) -> None:
        requests.append(f"{verb} {path}")
        if len(requests) == number + 1:
            act()

    store.before(arrive)
    return requests


def _commit(attempt: Try) -> None:
    ground = attempt.open()
    attempt.send(ground)
    ground.catalog.sweep()


def look_from_date_of(path: Path, root: Path) -> MarkResult:
    """The report of a search that judges what is older than this file, whose date is a whole second."""
    second = int(path.stat().st_mtime)
    os.utime(path, (second, second))
    return find_orphans(LocalStore(root, "none"), now=datetime.fromtimestamp(second, UTC), older_than=timedelta(0))


def look(store: ObjectStore) -> MarkResult:
    return find_orphans(store, now=datetime.now(UTC) + timedelta(days=30), older_than=timedelta(days=7))


def test_a_table_that_is_created_meanwhile_is_not_reported(two: Ground) -> None:
    """Its rows are written after the directories were listed, or its row after the rows were read."""
    for number in itertools.count():
        store = FaultStore(LocalStore(two.root, "none"))
        requests = _at_request(store, number, partial(two.make_table, "g", f"v{number}"))
        report = look(store)
        assert (report.unexplained, report.orphans, report.not_judged) == ((), (), {}), number
        if len(requests) <= number or number == 12:
            break


def test_young_files_are_counted_apart(two: Ground) -> None:
    path = leave_fragment(two, T)
    report = list_orphans(two.root, later=timedelta(0))
    assert report.orphans == ()
    assert report.young_by_table["g$t"].files == 1
    old = time.time() - 8 * 86_400
    os.utime(two.root / path, (old, old))
    [orphan] = list_orphans(two.root, later=timedelta(0)).orphans
    assert (orphan.path, orphan.table, orphan.kind) == (path, "g$t", "data file")
    assert orphan.size == (two.root / path).stat().st_size


def test_a_staged_manifest_protects_its_files_while_it_is_young(two: Ground) -> None:
    two.stage(T, rows(10, 12))
    old = time.time() - 8 * 86_400
    for file in uri(two, T).rglob("*"):
        if file.is_file() and ".manifest-" not in file.name:
            os.utime(file, (old, old))
    report = list_orphans(two.root, later=timedelta(0))
    assert report.orphans == ()
    assert [orphan.kind for orphan in report.young] == ["staged manifest"]
    [staged] = uri(two, T).rglob("*.manifest-*")
    assert look_from_date_of(staged, two.root).orphans == ()


# -- what cannot be understood


def test_a_table_with_an_unreadable_manifest_is_not_judged_and_others_are(two: Ground) -> None:
    leave_fragment(two, T)
    other = leave_fragment(two, U)
    broken = next((uri(two, T) / "_versions").glob("*.manifest"))
    broken.write_bytes(broken.read_bytes()[:-3])
    report = list_orphans(two.root)
    assert [orphan.path for orphan in report.orphans] == [other]
    assert broken.name in report.not_judged[two.location(T)]
    assert report.tables == ("g$u",)


def test_a_table_whose_head_is_lost_is_not_judged(two: Ground) -> None:
    (uri(two, U) / "_versions" / f"{2**64 - 2}.manifest").unlink()
    report = list_orphans(two.root)
    assert report.orphans == ()
    assert "version 1 of g$u: expected its manifest" in report.not_judged[two.location(U)]


def test_unknown_names_are_never_orphans(two: Ground) -> None:
    names = ["notes.txt", "data/readme.md", "_versions/x", "tree/dev/data/x.parquet"]
    for name in names:
        file = uri(two, T) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("kept")
    (two.root / "_staging" / "mine").write_text("kept")
    report = list_orphans(two.root)
    assert report.orphans == ()
    assert set(report.unknown) == {"_staging/mine", *(f"{two.location(T)}/{name}" for name in names)}


def test_a_damaged_staged_manifest_stops_nothing(two: Ground) -> None:
    path = leave_fragment(two, T)
    (two.root / STAGED).write_bytes(b"damaged")
    report = list_orphans(two.root)
    assert [orphan.path for orphan in report.orphans] == [path]
    assert report.unknown == (STAGED,)
    assert report.not_judged == {}


def test_a_staged_manifest_with_unknown_features_stops_all_tables_while_it_is_young(two: Ground) -> None:
    """No name tells which table it was staged for, nor how it names files."""
    path = leave_fragment(two, T)
    head = read_manifest(two.store, find_latest(two.store, two.location(T)))
    manifest = copy.deepcopy(head.manifest)
    manifest.version += 1
    manifest.writer_feature_flags |= 1 << 40
    staged = two.root / STAGED
    staged.write_bytes(encode_manifest_file(manifest, head.transaction, head.indices))
    old = time.time() - 8 * 86_400
    os.utime(two.root / path, (old, old))
    young = list_orphans(two.root, later=timedelta(0))
    assert young.orphans == ()
    assert young.not_judged.keys() == {two.location(T), two.location(U)}
    os.utime(staged, (old, old))
    report = list_orphans(two.root, later=timedelta(0))
    assert [orphan.path for orphan in report.orphans] == [path]
    assert report.unknown == (STAGED,)


def test_a_published_manifest_that_is_damaged_stops_its_table(two: Ground) -> None:
    transaction = two.transaction(T, rows(10, 12))
    store = FaultStore(LocalStore(two.root, "none"))
    store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.startswith("__manifest/_versions/"))
    with pytest.raises(Crashed):
        two.again(store).batch(transaction)
    leave_fragment(two, T)
    path = leave_fragment(two, U)
    [staged] = [file for file in (two.root / "_staging").glob("*-*") if file.is_file()]
    staged.write_bytes(b"damaged")
    report = list_orphans(two.root)
    assert [orphan.path for orphan in report.orphans] == [path]
    assert list(report.not_judged) == [two.location(T)]


def test_places_that_belong_to_no_table_of_the_catalog(two: Ground) -> None:
    lance.write_dataset(rows(0, 1), str(two.root / "mine"))
    two.call("register_table", id=["g", "mine"], location="mine")
    lance.write_dataset(rows(0, 1), str(two.root / "stray"))
    lance.write_dataset(rows(0, 1), str(two.root / "lake" / "stray"))
    lance.write_dataset(rows(0, 1), str(two.root / "lake" / "ours"))
    two.call("register_table", id=["g", "ours"], location="lake/ours")
    dropped = two.location(U)
    two.call("drop_table", id=U)
    path = leave_fragment(two, ["g", "mine"])
    report = list_orphans(two.root)
    assert report.orphans == ()
    assert report.not_owned == {"mine": "g$mine", "lake/ours": "g$ours"}
    assert report.removed == {dropped: "dropped"}
    assert report.unexplained == ("lake/stray", "stray")
    [orphan] = list_orphans(two.root, ["g", "mine"]).orphans
    assert (orphan.path, orphan.table) == (path, "g$mine")
    with pytest.raises(TableNotFoundError, match=r"g\$u"):
        list_orphans(two.root, U)


@pytest.mark.parametrize(
    ("place", "directory"),
    [
        ("table", "0a0b0c0d_g$clone"),
        ("registered table", "clone"),
        ("dropped table", "0a0b0c0d_g$clone"),
        ("directory without a row", "clone"),
        ("directory beside a registered table", "lake/clone"),
        ("dropped table beside a registered table", "lake/below/clone"),
        ("directory inside a registered table", "lake/mine/clone"),
    ],
)
def test_names_that_others_use_through_base_paths_are_needed(two: Ground, place: str, directory: str) -> None:
    """A shallow clone at that place needs files of a version of `g.t` that is gone since."""
    if directory.startswith("0a0b0c0d"):
        two.call("declare_table", id=["g", "clone"], location=f"{two.catalog.store.uri}/{directory}")
    if directory.startswith("lake"):
        lance.write_dataset(rows(0, 1), str(two.root / "lake" / "mine"))
        two.call("register_table", id=["g", "mine"], location="lake/mine")
    source = two.open(T, 1)
    source.shallow_clone(str(two.root / directory), source.version)
    if place == "registered table" or place.startswith("dropped table beside"):
        two.call("register_table", id=["g", "clone"], location=directory)
    if place.startswith("dropped table"):
        two.call("drop_table", id=["g", "clone"])
    lance.dataset(namespace_client=two.namespace, table_id=T).optimize.compact_files()
    two.catalog.sweep()
    clean_up(two)
    clone = {name for name in needs(lance.dataset(str(two.root / directory))) if name.startswith("data/")}
    listed = {name_of(path.partition("/")[2]) for path in paths(two)}
    assert clone
    assert not clone & listed
    assert [name for name in listed if name.startswith("data/")]


@pytest.mark.parametrize("name", ["lost+found", "secret"])
def test_a_directory_that_cannot_be_listed_stops_all_unless_it_is_of_the_file_system(
    two: Ground, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The root may be that of a file system, and nothing of a catalog is in its `lost+found`."""
    (two.root / name).mkdir()
    scan = os.scandir

    def refuse(path: str) -> Any:
        if path.rstrip("/").endswith(name):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert name in two.catalog.store.directories("")
    if name == "secret":
        with pytest.raises(StorageError, match=r"secret.*Permission denied"):
            look(two.catalog.store)
    else:
        assert look(two.catalog.store).unexplained == ()


def test_detached_versions_tags_and_branches_need_their_files(two: Ground) -> None:
    dataset = two.open(T)
    dataset.tags.create("kept", 1)
    dataset.create_branch("dev/a")
    lance.write_dataset(rows(30, 31), f"{uri(two, T)}/tree/dev/a", mode="append")
    fragments = write_fragments(rows(40, 41), str(uri(two, T)), mode="append")
    operation = lance.LanceOperation.Append(fragments)
    lance.LanceDataset.commit(str(uri(two, T)), operation, read_version=dataset.version, detached=True)
    before = contents(two.root)
    assert paths(two) == []
    assert contents(two.root) == before


# -- costs, and stores


def test_requests(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path / "root", "none"))
    ground = Ground(tmp_path / "root", store)
    ground.make_namespace("g")
    for number in range(10):
        ground.make_table("g", f"t{number}", count=1)
        for _ in range(number):
            ground.write(["g", f"t{number}"], rows(1, 2))
    ground.catalog.sweep()
    with store.measure() as cost:
        look(store)
    tables, manifests = 10, 10 + 45
    assert cost.by_verb == {"list": 2 * tables + 5, "get": manifests + 8}


def test_over_an_external_manifest_store(tmp_path: Path) -> None:
    """A writer dies between its staged file and the row that would have committed it."""
    handler = ExternalManifestHandler(MemoryManifestStore())
    store = LocalStore(tmp_path / "root", "none")
    ground = Ground(tmp_path / "root", handler.over(store))
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.catalog.sweep()
    dying = FaultStore(store)
    dying.fail(Fault.CRASH_AFTER, when=lambda write: f"{2**64 - 3}.manifest-" in write.path)
    with pytest.raises(Crashed):
        ground.again(handler.over(dying)).batch(ground.transaction(T, rows(3, 4)))
    path = leave_fragment(ground, T)
    report = look(handler.over(store))
    assert path in {orphan.path for orphan in report.orphans}
    assert not {orphan.path for orphan in report.orphans} - expected(ground.root)
    ground.catalog.sweep()
    report = look(handler.over(store))
    assert {orphan.path for orphan in report.orphans} == expected(ground.root)
    assert ground.ids(T) == [0, 1, 2, 3]


@pytest.mark.services
def test_on_a_bucket(moto_server: Emulator) -> None:
    root, options = moto_server.new_root(), moto_server.storage_options
    properties = {f"storage.{name}": value for name, value in options.items()}
    namespace = DirectoryNamespace(root=root, sweep_interval_seconds="0", **properties)
    namespace.create_namespace(CreateNamespaceRequest(id=["g"]))
    for table in (T, U):
        lance.write_dataset(
            rows(0, 3), mode="create", namespace_client=namespace, table_id=table, storage_options=options
        )
    dataset = lance.dataset(namespace_client=namespace, table_id=T, storage_options=options)
    [fragment] = write_fragments(rows(70, 71), dataset.uri, mode="append", storage_options=options)
    namespace.catalog.sweep()
    [file] = fragment.files
    with closing(open_store(root, options)) as store:
        before = [meta.path for meta in store.list("")]
        with moto_server.counted() as requests:
            report = look(store)
        assert [orphan.path.partition("/")[2] for orphan in report.orphans] == [f"data/{file.path}"]
        assert [meta.path for meta in store.list("")] == before
    assert requests == ["GET"] * (2 * 3 + 9)
    namespace.close()
