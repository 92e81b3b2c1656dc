from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.deletion import decode_deletion_file, deletion_file_path, encode_deletion_file
from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb

KINDS = [pb.DeletionFile.ARROW_ARRAY, pb.DeletionFile.BITMAP]
row_sets = st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=300).map(BitMap)


def read_head(root: Path, version: int) -> ManifestFile:
    return parse_manifest_file((root / "_versions" / manifest_name(version)).read_bytes(), expected_version=version)


@given(row_sets, st.sampled_from(KINDS))
def test_decoding_is_the_inverse_of_encoding(rows: BitMap, kind: pb.DeletionFile.Type) -> None:
    message, data = encode_deletion_file(rows, read_version=4, kind=kind)
    assert (message.file_type, message.read_version, message.num_deleted_rows) == (kind, 4, len(rows))
    assert decode_deletion_file(message, data) == rows


def test_no_two_files_share_a_name() -> None:
    names = {encode_deletion_file(BitMap([1]), read_version=1)[0].id for _ in range(100)}
    assert len(names) == 100


@pytest.mark.parametrize("rows", [BitMap([3]), BitMap(range(0, 10_000, 2)), BitMap(range(0, 1 << 20, 1 << 14))])
def test_a_bitmap_is_smaller_than_an_arrow_file(rows: BitMap) -> None:
    message, data = encode_deletion_file(rows, read_version=1)
    assert message.file_type == pb.DeletionFile.BITMAP
    assert len(data) < len(encode_deletion_file(rows, read_version=1, kind=pb.DeletionFile.ARROW_ARRAY)[1])


def test_an_empty_set_has_no_file() -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        encode_deletion_file(BitMap(), read_version=1)


@pytest.mark.parametrize("deleted", [7, 9_000])
def test_files_of_pylance_are_read(tmp_path: Path, deleted: int) -> None:
    root = tmp_path / "table.lance"
    table = lance.write_dataset(pa.table({"a": range(20_000)}), str(root))
    table.delete(f"a % 2 = 1 and a < {2 * deleted}")
    (fragment,) = read_head(root, 2).manifest.fragments
    path = root / deletion_file_path("", fragment.id, fragment.deletion_file)
    data = path.read_bytes()
    rows = decode_deletion_file(fragment.deletion_file, data)
    assert rows == BitMap(range(1, 2 * deleted, 2))
    if fragment.deletion_file.file_type == pb.DeletionFile.BITMAP:
        assert encode_deletion_file(rows, read_version=1, kind=pb.DeletionFile.BITMAP)[1] == data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [BitMap([1, 5]), BitMap(range(100, 9_100)), BitMap(range(1, 8_000, 3))])
def test_pylance_reads_and_extends_our_files(tmp_path: Path, rows: BitMap, kind: pb.DeletionFile.Type) -> None:
    root = tmp_path / "table.lance"
    lance.write_dataset(pa.table({"a": range(10_000)}), str(root))
    manifest = pb.Manifest()
    manifest.CopyFrom(read_head(root, 1).manifest)
    message, data = encode_deletion_file(rows, read_version=1, kind=kind)
    manifest.version = 2
    manifest.fragments[0].deletion_file.CopyFrom(message)
    path = root / deletion_file_path("", 0, message)
    path.parent.mkdir()
    path.write_bytes(data)
    transaction = pb.Transaction(read_version=1, uuid="ours")
    transaction.delete.updated_fragments.append(manifest.fragments[0])
    (root / "_versions" / manifest_name(2)).write_bytes(encode_manifest_file(manifest, transaction))

    table = lance.dataset(str(root))
    table.validate()
    assert table.to_table()["a"].to_pylist() == [a for a in range(10_000) if a not in rows]
    table.delete("a = 0")
    (fragment,) = read_head(root, 3).manifest.fragments
    extended = (root / deletion_file_path("", 0, fragment.deletion_file)).read_bytes()
    assert decode_deletion_file(fragment.deletion_file, extended) == rows | BitMap([0])


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_of_rows_is_corrupt(kind: pb.DeletionFile.Type) -> None:
    message, data = encode_deletion_file(BitMap([1, 2, 3]), read_version=1, kind=kind)
    message.num_deleted_rows = 2
    with pytest.raises(CorruptFile, match="holds 3 rows, expected 2"):
        decode_deletion_file(message, data)


def test_bytes_after_a_bitmap_are_corrupt() -> None:
    message, data = encode_deletion_file(BitMap([1, 2, 3]), read_version=1, kind=pb.DeletionFile.BITMAP)
    with pytest.raises(CorruptFile, match="expected a bitmap of"):
        decode_deletion_file(message, data + b"\0")


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"row_id": pa.array([1], pa.int32())}),
        pa.table({"row": pa.array([1], pa.uint32())}),
        pa.table({"row_id": pa.array([1], pa.uint32()), "more": [1]}),
        pa.table({"row_id": pa.array([1, 1], pa.uint32())}),
        pa.table({"row_id": pa.array([1, None], pa.uint32())}),
    ],
)
def test_other_arrow_files_are_corrupt(table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    message = pb.DeletionFile(file_type=pb.DeletionFile.ARROW_ARRAY, num_deleted_rows=table.num_rows)
    with pytest.raises(CorruptFile):
        decode_deletion_file(message, sink.getvalue().to_pybytes())


def test_an_unknown_kind_is_unsupported() -> None:
    message = pb.DeletionFile.FromString(b"\x08\x05")
    with pytest.raises(UnsupportedFeature, match="kind 5"):
        decode_deletion_file(message, b"")


@given(st.data(), st.sampled_from(KINDS))
def test_damaged_files_are_corrupt_or_still_parse(data: st.DataObject, kind: pb.DeletionFile.Type) -> None:
    message, encoded = encode_deletion_file(BitMap([1, 5, 9, 70_000]), read_version=1, kind=kind)
    damaged = bytearray(encoded)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=3)):
        damaged[bit // 8] ^= 1 << bit % 8
    kept = data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))
    try:
        rows = decode_deletion_file(message, bytes(damaged[:kept]))
    except CorruptFile:
        return
    assert len(rows) == 4
