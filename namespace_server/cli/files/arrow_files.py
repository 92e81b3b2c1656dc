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


class ArrowRows:
    """The rows of a Parquet or Arrow file. Raises `FileRefused` for a file that is none.

    Attributes:
        schema: Its columns.
        rows: The number of its rows if the file tells it, else 0.
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
        return sequence.schema, 0, iter(sequence)
    return reader.schema, 0, (reader.get_batch(number) for number in range(reader.num_record_batches))
