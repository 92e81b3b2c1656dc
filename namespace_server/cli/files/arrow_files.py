"""Rows of Parquet and Arrow files, in the types that the files say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from namespace_server.cli.files.refusals import FileRefused

if TYPE_CHECKING:
    from namespace_server.cli.files.sources import RowSource

_BATCH_ROWS = 65_536
_CONTINUES = b"\xff\xff\xff\xff"
"""Before each message of a stream, but for those that Arrow wrote before 0.15."""
_NOTHING = b"\0\0\0\0"
"""The length of the last message."""


class ArrowRows:
    """The rows of a Parquet or Arrow file. Raises `FileRefused` for a file that is none.

    Attributes:
        schema: Its columns.
        rows: The number of its rows if the file states it, else 0.
    """

    def __init__(self, source: RowSource) -> None:
        self._source = source
        with closing(source.raw()) as stream:
            self.schema, self.rows, _ = self._opened(stream)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, with the schema of the file."""
        with closing(self._source.raw()) as stream:
            batches = self._opened(stream)[2]
            while True:
                try:
                    batch = next(batches, None)
                except (pa.ArrowException, OSError) as error:
                    raise self._refusal(error) from error
                if batch is None:
                    return
                yield batch

    def _opened(self, stream: Any) -> tuple[pa.Schema, int, Iterator[pa.RecordBatch]]:
        try:
            return _parquet(stream) if self._source.format == "parquet" else _arrow(stream)
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(error) from error

    def _refusal(self, error: BaseException) -> FileRefused:
        return FileRefused(f"not read as {self._source.format}: {error}")


def _parquet(stream: Any) -> tuple[pa.Schema, int, Iterator[pa.RecordBatch]]:
    from pyarrow import parquet

    opened = parquet.ParquetFile(stream, pre_buffer=True)
    return opened.schema_arrow, opened.metadata.num_rows, opened.iter_batches(_BATCH_ROWS)


def _arrow(stream: Any) -> tuple[pa.Schema, int, Iterator[pa.RecordBatch]]:
    try:
        reader = pa.ipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        sequence = pa.ipc.open_stream(stream)
        return sequence.schema, 0, _to_the_end(sequence, stream)
    return reader.schema, 0, (reader.get_batch(number) for number in range(reader.num_record_batches))


def _to_the_end(batches: Any, stream: Any) -> Iterator[pa.RecordBatch]:
    """The batches of a stream. Raises `FileRefused` for one that is cut between two, or is followed by another one."""
    yield from batches
    end = stream.tell()
    stream.seek(0)
    is_old = stream.read(len(_CONTINUES)) != _CONTINUES
    mark = _NOTHING if is_old else _CONTINUES + _NOTHING
    stream.seek(max(end - len(mark), 0))
    if stream.read(len(mark)) != mark:
        raise FileRefused("expected the mark at the end of an Arrow stream, found the end of the file")
    stream.seek(0, 2)
    if surplus := stream.tell() - end:
        raise FileRefused(f"expected the end of the file after an Arrow stream, found {surplus:,} more bytes")
