"""Rows of a catalog server, read as they come: an Arrow IPC stream, or file, in the body of a response."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pyarrow as pa

from namespace_client.errors import CatalogUnreachable
from table_data.errors import InvalidCall

_BUFFER = 1 << 20
_FILE = b"ARROW1"
_FILE_HEAD = 8
"""Bytes that an Arrow IPC file has before what is a stream within it."""


class RowsTooLong(InvalidCall):
    """The rows of an answer have more bytes than their reader takes."""

    def __init__(self, most: int) -> None:
        super().__init__(f"rows: expected at most {most:,} bytes of Arrow, found more: ask for fewer rows or columns")


class _Body(io.RawIOBase):
    """The bytes of a response, in order: of an Arrow IPC file those of the stream within it."""

    def __init__(self, response: httpx.Response, most: int | None) -> None:
        self._chunks = response.iter_bytes()
        self._most = most
        self._left = memoryview(b"")
        self._taken = 0
        self._skip_head()

    def _skip_head(self) -> None:
        head = b""
        while len(head) < _FILE_HEAD and (chunk := self._next()) is not None:
            head += chunk
        self._left = memoryview(head)[_FILE_HEAD if head.startswith(_FILE) else 0 :]

    def _next(self) -> bytes | None:
        chunk = next(self._chunks, None)
        self._taken += len(chunk or b"")
        if self._most is not None and self._taken > self._most:
            raise RowsTooLong(self._most)
        return chunk

    def drain(self) -> None:
        """Take what comes after the rows, so that the connection can serve another request."""
        for _ in self._chunks:
            continue

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            chunk = self._next()
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


@contextmanager
def _whole(server: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, pa.ArrowException, OSError) as error:
        raise CatalogUnreachable(
            f"{server}: the rows broke off before their end: {type(error).__name__}: {error}"
        ) from error


def rows_of(response: httpx.Response, server: str, *, most: int | None = None) -> pa.RecordBatchReader:
    """The rows of a response, which is closed at their end, or with the reader. Memory holds one batch.

    Args:
        response: The response, whose body is not read yet.
        server: Address of the server, for messages.
        most: How many bytes of the body are taken; all if None.

    Raises:
        CatalogUnreachable: The stream breaks off, or is none; also while rows are read.
        RowsTooLong: There are more than `most` bytes; also while rows are read.
    """
    try:
        with _whole(server):
            body = _Body(response, most)
            reader = pa.ipc.open_stream(pa.PythonFile(io.BufferedReader(body, _BUFFER), mode="r"))
    except BaseException:
        response.close()
        raise

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with _whole(server):
                yield from reader
                body.drain()
        finally:
            response.close()

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
