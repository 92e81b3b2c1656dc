"""Messages that are decoded within a bound on how many they hold."""

from __future__ import annotations

import struct

import pytest
from google.protobuf.message import DecodeError, Message

from lance_core.errors import CorruptFile
from lance_core.format import decoding
from lance_core.format.decoding import BYTES_EACH, decode_message
from lance_core.format.footer import read_summary
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_file_pb2 as fb
from lance_core.proto import lance_table_pb2 as pb
from tests.hostile.limits import within_limits

FREE = decoding.FREE_MESSAGES
COUNT = 4 * FREE


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


def field(kind: type[Message], name: str, content: bytes = b"") -> bytes:
    """One field with a message or text in it."""
    return _varint(kind.DESCRIPTOR.fields_by_name[name].number << 3 | 2) + _varint(len(content)) + content


FRAGMENTS = field(pb.Transaction.Append, "fragments") * COUNT
FILES = field(pb.Transaction.Append, "fragments", field(pb.DataFragment, "files") * COUNT)
COLUMNS = field(fb.FileDescriptor.Schema, "fields") * COUNT
BOMBS: dict[str, tuple[type[Message], bytes]] = {
    "fragments": (pb.Transaction, field(pb.Transaction, "append", FRAGMENTS)),
    "files of one fragment": (pb.Transaction, field(pb.Transaction, "append", FILES)),
    "operations one after the other": (
        pb.Transaction,
        field(pb.Transaction, "append", field(pb.Transaction.Append, "fragments") * 50) * (COUNT // 50),
    ),
    "fields": (pb.Manifest, field(pb.Manifest, "fields") * COUNT),
    "fields of an outline": (pb.ManifestOutline, field(pb.ManifestOutline, "fields") * COUNT),
    "fragments of an outline": (pb.ManifestOutline, field(pb.ManifestOutline, "fragments") * COUNT),
    "entries of a map": (pb.Manifest, field(pb.Manifest, "config") * COUNT),
    "indices": (pb.IndexSection, field(pb.IndexSection, "indices") * COUNT),
    "row ids": (pb.RowIdSequence, field(pb.RowIdSequence, "segments") * COUNT),
    "columns": (
        fb.FileDescriptor,
        field(fb.FileDescriptor, "schema", field(fb.FileDescriptor.Schema, "fields") * COUNT),
    ),
}


@pytest.mark.parametrize("what", BOMBS)
def test_more_messages_than_bytes_allow_are_refused(what: str) -> None:
    kind, data = BOMBS[what]
    most = FREE + len(data) // BYTES_EACH
    with within_limits(what), pytest.raises(DecodeError, match=f"{len(data):,} bytes and more than {most:,} messages"):
        decode_message(kind, data)


def test_what_is_no_message_is_refused() -> None:
    tail = bytes(4 * FREE)
    for data in (b"\xff" * len(tail), b"\x0a\xff\xff\xff\xff\x0f" + tail, b"\x0f" + tail, b"\x08\0" * COUNT + b"\x0a"):
        with pytest.raises(DecodeError):
            decode_message(pb.Manifest, data)


def test_the_messages_that_anything_may_hold_are_decoded() -> None:
    data = field(pb.Manifest, "fields") * 1000
    assert len(decode_message(pb.Manifest, data, free=1000).fields) == 1000
    with pytest.raises(DecodeError):
        decode_message(pb.Manifest, data, free=800)


def large_transaction() -> pb.Transaction:
    """As writers make it, with what each kind of commit adds to a fragment."""
    found = pb.Transaction(read_version=7, uuid="u" * 36)
    for number in range(10_000):
        fragment = found.append.fragments.add(id=number, physical_rows=1000)
        fragment.files.add(path=f"{number:032d}.lance", fields=[0, 1], column_indices=[0, 1], file_major_version=2)
        fragment.deletion_file.id = number + 1
        fragment.deletion_file.num_deleted_rows = 7
    found.transaction_properties["k"] = "v"
    return found


def test_what_writers_make_is_decoded() -> None:
    transaction = large_transaction()
    data = transaction.SerializeToString()
    assert decode_message(pb.Transaction, data, free=0) == transaction
    manifest = pb.Manifest(version=3, fragments=transaction.append.fragments, config={"a": "b"})
    manifest.fields.add(name="x", logical_type="int32")
    for lazily in (False, True):
        found = parse_manifest_file(encode_manifest_file(manifest, transaction), expected_version=3, lazily=lazily)
        assert found.transaction == transaction
        assert list(found.manifest.fragments) == list(manifest.fragments)


def manifest_file(section: bytes) -> bytes:
    return struct.pack("<I", len(section)) + section + struct.pack("<qHH4s", 0, 0, 2, b"LANC")


@pytest.mark.parametrize("lazily", [False, True])
def test_a_manifest_file_names_itself_as_damaged(*, lazily: bool) -> None:
    with within_limits("fields"), pytest.raises(CorruptFile, match=r"manifest at byte 0 is not a Manifest.*more than"):
        parse_manifest_file(manifest_file(BOMBS["fields"][1]), lazily=lazily)
    unknown = (_varint(1000 << 3) + b"\0") * COUNT
    with within_limits("unknown"), pytest.raises(CorruptFile, match=f"{COUNT:,} fields that are not known"):
        parse_manifest_file(manifest_file(unknown), lazily=lazily)


def test_a_data_file_names_its_descriptor() -> None:
    descriptor = BOMBS["columns"][1]
    place = struct.pack("<QQ", 0, len(descriptor))
    data = descriptor + place + struct.pack("<QQQIIHH4s", 0, 0, len(descriptor), 1, 1, 2, 1, b"LANC")
    with within_limits("columns"), pytest.raises(CorruptFile, match=r"descriptor of a data file.*more than"):
        read_summary(data, len(data), lambda *place: pytest.fail(f"reads {place}"))
