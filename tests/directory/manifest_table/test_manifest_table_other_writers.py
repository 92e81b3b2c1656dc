"""Commits of others on `__manifest`: stock namespaces, plain dataset writes, compaction, rows we do not know."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import lance
import orjson
import pyarrow as pa
import pytest
from lance.namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DirectoryNamespace,
    DropNamespaceRequest,
    ListNamespacesRequest,
)

from lance_core.errors import UnsupportedFeature
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.storage.local import LocalStore
from namespace_server.directory.manifest_table.row_codec import Row, encode_entry
from namespace_server.directory.manifest_table.rows import SCHEMA
from namespace_server.directory.manifest_table.schema import CHANGES_PROPERTY, MANAGED_METADATA
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Changes, NamespaceEntry, TableEntry, VersionEntry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.flipping import assert_on_disk, flip, open_manifest, rows_on_disk
from tests.directory.reference import ReferenceCatalog, assert_snapshot_is, put

pytestmark = pytest.mark.slow

OPTIONS = {"dir_listing_enabled": "false"}


def arrow(rows: Sequence[Row]) -> pa.Table:
    columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
    return pa.table([*columns, pa.nulls(len(rows), SCHEMA.field("base_objects").type)], schema=SCHEMA)


def upsert(root: Path, rows: Sequence[Row]) -> None:
    """What releases before 14 did: a merge on the object id."""
    merge = open_manifest(root).merge_insert("object_id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(arrow(rows))


def assert_everywhere(root: Path, tables: Sequence[ManifestTable], reference: ReferenceCatalog) -> None:
    for table in [*tables, ManifestTable(LocalStore(root))]:
        assert_snapshot_is(table.refresh(), reference)
    assert_on_disk(root, reference)


@pytest.fixture
def busy(tmp_path: Path) -> tuple[ManifestTable, ReferenceCatalog]:
    """A catalog with some history, some deletions and several fragments."""
    table = ManifestTable(LocalStore(tmp_path, durability="none"))
    reference = ReferenceCatalog(21)
    for step in range(60):
        flip(table, reference.step(6 if step % 9 else 30))
    return table, reference


def test_a_root_of_a_stock_namespace_is_read_and_then_taken_over(tmp_path: Path) -> None:
    stock = DirectoryNamespace(root=str(tmp_path), **OPTIONS)
    table = ManifestTable(LocalStore(tmp_path))
    assert table.refresh().version == 0
    reference = ReferenceCatalog()
    for number in range(12):
        stock.create_namespace(CreateNamespaceRequest(id=[f"n{number}"], properties={"number": str(number)}))
        location = stock.declare_table(DeclareTableRequest(id=[f"n{number}", "t"])).location
        assert location is not None
        reference.apply(
            put(
                [
                    NamespaceEntry((f"n{number}",), {"number": str(number)}),
                    TableEntry((f"n{number}", "t"), location.rpartition("/")[2]),
                ]
            )
        )
        snapshot = table.refresh()
        assert (snapshot.version, snapshot.managed) == (open_manifest(tmp_path).version, False)
        assert_snapshot_is(snapshot, reference)
    stock.deregister_table(DeregisterTableRequest(id=["n3", "t"]))
    stock.drop_namespace(DropNamespaceRequest(id=["n3"]))
    reference.apply(Changes({}, frozenset({"n3$t", "n3"})))
    assert_everywhere(tmp_path, [table], reference)

    entry = table.current.table(("n1", "t"))
    assert entry is not None
    adoption = put([reference.version(entry, None, 1)])
    reference.apply(adoption)
    assert flip(table, adoption, table_metadata=MANAGED_METADATA).managed
    assert_everywhere(tmp_path, [table], reference)
    with pytest.raises(Exception, match="upgrade Lance"):
        stock.create_namespace(CreateNamespaceRequest(id=["late"]))
    assert len(stock.list_namespaces(ListNamespacesRequest(id=[])).namespaces) == 11


def test_a_stock_namespace_and_we_take_turns_without_the_fence(tmp_path: Path) -> None:
    """Each of its writes rewrites everything: rows move, fragments and addresses are new."""
    stock = DirectoryNamespace(root=str(tmp_path), **OPTIONS)
    stock.create_namespace(CreateNamespaceRequest(id=["n"]))
    table, other = ManifestTable(LocalStore(tmp_path)), ManifestTable(LocalStore(tmp_path))
    reference = ReferenceCatalog()
    reference.apply(put([NamespaceEntry(("n",))]))
    for number in range(25):
        mine = changes_of([NamespaceEntry((f"ours{number}",)), NamespaceEntry(("n",), {"at": str(number)})])
        if number > 3:
            mine = mine.then(Changes({}, frozenset({f"ours{number - 3}", f"theirs{number - 2}"})))
        flip(table, mine)
        reference.apply(mine)
        stock.create_namespace(CreateNamespaceRequest(id=[f"theirs{number}"]))
        reference.apply(put([NamespaceEntry((f"theirs{number}",))]))
        assert_everywhere(tmp_path, [table, other], reference)


def test_an_unmanaged_overwrite_is_survived(tmp_path: Path, busy: tuple[ManifestTable, ReferenceCatalog]) -> None:
    table, reference = busy
    follower = ManifestTable(LocalStore(tmp_path))
    follower.refresh()
    rows = rows_on_disk(tmp_path)
    reference.random.shuffle(rows)
    lance.write_dataset(arrow(rows), open_manifest(tmp_path).uri, mode="overwrite")
    assert_everywhere(tmp_path, [table, follower], reference)
    assert table.current.managed  # an overwrite keeps table metadata
    for _ in range(12):
        flip(table, reference.step(6))
    assert_everywhere(tmp_path, [table, follower], reference)


def test_unmanaged_row_changes_are_survived(tmp_path: Path, busy: tuple[ManifestTable, ReferenceCatalog]) -> None:
    """merge_insert, delete and append, as old clients and curious people do them."""
    table, reference = busy
    follower = ManifestTable(LocalStore(tmp_path))
    follower.refresh()
    for number in range(8):
        entry = NamespaceEntry((f"foreign{number}",), {"k": "v"})
        existing = next(row for row in reference.rows.values() if isinstance(row, NamespaceEntry))
        changed = NamespaceEntry(existing.id, {"changed": str(number)})
        upsert(tmp_path, [encode_entry(entry), encode_entry(changed)])
        reference.apply(put([entry, changed]))
        assert_everywhere(tmp_path, [table, follower], reference)
        if number % 2:
            open_manifest(tmp_path).delete(f"object_id = 'foreign{number - 1}'")
            reference.apply(Changes({}, frozenset({f"foreign{number - 1}"})))
        else:
            appended = NamespaceEntry((f"appended{number}",))
            lance.write_dataset(arrow([encode_entry(appended)]), open_manifest(tmp_path).uri, mode="append")
            reference.apply(put([appended]))
        flip(follower if number % 3 else table, reference.step(4))
        assert_everywhere(tmp_path, [table, follower], reference)


def test_an_unmanaged_compaction_is_survived(tmp_path: Path, busy: tuple[ManifestTable, ReferenceCatalog]) -> None:
    table, reference = busy
    follower = ManifestTable(LocalStore(tmp_path))
    follower.refresh()
    open_manifest(tmp_path).optimize.compact_files()
    assert_everywhere(tmp_path, [table, follower], reference)
    for _ in range(10):
        flip(follower, reference.step(6))
    assert_everywhere(tmp_path, [table, follower], reference)


def test_a_restore_brings_rows_back(tmp_path: Path, busy: tuple[ManifestTable, ReferenceCatalog]) -> None:
    table, reference = busy
    before = dict(reference.rows)
    version = table.current.version
    for _ in range(6):
        flip(table, reference.step(6))
    dataset = lance.dataset(open_manifest(tmp_path).uri, version=version)
    dataset.restore()
    reference.rows = before
    assert_everywhere(tmp_path, [table], reference)
    for _ in range(6):
        flip(table, reference.step(6))
    assert_everywhere(tmp_path, [table], reference)


def test_an_unmanaged_index_is_dropped_by_the_next_flip(
    tmp_path: Path, busy: tuple[ManifestTable, ReferenceCatalog]
) -> None:
    """Its bitmaps would name fragments that are gone."""
    table, reference = busy
    open_manifest(tmp_path).create_scalar_index("object_id", "BTREE")
    assert_everywhere(tmp_path, [table], reference)
    flip(table, reference.step(6))
    assert open_manifest(tmp_path).describe_indices() == []
    assert_everywhere(tmp_path, [table], reference)


def test_rows_of_unknown_types_stay_on_disk(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    reference = ReferenceCatalog(5)
    flip(table, reference.step(4))
    unmanaged = [Row("v", "view", None, '{"k":"v"}'), Row("a$b$c$9", "table_version", None, "no json")]
    upsert(tmp_path, unmanaged)
    follower = ManifestTable(LocalStore(tmp_path))
    follower.refresh()
    for _ in range(40):
        flip(table, reference.step(4))
    for each in (table, follower, ManifestTable(LocalStore(tmp_path))):
        assert_snapshot_is(each.refresh(), reference)
    expected = [*unmanaged, *(encode_entry(entry) for entry in reference.rows.values())]
    assert sorted(rows_on_disk(tmp_path)) == sorted(expected)
    flip(follower, put([NamespaceEntry(("v",))]))
    found = [row for row in rows_on_disk(tmp_path) if row.object_id == "v"]
    assert found == [Row("v", "namespace", None, None)]  # one row per object id, whatever was there


def test_unmanaged_duplicate_object_ids_are_read_and_repaired(tmp_path: Path) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    owner = TableEntry(("t",), "1_t")
    reference = ReferenceCatalog(6)
    versions = [reference.version(owner, None, number) for number in (1, 2, 3)]
    reference.apply(put([owner, *versions, NamespaceEntry(("n",), {"at": "1"})]))
    flip(table, Changes(dict(reference.rows)))
    again = [NamespaceEntry(("n",), {"at": "2"}), owner, reference.version(owner, None, 2)]
    lance.write_dataset(arrow([encode_entry(entry) for entry in again]), open_manifest(tmp_path).uri, mode="append")
    reference.apply(put(again))
    for each in (table, ManifestTable(LocalStore(tmp_path))):
        assert_snapshot_is(each.refresh(), reference)
    assert len(rows_on_disk(tmp_path)) == len(reference.rows) + 3
    flip(table, put(again))
    assert_everywhere(tmp_path, [table], reference)


def test_version_rows_of_old_releases_are_read(tmp_path: Path) -> None:
    """Zero-padded numbers, no table id, paths as those clients spelled them, no identity."""
    owner = TableEntry(("a", "t"), "1_a$t")
    rows = [encode_entry(NamespaceEntry(("a",))), encode_entry(owner)]
    for number in range(1, 6):
        path = f"{str(tmp_path).strip('/')}/1_a$t/_versions/{(1 << 64) - 1 - number}.manifest"
        metadata = {"manifest_path": path, "manifest_size": 400 + number, "naming_scheme": "V2"}
        rows.append(Row(f"a$t${number:020d}", "table_version", None, orjson.dumps(metadata).decode()))
    lance.write_dataset(arrow(rows), str(tmp_path / "__manifest"))
    table = ManifestTable(LocalStore(tmp_path))
    found = list(table.refresh().versions(owner.id))
    assert [entry.version for entry in found] == [1, 2, 3, 4, 5]
    assert found[4] == VersionEntry(owner.id, None, 5, "1_a$t", 405, "", "", 0)
    replaced = VersionEntry(owner.id, None, 5, "1_a$t", 405, "ab" * 32, str(uuid.uuid4()), 7)
    flip(table, changes_of([replaced], ["a$t$2"]), table_metadata=MANAGED_METADATA)
    for each in (table, ManifestTable(LocalStore(tmp_path))):
        assert [entry.version for entry in each.refresh().versions(owner.id)] == [1, 3, 4, 5]
        assert each.current.head(owner.id) == replaced
    ids = sorted(row.object_id for row in rows_on_disk(tmp_path) if row.object_type == "table_version")
    assert ids == [*(f"a$t${number:020d}" for number in (1, 3, 4)), "a$t$5"]


def test_versions_left_by_an_unmanaged_drop_do_not_answer_for_the_next_table(tmp_path: Path) -> None:
    """N1, N3: an old client removes the table row alone; the object ids of its versions stay usable."""
    table, follower = (ManifestTable(LocalStore(tmp_path)) for _ in range(2))
    owner = TableEntry(("t",), "1_t")
    reference = ReferenceCatalog(7)
    flip(table, put([owner, *(reference.version(owner, None, number) for number in (1, 2, 3))]))
    follower.refresh()
    open_manifest(tmp_path).delete("object_id = 't'")
    fresh = TableEntry(("t",), "2_t")
    reference.apply(put([fresh, reference.version(fresh, None, 1)]))
    flip(follower, Changes(dict(reference.rows)))
    for each in (table, follower, ManifestTable(LocalStore(tmp_path))):
        assert_snapshot_is(each.refresh(), reference)
    assert sorted(row.object_id for row in rows_on_disk(tmp_path)) == ["t", "t$1", "t$2", "t$3"]


@pytest.mark.parametrize("storage", ["2.0", "2.1"])
def test_adopted_roots_keep_their_file_version(tmp_path: Path, storage: str) -> None:
    lance.write_dataset(
        arrow([encode_entry(NamespaceEntry(("a",)))]), str(tmp_path / "__manifest"), data_storage_version=storage
    )
    table = ManifestTable(LocalStore(tmp_path))
    reference = ReferenceCatalog(8)
    reference.apply(put([NamespaceEntry(("a",))]))
    for _ in range(25):
        flip(table, reference.step(5))
    assert open_manifest(tmp_path).data_storage_version == storage
    assert_everywhere(tmp_path, [table], reference)


def test_a_root_with_old_version_names_keeps_them(tmp_path: Path) -> None:
    lance.write_dataset(
        arrow([encode_entry(NamespaceEntry(("a",)))]), str(tmp_path / "__manifest"), enable_v2_manifest_paths=False
    )
    table, follower = (ManifestTable(LocalStore(tmp_path)) for _ in range(2))
    follower.refresh()
    reference = ReferenceCatalog(8)
    reference.apply(put([NamespaceEntry(("a",))]))
    for _ in range(12):
        flip(table, reference.step(5))
    names = {path.name for path in (tmp_path / "__manifest" / "_versions").glob("*.manifest")}
    assert names == {f"{number}.manifest" for number in range(1, 14)}
    assert_everywhere(tmp_path, [table, follower], reference)


def test_a_root_without_all_columns_is_read_but_not_written(tmp_path: Path) -> None:
    rows = arrow([encode_entry(NamespaceEntry(("a",)))]).drop_columns(["base_objects"])
    lance.write_dataset(rows, str(tmp_path / "__manifest"))
    table = ManifestTable(LocalStore(tmp_path))
    assert table.refresh().child_namespaces(()) == ("a",)
    with pytest.raises(UnsupportedFeature, match="base_objects"):
        flip(table, put([NamespaceEntry(("b",))]))


@pytest.mark.parametrize(("key", "reads"), [("reader", False), ("writer", True)])
def test_flags_of_other_implementations_are_respected(tmp_path: Path, key: str, reads: bool) -> None:
    table = ManifestTable(LocalStore(tmp_path))
    flip(table, put([NamespaceEntry(("a",))]))
    open_manifest(tmp_path).update_metadata({f"lance.namespace.manifest.{key}_feature_flags": "1"})
    if not reads:
        with pytest.raises(UnsupportedFeature, match="reader flags 1"):
            table.refresh()
        return
    assert table.refresh().child_namespaces(()) == ("a",)
    with pytest.raises(UnsupportedFeature, match="writer flags 1"):
        flip(table, put([NamespaceEntry(("b",))]))


def test_changes_that_do_not_explain_the_fragments_are_not_believed(tmp_path: Path) -> None:
    """The properties of a transaction are a short cut: copied to another commit, they do not explain its fragments."""
    table, follower = (ManifestTable(LocalStore(tmp_path)) for _ in range(2))
    reference = ReferenceCatalog(9)
    for _ in range(10):
        flip(table, reference.step(4))
    follower.refresh()
    prepared = table.prepare(table.refresh(), put([NamespaceEntry(("lie",))]), attempt=str(uuid.uuid4()))
    properties = prepared_properties(prepared.manifest)
    dataset = open_manifest(tmp_path)
    rows = arrow([encode_entry(NamespaceEntry(("truth",)))])
    operation = lance.LanceOperation.Append(lance.fragment.write_fragments(rows, dataset))
    transaction = lance.Transaction(dataset.version, operation, str(uuid.uuid4()), transaction_properties=properties)
    lance.LanceDataset.commit(dataset, transaction)
    reference.apply(put([NamespaceEntry(("truth",))]))
    assert_everywhere(tmp_path, [table, follower], reference)


@pytest.mark.parametrize("lie", ["one row more", "one row less", "one removal more", "a broken text"])
def test_changes_are_counted_against_the_fragments(tmp_path: Path, lie: str) -> None:
    store = LocalStore(tmp_path)
    table, follower = ManifestTable(store), ManifestTable(store)
    reference = ReferenceCatalog(12)
    spaces = put([NamespaceEntry((f"n{number}",)) for number in range(40)])
    for changes in (spaces, put([NamespaceEntry(("b",)), NamespaceEntry(("c",))])):
        flip(table, changes)
        reference.apply(changes)
    follower.refresh()
    changes = changes_of([NamespaceEntry(("d",)), NamespaceEntry(("e",))], ["n7"])
    reference.apply(changes)
    prepared = table.prepare(table.refresh(), changes, attempt=str(uuid.uuid4()))
    table.stage(prepared)
    file = parse_manifest_file(prepared.manifest)
    assert file.transaction is not None
    told = orjson.loads(file.transaction.transaction_properties[CHANGES_PROPERTY])
    if lie == "one row more":
        told["puts"].append(["f", "namespace", None, None])
    elif lie == "one row less":
        told["puts"].pop()
    elif lie == "one removal more":
        told["removes"].append("n9")
    text = "{" if lie == "a broken text" else orjson.dumps(told).decode()
    file.transaction.transaction_properties[CHANGES_PROPERTY] = text
    store.put(prepared.path, encode_manifest_file(file.manifest, file.transaction))
    assert_everywhere(tmp_path, [table, follower], reference)


def prepared_properties(manifest: bytes) -> dict[str, str]:
    transaction = parse_manifest_file(manifest).transaction
    assert transaction is not None
    return dict(transaction.transaction_properties)


def test_a_moved_root_stays_valid(tmp_path: Path) -> None:
    """Every path in the catalog is relative to its root."""
    table = ManifestTable(LocalStore(tmp_path / "old"))
    reference = ReferenceCatalog(10)
    for _ in range(20):
        flip(table, reference.step(5))
    shutil.move(tmp_path / "old", tmp_path / "new")
    moved: CatalogSnapshot = ManifestTable(LocalStore(tmp_path / "new")).refresh()
    assert_snapshot_is(moved, reference)
    assert_on_disk(tmp_path / "new", reference)
