"""Messages that are decoded within a bound on how many they hold."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError, Message

from lance_core.errors import CorruptFile
from lance_core.format import decoding
from lance_core.format.decoding import decode_message
from lance_core.format.footer import read_summary
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_file_pb2 as fb
from lance_core.proto import lance_table_pb2 as pb

FREE = 1000
COUNT = 4 * FREE


@pytest.fixture(autouse=True)
def _few_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "FREE_MESSAGES", FREE)


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


def field(kind: type[Message], name: str, content: bytes = b"") -> bytes:
    """One field with a message or text in it."""
    return _varint(kind.DESCRIPTOR.fields_by_name[name].number << 3 | 2) + _varint(len(content)) + content


FRAGMENTS = field(pb.Transaction.Append, "fragments") * COUNT
FILES = field(pb.Transaction.Append, "fragments", field(pb.DataFragment, "files") * COUNT)
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
    "fields of no number": (pb.Manifest, _varint(1000 << 3) + b"\0\0" + (_varint(1000 << 3) + b"\0") * COUNT),
    "texts in the place of numbers": (pb.Manifest, field(pb.Manifest, "version") * COUNT),
    "numbers in the place of messages": (pb.Manifest, b"\x08\0" * COUNT),
    "behind an open group": (pb.Manifest, b"\x0b" + field(pb.Manifest, "fields") * COUNT),
}


@pytest.mark.parametrize("what", BOMBS)
def test_more_messages_than_bytes_allow_are_refused(what: str) -> None:
    kind, data = BOMBS[what]
    with pytest.raises(DecodeError, match=f"{len(data):,} bytes and more than {FREE:,} messages"):
        decode_message(kind, data)


def test_what_is_no_message_is_refused_without_end() -> None:
    """Lengths that lead out of the data, numbers without an end, wire types that there are none of."""
    tail = bytes(2 * FREE)
    for data in (
        b"\xff" * 3000,
        b"\x0a\xff\xff\xff\xff\x0f" + tail,
        b"\x0f" + tail,
        b"\x09" * 3000 + b"\0",
        tail + b"\x0a",
    ):
        with pytest.raises(DecodeError):
            decode_message(pb.Manifest, data)


def large_transaction() -> pb.Transaction:
    """Of every kind of field some, and long enough to be counted: its messages have 30 bytes each."""
    found = pb.Transaction(read_version=7, uuid="u" * 36)
    for number in range(COUNT):
        fragment = found.append.fragments.add(id=number, physical_rows=1 << 40)
        fragment.files.add(
            path=f"{number}.lance",
            fields=range(5),
            column_indices=range(5),
            file_size_bytes=1 << 40,
            file_major_version=2,
        )
        fragment.deletion_file.id = number + 1
        fragment.inline_row_ids = b"\x0a\0" * 20
    found.transaction_properties["k"] = "v"
    return found


def test_what_writers_make_is_decoded() -> None:
    transaction = large_transaction()
    data = transaction.SerializeToString()
    assert len(data) > decoding.FREE_MESSAGES * 2
    assert decode_message(pb.Transaction, data) == transaction
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
    with pytest.raises(CorruptFile, match=r"manifest at byte 0 is not a Manifest.*more than 1,000 messages"):
        parse_manifest_file(manifest_file(BOMBS["fields"][1]), lazily=lazily)


def test_a_data_file_names_its_descriptor() -> None:
    schema = field(fb.Schema, "fields") * COUNT
    descriptor = field(fb.FileDescriptor, "schema", schema)
    place = struct.pack("<QQ", 0, len(descriptor))
    footer = struct.pack("<QQQIIHH4s", 0, 0, len(descriptor), 1, 1, 2, 1, b"LANC")
    data = descriptor + place + footer
    with pytest.raises(CorruptFile, match=r"descriptor of a data file.*more than 1,000 messages"):
        read_summary(data, len(data), _no_more)


_no_more: Callable[[int, int], bytes] = lambda offset, length: pytest.fail(f"{offset}, {length}")  # noqa: E731
