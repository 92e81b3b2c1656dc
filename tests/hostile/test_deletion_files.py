"""Damaged deletion files: refused with a typed error, or read as stock pylance reads them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFile, LanceCoreError
from lance_core.format.deletion import decode_deletion_file, deletion_file_path, encode_deletion_file
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from tests.hostile.limits import within_limits
from tests.hostile.mutations import Case, bit_flips, overwrites, splices, truncations
from tests.transaction.tables import Table, make_table

ROWS = 512
BITMAP, ARROW = pb.DeletionFile.BITMAP, pb.DeletionFile.ARROW_ARRAY
_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


def arrow_file(
    *columns: pa.Array, names: tuple[str, ...] = ("row_id",), codec: str | None = None, batches: int = 1
) -> bytes:
    batch = pa.record_batch(list(columns), names=list(names))
    if batch.schema == pa.schema([("row_id", pa.uint32())]) and not columns[0].null_count:
        batch = batch.cast(_SCHEMA)  # as stock writers have it: not nullable
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def offsets(*rows: int) -> pa.Array:
    return pa.array(rows, pa.uint32())


def container(*parts: tuple[int, int]) -> bytes:
    """The head of a bitmap: its containers, as (key, cardinality - 1)."""
    return struct.pack("<II", 12346, len(parts)) + b"".join(struct.pack("<HH", *part) for part in parts)


def every_row() -> bytes:
    """All 2^32 numbers, as 65,536 runs: less than a megabyte."""
    count = 1 << 16
    head = struct.pack("<HH", 12347, count - 1) + b"\xff" * (count // 8)
    keys = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(count))
    return head + keys + b"\0\0\0\0" * count + struct.pack("<HHH", 1, 0, 0xFFFF) * count


def batches_of_buffers(batches: int, buffers: int) -> bytes:
    """An Arrow file whose footer lists one batch of so many empty buffers again and again."""
    message = struct.pack("<I6HiBxxxI4x", 16, 12, 16, 0, 4, 8, 0, 12, 3, 20)
    batch = struct.pack("<6HiI8x", 12, 16, 0, 0, 4, 0, 12, 12) + struct.pack("<I", buffers) + bytes(16 * buffers)
    framed = struct.pack("<II", 0xFFFFFFFF, len(message + batch)) + message + batch
    blocks = struct.pack("<I", batches) + struct.pack("<qi4xq", 8, len(framed), 0) * batches
    footer = struct.pack("<I6HiI", 16, 12, 8, 0, 0, 0, 4, 12, 4) + blocks
    return b"ARROW1\0\0" + framed + footer + struct.pack("<i", len(footer)) + b"ARROW1"


@cache
def handmade_arrow() -> dict[str, bytes]:
    zeros = pa.array(memoryview(bytes(80 << 20)).cast("I"), pa.uint32())
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, _SCHEMA).close()
    return {
        "another type": arrow_file(pa.array([1], pa.int32())),
        "64 bits": arrow_file(pa.array([1], pa.uint64())),
        "texts": arrow_file(pa.array(["1"])),
        "a dictionary": arrow_file(pa.array(["1", "2"]).dictionary_encode()),
        "lists": arrow_file(pa.array([[1]], pa.list_(pa.uint32()))),
        "nulls": arrow_file(pa.array([1, None], pa.uint32())),
        "only nulls": arrow_file(pa.nulls(3)),
        "another name": arrow_file(offsets(1), names=("row",)),
        "two columns": arrow_file(offsets(1), offsets(2), names=("row_id", "more")),
        "no rows": arrow_file(offsets()),
        "no batch": arrow_file(offsets(1), batches=0),
        "the same row twice": arrow_file(offsets(1, 1)),
        "the same batch twice": arrow_file(offsets(1, 2), batches=2),
        "a row beyond the fragment": arrow_file(offsets(1, ROWS)),
        "the last row of all": arrow_file(offsets(2**32 - 1)),
        "compressed with lz4": arrow_file(offsets(*range(99)), codec="lz4"),
        "compressed with zstd": arrow_file(offsets(*range(99)), codec="zstd"),
        "a bomb": arrow_file(zeros, codec="zstd"),
        "many small bombs": arrow_file(zeros[: 1 << 20], codec="lz4", batches=40),
        "a stream": sink.getvalue().to_pybytes(),
        "magic alone": b"ARROW1\0\0" * 2 + b"ARROW1",
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (batches_of_buffers(2700, 3000), "parts or more, expected at most 4096"),
        (batches_of_buffers(1, 5000), "5000 parts or more"),
        (batches_of_buffers(5000, 1), "a footer of 120028 bytes, expected at most 65536"),
        (batches_of_buffers(2, 2), "is not an Arrow file"),
    ],
)
def test_parts_of_an_arrow_file_are_bounded_before_it_is_read(data: bytes, expected: str) -> None:
    with within_limits(expected), pytest.raises(CorruptFile, match=expected):
        decode_deletion_file(pb.DeletionFile(file_type=ARROW), data)


def test_the_schema_of_an_arrow_file_is_bounded_before_it_is_read() -> None:
    columns = [offsets() for _ in range(20_000)]
    data = arrow_file(*columns, names=tuple(map(str, range(20_000))), batches=0)
    with within_limits("columns"), pytest.raises(CorruptFile, match="footer of"):
        decode_deletion_file(pb.DeletionFile(file_type=ARROW), data)


HANDMADE_BITMAPS = {
    "all rows there are": every_row(),
    "no containers": container(),
    "65,536 containers that are not there": struct.pack("<II", 12346, 1 << 16),
    "four billion containers": struct.pack("<II", 12346, 2**32 - 1),
    "a container without content": container((0, 5)),
    "descending rows": container((0, 1)) + struct.pack("<IHH", 16, 5, 3),
    "the same row twice": container((0, 1)) + struct.pack("<IHH", 16, 5, 5),
    "the same container twice": container((0, 0), (0, 0)) + struct.pack("<IIHH", 24, 26, 5, 3),
    "an offset that lies": container((0, 1)) + struct.pack("<IHH", 2**31, 5, 6),
    "a run out of its container": struct.pack("<HHBHHHHH", 12347, 0, 1, 0, 9, 1, 65530, 100),
    "a row beyond the fragment": BitMap([1, ROWS]).serialize(),
    "64 bits": struct.pack("<QI", 1, 0) + BitMap([1]).serialize(),
    "another magic": struct.pack("<II", 12345, 1) + bytes(8),
}


@dataclass(frozen=True)
class Scene:
    """Version 2 of a table of one fragment, whose deletion file is for the tests to write."""

    table: Table
    message: pb.DeletionFile
    honest: bytes

    def ours(self, data: bytes) -> BitMap:
        return decode_deletion_file(self.message, data, physical_rows=ROWS)

    def stock(self, data: bytes) -> list[int] | None:
        """The ids that pylance shows; None when it refuses."""
        path = self.table.path / deletion_file_path("", 0, self.message)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        try:
            return self.table.ids(2)
        except (OSError, ValueError):
            return None


def make_scene(root: Path, rows: BitMap, kind: pb.DeletionFile.Type, *, counted: bool = True) -> Scene:
    table = make_table(root, (0, ROWS))
    message, data = encode_deletion_file(rows, read_version=1, kind=kind)
    if not counted:
        message.num_deleted_rows = 0
    head = table.head()
    manifest = pb.Manifest()
    manifest.CopyFrom(head.manifest)
    manifest.version = 2
    manifest.fragments[0].deletion_file.CopyFrom(message)
    transaction = pb.Transaction(read_version=1, uuid="ours")
    transaction.delete.updated_fragments.append(manifest.fragments[0])
    (table.path / "_versions" / manifest_name(2)).write_bytes(encode_manifest_file(manifest, transaction))
    return Scene(table, message, data)


SETS = {"few": BitMap([1, 5, 9, 400]), "many": BitMap(range(3, 500, 2)), "a run": BitMap(range(100, 200))}


def cases(data: bytes, kind: pb.DeletionFile.Type, seed: int) -> Iterator[Case]:
    rng = random.Random(seed)
    yield from (HANDMADE_BITMAPS if kind == BITMAP else handmade_arrow()).items()
    yield from truncations(data, 400)
    yield from bit_flips(data, 600, rng)
    yield from overwrites(data, 600, rng)
    yield from splices(data, 300, rng)


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "not counted"])
@pytest.mark.parametrize("rows", SETS)
@pytest.mark.parametrize("kind", [ARROW, BITMAP], ids=["arrow", "bitmap"])
def test_damaged_deletion_files_are_refused_or_read_like_pylance(
    tmp_path: Path, kind: pb.DeletionFile.Type, rows: str, counted: bool
) -> None:
    scene = make_scene(tmp_path, SETS[rows], kind, counted=counted)
    assert scene.stock(scene.honest) == [i for i in range(ROWS) if i not in SETS[rows]]
    refused = accepted = 0
    for what, data in cases(scene.honest, kind, seed=ROWS + len(rows)):
        with within_limits(what):
            try:
                found = scene.ours(data)
            except LanceCoreError:
                refused += 1
                continue
        accepted += 1
        theirs = scene.stock(data)
        assert theirs is None or theirs == [i for i in range(ROWS) if i not in found], what
    assert refused > accepted > 0
    assert refused + accepted > 1500
