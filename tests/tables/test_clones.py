"""Clones at another root: those of stock pylance, with and without copies of the files."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import DatasetBasePath, blob_array, blob_field

from lance_core.commit.loop import commit_transaction
from lance_core.errors import AlreadyExists, ReferenceNotFound, TransactionUnknown, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.opening import open_store
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.tables.dataset import Dataset, Reference
from lance_core.transaction.operations import Append, MapUpdate, UpdateConfig, encode_transaction
from tests.commit.flavours import Flavour, commit
from tests.emulators import Emulator
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.power import PowerStore
from tests.transaction.tables import Table, delete_rows, make_table, rows
from tests.transaction.test_apply import comparable

pytestmark = pytest.mark.slow

IDS = [i for i in range(20) if i != 5]
ON_DEV = [i for i in IDS if i != 7] + [30, 31]


@pytest.fixture(params=["plain", "stable row ids", "V1 names"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """Two fragments, a deletion, an index and config on main; on branch `dev` another deletion and fragment."""
    made = make_table(
        tmp_path / "store",
        (0, 10),
        (10, 20),
        stable_row_ids=request.param == "stable row ids",
        v2=request.param != "V1 names",
    )
    made.open().delete("id = 5")
    made.open().create_scalar_index("id", "BTREE")
    made.open().update_config({"k": "v"})
    made.open().tags.create("two", 2)
    made.open().create_branch("dev")
    made.branch("dev").open().delete("id = 7")
    lance.write_dataset(rows(30, 32), made.branch("dev").open(), mode="append")
    return made


def files(root: Path) -> set[str]:
    """All files but the hint, and transactions by the version that they read."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    found -= {"_versions/latest_version_hint.json"}
    return {path.partition("-")[0] if path.startswith("_transactions") else path for path in found}


def only_version(root: Path) -> ManifestFile:
    [path] = (root / "_versions").glob("*.manifest")
    return parse_manifest_file(path.read_bytes())


def ids(dataset: lance.LanceDataset) -> list[int]:
    found: list[int] = sorted(dataset.to_table(columns=["id"])["id"].to_pylist())
    return found


def sorted_bases(file: ManifestFile) -> list[tuple[int, str, str]]:
    return sorted((base.id, base.name, base.path) for base in file.manifest.base_paths)


REFERENCES: list[tuple[Reference, list[int]]] = [
    (None, IDS),
    (1, list(range(10))),
    ("two", list(range(20))),
    (("dev", None), ON_DEV),
]


@pytest.mark.parametrize("is_shallow", [False, True])
@pytest.mark.parametrize(("ref", "expected"), REFERENCES)
def test_a_clone_is_the_one_that_pylance_makes(
    table: Table, tmp_path: Path, ref: Reference, expected: list[int], is_shallow: bool
) -> None:
    dataset, stock = Dataset.open(table.uri), table.open()
    theirs = stock.version if ref is None else ref
    if is_shallow:
        made = dataset.shallow_clone(tmp_path / "ours", ref)
        stock.shallow_clone(str(tmp_path / "theirs"), theirs)
    else:
        made = dataset.deep_clone(tmp_path / "ours", ref)
        stock.deep_clone(str(tmp_path / "theirs"), theirs)

    ours_file, theirs_file = only_version(tmp_path / "ours"), only_version(tmp_path / "theirs")
    assert sorted_bases(ours_file) == sorted_bases(theirs_file)
    ours, stocks = comparable(ours_file.manifest), comparable(theirs_file.manifest)
    for manifest in (ours, stocks):
        manifest.transaction_file = manifest.transaction_file.partition("-")[0]
        del manifest.base_paths[:]
    assert ours == stocks
    assert ours_file.indices == theirs_file.indices
    assert ours_file.transaction is not None
    assert theirs_file.transaction is not None
    assert ours_file.transaction.clone == theirs_file.transaction.clone
    assert ours_file.transaction.read_version == theirs_file.transaction.read_version
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    assert (made.branch, made.version, made.uri) == (None, ours_file.version, (tmp_path / "ours").as_uri())
    opened = lance.dataset(str(tmp_path / "ours"))
    opened.validate()
    assert ids(opened) == expected


