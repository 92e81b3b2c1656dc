"""Clean-up: what is removed and kept, and that stock pylance reads the rest unchanged."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_core.cleanup import Retention, cleanup
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.commit.loop import commit_transaction
from lance_core.compaction import compact
from lance_core.errors import CorruptFile, ReferenceNotFound, UnsupportedFeature
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Append, UpdateConfig, encode_transaction
from lance_core.transaction.operations import MapUpdate as Changes
from tests.cleanup.tables import EAGER, NOW, age, assert_whole, clean, contents, files, grow, listed
from tests.storage.manifests import MemoryManifestStore
from tests.storage.test_services import Emulator
from tests.transaction.tables import Table, make_table, rows


@pytest.fixture(params=["plain", "stable row ids", "v1 names"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    return grow(tmp_path, stable_row_ids=request.param == "stable row ids", v2=request.param != "v1 names")


def test_old_versions_are_removed_and_the_others_stay_complete(table: Table) -> None:
    before = contents(table)
    report = clean(table)
    after = assert_whole(table, before)
    assert [version for root, version in after if root == "."] == [2, 5, 9]
    assert report.kept == {2: "tag t", 5: "branch dev was forked from it", 9: "the newest version"}
    assert [garbage.version for garbage in report.versions] == [1, 3, 4, 6, 7, 8]
    lance.write_dataset(rows(40, 41), table.uri, mode="append").validate()
    table.open().delete("id = 30")
    table.open().optimize.compact_files()
    table.open().validate()


def test_a_dry_run_reports_what_a_run_removes(table: Table) -> None:
    before = files(table)
    planned = clean(table, dry_run=True)
    assert files(table) == before
    done = clean(table)
    assert planned.dry_run
    assert not done.dry_run
    assert (planned.versions, planned.files, planned.kept) == (done.versions, done.files, done.kept)
    gone = {garbage.path.removeprefix("t/") for garbage in (*done.versions, *done.files)}
    assert before - files(table) == gone
    assert planned.size == sum(garbage.size for garbage in (*done.versions, *done.files)) > 0
    assert all(garbage.reason for garbage in (*done.versions, *done.files))


def test_a_second_run_removes_nothing(table: Table) -> None:
    clean(table)
    left = files(table)
    again = clean(table, grace=NOW)
    assert (again.versions, again.files) == ((), ())
    assert files(table) == left


def test_cleaning_up_a_branch_leaves_other_branches_alone(table: Table) -> None:
    branch = table.branch("dev")
    for start in (110, 120):
        lance.write_dataset(rows(start, start + 5), branch.open(), mode="append")
    compact(table.uri, branch="dev")
    before = contents(table)
    report = clean(table, branch="dev")
    after = assert_whole(table, before)
    assert all(garbage.path.startswith("t/tree/dev/") for garbage in (*report.versions, *report.files))
    assert [version for root, version in after if root == "tree/dev"] == [branch.open().version]
    assert len([version for root, version in after if root == "."]) == 9
    assert any("/data/" in garbage.path for garbage in report.files)


def test_a_version_that_a_branch_of_a_branch_was_forked_from_is_kept(table: Table) -> None:
    branch = table.branch("dev")
    branch.open().create_branch("dev/sub")
    forked = branch.open().version
    lance.write_dataset(rows(110, 115), branch.open(), mode="append")
    compact(table.uri, branch="dev")
    before = contents(table)
    clean(table, branch="dev")
    clean(table)
    after = assert_whole(table, before)
    assert ("tree/dev", forked) in after


def test_the_fork_point_of_a_branch_without_a_reference_file_is_kept(table: Table) -> None:
    """Between its first version and its reference file, a branch is known by its directory alone."""
    before = contents(table)
    (table.path / "_refs" / "branches" / "dev.json").unlink()
    report = clean(table)
    assert report.kept[5] == "a branch was forked from it"
    assert contents(table)["tree/dev", 6] == before["tree/dev", 6]


def test_a_shallow_clone_inside_the_table_is_no_branch_of_it(table: Table) -> None:
    """Its Clone names a version too. The files of that stay by their names."""
    table.open().shallow_clone(str(table.path / "inner"), 4)
    before = lance.dataset(str(table.path / "inner")).to_table()
    assert 4 in {garbage.version for garbage in clean(table).versions}
    assert lance.dataset(str(table.path / "inner")).to_table() == before


def test_retention_by_age_on_a_disk(tmp_path: Path) -> None:
    table = make_table(tmp_path, *((start, start + 1) for start in range(5)))
    for version, days in ((1, 40), (2, 30), (3, 20), (4, 10), (5, 1)):
        age(table, days, manifest_name(version))
    report = clean(table, Retention(older_than=timedelta(days=14)))
    assert [garbage.version for garbage in report.versions] == [1, 2]
    assert listed(table.path) == [3, 4, 5]


def test_a_recently_superseded_version_is_kept(tmp_path: Path) -> None:
    """A slow writer may still claim its number; if that were free, an old commit would come after newer ones."""
    table = make_table(tmp_path, (0, 1), (1, 2), (2, 3))
    report = clean(table, Retention(keep=1))
    assert report.versions == ()
    assert "less than 1:00:00 ago" in report.kept[1]


def orphans(table: Table) -> set[str]:
    """Files that no version ever needed, in every place that has some."""
    fragment, *_ = table.stage(rows(900, 903))
    names = {
        f"data/{fragment.files[0].path}",
        "_deletions/7-1-12345.arrow",
        "_transactions/1-0b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0.txn",
        "_indices/0b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0/page_data.lance",
    }
    for name in names:
        path = table.path / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    return names


def test_unreferenced_files_are_kept_for_the_grace_time(table: Table) -> None:
    made = orphans(table)
    assert clean(table, Retention()).files == ()
    age(table, 6)
    assert clean(table, Retention()).files == ()
    age(table, 8)
    report = clean(table, Retention())
    assert {garbage.path.removeprefix("t/") for garbage in report.files} == made
    assert all("needed by no version" in garbage.reason for garbage in report.files)


def test_files_with_a_future_timestamp_are_kept(table: Table) -> None:
    made = orphans(table)
    age(table, -3)
    clean(table, Retention(), grace=timedelta(days=1))
    assert made <= files(table)


STRANGERS = [
    "notes.txt",
    "data/README",
    "data/nested/x.lance",
    "data/part.parquet",
    "_deletions/strange.arrow",
    "_indices/not-a-uuid/x",
    "_indices/loose",
    "_transactions/x.bin",
    "_versions/notes",
    "_mem_wal/0b33/x.lance",
    "_staging/anything/else",
    "other/_versions/notes.txt",
]


def test_files_of_unknown_kinds_are_kept(table: Table) -> None:
    for name in STRANGERS:
        path = table.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    age(table, 100)
    clean(table)
    assert set(STRANGERS) <= files(table)


def test_detached_versions_keep_their_files(tmp_path: Path) -> None:
    """Stock pylance removes the files of a detached version and leaves the version."""
    table = grow(tmp_path)
    detached = lance.LanceDataset.commit(
        table.uri,
        lance.LanceOperation.Append(lance.fragment.write_fragments(rows(50, 53), table.open())),
        read_version=table.open().version,
        detached=True,
    ).version
    lance.write_dataset(rows(0, 1), table.uri, mode="overwrite")
    age(table, 100)
    clean(table)
    opened = lance.dataset(table.uri, version=detached)
    opened.validate()
    assert opened.count_rows() == 35 - 3 + 3


def stage(table: Table, *, beside: bool) -> tuple[Path, int]:
    """A version that is staged and not published, in `_staging/` or, as stock clients do, in `_versions/`."""
    dataset = Dataset.open(table.path)
    staged = dataset.stage(encode_transaction(Append(table.stage(rows(50, 53))), read_version=dataset.version))
    path = table.path / staged.path
    if beside:
        target = table.path / "_versions" / f"{manifest_name(staged.version)}-0b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0"
        path.rename(target)
        path = target
    return path, staged.version


@pytest.mark.parametrize("beside", [False, True])
def test_staged_versions_keep_their_files_and_their_number(tmp_path: Path, beside: bool) -> None:
    table = grow(tmp_path)
    path, number = stage(table, beside=beside)
    staged = parse_manifest_file(path.read_bytes())
    added = f"data/{staged.manifest.fragments[-1].files[0].path}"
    age(table, 100)
    clean(table)
    assert added in files(table)
    lance.write_dataset(rows(60, 61), table.uri, mode="append")
    lance.write_dataset(rows(0, 1), table.uri, mode="overwrite")
    report = clean(table)
    assert path.exists() == (not any("which is taken" in garbage.reason for garbage in report.files))
    assert report.kept[number].startswith("staged again as ")
    assert added in files(table)
    age(table, 100)
    assert not path.exists() or any("which is taken" in garbage.reason for garbage in clean(table).files)
    assert not path.exists()
    clean(table)
    assert added not in files(table)
    assert number not in listed(table.path)


def test_a_staged_version_whose_number_is_vacant_is_kept(tmp_path: Path) -> None:
    table = grow(tmp_path)
    path, number = stage(table, beside=True)
    lance.write_dataset(rows(60, 61), table.uri, mode="append")
    lance.write_dataset(rows(60, 61), table.uri, mode="append")
    age(table, 100)
    assert [garbage for garbage in clean(table, Retention(), dry_run=True).files if "which is taken" in garbage.reason]
    clean(table, settled=(table.path / "_versions" / manifest_name(number)).unlink)
    assert path.exists()


def test_nested_branch_names_do_not_mix_the_files_of_branches(tmp_path: Path) -> None:
    table = grow(tmp_path)
    branch = table.branch("dev")
    name = "dev/_indices/0b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0"
    branch.open().create_branch(name)
    before = contents(table)
    age(table, 100)
    clean(table, Retention(), branch="dev")
    assert contents(table) == before


def test_files_of_an_interrupted_compaction_are_removed_after_the_grace_time(tmp_path: Path) -> None:
    table = grow(tmp_path, branch=False)
    scratch = table.path / "_staging" / "0b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0" / "1b33ad7a-6b52-4d4c-9d6c-9d3d2f2ab8a0"
    shutil.copytree(table.path / "_versions", scratch / "_versions")
    (scratch / "_indices").mkdir()
    (scratch / "_indices" / "x").write_bytes(b"x")
    before = set(table.path.rglob("*.lance"))
    clean(table)
    assert (scratch / "_indices" / "x").exists()
    assert set(table.path.rglob("*.lance")) == before  # the manifests in it may be those of a running one
    age(table, 8)
    (scratch / "_indices" / "y").write_bytes(b"y")  # it goes on
    clean(table)
    assert (scratch / "_indices" / "x").exists()
    age(table, 8)
    report = clean(table)
    assert not scratch.exists()
    assert set(table.path.rglob("*.lance")) < before
    assert {g.reason for g in report.files if "_staging" in g.path} == {"left by an interrupted compaction"}
    assert contents(table)


def test_files_that_a_nested_dataset_needs_are_kept(tmp_path: Path) -> None:
    """A shallow clone below the table, wherever that is."""
    table = grow(tmp_path)
    table.open().shallow_clone(str(table.path / "clones" / "c"), 4)
    clean(table)
    clone = lance.dataset(str(table.path / "clones" / "c"))
    clone.validate()
    assert clone.count_rows() == 28


def test_a_tag_protects_the_files_that_a_shallow_clone_needs(tmp_path: Path) -> None:
    table = grow(tmp_path)
    table.open().shallow_clone(str(tmp_path / "clone"), 4)
    table.open().tags.create("cloned", 4)
    clean(table)
    lance.dataset(str(tmp_path / "clone")).validate()


def test_blobs_are_removed_with_their_data_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    uri = str(tmp_path / "t")
    for start in (0, 2):
        values = lance.blob_array([b"x" * 200_000, b"y" * 5_000_000])
        batch = pa.table({"id": [start, start + 1], "b": values}, schema=schema)
        lance.write_dataset(batch, uri, mode="append" if start else "create", data_storage_version="2.2")
    lance.dataset(uri).optimize.compact_files()
    table = Table(tmp_path)
    compacted = table.head().manifest.fragments[0].files[0].path.removesuffix(".lance")
    blobs = {name for name in files(table) if name.endswith(".blob")}
    clean(table)
    assert {name for name in files(table) if name.endswith(".blob")} == {n for n in blobs if compacted in n} < blobs
    sizes = [len(blob.readall()) for blob in lance.dataset(uri).take_blobs("b", indices=[0, 1, 2, 3])]
    assert sizes == [200_000, 5_000_000] * 2


def break_manifest(table: Table, version: int) -> None:
    path = table.path / "_versions" / manifest_name(version)
    path.write_bytes(path.read_bytes()[:-3])


def add_unknown_field(table: Table, version: int) -> None:
    path = table.path / "_versions" / manifest_name(version)
    file = parse_manifest_file(path.read_bytes())
    file.manifest.fragments[0].MergeFromString(b"\xf2\x07\x01x")
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))


def add_flag(table: Table, version: int) -> None:
    path = table.path / "_versions" / manifest_name(version)
    file = parse_manifest_file(path.read_bytes())
    file.manifest.writer_feature_flags |= 1 << 50
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))


def take_the_name_of_another(table: Table, version: int) -> None:
    path = table.path / "_versions" / manifest_name(version)
    path.write_bytes(path.with_name(manifest_name(8)).read_bytes())


@pytest.mark.parametrize("version", [1, 2, 9])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (break_manifest, CorruptFile),
        (take_the_name_of_another, CorruptFile),
        (add_unknown_field, UnsupportedFeature),
        (add_flag, UnsupportedFeature),
    ],
)
def test_an_unreadable_version_aborts_the_cleanup(
    tmp_path: Path, version: int, change: object, error: type[Exception]
) -> None:
    table = grow(tmp_path)
    change(table, version)  # type: ignore[operator]
    before = files(table)
    with pytest.raises(error):
        clean(table)
    assert files(table) == before


@pytest.mark.parametrize("name", ["_refs/tags/t.json", "_refs/branches/dev.json"])
def test_an_unreadable_reference_aborts_the_cleanup(tmp_path: Path, name: str) -> None:
    table = grow(tmp_path)
    (table.path / name).write_bytes(b"{")
    before = files(table)
    with pytest.raises(CorruptFile):
        clean(table)
    assert files(table) == before


def test_an_unreadable_staged_manifest_aborts_the_cleanup(tmp_path: Path) -> None:
    table = grow(tmp_path)
    path, _ = stage(table, beside=True)
    path.write_bytes(b"half")
    before = files(table)
    with pytest.raises(CorruptFile):
        clean(table)
    assert files(table) == before


def test_manifests_of_both_naming_schemes_abort_the_cleanup(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    (table.path / "_versions" / manifest_name(1)).rename(table.path / "_versions" / "1.manifest")
    before = files(table)
    with pytest.raises(UnsupportedFeature, match="both naming schemes"):
        clean(table)
    assert files(table) == before


def test_a_missing_table_or_branch_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReferenceNotFound):
        cleanup(tmp_path / "none", EAGER)
    table = grow(tmp_path)
    with pytest.raises(ReferenceNotFound):
        cleanup(table.uri, EAGER, branch="none")
    with pytest.raises(ValueError, match="expected a duration of at least 0"):
        cleanup(table.uri, EAGER, grace=timedelta(-1))


def test_a_table_that_was_moved(tmp_path: Path) -> None:
    """Base paths lead to where it was. A branch cannot be read there, but can once the table is moved back."""
    table = grow(tmp_path / "here")
    before = contents(table)
    (tmp_path / "here").rename(tmp_path / "there")
    clean(Table(tmp_path / "there"))
    (tmp_path / "there").rename(tmp_path / "here")
    assert_whole(table, before)


def test_a_table_opened_through_a_symbolic_link(tmp_path: Path) -> None:
    table = grow(tmp_path / "real")
    before = contents(table)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cleanup(tmp_path / "link" / "t", EAGER, settle=NOW)
    assert len(assert_whole(table, before)) < len(before)


def test_a_table_with_an_external_manifest_store(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    manifests = MemoryManifestStore()
    store = ExternalManifestHandler(manifests).over(table.store)
    for number in range(3):
        update = UpdateConfig(Changes({"k": str(number)}))
        commit_transaction(store, "t", encode_transaction(update, read_version=number + 1))
    clean(table, store=store)
    assert listed(table.path) == [4]
    assert [row.version for row in manifests.rows] == [4]
    assert Dataset.open(store, location="t").version == 4
    commit_transaction(store, "t", encode_transaction(UpdateConfig(Changes({"k": "z"})), read_version=4))
    table.open().validate()


def test_a_table_in_a_bucket(moto_server: Emulator) -> None:
    uri, options = moto_server.new_root() + "/t", moto_server.storage_options
    for start in range(0, 30, 10):
        mode = "append" if start else "create"
        lance.write_dataset(rows(start, start + 10), uri, mode=mode, storage_options=options)
    lance.dataset(uri, storage_options=options).tags.create("t", 1)
    compact(uri, storage_options=options)
    report = cleanup(uri, EAGER, storage_options=options, settle=NOW)
    assert [garbage.version for garbage in report.versions] == [2, 3]
    assert {garbage.path.partition("/")[0] for garbage in report.files} == {"data", "_transactions"}
    for version, count in ((1, 10), (4, 30)):
        dataset = lance.dataset(uri, version=version, storage_options=options)
        dataset.validate()
        assert dataset.count_rows() == count
    with pytest.raises((ValueError, OSError)):
        lance.dataset(uri, version=2, storage_options=options)


STEPS = ["append", "delete", "update", "compact", "index", "overwrite", "restore", "tag", "branch", "branch append"]


def step(table: Table, name: str, number: int) -> None:
    dataset = table.open()
    match name:
        case "append":
            lance.write_dataset(rows(100 * number, 100 * number + 3), table.uri, mode="append")
        case "delete":
            dataset.delete(f"id % 5 = {number % 5} and id <> 17")
        case "update":
            dataset.update({"x": "x + 1"}, where=f"id % 4 = {number % 4}")
        case "compact":
            dataset.optimize.compact_files()
        case "index":
            dataset.create_scalar_index("id", "BTREE", replace=True)
        case "overwrite":
            lance.write_dataset(rows(10, 20), table.uri, mode="overwrite")
        case "restore":
            lance.dataset(table.uri, version=1 + number % dataset.version).restore()
        case "tag":
            dataset.tags.create(f"t{number}", 1 + number % dataset.version)
        case "branch":
            dataset.create_branch(f"b{number}", 1 + number % dataset.version)
        case "branch append":
            for branch in dataset.branches.list():
                lance.write_dataset(rows(number, number + 2), table.branch(branch).open(), mode="append")


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=14),
    keep=st.integers(1, 4),
    stable=st.booleans(),
    branches=st.booleans(),
)
def test_cleanup_of_random_histories_keeps_every_listed_version_complete(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], keep: int, stable: bool, branches: bool
) -> None:
    """After any history pylance opens all that is left, and we kept all that stock pylance keeps."""
    root = tmp_path_factory.mktemp("history")
    table = make_table(root / "ours", (10, 20), stable_row_ids=stable)
    for number, name in enumerate(steps):
        step(table, name, number)
    before = contents(table)
    stock = table.copy(root / "stock")
    clean(table, Retention(keep=keep, min_age=NOW), grace=NOW)
    if branches:
        for branch in table.open().branches.list():
            clean(table, Retention(keep=keep, min_age=NOW), grace=NOW, branch=branch)
    assert_whole(table, before)
    stock.open().cleanup_old_versions(retain_versions=keep, error_if_tagged_old_versions=False)
    assert set(listed(stock.path)) <= set(listed(table.path))
    table.open().delete("id = 11")
    lance.write_dataset(rows(70, 71), table.uri, mode="append").validate()
    shutil.rmtree(root)


def test_messages_are_whole() -> None:
    """A new field of a message that names files must be looked at here: see `names_used`."""
    assert {field.name for field in pb.DataFragment.DESCRIPTOR.fields} == {
        "id",
        "files",
        "deletion_file",
        "physical_rows",
        "inline_row_ids",
        "external_row_ids",
        "inline_last_updated_at_versions",
        "external_last_updated_at_versions",
        "inline_created_at_versions",
        "external_created_at_versions",
        "overlays",
    }
