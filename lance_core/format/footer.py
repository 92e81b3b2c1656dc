"""The end of a data file of format 2.x: how many rows and columns it has, of which types.

The last 40 bytes are the footer: where the metadata of the columns, the table of the columns and the table of the
global buffers begin (64 bits each), the numbers of global buffers and columns (32 bits each), the major and minor
version (16 bits each), and `LANC`. The first global buffer is a `FileDescriptor`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile
from lance_core.format.decoding import decode_message
from lance_core.proto import lance_file_pb2 as fb
from lance_core.proto import lance_table_pb2 as pb

MAGIC: Final = b"LANC"
"""The last bytes of a data file, and of most files of indices."""
TAIL: Final = 4096
"""Bytes at the end of a file that usually hold all that is read here of a table with few columns."""

_FOOTER: Final = struct.Struct("<QQQIIHH4s")
_PLACE: Final = struct.Struct("<QQ")
_LARGEST_DESCRIPTOR: Final = 16 << 20
_SPELLINGS: Final = {(0, 3): (2, 0)}
"""Format 2.0 has another number in its files."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    """The statements at the end of a data file: its format version, rows, columns, and fields (of any depth)."""

    version: tuple[int, int]
    rows: int
    columns: int
    fields: tuple[pb.Field, ...]


def read_summary(tail: bytes, size: int, read: Callable[[int, int], bytes]) -> FileSummary:
    """The summary of a file of `size` bytes that ends with `tail`; `read(offset, length)` gives bytes before it.

    Raises `CorruptFile` for anything but a whole data file.
    """
    if len(tail) < _FOOTER.size or tail[-4:] != MAGIC:
        raise CorruptFile(f"a file of {size} bytes does not end like a data file: it is not whole")
    _, _, buffer_table, buffers, columns, major, minor, _ = _FOOTER.unpack_from(tail, len(tail) - _FOOTER.size)

    def part(offset: int, length: int) -> bytes:
        begin = offset - (size - len(tail))
        if offset + length > size:
            raise CorruptFile(f"a file of {size} bytes refers to bytes {offset} to {offset + length}")
        return tail[begin : begin + length] if begin >= 0 else read(offset, length)

    if not buffers:
        raise CorruptFile("a data file without descriptor")
    offset, length = _PLACE.unpack(part(buffer_table, _PLACE.size))
    if length > _LARGEST_DESCRIPTOR:
        raise CorruptFile(f"a data file with a descriptor of {length} bytes: expected at most {_LARGEST_DESCRIPTOR}")
    try:
        descriptor = decode_message(fb.FileDescriptor, part(offset, length))
        fields = tuple(map(pb.Field.FromString, descriptor.schema.fields))
    except DecodeError as error:
        raise CorruptFile(f"the descriptor of a data file cannot be decoded: {error}") from error
    version = _SPELLINGS.get((major, minor), (major, minor))
    return FileSummary(version, descriptor.length, columns, fields)
