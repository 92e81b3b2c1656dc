import shutil
import struct
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile, encode_manifest_file, parse_manifest_file, serialized_manifest
from lance_core.format.naming import parse_manifest_name
from lance_core.proto import lance_table_pb2 as pb

OFFSETS = ("index_section", "transaction_section", "transaction_section_deprecated")


def parse(path: Path) -> ManifestFile:
    parsed = parse_manifest_name(path.name)
    assert parsed is not None
    return parse_manifest_file(path.read_bytes(), expected_version=parsed[0])


def without_offsets(manifest: pb.Manifest) -> pb.Manifest:
    copy = pb.Manifest.FromString(manifest.SerializeToString())
    for field in OFFSETS:
        copy.ClearField(field)
    return copy


def unknown_fields(message: Message) -> list[str]:
    """The numbers of all fields, at any depth, that our .proto does not name."""
    found = [f"{message.DESCRIPTOR.name}.{field.field_number}" for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        kind = descriptor.message_type
        if kind is None:
            continue
        if kind.GetOptions().map_entry:
            if kind.fields_by_name["value"].message_type is not None:
                for entry in value.values():
                    found += unknown_fields(entry)
        else:
            for entry in value if descriptor.is_repeated else [value]:
                found += unknown_fields(entry)
    return found


def sample_file() -> bytes:
    manifest = pb.Manifest(
        version=7,
        fields=[pb.Field(name="a", parent_id=-1, logical_type="int64")],
        fragments=[pb.DataFragment(id=1, physical_rows=3, files=[pb.DataFile(path="x.lance", fields=[0])])],
        config={"b": "2", "a": "1"},
        transaction_file="6-u.txn",
    )
    transaction = pb.Transaction(read_version=6, uuid="u", append=pb.Transaction.Append())
    return encode_manifest_file(manifest, transaction, pb.IndexSection(indices=[pb.IndexMetadata(name="i")]))


def test_every_manifest_that_pylance_writes_survives_a_round_trip(worked_manifests: list[Path]) -> None:
    operations = set()
    for path in worked_manifests:
        original = path.read_bytes()
        file = parse(path)
        assert file.transaction is not None, path
        operations.add(file.operation)
        encoded = encode_manifest_file(file.manifest, file.transaction, file.indices)
        assert len(encoded) == len(original), path
        again = parse_manifest_file(encoded, expected_version=file.version)
        assert again.manifest == file.manifest
        assert again.transaction == file.transaction
        assert again.indices == file.indices
        assert encode_manifest_file(again.manifest, again.transaction, again.indices) == encoded
    assert operations == {
        *("append", "clone", "create_index", "delete", "merge", "overwrite", "project"),
        *("reserve_fragments", "restore", "rewrite", "update", "update_config"),
    }


def test_pylance_writes_no_unknown_field(worked_manifests: list[Path]) -> None:
    for path in worked_manifests:
        file = parse(path)
        sections = [file.manifest, file.transaction, file.indices]
        assert [
            unknown_fields(section) for section in sections if section is not None and unknown_fields(section)
        ] == []


def test_the_inline_transaction_is_the_transaction_file(worked_manifests: list[Path]) -> None:
    seen = 0
    for path in worked_manifests:
        file = parse(path)
        txn = path.parent.parent / "_transactions" / file.manifest.transaction_file
        if file.manifest.transaction_file and txn.exists():
            assert pb.Transaction.FromString(txn.read_bytes()) == file.transaction
            assert file.identity.transaction_uuid in txn.name
            seen += 1
    assert seen > 10


def test_pylance_opens_reencoded_manifests(worked_table: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.lance"
    shutil.copytree(worked_table, copy)
    operations = {}
    for path in copy.glob("_versions/*.manifest"):
        file = parse(path)
        operations[file.version] = file.operation
        path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))
    original, ours = lance.dataset(str(worked_table)), lance.dataset(str(copy))
    for entry in original.versions():
        theirs = original.checkout_version(entry["version"])
        mine = ours.checkout_version(entry["version"])
        mine.validate()
        assert mine.to_table() == theirs.to_table()
        assert [index.name for index in mine.describe_indices()] == [index.name for index in theirs.describe_indices()]
        if operations[mine.version] != "rewrite":  # pylance 14.0.2 fails to show one that touched an index
            transaction = mine.read_transaction(mine.version)
            assert transaction.uuid == theirs.read_transaction(mine.version).uuid
            name = type(transaction.operation).__name__.lower()
            assert name in {operations[mine.version].replace("_", ""), "baseoperation"}
    lance.write_dataset(ours.to_table(), copy, mode="append")
    assert lance.dataset(str(copy)).count_rows() == 2 * ours.count_rows()


def test_offsets_are_those_of_the_sections() -> None:
    data = sample_file()
    file = parse_manifest_file(data)
    manifest, indices = file.manifest, file.indices
    assert indices is not None
    assert manifest.index_section == 0
    assert manifest.transaction_section == 4 + indices.ByteSize()
    begin, major, minor, magic = struct.unpack("<qHH4s", data[-16:])
    assert (major, minor, magic) == (0, 2, b"LANC")
    assert begin + 4 + manifest.ByteSize() + 16 == len(data)
    assert data[begin + 4 : -16] == manifest.SerializeToString(deterministic=True)