@pytest.mark.parametrize("ref", [None, ("dev", None)])
def test_a_deep_clone_is_independent_and_can_be_committed_to(table: Table, tmp_path: Path, ref: Reference) -> None:
    made = Dataset.open(table.uri).deep_clone(tmp_path / "clone", ref)
    shutil.rmtree(table.root)
    expected = IDS if ref is None else ON_DEV
    opened = made.to_pylance()
    opened.validate()
    assert ids(opened) == expected
    assert "ScalarIndexQuery" in opened.scanner(filter="id = 8").explain_plan()
    assert opened.scanner(filter="id = 8").to_table()["s"].to_pylist() == ["8"]

    clone = Table(tmp_path)
    (tmp_path / "clone").rename(clone.path)
    lance.write_dataset(rows(40, 42), clone.uri, mode="append")
    commit(clone, delete_rows(clone.open(), "id in (8, 40)"), Flavour())
    clone.open().delete("id = 9")
    commit(clone, Append(clone.stage(rows(50, 51))), Flavour())
    clone.open().optimize.compact_files()
    assert clone.ids() == sorted([i for i in expected if i not in (8, 9)] + [41, 50])
    Dataset.open(clone.uri).branches.create("b")
    assert clone.branch("b").ids() == clone.ids()


def test_a_clone_of_a_shallow_clone_of_a_branch(table: Table, tmp_path: Path) -> None:
    shallow = Dataset.open(table.uri).shallow_clone(tmp_path / "shallow", ("dev", None))
    lance.write_dataset(rows(40, 41), str(tmp_path / "shallow"), mode="append")
    lance.dataset(str(tmp_path / "shallow")).delete("id in (0, 30)")
    latest = shallow.checkout(None)
    deep = latest.deep_clone(tmp_path / "deep")
    latest.shallow_clone(tmp_path / "again")
    expected = sorted([i for i in ON_DEV if i not in (0, 30)] + [40])
    for name in ("deep", "again"):
        opened = lance.dataset(str(tmp_path / name))
        opened.validate()
        assert ids(opened) == expected
    assert [base[2] for base in sorted_bases(only_version(tmp_path / "again"))] == [
        table.uri,
        f"{table.uri}/tree/dev",
        str(tmp_path / "shallow"),
    ]
    shutil.rmtree(table.root)
    shutil.rmtree(tmp_path / "shallow")
    assert ids(deep.to_pylance()) == expected


def test_files_of_every_kind_of_base_path_are_copied(tmp_path: Path) -> None:
    """Stock pylance fails here: it looks for `data/` below a base that is no table."""
    for name in ("plain", "root"):
        (tmp_path / name).mkdir()
    bases = [
        DatasetBasePath(str(tmp_path / "plain"), name="plain"),
        DatasetBasePath(str(tmp_path / "root"), name="root", is_dataset_root=True),
    ]
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(0, 2), uri, initial_bases=bases, target_bases=["plain"])
    lance.write_dataset(rows(2, 4), uri, mode="append", target_bases=["root"])
    lance.write_dataset(rows(4, 6), uri, mode="append").delete("id = 3")
    Dataset.open(uri).deep_clone(tmp_path / "deep")
    for name in ("t", "plain", "root"):
        shutil.rmtree(tmp_path / name)
    opened = lance.dataset(str(tmp_path / "deep"))
    opened.validate()
    assert ids(opened) == [0, 1, 2, 4, 5]


def test_large_values_beside_the_data_files_are_copied(tmp_path: Path) -> None:
    values = [b"x" * 10, b"y" * 200_000, b"z" * 5_000_000]
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("b")])
    stored = pa.table({"id": [1, 2, 3], "b": blob_array(values)}, schema=schema)
    lance.write_dataset(stored, str(tmp_path / "t"), data_storage_version="2.2")
    Dataset.open(tmp_path / "t").deep_clone(tmp_path / "deep")
    assert len(list((tmp_path / "deep/data").rglob("*.blob"))) == 2
    shutil.rmtree(tmp_path / "t")
    blobs = lance.dataset(str(tmp_path / "deep")).take_blobs("b", indices=[0, 1, 2])
    assert [blob.readall() for blob in blobs] == values


def test_a_deep_clone_of_pylance_is_committed_as_a_transaction(table: Table, tmp_path: Path) -> None:
    table.branch("dev").open().deep_clone(str(tmp_path / "theirs"), ("dev", None))
    message = only_version(tmp_path / "theirs").transaction
    assert message is not None
    done = commit_transaction(table.store, "ours", message)
    assert commit_transaction(table.store, "ours", message).version == done.version
    assert files(table.root / "ours") == files(tmp_path / "theirs")
    assert ids(lance.dataset(str(table.root / "ours"))) == ON_DEV


