"""Checks the sizes that messages of an Arrow IPC stream claim, before memory is taken for them.

A few bytes may stand for billions of values: compressed ones, and values of types that take no bytes. Pyarrow finds the
messages and verifies their metadata, but shows neither rows nor buffers of a batch that is not decoded, and no package
has the classes of Arrow's schemas: so the few fields are read here (`RecordBatch` in Message.fbs of the Arrow columnar
format). What is no message is left to Arrow to refuse.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from table_data.errors import InvalidCall

_FREE_ROWS: Final = 1 << 24
"""Values that need no bytes."""
_VALUES_PER_BYTE: Final = 8
_BATCH: Final = "record batch"
_WITH_VALUES: Final = frozenset({_BATCH, "dictionary"})
_COMPRESSED_HEAD: Final = 8


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Bounds of rows that come as bytes: of all, and of one batch, when they are not compressed."""

    rows: int = 16 << 30
    batch: int = 1 << 30


def check_claims(data: pa.Buffer, limits: RowLimits) -> None:
    """Refuse more values, or more bytes of compressed ones, than the bounds allow. Raises `InvalidCall`."""
    values = size = 0
    try:
        for found in pa.ipc.MessageReader.open_stream(data):
            if found.type not in _WITH_VALUES:
                continue
            message = _Table(memoryview(found.metadata))
            batch = message.table(2) if found.type == _BATCH else message.table(2).table(1)
            claimed = _bytes_of(batch, memoryview(found.body))
            if batch.has(3) and claimed > limits.batch:
                raise InvalidCall(
                    f"request body: expected batches of at most {limits.batch} bytes that are not compressed, "
                    f"found {claimed}: send smaller ones (the bound follows from worker_memory_bytes)"
                )
            size += claimed
            values += max(batch.int64(0), *batch.structs(1, 0), 0)
            if size > limits.rows:
                raise InvalidCall(
                    f"request body: expected at most {limits.rows} bytes of rows (max_rows_bytes), found more in "
                    "compressed ones"
                )
            if values > _FREE_ROWS + _VALUES_PER_BYTE * size:
                raise InvalidCall(f"request body: expected values that have bytes, found {values} in {size} bytes")
    except (pa.ArrowException, OSError, struct.error, IndexError):
        return


def _bytes_of(batch: _Table, body: memoryview) -> int:
    """The bytes of the columns of a batch when they are not compressed. Columns may share them in the message."""
    lengths = batch.structs(2, 1)
    if not batch.has(3):
        return sum(max(length, 0) for length in lengths)
    found = 0
    for place, length in zip(batch.structs(2, 0), lengths, strict=True):
        if length >= _COMPRESSED_HEAD:
            [claimed] = struct.unpack_from("<q", body, place)
            found += max(length - _COMPRESSED_HEAD if claimed == -1 else claimed, 0)
    return found


def _u32(data: memoryview, place: int) -> int:
    [value] = struct.unpack_from("<I", data, place)
    return int(value)


class _Table:
    """A table of a flatbuffer. Raises `struct.error` beyond its end."""

    def __init__(self, data: memoryview, place: int | None = None) -> None:
        self._data = data
        self._place = _u32(data, 0) if place is None else place
        [back] = struct.unpack_from("<i", data, self._place)
        self._fields = self._place - back
        if self._fields < 0:
            raise IndexError(self._fields)

    def has(self, field: int) -> bool:
        """Whether the table has a field."""
        return self._find(field) is not None

    def int64(self, field: int) -> int:
        """A field of eight bytes; 0 if it is absent."""
        place = self._find(field)
        return 0 if place is None else int(struct.unpack_from("<q", self._data, place)[0])

    def table(self, field: int) -> _Table:
        """A table in a field."""
        place = self._find(field)
        if place is None:
            raise IndexError(field)
        return _Table(self._data, place + _u32(self._data, place))

    def structs(self, field: int, part: int) -> tuple[int, ...]:
        """One of the two integers of each item in a vector."""
        place = self._find(field)
        if place is None:
            return ()
        place += _u32(self._data, place)
        count = _u32(self._data, place)
        if count > len(self._data) // 16:
            raise IndexError(count)
        return struct.unpack_from(f"<{2 * count}q", self._data, place + 4)[part::2]

    def _find(self, field: int) -> int | None:
        [size] = struct.unpack_from("<H", self._data, self._fields)
        entry = 4 + 2 * field
        if entry + 2 > size:
            return None
        [offset] = struct.unpack_from("<H", self._data, self._fields + entry)
        return self._place + offset if offset else None
