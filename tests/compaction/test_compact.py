"""Compaction: pylance rewrites the data, this engine commits, and stock pylance reads the result and commits on it."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction
from pyroaring import BitMap64

import lance_core
from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.commit.loop import commit_transaction
from lance_core.compaction import (
    CompactionOptions,
    PreparedCompaction,
    prepare_compaction,
)
from lance_core.compaction.rewrite import live_rows
from lance_core.data import rewrite_group
from lance_core.errors import (
    IncompatibleTransaction,
    LanceCoreError,
    ReferenceNotFound,
    RetryableTransaction,
    TransactionUnknown,
    UnsupportedFeature,
)
from lance_core.storage.memory import MemoryStore
from lance_core.table_files import TableFiles
from lance_core.tables.dataset import Dataset
from lance_core.transaction.indices import covered_fragments
from lance_core.transaction.operations import Append, Overwrite, ReserveFragments, encode_transaction
from tests.commit.flavours import FLAVOURS, IDS, Flavour, IndexKind, make
from tests.compaction.committing import compact, compact_table
from tests.storage.faults import Crashed, Fault, FaultStore
from tests.storage.manifests import MemoryManifestStore
from tests.storage.test_services import Emulator
from tests.transaction.tables import SCHEMA, Table, make_table, rows

INDEXED_BRANCHES = {
    "indexed branch": Flavour(branch="dev/x", indexed=True),
    "indexed branch, stable": Flavour(branch="dev/x", indexed=True, stable_row_ids=True),
}


INDICES: dict[str, IndexKind] = {"id": "BTREE", "x": "BITMAP"}


@pytest.fixture(params=[*FLAVOURS, *INDEXED_BRANCHES])
def flavour(request: pytest.FixtureRequest) -> Flavour:
    return (FLAVOURS | INDEXED_BRANCHES)[request.param]


@pytest.fixture
def table(tmp_path: Path, flavour: Flavour) -> Table:
    return make(tmp_path, flavour, INDICES)


def contents(table: Table) -> list[dict[str, object]]:
    return table.open().to_table().to_pylist()


def files(table: Table) -> set[str]:
    return {str(path.relative_to(table.root)) for path in table.root.rglob("*") if path.is_file()}


def test_pylance_reads_a_compacted_table_and_commits_to_it(table: Table, flavour: Flavour) -> None:
    before, stale = contents(table), table.open()
    row_ids = table.open().to_table(with_row_id=True)["_rowid"].to_pylist()
    done = compact(table.root / "t", branch=flavour.branch)

    dataset = table.open()
    dataset.validate()
    assert (done.version, done.removed_fragments, done.added_fragments) == (dataset.version, 2, 1)
    assert dataset.version == stale.version + (2 if flavour.indexed else 1)
    assert [fragment.metadata.num_deletions for fragment in dataset.get_fragments()] == [0]
    assert contents(table) == before
    if flavour.stable_row_ids:
        assert dataset.to_table(with_row_id=True)["_rowid"].to_pylist() == row_ids
    for predicate in ("id in (3, 17)", "x in (3.0, 17.0)"):
        found = dataset.scanner(filter=predicate, columns=["id"])
        assert found.to_table()["id"].to_pylist() == [3, 17]
        assert ("ScalarIndexQuery" in found.explain_plan()) == flavour.indexed
    assert not [path for path in files(table) if path.startswith(("_staging", "t/_staging"))]

    lance.write_dataset(rows(100, 103), stale, mode="append").validate()
    table.open().delete("id = 3")
    table.open().validate()
    assert table.ids() == sorted([i for i in IDS if i != 3] + [100, 101, 102])


def test_the_result_is_that_of_stock_compaction(tmp_path: Path) -> None:
    for name in ("plain", "stable row ids", "indexed", "indexed, stable"):
        ours = make(tmp_path / name, FLAVOURS[name], INDICES)
        theirs = ours.copy(tmp_path / f"{name}, stock")
        compact(ours.uri)
        theirs.open().optimize.compact_files()
        summaries = []
        for side in (ours, theirs):
            head = side.head()
            fragments = [(f.physical_rows, f.inline_row_ids) for f in head.manifest.fragments]
            indices = head.indices.indices if head.indices is not None else ()
            summaries.append(
                (
                    fragments,
                    [(i.name, i.index_details.type_url, i.index_version, len(i.files)) for i in indices],
                    [len(covered_fragments(i) & covered_fragments(i)) for i in indices],
                )
            )
            assert side.open().to_table(filter="id = 17")["id"].to_pylist() == [17]
        assert summaries[0] == summaries[1]


def test_nothing_to_do_commits_nothing(table: Table, flavour: Flavour) -> None:
    compact(table.root / "t", branch=flavour.branch)
    before = files(table)
    again = compact(table.root / "t", branch=flavour.branch)
    assert (again.committed, again.version) == (None, table.open().version)
    assert files(table) == before


def test_options(tmp_path: Path) -> None:
    table = make_table(tmp_path, *((start, start + 10) for start in range(0, 60, 10)))
    table.open().delete("id in (0, 1, 2)")
    compact(table.uri, CompactionOptions(target_rows_per_fragment=10, materialize_deletions=False))
    assert len(table.open().get_fragments()) == 6
    compact(table.uri, CompactionOptions(target_rows_per_fragment=10))
    assert [fragment.metadata.num_deletions for fragment in table.open().get_fragments()] == [0] * 6
    compact(table.uri, CompactionOptions(target_rows_per_fragment=20, max_source_fragments=3))
    assert len(table.open().get_fragments()) in {4, 5}
    compact(table.uri)
    assert len(table.open().get_fragments()) == 1
    table.open().validate()
    assert table.ids() == list(range(3, 60))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target_rows_per_fragment": 0}, "target_rows_per_fragment 0: expected at least 1"),
        ({"materialize_deletions_threshold": 1.5}, "expected 0 to 1"),
    ],
)
def test_invalid_options_are_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CompactionOptions(**wrong)  # type: ignore[arg-type]


def test_files_keep_the_format_of_the_table(tmp_path: Path) -> None:
    for start in (0, 10):
        mode = "append" if start else "create"
        lance.write_dataset(rows(start, start + 10), tmp_path / "t", mode=mode, data_storage_version="2.0")
    compact(tmp_path / "t")
    table = Table(tmp_path)
    [file] = table.head().manifest.fragments[0].files
    assert (file.file_major_version, file.file_minor_version) == (2, 0)
    table.open().validate()


def test_blobs_are_compacted_too(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    uri = str(tmp_path / "t")
    for start in (0, 2):
        values = lance.blob_array([b"x" * 200_000, b"y" * 5_000_000])
        batch = pa.table({"id": [start, start + 1], "b": values}, schema=schema)
        lance.write_dataset(batch, uri, mode="append" if start else "create", data_storage_version="2.2")
    lance.dataset(uri).delete("id = 1")
    compact(uri)
    dataset = lance.dataset(uri)
    dataset.validate()
    sizes = [len(blob.readall()) for blob in dataset.take_blobs("b", indices=[0, 1, 2])]
    assert (sizes, len(dataset.get_fragments())) == ([200_000, 200_000, 5_000_000], 1)


def test_a_table_with_added_and_dropped_columns(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20))
    table.open().add_columns({"y": "id * 2"})
    table.open().drop_columns(["s"])
    table.open().create_scalar_index("y", "BTREE")
    before = contents(table)
    compact(table.uri)
    table.open().validate()
    assert contents(table) == before
    assert table.open().to_table(filter="y = 34")["id"].to_pylist() == [17]
    assert [len(fragment.files) for fragment in table.head().manifest.fragments] == [1]


def prepare(table: Table) -> PreparedCompaction:
    def reserve(count: int) -> int:
        done = commit_transaction(
            table.store, "t", encode_transaction(ReserveFragments(count), read_version=table.open().version)
        )
        return done.file.manifest.max_fragment_id - count + 1

    dataset = Dataset.open(table.uri)
    prepared = prepare_compaction(table.store, "t", dataset.file, reserve=reserve)
    assert prepared is not None
    return prepared


@pytest.mark.parametrize("indexed", [False, True])
def test_a_concurrent_append_is_rebased_over(tmp_path: Path, indexed: bool) -> None:
    table = make(tmp_path, Flavour(indexed=indexed), INDICES)
    prepared = prepare(table)
    lance.write_dataset(rows(20, 23), table.uri, mode="append")
    assert commit_transaction(table.store, "t", prepared.transaction).rebased
    table.open().validate()
    assert table.ids() == [*IDS, 20, 21, 22]
    assert table.open().to_table(filter="id in (3, 21)")["id"].sort().to_pylist() == [3, 21]


def test_fragment_ids_taken_by_another_writer_are_not_used(tmp_path: Path) -> None:
    """The index is rewritten for the reserved ids, which are not the next ones of the version that was read."""
    table = make(tmp_path, Flavour(indexed=True), INDICES)
    dataset = Dataset.open(table.uri)
    lance.write_dataset(rows(20, 23), table.uri, mode="append")

    def reserve(count: int) -> int:
        transaction = encode_transaction(ReserveFragments(count), read_version=dataset.version)
        return commit_transaction(table.store, "t", transaction).file.manifest.max_fragment_id - count + 1

    prepared = prepare_compaction(table.store, "t", dataset.file, reserve=reserve)
    assert prepared is not None
    commit_transaction(table.store, "t", prepared.transaction)
    assert [fragment.fragment_id for fragment in table.open().get_fragments()] == [2, 3]
    table.open().validate()
    assert table.open().to_table(filter="id in (3, 17)")["id"].to_pylist() == [3, 17]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_concurrent_change_of_rows_wins(tmp_path: Path, indexed: bool) -> None:
    table = make(tmp_path, Flavour(indexed=indexed), INDICES)
    before = files(table)
    prepared = prepare(table)
    assert {str(path) for path in prepared.files} <= files(table)
    table.open().delete("id = 7")
    with pytest.raises(RetryableTransaction):
        commit_transaction(table.store, "t", prepared.transaction)
    table.store.delete_all(prepared.files)
    left = {path for path in files(table) - before if "_versions" not in path and "_transactions" not in path}
    assert {path.split("/")[1] for path in left} == {"_deletions"}
    table.open().validate()
    assert table.ids() == [i for i in IDS if i != 7]


@pytest.mark.parametrize(
    ("interfere", "error"),
    [
        (lambda table: table.open().delete("id = 7"), RetryableTransaction),
        (
            lambda table: lance.write_dataset(rows(90, 93), table.uri, mode="overwrite"),
            IncompatibleTransaction,
        ),
    ],
)
def test_a_conflict_removes_the_files_written(tmp_path: Path, interfere: object, error: type[LanceCoreError]) -> None:
    table = make(tmp_path, Flavour(indexed=True), INDICES)
    store = FaultStore(table.store)
    done: list[bool] = []

    def once(verb: str, path: str) -> None:
        # The remapped indices are there, the Rewrite is about to look for the head.
        remapped = any("_indices" in write.path for write in store.writes)
        if verb == "list" and path == "t/_versions" and remapped and not done:
            done.append(True)
            interfere(table)  # type: ignore[operator]

    data_before = {path for path in files(table) if "/data/" in path or "/_indices/" in path}
    store.before(once)
    with pytest.raises(error):
        compact_table(store, "t")
    assert done
    data_after = {path for path in files(table) if "/data/" in path or "/_indices/" in path}
    referenced = {f"t/data/{file.path}" for fragment in table.head().manifest.fragments for file in fragment.files}
    assert data_after <= data_before | referenced
    table.open().validate()


@pytest.mark.parametrize("indexed", [False, True])
def test_a_version_that_is_only_staged_is_compacted(tmp_path: Path, indexed: bool) -> None:
    """What several tables in one transaction need: an append and its compaction, neither of them visible yet."""
    table = make(tmp_path, Flavour(indexed=indexed), INDICES)
    dataset = Dataset.open(table.store, location="t")
    append = encode_transaction(Append(table.stage(rows(20, 25))), read_version=dataset.version)
    staged = dataset.stage(append)
    first = staged.file.manifest.max_fragment_id + 1
    prepared = prepare_compaction(table.store, "t", staged.file, reserve=lambda _: first)
    assert prepared is not None
    assert prepared.removed_fragments == 3 if not indexed else 2
    assert table.ids() == IDS
    staged.publish()
    commit_transaction(table.store, "t", prepared.transaction)
    table.open().validate()
    assert table.ids() == [*IDS, *range(20, 25)]
    assert table.open().to_table(filter="id in (3, 21)")["id"].sort().to_pylist() == [3, 21]


def test_moved_rows_are_those_that_pylance_records(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 100), (100, 150), (150, 400))
    table.open().delete("id % 7 = 3 or id = 149")
    table.open().create_scalar_index("id", "BTREE")
    head = table.head()
    for task in Compaction.plan(table.open(), {}).tasks:
        result = task.execute(table.open()).json()
        noted = BitMap64.deserialize(bytes(json.loads(result)["row_addrs"]))
        assert live_rows(TableFiles(table.store, "t"), head.manifest, rewrite_group(result)) == noted


@pytest.mark.slow
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ANSWER, Fault.LOST_REQUEST])
def test_a_failure_at_any_write_leaves_the_table_complete(tmp_path: Path, indexed: bool, fault: Fault) -> None:
    original = make(tmp_path / "original", Flavour(indexed=indexed), INDICES)
    before = contents(original)
    for nth in range(100):
        table = original.copy(tmp_path / f"{nth}")
        store = FaultStore(table.store)
        store.fail(fault, nth=nth)
        failed: list[type[BaseException]] = []
        try:
            compact_table(store, "t")
        except (Crashed, LanceCoreError) as error:
            failed.append(type(error))
        if len(store.writes) <= nth:
            break
        assert failed == [Crashed] or fault in {Fault.LOST_ANSWER, Fault.LOST_REQUEST}
        assert not {RetryableTransaction, TransactionUnknown} & set(failed)
        table.open().validate()
        assert contents(table) == before
        compact(table.uri)
        table.open().validate()
        assert (len(table.open().get_fragments()), contents(table)) == (1, before)
        assert table.open().to_table(filter="id in (3, 17)")["id"].to_pylist() == [3, 17]
    else:
        pytest.fail("a compaction of more than 100 writes")


def test_a_table_that_cannot_be_compacted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReferenceNotFound):
        compact(tmp_path / "none")
    table = make(tmp_path, Flavour(indexed=True), INDICES)
    with pytest.raises(ReferenceNotFound):
        compact(table.uri, branch="none")
    table.open().optimize.compact_files(defer_index_remap=True)
    with pytest.raises(UnsupportedFeature, match="__lance_frag_reuse"):
        compact(table.uri)
    memory = MemoryStore()
    transaction = encode_transaction(Overwrite((), tuple(table.manifests()[1].manifest.fields)), read_version=0)
    commit_transaction(memory, "t", transaction)
    with pytest.raises(UnsupportedFeature, match="expected a store that pylance can open"):
        compact_table(memory, "t")


def test_a_table_with_an_external_manifest_store(tmp_path: Path) -> None:
    table = make(tmp_path, Flavour(indexed=True), INDICES)
    manifests = MemoryManifestStore()
    done = compact(table.uri, commit_handler=ExternalManifestHandler(manifests))
    assert [row.version for row in manifests.rows] == [done.version - 1, done.version]
    table.open().validate()
    assert table.open().to_table(filter="id in (3, 17)")["id"].to_pylist() == [3, 17]


@pytest.mark.parametrize("stable", [False, True])
def test_a_table_in_a_bucket(moto_server: Emulator, stable: bool) -> None:
    uri, options = moto_server.new_root() + "/t", moto_server.storage_options
    for start in (0, 10):
        mode = "append" if start else "create"
        lance.write_dataset(
            rows(start, start + 10), uri, mode=mode, storage_options=options, enable_stable_row_ids=stable
        )
    lance.dataset(uri, storage_options=options).create_scalar_index("id", "BTREE")
    done = compact(uri, lance_core.CompactionOptions(), storage_options=options)
    assert (done.removed_fragments, done.added_fragments, done.rewritten_indices) == (2, 1, 1)
    dataset = lance.dataset(uri, storage_options=options)
    dataset.validate()
    assert dataset.schema == SCHEMA
    assert dataset.to_table(filter="id in (3, 17)")["id"].to_pylist() == [3, 17]
