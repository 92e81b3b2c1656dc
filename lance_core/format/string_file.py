"""Data files of a few rows of strings, in format 2.2, encoded here.

Pylance encodes any rows, but its threads have to be woken for them, which takes several times as long as these few
bytes. For short strings the result is byte for byte what pylance writes without compression; for long ones, many ones
or equal ones it chooses other layouts, all of which its readers take. Here a column is one page, a page is one chunk:

    chunk table     per chunk (length / 8 - 1) << 4, in 32 bits
    chunk           number of levels, [size of levels], size of values; [levels]; values
    levels          16 bits per row, 1 for null; only if there are nulls
    values          offsets from their own begin, in 32 bits; the bytes

Buffers are padded to 64 bytes, the parts of a chunk to 8. A column without values has no buffers, a list column without
values a repetition and a definition level of 16 bits for each row. Behind the pages stand the descriptor of the file,
the metadata of each column, tables of where these are, and the footer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from lance_core.proto import lance_file_pb2 as fb
from lance_core.proto import lance_table_pb2 as pb

VERSION: Final = "2.2"
"""The format of these files."""

MOST_ROWS: Final = 128
MOST_CHARACTERS: Final = 1 << 16

Column = Sequence[str | None] | None
"""The values of a column of strings; None for a column of lists that are all null."""

_UNCOMPRESSED: Final = {"lance-encoding:compression": b"none"}
_MAJOR_MINOR: Final = (2, 2)
_MAGIC: Final = b"LANC"
_ALIGNMENT: Final = 64
_CHUNK_ALIGNMENT: Final = 8
_OFFSET_BYTES: Final = 4
_BUFFER_PAD: Final = b"\x48"
_CHUNK_PAD: Final = b"\xfe"
_LARGE_SIZES: Final = struct.Struct("<HI")
_LEVELS_AND_SIZES: Final = struct.Struct("<HHI")
_CHUNK: Final = struct.Struct("<I")
_PLACE: Final = struct.Struct("<QQ")
_FOOTER: Final = struct.Struct("<QQQIIHH4s")
_FLAT16: Final = fb.Compression(flat=fb.Compression.Flat(bits_per_value=16))
_STRINGS: Final = fb.Compression(
    variable=fb.Compression.Variable(offsets=fb.Compression(flat=fb.Compression.Flat(bits_per_value=32)))
)


def fits(columns: Sequence[Column], rows: int) -> bool:
    """Whether these are few enough rows for `encode_strings`, at least one, and few enough characters."""
    return (
        0 < rows <= MOST_ROWS
        and sum(len(value) for column in columns if column for value in column if value) <= MOST_CHARACTERS
    )


def encode_strings(columns: Sequence[Column], rows: int, fields: Sequence[bytes]) -> bytes:
    """The bytes of an uncompressed data file with these columns, which fit.

    `fields` are as `describe_fields` gives them.
    """
    file = _Writer()
    metadata = []
    for column in columns:
        buffers, encoding = _page(column, rows)
        page = fb.ColumnMetadata.Page(length=rows, encoding=encoding)
        for buffer in buffers:
            page.buffer_offsets.append(file.append(buffer))
            page.buffer_sizes.append(len(buffer))
            file.pad()
        metadata.append(fb.ColumnMetadata(encoding=_COLUMN, pages=[page]).SerializeToString())
    descriptor = fb.FileDescriptor(schema=fb.FileDescriptor.Schema(fields=fields), length=rows).SerializeToString()
    at = file.append(descriptor)
    places = [(file.append(column), len(column)) for column in metadata]
    column_table = file.append(b"".join(_PLACE.pack(*place) for place in places))
    global_table = file.append(_PLACE.pack(at, len(descriptor)))
    file.append(_FOOTER.pack(places[0][0], column_table, global_table, 1, len(columns), *_MAJOR_MINOR, _MAGIC))
    return file.bytes()


def describe_fields(fields: Iterable[pb.Field]) -> tuple[bytes, ...]:
    """The columns of a file, parents before their children, as its descriptor has them: not compressed."""
    described = []
    for field in fields:
        copy = pb.Field()
        copy.CopyFrom(field)
        copy.metadata.update(_UNCOMPRESSED)
        described.append(copy.SerializeToString())
    return tuple(described)


class _Writer:
    """Bytes of a file, and where the next ones go."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def append(self, data: bytes) -> int:
        """Add bytes; their offset."""
        at = self._size
        self._parts.append(data)
        self._size += len(data)
        return at

    def pad(self) -> None:
        """Fill up to where a buffer may begin."""
        self.append(_BUFFER_PAD * (-self._size % _ALIGNMENT))

    def bytes(self) -> bytes:
        return b"".join(self._parts)


