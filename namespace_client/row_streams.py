"""Rows of a catalog server, read as they come: an Arrow IPC stream in the body of a response."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pyarrow as pa

from namespace_client.errors import CatalogUnreachable

_BUFFER = 1 << 20


class _Body(io.RawIOBase):
    """The bytes of a response, in order."""

    def __init__(self, response: httpx.Response) -> None:
        self._chunks = response.iter_bytes()
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            chunk = next(self._chunks, None)
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


def rows_of(response: httpx.Response, server: str) -> pa.RecordBatchReader:
    """The rows of a response, which is closed at their end, or with the reader. Memory holds one batch.

    Raises `CatalogUnreachable` if the stream breaks off, or is none; also while rows are read.
    """
    try:
        with _whole(server):
            reader = pa.ipc.open_stream(pa.PythonFile(io.BufferedReader(_Body(response), _BUFFER), mode="r"))
    except BaseException:
        response.close()
        raise

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with _whole(server):
                yield from reader
        finally:
            response.close()

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
