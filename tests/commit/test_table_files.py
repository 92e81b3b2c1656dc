"""Reading the files of a table, and of the tables that its base paths name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.commit.table_files import TableFiles
from lance_core.errors import NotFound, UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb
from tests.transaction.tables import make_table


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
