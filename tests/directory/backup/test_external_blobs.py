"""Values of blob columns that are files elsewhere are refused by a backup, or named in its record."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.blob import Blob, blob_array, blob_field

from lance_core.errors import UnsupportedFeature
from lance_core.storage.local import LocalStore
from namespace_server.directory.backup import verify
from tests.directory.backup.catalogs import back_up, restore
from tests.directory.tables import Ground

TABLE = ["g", "films"]
FLAT = pa.schema([("id", pa.int64()), blob_field("film")])
NESTED = pa.schema([("id", pa.int64()), pa.field("parts", pa.struct([blob_field("film"), pa.field("n", pa.int64())]))])
LISTED = pa.schema([("id", pa.int64()), pa.field("films", pa.list_(blob_field("item")))])


def table_of(schema: pa.Schema, *values: Blob | bytes | None) -> pa.Table:
    ids, blobs = pa.array(range(len(values)), pa.int64()), blob_array(list(values))
    kind = schema.field(1).type
    if pa.types.is_struct(kind):
        blobs = pa.StructArray.from_arrays([blobs, ids], fields=list(kind))
    elif pa.types.is_list(kind):
        blobs = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), blobs, type=kind)
    return pa.table([ids, blobs], schema=schema)


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "media/film.bin"
    path.parent.mkdir()
    path.write_bytes(b"film" * 1_000)
    return path


def write(ground: Ground, data: pa.Table, mode: str = "append", *, by_path: bool = False, **options: object) -> None:
    """With data files of a version that has such columns."""
    lance.write_dataset(
        data,
        mode=mode,
        namespace_client=ground.namespace,
        table_id=TABLE,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=not by_path,
        **options,
    )
    ground.catalog.sweep()


@pytest.mark.parametrize("schema", [FLAT, NESTED, LISTED], ids=["flat", "nested", "listed"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_file_that_a_blob_names_is_not_left_out_silently(
    ground: Ground, film: Path, tmp_path: Path, schema: pa.Schema, inside: bool
) -> None:
    """Neither where it lies below the root: the restored table would read it at the old place."""
    if inside:
        film = film.rename(ground.root / "film.bin")
    write(ground, table_of(schema, b"own", None, b"x" * 200_000), "create")
    back_up(ground, tmp_path / "backups")
    write(ground, table_of(schema, Blob.from_uri(film.as_uri())))
    ground.open(TABLE).delete("true")
    ground.read("list_table_versions", id=TABLE)
    with pytest.raises(UnsupportedFeature, match=f"values of its blob columns are files below {film.parent.as_uri()}"):
        back_up(ground, tmp_path / "backups")
    for _ in range(2):
        done = back_up(ground, tmp_path / "backups", keep_outside=True)
        assert done.record.outside == (film.parent.as_uri(),)
    with pytest.raises(UnsupportedFeature):  # also where nothing is new
        back_up(ground, tmp_path / "backups")
    assert verify(LocalStore(tmp_path / "backups"), decode=True).problems == ()


def test_blobs_of_their_own_are_backed_up(ground: Ground, tmp_path: Path) -> None:
    write(ground, table_of(FLAT, b"own", None, b"x" * 200_000, b"y" * 6_000_000), "create")
    back_up(ground, tmp_path / "backups")
    restored = restore(tmp_path / "backups", tmp_path / "other")
    ground.root.rename(tmp_path / "away")
    files = restored.open(TABLE).take_blobs("film", indices=[0, 2, 3])
    assert [len(file.read()) for file in files] == [3, 200_000, 6_000_000]


@pytest.mark.parametrize("inside", [False, True])
def test_blobs_below_a_base_path(ground: Ground, film: Path, tmp_path: Path, inside: bool) -> None:
    """With `keep_outside` the path stays as it is, also if it leads below the root."""
    if inside:
        (ground.root / "media").mkdir()
        film = film.rename(ground.root / "media/film.bin")
    base = lance.DatasetBasePath(str(film.parent), name="media", is_dataset_root=False)
    write(ground, table_of(FLAT, b"own"), "create", by_path=True)
    dataset = ground.open(TABLE)
    dataset.add_bases([base])
    lance.write_dataset(
        table_of(FLAT, Blob.from_uri(film.as_uri())), str(ground.root / ground.location(TABLE)), mode="append"
    )
    ground.read("list_table_versions", id=TABLE)
    ground.catalog.sweep()
    with pytest.raises(UnsupportedFeature, match=f"values of its blob columns are files below {film.parent}"):
        back_up(ground, tmp_path / "backups")
    done = back_up(ground, tmp_path / "backups", keep_outside=True)
    assert done.record.outside == (str(film.parent),)
    restored = restore(tmp_path / "backups", tmp_path / "other")
    assert [len(file.read()) for file in restored.open(TABLE).take_blobs("film", indices=[0, 1])] == [3, 4_000]


def test_data_files_that_are_known_are_not_read_again(
    ground: Ground, film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from namespace_server.directory.backup import external_blobs

    looked_at: list[int] = []
    scan = external_blobs.external_blobs
    monkeypatch.setattr(external_blobs, "external_blobs", lambda *given: [looked_at.append(given[3]), scan(*given)][1])
    write(ground, table_of(FLAT, Blob.from_uri(film.as_uri())), "create")
    back_up(ground, tmp_path / "backups", keep_outside=True)
    write(ground, table_of(FLAT, b"own"))
    back_up(ground, tmp_path / "backups", keep_outside=True)
    assert looked_at == [0, 1]
