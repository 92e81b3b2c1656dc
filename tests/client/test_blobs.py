"""Values of columns of blobs as files, over HTTP and in process."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from namespace_client import (
    AccessRefused,
    AsyncCatalog,
    BlobFile,
    CatalogClosed,
    CatalogUnreachable,
    CommitRejected,
    InvalidCall,
    NotFound,
)
from namespace_client import blobs as client_blobs
from tests.client.scene import Scene

LONG = os.urandom(5_000_000)
VALUES = [b"short", os.urandom(200_000), LONG, None, b""]
TABLE = pa.table([pa.array(range(5)), blob_array(VALUES)], pa.schema([pa.field("id", pa.int64()), blob_field("photo")]))


@pytest.fixture
def photos(scene: Scene) -> Scene:
    scene.catalog.create("photos", TABLE)
    return scene


def opened(found: BlobFile | None) -> BlobFile:
    assert found is not None
    return found


def test_a_blob_is_a_file(photos: Scene) -> None:
    with opened(photos.catalog.blob("photos", "photo", 2)) as blob:
        assert (blob.size, blob.row, blob.version) == (len(LONG), 2, 1)
        assert blob.read(4) == LONG[:4]
        assert blob.seek(-10, io.SEEK_END) == len(LONG) - 10
        assert blob.read() == LONG[-10:]
        assert blob.read() == b""
        assert blob.seek(1_000_000) == blob.tell() == 1_000_000
        assert blob.read(2_500_000) == LONG[1_000_000:3_500_000]
        assert blob.seek(5, io.SEEK_CUR) == 3_500_005
        place = blob.tell()
        assert blob.read_range(7, 3) == LONG[7:10]
        assert blob.read_range(len(LONG) - 2, 100) == LONG[-2:]
        assert blob.read_range(len(LONG) + 1, 1) == b""
        assert b"".join(blob.pieces(4_999_000)) == LONG[4_999_000:]
        assert list(blob.pieces(len(LONG))) == []
        assert blob.tell() == place
        blob.seek(0)
        target = io.BytesIO()
        shutil.copyfileobj(blob, target)
        assert target.getvalue() == LONG
        blob.seek(len(LONG) + 10)
        assert blob.read(1) == b""
        with pytest.raises(ValueError, match="negative"):
            blob.seek(-1)
        with pytest.raises(InvalidCall, match="length"):
            blob.read_range(0, -1)
    assert blob.closed
    with pytest.raises(ValueError, match="closed"):
        blob.read(1)
    with pytest.raises(ValueError, match="closed"):
        blob.read_range(0, 1)


def test_the_rows_are_named_by_id_or_by_a_filter(photos: Scene) -> None:
    catalog = photos.catalog
    assert opened(catalog.blob("photos", "photo", filter="id = 1")).read() == VALUES[1]
    assert catalog.blob("photos", "photo", 3) is None
    empty = opened(catalog.blob("photos", "photo", 4))
    assert (empty.size, empty.read()) == (0, b"")
    tags = {opened(catalog.blob("photos", "photo", row)).tag for row in (0, 1)}
    assert len(tags | {opened(catalog.blob("photos", "photo", filter="id = 1")).tag}) == 2
    for wrong in ({}, {"row": 1, "filter": "id = 1"}, {"row": -1}, {"row": True}):
        with pytest.raises(InvalidCall, match="row"):
            catalog.blob("photos", "photo", **wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="expected row 99, found none"):
        catalog.blob("photos", "photo", 99)
    with pytest.raises(NotFound, match="expected one row that matches it, found none"):
        catalog.blob("photos", "photo", filter="id = 99")
    with pytest.raises(CommitRejected, match="expected one row that matches it, found several") as several:
        catalog.blob("photos", "photo", filter="id > 1")
    assert several.value.status == 409
    with pytest.raises(
        CommitRejected if isinstance(photos.target, str) else InvalidCall, match="expected a column of blobs"
    ):
        catalog.blob("photos", "id", 0)
    with pytest.raises(NotFound):
        catalog.blob("none", "photo", 0)


def test_it_stays_what_it_was(photos: Scene) -> None:
    catalog = photos.catalog
    before = catalog.pin(f"before-{photos.namespace}")
    blob = opened(catalog.blob("photos", "photo", 2))
    catalog.create_tag("photos", "first", version=1)
    catalog.delete("photos", "true")
    assert blob.read_range(0, 10) == LONG[:10]
    assert blob.read() == LONG
    with pytest.raises(NotFound):
        catalog.blob("photos", "photo", 2)
    assert before is not None
    for found in (
        catalog.blob("photos", "photo", 2, version=1),
        catalog.blob("photos", "photo", 2, tag="first"),
        catalog.at(before).blob("photos", "photo", 2),
    ):
        assert opened(found).tag == blob.tag
        assert opened(found).read(10) == LONG[:10]
    assert list(catalog.blobs("photos", "photo", [0], tag="first")) == [b"short"]
    assert list(catalog.at(before).blobs("photos", "photo", [0])) == [b"short"]


def test_many_come_one_after_the_other(photos: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, rows = photos.catalog, [3, 0, 4, 1, 0, 2]
    assert list(catalog.blobs("photos", "photo", rows)) == [VALUES[row] for row in rows]
    assert list(catalog.blobs("photos", "photo", [])) == []
    # More than the 64 MiB that a server sends at once, and more rows than it takes.
    rows = [0] * 1030 + [2] * 15
    monkeypatch.setattr(client_blobs, "_ROWS", 1024)
    lengths = [len(value or b"") for value in catalog.blobs("photos", "photo", rows)]
    assert lengths == [len(VALUES[row] or b"") for row in rows]
    with pytest.raises(NotFound, match="99"):
        list(catalog.blobs("photos", "photo", [0, 99]))


def test_one_beyond_the_bound_of_many_is_read_by_itself(scene: Scene) -> None:
    huge = bytes(70 << 20)
    scene.catalog.create("huge", pa.table([blob_array([huge, b"x"])], pa.schema([blob_field("b")])))
    found = list(scene.catalog.blobs("huge", "b", [1, 0, 1]))
    assert [len(value or b"") for value in found] == [1, len(huge), 1]


def test_a_file_elsewhere_is_not_read(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    scene.catalog.create("made", pa.table([blob_array([b"x"])], pa.schema([blob_field("b")])))
    root = Path(scene.catalog.dataset("made").uri.removeprefix("file://")).parent
    rows = pa.table([blob_array([f"file://{tmp_path}/secret"])], pa.schema([blob_field("b")]))
    name = f"outside-{scene.namespace}"
    lance.write_dataset(rows, str(root / name), data_storage_version="2.2", allow_external_blob_outside_bases=True)
    scene.catalog.register("outside", name)
    with pytest.raises(AccessRefused, match="lies outside the blob_locations"):
        scene.catalog.blob("outside", "b", 0)
    with pytest.raises(AccessRefused, match="lies outside the blob_locations"):
        list(scene.catalog.blobs("outside", "b", [0]))


def test_for_asyncio(photos: Scene) -> None:
    async def read() -> None:
        catalog = AsyncCatalog(photos.catalog)
        blob = await catalog.blob("photos", "photo", 2)
        assert blob is not None
        async with blob:
            assert (blob.size, blob.row, blob.version) == (len(LONG), 2, 1)
            assert await blob.read(5) == LONG[:5]
            assert await blob.seek(-5, io.SEEK_END) == len(LONG) - 5 == await blob.tell()
            assert await blob.read() == LONG[-5:]
            assert await blob.read_range(1, 2) == LONG[1:3]
            assert b"".join([piece async for piece in blob.pieces(10)]) == LONG[10:]
            async for _ in blob.pieces():
                break
        assert await catalog.blob("photos", "photo", 3) is None
        assert [value async for value in catalog.blobs("photos", "photo", [1, 3])] == [VALUES[1], None]
        view = await catalog.at(photos.catalog.access.state().version)
        assert [value async for value in view.blobs("photos", "photo", [0])] == [b"short"]

    asyncio.run(read())


def test_a_connection_that_was_closed(photos: Scene) -> None:
    blob = opened(photos.catalog.blob("photos", "photo", 2))
    photos.catalog.close()
    with pytest.raises(CatalogClosed):
        photos.catalog.blob("photos", "photo", 0)
    if isinstance(photos.target, str):
        with pytest.raises(CatalogUnreachable):
            blob.read_range(0, 1)
