"""Rows that come as bytes: an Arrow IPC stream or file, read as it arrives."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_core.data import schema_fields
from lance_core.errors import UnsupportedFeature
from table_data.arrow.few_rows import table_or_stream
from table_data.arrow.kept_bytes import KeptBytes
from table_data.errors import ClientError, InvalidCall

_FILE_MAGIC = b"ARROW1\x00\x00"
_BUFFER = 1 << 20
_OPTIONS = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
"""Pylance refuses some values, such as views, that are not at multiples of their size."""
_PIECE = 16 << 20


class ArrowBody:
    """One Arrow IPC stream or file. The file format holds the stream format, so that both are read forward once.

    A broken body is noticed where it breaks. Pylance, which reads the rows, puts the error into its own words, so
    `check` raises the first one as it was.
    """

    def __init__(self, source: io.RawIOBase | io.BufferedIOBase, *, keep: int | None = 0) -> None:
        """`keep`: the rows of a stream of so many bytes, of any stream if None, can be read again."""
        if isinstance(source, io.RawIOBase):
            raw = source if source.seekable() or keep == 0 else KeptBytes(source, keep)
            source = io.BufferedReader(raw, _BUFFER)
        self._source = source
        self._was_read = False
        self._failure: ClientError | None = None
        self._schema: pa.Schema | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether `rows` can be called once more."""
        return self._source.seekable() if self._was_read else True

    def rows(self) -> pa.Table | pa.RecordBatchReader:
        """The rows: a table if they are few and in memory, else as they come.

        Raises `InvalidCall` if the body is empty or does not begin with an Arrow schema, `BodyIncomplete`.
        """
        if self._was_read:
            self._source.seek(0)
        self._was_read, self._failure = True, None
        head = self._source.read(len(_FILE_MAGIC))
        if not head:
            raise InvalidCall("request body: expected an Arrow IPC stream, found nothing")
        rest = b"" if head == _FILE_MAGIC else head
        try:
            stream = pa.ipc.open_stream(self._rest(rest), options=_OPTIONS)
            _check_schema(stream.schema)
            self._schema = stream.schema
        except ClientError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        batches = self._batches(stream)
        if isinstance(self._source, io.BytesIO):  # a compressed body may have many more bytes of rows
            return table_or_stream(stream.schema, batches)
        return pa.RecordBatchReader.from_batches(stream.schema, batches)

    def check(self) -> None:
        """Raise what broke the reading of the rows, if anything did."""
        if self._failure is not None:
            raise self._failure

    def explain(self) -> None:
        """After work on the rows failed: raise what is wrong with them, if anything is."""
        self.check()
        if self._schema is not None:
            _check_types(self._schema)

    def _rest(self, head: bytes) -> Any:
        """What Arrow reads the stream from, and closes: `head`, and what the source has after it."""
        if isinstance(self._source, io.BytesIO):
            begin = self._source.tell() - len(head)
            self._source.seek(0, io.SEEK_END)
            return pa.BufferReader(self._source.getbuffer()[begin:])
        return pa.PythonFile(_After(head, self._source), mode="r")

    def _batches(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in stream:
                batch.validate(full=True)
                yield batch
            while self._source.read(_BUFFER):  # the footer of a file
                pass
        except ClientError as error:
            self._failure = error
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            self._failure = _broken(error)
            raise self._failure from error


class _After(io.BufferedIOBase):
    """Some bytes, and then a stream. Memory is taken for bytes that are there, not for those that a message claims."""

    def __init__(self, head: bytes, rest: io.BufferedIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        parts, self._head = [self._head[:size]], self._head[size:]
        left = size - len(parts[0])
        while left and (data := self._rest.read(min(left, _PIECE))):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidCall("request body: expected rows with columns, found none")
    double = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if double is not None:
        raise InvalidCall(f"request body: expected columns with different names, found {double[:80]!r} twice")


def _check_types(schema: pa.Schema) -> None:
    """Raise `InvalidCall` for the first column with a type that Lance does not have."""
    for field in schema:
        try:
            schema_fields(pa.schema([field]))
        except UnsupportedFeature as error:
            found = f"column {field.name[:80]!r} has type {str(field.type)[:200]}"
            raise InvalidCall(f"request body: {found}: expected one that Lance has") from error


def _broken(error: Exception) -> InvalidCall:
    return InvalidCall(f"request body: expected an Arrow IPC stream, found a broken one ({str(error)[:200]})")
