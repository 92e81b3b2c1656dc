"""The memory that an Arrow IPC file needs when it is decompressed, computed without decompressing it.

A compressed buffer states its decompressed length, and the library allocates that much before it reads on: a few
kilobytes may request gigabytes. The lengths are therefore read first, from the FlatBuffers frames. A FlatBuffers table
begins with the distance back to its vtable, which holds the offset of every field, 0 for an absent one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from lance_core.errors import CorruptFile

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_RECORD_BATCH = 3
_MOST_PARTS = 1 << 12
"""Batches and buffers of a file. A writer of deletion files makes one batch of two buffers."""
_LARGEST_FOOTER = 1 << 16
"""Bytes of the footer, which holds the schema: a hundred for each column, of which these files have one."""

_U16 = struct.Struct("<H")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")


def content_size(data: bytes) -> int:
    """The decompressed size in bytes of the buffers of all record batches.

    A batch that the footer lists several times is counted as often. Raises `CorruptFile` for malformed frames, and for
    more of them than is worth a look.
    """
    size = parts = 0
    try:
        for offset, metadata in _blocks(data):
            buffers = _buffer_sizes(data, offset, metadata)
            size, parts = size + sum(buffers), parts + 1 + len(buffers)
            _check_parts(data, parts)
        return size
    except (struct.error, IndexError, OverflowError) as error:
        raise CorruptFile(f"Arrow file of {len(data)} bytes: an offset points outside the file") from error


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Offset and metadata length of each record batch, from the footer."""
    tail = len(data) - len(_MAGIC) - _I32.size
    if tail < 0 or data[-len(_MAGIC) :] != _MAGIC:
        raise CorruptFile(f"Arrow file of {len(data)} bytes ends with {data[-len(_MAGIC) :]!r}, expected {_MAGIC!r}")
    length = _read(_I32, data, tail)
    if length > _LARGEST_FOOTER:
        raise CorruptFile(
            f"Arrow file of {len(data)} bytes: a footer of {length} bytes, expected at most {_LARGEST_FOOTER}"
        )
    begin = tail - length
    for field in (2, 3):  # dictionaries, record batches
        for offset, metadata, _ in _structs(data, _field(data, _root(data, begin), field), _BLOCK):
            yield offset, metadata


def _buffer_sizes(data: bytes, begin: int, framed: int) -> list[int]:
    """The decompressed sizes of the buffers of a batch."""
    length, metadata = _read(_U32, data, begin), begin + _U32.size
    if length == _CONTINUATION:
        length, metadata = _read(_U32, data, metadata), metadata + _U32.size
    body = metadata + length
    if body != begin + framed:
        raise CorruptFile(f"Arrow file of {len(data)} bytes: a batch has {body - begin} and {framed} bytes of metadata")
    message = _root(data, metadata)
    header = _field(data, message, 2)
    kind = _field(data, message, 1)
    if not header or not kind:
        return []
    batch = header + _read(_U32, data, header)
    if data[kind] != _RECORD_BATCH:  # a dictionary batch contains a record batch
        inner = _field(data, batch, 1)
        if not inner:
            return []
        batch = inner + _read(_U32, data, inner)
    buffers = _structs(data, _field(data, batch, 2), _BUFFER)
    if not _field(data, batch, 3):
        return [max(size, 0) for _, size in buffers]
    # A compressed buffer begins with its decompressed length, which is -1 if it is not compressed.
    return [max(_read(_I64, data, body + offset), size) for offset, size in buffers if size > 0]


def _check_parts(data: bytes, count: int) -> None:
    if count > _MOST_PARTS:
        raise CorruptFile(f"Arrow file of {len(data)} bytes: {count} parts or more, expected at most {_MOST_PARTS}")


def _root(data: bytes, begin: int) -> int:
    return begin + _read(_U32, data, begin)


def _field(data: bytes, table: int, number: int) -> int:
    """The position of a field of a table; 0 if it is absent."""
    vtable = table - _read(_I32, data, table)
    place = 4 + 2 * number
    if place >= _read(_U16, data, vtable):
        return 0
    offset = _read(_U16, data, vtable + place)
    return table + offset if offset else 0


def _structs(data: bytes, field: int, form: struct.Struct) -> Iterator[tuple[int, ...]]:
    """The entries of a vector of structs; none if the field is absent."""
    if not field:
        return
    vector = field + _read(_U32, data, field)
    count = _read(_U32, data, vector)
    _check_parts(data, count)
    for entry in range(count):
        place = vector + _U32.size + entry * form.size
        if place < 0:
            raise IndexError(place)
        yield form.unpack_from(data, place)


def _read(form: struct.Struct, data: bytes, place: int) -> int:
    if place < 0:  # Python would count from the end
        raise IndexError(place)
    (number,) = form.unpack_from(data, place)
    return int(number)