def test_stale_offsets_are_replaced_and_the_input_is_left_alone() -> None:
    manifest = pb.Manifest(
        version=1, index_section=99, transaction_section=98, transaction_section_deprecated=97, tag="t"
    )
    before = manifest.SerializeToString()
    file = parse_manifest_file(encode_manifest_file(manifest, None, pb.IndexSection()))
    assert manifest.SerializeToString() == before
    assert not any(file.manifest.HasField(field) for field in OFFSETS)
    assert without_offsets(manifest) == file.manifest
    assert file.transaction is None
    assert file.indices is None
    assert file.identity.transaction_uuid == ""


def test_equal_messages_give_equal_bytes_whatever_the_order_of_their_maps() -> None:
    forward, backward = pb.Manifest(version=1), pb.Manifest(version=1)
    keys = [f"key {i}" for i in range(50)]
    for key in keys:
        forward.config[key] = "v"
    for key in reversed(keys):
        backward.config[key] = "v"
    assert encode_manifest_file(forward, None) == encode_manifest_file(backward, None)


def test_the_transaction_of_earlier_writers_is_found_by_field_21() -> None:
    transaction = pb.Transaction(uuid="old").SerializeToString()
    section = struct.pack("<I", len(transaction)) + transaction
    manifest = pb.Manifest(version=3, transaction_section_deprecated=0).SerializeToString()
    frame = struct.pack("<I", len(manifest)) + manifest + struct.pack("<qHH4s", len(section), 0, 2, b"LANC")
    file = parse_manifest_file(section + frame)
    assert file.transaction is not None
    assert file.identity.transaction_uuid == "old"


def test_the_transaction_uuid_comes_from_the_file_name_when_nothing_is_inline() -> None:
    manifest = pb.Manifest(version=3, transaction_file="2-8b16a05d-f4ea-432b.txn")
    assert parse_manifest_file(encode_manifest_file(manifest, None)).identity.transaction_uuid == "8b16a05d-f4ea-432b"


def test_a_name_with_another_version_is_refused() -> None:
    with pytest.raises(CorruptFile, match="named version 8 contains version 7"):
        parse_manifest_file(sample_file(), expected_version=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "ends with"),
        (lambda data: data[:-4] + b"LANX", "LANX"),
        (lambda data: data[:-6] + struct.pack("<H", 3) + data[-4:], "version 0.3"),
        (lambda data: b"x" + data, "manifest has"),
        (lambda data: data[:-16] + b"\0" + data[-16:], "manifest has"),
        (lambda data: data[:-16] + struct.pack("<q", -1) + data[-8:], "begins at byte -1"),
        (lambda data: data[:-16] + struct.pack("<q", len(data)) + data[-8:], "begins at byte"),
    ],
)
def test_an_inconsistent_frame_is_refused(change, message: str) -> None:
    with pytest.raises(CorruptFile, match=message):
        parse_manifest_file(change(sample_file()))


@pytest.mark.parametrize("field", ["index_section", "transaction_section"])
def test_a_section_outside_the_file_is_refused(field: str) -> None:
    manifest = pb.Manifest(version=1, **{field: 5}).SerializeToString()
    data = struct.pack("<I", len(manifest)) + manifest + struct.pack("<qHH4s", 0, 0, 2, b"LANC")
    with pytest.raises(CorruptFile, match="begins at byte 5"):
        parse_manifest_file(data)


@given(st.data())
def test_damaged_files_are_corrupt_or_still_parse(data: st.DataObject) -> None:
    damaged = bytearray(sample_file())
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), max_size=4)):
        damaged[bit // 8] ^= 1 << bit % 8
    kept = data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))
    check_parse(bytes(damaged[:kept]))


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(-5, 200))
def test_arbitrary_sections_are_corrupt_or_parse(section: bytes, manifest: bytes, begin: int) -> None:
    body = section + struct.pack("<I", len(manifest)) + manifest
    check_parse(body + struct.pack("<qHH4s", len(section), 0, 2, b"LANC"))
    check_parse(body + struct.pack("<qHH4s", begin, 0, 2, b"LANC"))


def check_parse(data: bytes) -> None:
    try:
        file = parse_manifest_file(data)
    except CorruptFile:
        return
    again = parse_manifest_file(encode_manifest_file(file.manifest, file.transaction, file.indices))
    assert again.version == file.version
    assert isinstance(file.timestamp_ns, int)


def test_pylance_reads_a_version_that_is_not_published(tmp_path: Path) -> None:
    root = str(tmp_path / "table.lance")
    table = lance.write_dataset(pa.table({"a": [1, 2, 3]}), root)
    table.create_scalar_index("a", "BTREE")
    lance.write_dataset(pa.table({"a": [4, 5]}), root, mode="append")
    head = max((tmp_path / "table.lance" / "_versions").glob("*.manifest"), key=lambda path: parse(path).version)
    file = parse(head)
    assert file.indices is not None
    head.unlink()
    staged = lance.LanceDataset(root, serialized_manifest=serialized_manifest(file))
    assert staged.version == 3
    assert staged.to_table(filter="a > 2")["a"].to_pylist() == [3, 4, 5]
    assert lance.dataset(root).version == 2


def test_properties_are_those_of_the_content(worked_manifests: list[Path]) -> None:
    for path in worked_manifests:
        file = parse(path)
        parts = path.parent.parent.parts
        branch = "/".join(parts[parts.index("tree") + 1 :]) if "tree" in parts else None
        assert file.branch == branch
        assert file.timestamp_ns > 1_700_000_000 * 10**9
        assert file.identity.size == path.stat().st_size