# whose place it is


@pytest.mark.parametrize("is_shallow", [False, True])
def test_an_existing_table_is_not_replaced(table: Table, tmp_path: Path, is_shallow: bool) -> None:
    lance.write_dataset(rows(90, 91), str(tmp_path / "other"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    dataset = Dataset.open(table.uri)
    for target in (tmp_path / "other", table.path, table.path / "tree/dev"):
        with pytest.raises(AlreadyExists, match="expected no table, found version"):
            (dataset.shallow_clone if is_shallow else dataset.deep_clone)(target, 1)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("is_shallow", [False, True])
def test_cloning_again_returns_the_same_clone(table: Table, tmp_path: Path, is_shallow: bool) -> None:
    def clone(ref: Reference) -> Dataset:
        dataset = Dataset.open(table.uri)
        return (dataset.shallow_clone if is_shallow else dataset.deep_clone)(tmp_path / "clone", ref)

    first = clone(2)
    assert clone(2).file.identity == first.file.identity
    first.commit(encode_transaction(UpdateConfig(MapUpdate({"a": "b"})), read_version=2))
    assert clone(2).file.identity == first.file.identity
    with pytest.raises(AlreadyExists, match="found version 3"):
        clone(1)
    with pytest.raises(AlreadyExists):
        clone(("dev", None))
    assert Dataset.open(tmp_path / "clone").version == 3


# interruptions


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_leaves_no_table_and_the_same_call_completes_it(table: Table, tmp_path: Path, fault: Fault) -> None:
    source = Dataset.open(table.uri, ("dev", None))
    clean = FaultStore(LocalStore(tmp_path / "clean", "none"))
    source.deep_clone(clean)
    verbs = [write.verb for write in clean.writes]
    assert verbs == ["copy"] * 6 + ["put", "put_if_absent"]  # 3 data files, 1 deletion file, 2 of the index
    for number in range(len(verbs)):
        root = tmp_path / f"{number}"
        store = FaultStore(LocalStore(root, "none"))
        store.fail(fault, nth=number)
        with pytest.raises(Crashed):
            source.deep_clone(store)
        over = number == len(verbs) - 1 and fault is Fault.CRASH_AFTER
        if not over:
            with pytest.raises(ValueError, match="was not found"):
                lance.dataset(str(root))
        again = FaultStore(LocalStore(root, "none"))
        source.deep_clone(again)
        done = number + (fault is Fault.CRASH_AFTER)
        copied = [write.path for write in again.writes if write.verb == "copy"]
        assert len(copied) <= max(6 - done, 0) + 1  # the deletion file, whose size is unknown, is copied again
        assert ids(lance.dataset(str(root))) == ON_DEV


def test_without_an_answer_the_outcome_is_unknown(table: Table, tmp_path: Path) -> None:
    source = Dataset.open(table.uri)
    store = FaultStore(LocalStore(tmp_path / "clone", "none"))
    store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.endswith(".manifest"), times=99)
    with pytest.raises(TransactionUnknown):
        source.deep_clone(store)
    source.deep_clone(tmp_path / "clone")
    assert ids(lance.dataset(str(tmp_path / "clone"))) == IDS


def test_files_of_the_first_manifest_survive_a_power_loss(table: Table, tmp_path: Path) -> None:
    source = Dataset.open(table.uri, ("dev", None))
    interrupted = FaultStore(LocalStore(tmp_path / "clone", "none"))
    interrupted.fail(Fault.CRASH_AFTER, nth=3)
    with pytest.raises(Crashed):
        source.deep_clone(interrupted)
    power = PowerStore(MemoryStore())
    for meta in interrupted.inner.list(""):
        power.inner.put(meta.path, interrupted.inner.get(meta.path))  # exists, but may not be durable
    source.deep_clone(power)
    assert power.lose_power() == []


def test_files_of_an_interrupted_clone_are_complete(table: Table) -> None:
    power = PowerStore(MemoryStore())
    store = FaultStore(power)
    store.fail(Fault.CRASH_BEFORE, nth=4)
    with pytest.raises(Crashed):
        Dataset.open(table.uri, ("dev", None)).deep_clone(store)
    assert len(list(power.inner.list(""))) == 4
    assert power.lose_power() == []


@pytest.mark.parametrize("what", ["data/*.lance", "_deletions/*", "_indices/*/*"])
def test_a_missing_file_is_named(table: Table, tmp_path: Path, what: str) -> None:
    gone = next(table.path.glob(what))
    gone.unlink()
    with pytest.raises(ReferenceNotFound, match=f"a file is missing: .*{gone.name}"):
        Dataset.open(table.uri).deep_clone(tmp_path / "clone")
    assert not (tmp_path / "clone" / "_versions").exists()


def test_files_that_would_get_the_same_name_are_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path / "store", (0, 10))
    Dataset.open(table.uri).branches.create("dev")
    dev = table.branch("dev")
    file = dev.head()
    [inherited] = file.manifest.fragments
    (dev.path / "data").mkdir()
    shutil.copy(table.path / "data" / inherited.files[0].path, dev.path / "data")
    second = file.manifest.fragments.add()
    second.CopyFrom(inherited)
    second.id = 1
    second.files[0].ClearField("base_id")
    [path] = (dev.path / "_versions").glob("*.manifest")
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction))
    with pytest.raises(UnsupportedFeature, match="would both become"):
        Dataset.open(table.uri, ("dev", None)).deep_clone(tmp_path / "clone")
    assert not (tmp_path / "clone").exists()