def _page(column: Column, rows: int) -> tuple[list[bytes], fb.Encoding]:
    """The buffers of a column, and how they are to be read."""
    if column is None:
        levels = struct.pack("<H", 1) * rows
        return [levels, levels], _null_lists(rows)
    nulls = [value is None for value in column]
    if all(nulls):
        return [], _NULLS
    chunk = _chunk(column, nulls)
    return [_CHUNK.pack((len(chunk) // _CHUNK_ALIGNMENT - 1) << 4), chunk], _chunks(rows, any(nulls))


def _chunk(column: Sequence[str | None], nulls: Sequence[bool]) -> bytes:
    """The values of a column with their levels."""
    texts = [b"" if value is None else value.encode() for value in column]
    rows = len(texts)
    offsets = accumulate(map(len, texts), initial=_OFFSET_BYTES * (rows + 1))
    values = b"".join((struct.pack(f"<{rows + 1}I", *offsets), *texts))
    values += _BUFFER_PAD * (-len(values) % _OFFSET_BYTES)
    if not any(nulls):
        return _padded(_LARGE_SIZES.pack(0, len(values))) + _padded(values)
    levels = struct.pack(f"<{rows}H", *nulls)
    return _padded(_LEVELS_AND_SIZES.pack(rows, len(levels), len(values))) + _padded(levels) + _padded(values)


def _padded(data: bytes) -> bytes:
    return data + _CHUNK_PAD * (-len(data) % _CHUNK_ALIGNMENT)


def _encoding(name: str, message: fb.ColumnEncoding | fb.PageLayout) -> fb.Encoding:
    encoding = fb.Encoding()
    encoding.direct.encoding.type_url = name
    encoding.direct.encoding.value = message.SerializeToString()
    return encoding


def _layout(message: fb.PageLayout) -> fb.Encoding:
    return _encoding("/lance.encodings21.PageLayout", message)


_COLUMN: Final = _encoding("/lance.encodings.ColumnEncoding", fb.ColumnEncoding(values=fb.ColumnEncoding.Empty()))
_NULLS: Final = _layout(fb.PageLayout(constant=fb.PageLayout.Constant(layers=[fb.NULLABLE_ITEM])))


@lru_cache(2 * MOST_ROWS)
def _chunks(rows: int, nullable: bool) -> fb.Encoding:
    chunks = fb.PageLayout.Chunks(
        definition=_FLAT16 if nullable else None,
        values=_STRINGS,
        layers=[fb.NULLABLE_ITEM if nullable else fb.ALL_VALID_ITEM],
        buffers=1,
        items=rows,
        large=True,
    )
    return _layout(fb.PageLayout(chunks=chunks))


@lru_cache(MOST_ROWS)
def _null_lists(rows: int) -> fb.Encoding:
    levels = fb.PageLayout.Constant(
        layers=[fb.ALL_VALID_ITEM, fb.NULLABLE_LIST],
        repetition=_FLAT16,
        definition=_FLAT16,
        repetition_levels=rows,
        definition_levels=rows,
    )
    return _layout(fb.PageLayout(constant=levels))
