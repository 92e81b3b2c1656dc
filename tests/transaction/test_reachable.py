"""The files that a transaction adds (rule S1) are the files that its version has and the one before did not have."""

from __future__ import annotations

from pathlib import Path

import pytest
from lance.lance import DatasetBasePath

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.reachable import is_file_path, reachable_files, unlisted_index_directories
from tests.transaction.tables import Table, make_table
from tests.transaction.test_lineage import work


def files_of(table: Table, file: ManifestFile) -> set[str]:
    """The keys of all files of a version, as far as they are its own."""
    found = set()
    for fragment in file.manifest.fragments:
        found |= {f"t/data/{entry.path}" for entry in fragment.files if not entry.HasField("base_id")}
        deletion = fragment.deletion_file
        if fragment.HasField("deletion_file") and not deletion.HasField("base_id"):
            extension = "bin" if deletion.file_type == pb.DeletionFile.BITMAP else "arrow"
            found.add(f"t/_deletions/{fragment.id}-{deletion.read_version}-{deletion.id}.{extension}")
    for index in file.indices.indices if file.indices is not None else ():
        (directory,) = (
            path for path in (table.path / "_indices").iterdir() if path.name.replace("-", "") == index.uuid.uuid.hex()
        )
        found |= {f"t/_indices/{directory.name}/{entry.path}" for entry in index.files}
    return found


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_all_new_files_of_a_version_are_named(tmp_path: Path, stable_row_ids: bool) -> None:
    table = make_table(tmp_path, (0, 10), (10, 20), (20, 30), stable_row_ids=stable_row_ids)
    work(table)
    before: ManifestFile | None = None
    seen: set[str] = set()
    for file in table.manifests().values():
        assert file.transaction is not None
        named = list(reachable_files(file.transaction, "t", before))
        assert len(named) == len(set(named))
        new = files_of(table, file) - (files_of(table, before) if before is not None else set())
        if file.operation == "restore":
            assert named == []
            assert new <= seen
        else:
            assert set(named) == new, (file.version, file.operation)
        assert set(named) <= set(reachable_files(file.transaction, "t"))
        assert all((table.root / key).exists() for key in named)
        seen |= new
        before = file
    assert any("/_indices/" in key for key in seen)
    assert any("/_deletions/" in key for key in seen)


def test_files_under_other_base_paths_are_left_out(tmp_path: Path) -> None:
    fragment = pb.DataFragment()
    fragment.files.add(path="a.lance")
    fragment.files.add(path="b.lance", base_id=0)
    transaction = pb.Transaction(append=pb.Transaction.Append(fragments=[fragment]))
    assert list(reachable_files(transaction, "t")) == ["t/data/a.lance"]
    assert list(reachable_files(transaction, "")) == ["data/a.lance"]


def test_metadata_changes_add_no_files(tmp_path: Path) -> None:
    table = make_table(tmp_path, (0, 10))
    table.open().add_bases([DatasetBasePath(str(tmp_path / "x"), name="x")])
    transaction = table.head().transaction
    assert transaction is not None
    assert list(reachable_files(transaction, "t")) == []


def test_overlays_and_replacements() -> None:
    group = pb.Transaction.DataOverlayGroup(overlays=[pb.DataOverlayFile(data_file=pb.DataFile(path="o.lance"))])
    overlay = pb.Transaction(data_overlay=pb.Transaction.DataOverlay(groups=[group]))
    assert list(reachable_files(overlay, "t")) == ["t/data/o.lance"]


def test_index_segments_that_do_not_list_their_files() -> None:
    uuid = bytes(range(16))
    entry = pb.IndexMetadata(uuid=pb.UUID(uuid=uuid))
    create = pb.Transaction(create_index=pb.Transaction.CreateIndex(new_indices=[entry]))
    assert list(reachable_files(create, "t")) == []
    assert unlisted_index_directories(create, "t") == ["t/_indices/00010203-0405-0607-0809-0a0b0c0d0e0f"]
    rewritten = pb.Transaction.Rewrite.RewrittenIndex(new_id=pb.UUID(uuid=uuid))
    rewrite = pb.Transaction(rewrite=pb.Transaction.Rewrite(rewritten_indices=[rewritten]))
    assert unlisted_index_directories(rewrite, "t") == ["t/_indices/00010203-0405-0607-0809-0a0b0c0d0e0f"]
    rewritten.new_index_files.add(path="page_data.lance")
    listed = pb.Transaction(rewrite=pb.Transaction.Rewrite(rewritten_indices=[rewritten]))
    assert unlisted_index_directories(listed, "t") == []
    assert list(reachable_files(listed, "t")) == ["t/_indices/00010203-0405-0607-0809-0a0b0c0d0e0f/page_data.lance"]


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../b", "a//b", "./a", "a/"])
def test_paths_outside_their_directory_are_refused(path: str) -> None:
    assert not is_file_path(path)


def test_paths_inside_their_directory_are_accepted() -> None:
    assert is_file_path("a.lance")
    assert is_file_path("part/a.lance")