def test_requests_of_a_clone(table: Table, tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path / "clone", "none"))
    Dataset.open(table.uri).deep_clone(store)
    assert store.cost.by_verb == Counter(copy=5, list=2, put=1, put_if_absent=1)
    shallow = CountingStore(LocalStore(tmp_path / "shallow", "none"))
    Dataset.open(table.uri).shallow_clone(shallow)
    assert shallow.cost.by_verb == Counter(list=1, put=1, put_if_absent=1)


# stores


@pytest.fixture
def bucket_table(moto_server: Emulator) -> tuple[str, dict[str, str]]:
    uri = moto_server.new_root().replace(" ", "-") + "/t"
    options = moto_server.storage_options
    lance.write_dataset(rows(0, 5), uri, storage_options=options)
    dataset = lance.write_dataset(rows(5, 10), uri, mode="append", storage_options=options)
    dataset.delete("id = 3")
    return uri, options


def test_in_a_bucket_the_service_makes_the_copies(
    bucket_table: tuple[str, dict[str, str]], moto_server: Emulator
) -> None:
    uri, options = bucket_table
    target = moto_server.new_root().replace(" ", "-") + "/clone"
    source = Dataset.open(uri, storage_options=options)
    before = len(moto_server.requests)
    made = source.deep_clone(target)
    requests = moto_server.requests[before:]
    assert not [path for method, path in requests if method == "GET" and path.endswith((".lance", ".arrow"))]
    assert len([path for method, path in requests if method == "PUT" and path.endswith((".lance", ".arrow"))]) == 3
    opened = lance.dataset(target, storage_options=options)
    opened.validate()
    assert ids(opened) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    lance.write_dataset(rows(10, 11), target, mode="append", storage_options=options)
    assert made.checkout(None).version == made.version + 1
    shallow = source.shallow_clone(target + "-shallow")
    stock = source.to_pylance()
    stock.shallow_clone(target + "-stock", stock.version)
    theirs = Dataset.open(target + "-stock", storage_options=options)
    assert [base.path for base in shallow.manifest.base_paths] == [base.path for base in theirs.manifest.base_paths]
    assert ids(shallow.to_pylance()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    source.branches.create("dev")
    assert lance.dataset(uri, storage_options=options).checkout_version(("dev", None)).count_rows() == 9


def test_between_stores_the_bytes_pass_through_the_process(
    bucket_table: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    uri, options = bucket_table
    Dataset.open(uri, storage_options=options).deep_clone(tmp_path / "here")
    assert ids(lance.dataset(str(tmp_path / "here"))) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    Dataset.open(tmp_path / "here").deep_clone(uri + "-back", storage_options=options)
    assert lance.dataset(uri + "-back", storage_options=options).count_rows() == 9


def test_a_clone_below_a_key_of_a_store(table: Table) -> None:
    store = open_store(table.root)
    made = Dataset.open(store, ("dev", None), location="t").deep_clone(store, location="copies/dev")
    assert made.location == "copies/dev"
    assert ids(lance.dataset(str(table.root / "copies/dev"))) == ON_DEV
