"""Rows that come as bytes: an Arrow IPC stream or file, read as it arrives."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa

from table_data.errors import BodyIncomplete, ClientError, InvalidCall
from table_data.kept_bytes import KeptBytes

_FILE_MAGIC = b"ARROW1\x00\x00"
_BUFFER = 1 << 20


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

    @property
    def is_repeatable(self) -> bool:
        """Whether `reader` can be called once more."""
        return self._source.seekable() if self._was_read else True

    def reader(self) -> pa.RecordBatchReader:
        """The rows.

        Raises `InvalidCall` if the body is empty or does not begin with an Arrow schema, `BodyIncomplete`.
        """
        if self._was_read:
            self._source.seek(0)
        self._was_read, self._failure = True, None
        head = self._source.read(len(_FILE_MAGIC))
        if not head:
            raise InvalidCall("request body: expected an Arrow IPC stream, found nothing")
        # Arrow closes what it reads from.
        rest = _After(b"" if head == _FILE_MAGIC else head, self._source)
        try:
            stream = pa.ipc.open_stream(pa.PythonFile(rest, mode="r"))
        except BodyIncomplete:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        return pa.RecordBatchReader.from_batches(stream.schema, self._batches(stream))

    def check(self) -> None:
        """Raise what broke the reading of the rows, if anything did."""
        if self._failure is not None:
            raise self._failure

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
    """Some bytes, and then a stream."""

    def __init__(self, head: bytes, rest: io.BufferedIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size is None or size < 0:
            head, self._head = self._head, b""
            return head + self._rest.read()
        head, self._head = self._head[:size], self._head[size:]
        return head + self._rest.read(size - len(head)) if len(head) < size else head


def _broken(error: Exception) -> InvalidCall:
    return InvalidCall(f"request body: expected an Arrow IPC stream, found a broken one ({str(error)[:200]})")
