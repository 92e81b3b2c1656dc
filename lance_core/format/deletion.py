"""Deletion files: the set of deleted row offsets of one fragment, in one of two encodings.

A file holds the complete set. Its name consists of the numbers in the `DeletionFile` message, so two sets of one
fragment never have the same name.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.arrow_file import content_size
from lance_core.format.bitmaps import bitmap_of, decode_bitmap
from lance_core.format.naming import deletion_path
from lance_core.proto import lance_table_pb2 as pb

LARGEST_ARROW_CONTENT = 64 << 20
"""Largest decompressed size of an Arrow file in bytes: sixteen million rows, far above what any writer uses it for."""

_BYTES_PER_ROW = 4
_FRAME = 64 << 10
"""Bytes of a deletion file beside its rows: headers of the containers of a bitmap, or the schema of an Arrow file."""

_COLUMN = "row_id"
_SCHEMA = pa.schema([pa.field(_COLUMN, pa.uint32(), nullable=False)])


@dataclass(frozen=True, slots=True)
class FragmentDeletions:
    """A fragment with a new deletion file; `data` must be written before a version with the fragment is published."""

    fragment: pb.DataFragment
    data: bytes

    def path(self, base: str) -> str:
        """The key of the deletion file below `base`, the root of the table or branch."""
        return deletion_file_path(base, self.fragment.id, self.fragment.deletion_file)


def encode_deletion_file(
    rows: BitMap, *, read_version: int, kind: pb.DeletionFile.Type = pb.DeletionFile.BITMAP
) -> tuple[pb.DeletionFile, bytes]:
    """The message and the bytes of a new deletion file, with a random id.

    `rows` are physical offsets in the fragment. Stock writers make Arrow files of up to 5,000 rows; Roaring bitmaps are
    smaller, and are read and written in less time. Raises `ValueError` for an empty set, which has no file.
    """
    if not rows:
        raise ValueError("deletion file without rows: expected at least one")
    data = rows.serialize() if kind == pb.DeletionFile.BITMAP else _encode_arrow(rows)
    message = pb.DeletionFile(
        file_type=kind, read_version=read_version, id=secrets.randbits(64), num_deleted_rows=len(rows)
    )
    return message, data


def delete_rows(fragment: pb.DataFragment, rows: BitMap, *, read_version: int) -> FragmentDeletions | None:
    """A copy of `fragment` whose deleted rows are `rows`, those deleted before included; None if no row is left.

    The deletion file has a fresh id. `fragment` is one of the version `read_version`. One of an old writer, which does
    not say how many rows it has, is kept.
    """
    if 0 < fragment.physical_rows <= len(rows):
        return None
    message, data = encode_deletion_file(rows, read_version=read_version)
    changed = pb.DataFragment()
    changed.CopyFrom(fragment)
    changed.deletion_file.CopyFrom(message)
    return FragmentDeletions(changed, data)


def decode_deletion_file(message: pb.DeletionFile, data: bytes, *, physical_rows: int = 0) -> BitMap:
    """The deleted row offsets of a fragment of `physical_rows` rows (0: unknown).

    Raises `CorruptFile` if the bytes are not such a file, hold another number of rows, or a row that the fragment does
    not have. Raises `UnsupportedFeature` for an unknown kind. The memory needed is bounded by the number of rows.
    """
    if message.file_type == pb.DeletionFile.BITMAP:
        rows = decode_bitmap(data, f"deletion file {message.id}")
    elif message.file_type == pb.DeletionFile.ARROW_ARRAY:
        rows = _decode_arrow(data)
    else:
        raise UnsupportedFeature(f"deletion file {message.id} has kind {message.file_type}, expected 0 or 1")
    # Old writers did not record the count and left it at zero.
    if message.num_deleted_rows not in {0, len(rows)}:
        raise CorruptFile(f"deletion file {message.id} holds {len(rows)} rows, expected {message.num_deleted_rows}")
    if physical_rows and rows and rows.max() >= physical_rows:
        raise CorruptFile(f"deletion file {message.id} holds row {rows.max()} of a fragment of {physical_rows}")
    return rows


def largest_deletion_file(physical_rows: int) -> int | None:
    """The largest size in bytes that the deletion file of such a fragment can have; None if its rows are not known."""
    return _BYTES_PER_ROW * physical_rows + _FRAME if physical_rows else None


def live_row_count(fragment: pb.DataFragment) -> int:
    """Number of rows of a fragment without the deleted ones, as the manifest states them."""
    return fragment.physical_rows - fragment.deletion_file.num_deleted_rows


def deletion_file_path(base: str, fragment_id: int, message: pb.DeletionFile) -> str:
    """The key of a fragment's deletion file below `base`, the root that its `base_id` names."""
    return deletion_path(base, fragment_id, message.read_version, message.id, message.file_type)


def _encode_arrow(rows: BitMap) -> bytes:
    batch = pa.record_batch([pa.array(rows.to_array(), pa.uint32())], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _decode_arrow(data: bytes) -> BitMap:
    size = content_size(data)
    if size > LARGEST_ARROW_CONTENT:
        raise CorruptFile(
            f"deletion file of {len(data)} bytes decompresses to {size}, expected at most {LARGEST_ARROW_CONTENT}"
        )
    try:
        with pa.ipc.open_file(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptFile(f"deletion file of {len(data)} bytes is not an Arrow file: {error}") from error
    if table.column_names != [_COLUMN] or table.schema.field(0).type != pa.uint32():
        raise CorruptFile(f"deletion file has columns {table.schema}, expected one uint32 column {_COLUMN!r}")
    column = table.column(0)
    rows = bitmap_of(column.drop_null().to_numpy())
    if len(rows) != len(column):
        raise CorruptFile(f"deletion file holds {len(column)} entries for {len(rows)} rows: expected each row once")
    return rows
