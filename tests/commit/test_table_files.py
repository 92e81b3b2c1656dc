"""Reading the files of a table, and of the tables that its base paths name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyroaring import BitMap

from lance_core import commit_transaction
from lance_core.errors import InvalidTransaction, NotFound, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.table_files import TableFiles
from lance_core.transaction.operations import Delete, encode_transaction
from tests.transaction.tables import Table, make_table


@pytest.mark.parametrize("v2", [False, True])
def test_a_version_is_found_by_either_naming_scheme(tmp_path: Path, v2: bool) -> None:
    table = make_table(tmp_path, (0, 5), (5, 10), v2=v2)
    files = TableFiles(table.store, "t")
    assert files.manifest(2).identity == table.head().identity
    with pytest.raises(NotFound):
        files.manifest(3)


def test_deleted_rows(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 5), (5, 10))
    table.open().delete("id in (1, 3)")
    files = TableFiles(table.store, "t")
    manifest = table.head().manifest
    assert [list(files.deleted_rows(manifest, fragment)) for fragment in manifest.fragments] == [[1, 3], []]


def test_deleted_rows_of_a_branch_s_parent(tmp_path: Path) -> None:
    table = make_table(tmp_path / "a b", (0, 5))
    table.open().delete("id = 1")
    table.open().create_branch("dev")
    branch = table.branch("dev")
    files = TableFiles(table.store, "t/tree/dev")
    manifest = branch.head().manifest
    assert manifest.fragments[0].deletion_file.HasField("base_id")
    assert list(files.deleted_rows(manifest, manifest.fragments[0])) == [1]


def test_deleting_rows(tmp_path: Path) -> None:
    """What is written is what pylance would have committed: earlier deletions stay, empty fragments go."""
    table = make_table(tmp_path, (0, 5), (5, 10), (10, 15))
    table.open().delete("id in (1, 11)")
    files = TableFiles(table.store, "t")
    head = table.head()
    rows = {2: BitMap([0, 2, 3, 4]), 0: BitMap([1, 4])}
    updated, removed = files.delete_rows(head.outline, rows)
    assert removed == (2,)
    (changed,) = updated
    assert (changed.deletion_file.read_version, changed.deletion_file.num_deleted_rows) == (head.version, 2)
    assert files.deleted_rows(head.manifest, changed) == BitMap([1, 4])
    operation = Delete(updated, removed, "by hand")
    commit_transaction(table.uri, encode_transaction(operation, read_version=head.version, uuid="by-hand"))
    stock = table.open()
    stock.validate()
    assert stock.to_table()["id"].to_pylist() == [0, 2, 3, 5, 6, 7, 8, 9]


def test_rows_that_are_not_there_are_not_deleted(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 5), (5, 10))
    files = TableFiles(table.store, "t")
    manifest = table.head().outline
    for rows, what in (({7: BitMap([0])}, "fragment 7 is not"), ({1: BitMap([5])}, "row 5 of fragment 1")):
        with pytest.raises(InvalidTransaction, match=what):
            files.delete_rows(manifest, {0: BitMap([0]), **rows})
    assert not list(table.store.list("t/_deletions"))
    assert files.delete_rows(manifest, {}) == ((), ())


def test_a_fragment_of_unknown_size_is_kept(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 5))
    manifest = table.head().manifest
    manifest.fragments[0].physical_rows = 0
    updated, removed = TableFiles(table.store, "t").delete_rows(manifest, {0: BitMap(range(5))})
    assert [fragment.deletion_file.num_deleted_rows for fragment in updated] == [5]
    assert removed == ()


def test_deletions_of_a_clone_s_source_are_read_where_it_is(tmp_path: Path) -> None:
    source = make_table(tmp_path / "there", (0, 5))
    source.open().delete("id = 1")
    copy = Table(tmp_path / "here")
    source.open().shallow_clone(copy.uri, 2)
    manifest = copy.head().manifest
    with pytest.raises(UnsupportedFeature, match="is not a table in"):
        TableFiles(copy.store, "t").delete_rows(manifest, {0: BitMap([3])})
    files = TableFiles(copy.store, "t", lambda root: LocalStore(root, "none"))
    (changed,), removed = files.delete_rows(manifest, {0: BitMap([3])})
    assert removed == ()
    assert not changed.deletion_file.HasField("base_id")
    assert files.deleted_rows(manifest, changed) == BitMap([1, 3])


def test_base_paths(tmp_path: Path) -> None:
    files = TableFiles(make_table(tmp_path, (0, 5)).store, "t")
    manifest = pb.Manifest(version=4)
    inside = {0: f"{tmp_path}/x/y", 1: f"file://{tmp_path}/x", 2: f"{files.store.uri}/z/"}
    for identifier, path in inside.items():
        manifest.base_paths.add(id=identifier, path=path, is_dataset_root=True)
    manifest.base_paths.add(id=3, path="s3://bucket/x", is_dataset_root=True)
    manifest.base_paths.add(id=4, path=f"{tmp_path.parent}/beside", is_dataset_root=True)
    manifest.base_paths.add(id=5, path=f"{tmp_path}/data only")
    assert [files.base_key(manifest, identifier) for identifier in inside] == ["x/y", "x", "z"]
    for identifier in (3, 4, 5):
        with pytest.raises(UnsupportedFeature, match=f"base path {identifier} "):
            files.base_key(manifest, identifier)
    with pytest.raises(UnsupportedFeature, match="version 4 has no base path 9"):
        files.base_key(manifest, 9)
