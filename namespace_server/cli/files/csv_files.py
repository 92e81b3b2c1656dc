"""Rows of CSV: cells are read as texts, and each text as the type of its column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import csv

from namespace_server.cli.files.chunks import CHUNK_BYTES, Chunk, check_quotes, chunks, last_row_end, rows_of
from namespace_server.cli.files.dialects import MARK, Dialect, cells_of, dialect_of, not_utf8
from namespace_server.cli.files.guesses import guessed
from namespace_server.cli.files.json_files import parsed_cells
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.shapes import NOTHING, TEXT, Shape, joined
from table_data.values.misfits import CellMisfit
from table_data.values.texts import typed

if TYPE_CHECKING:
    from namespace_server.cli.files.sources import RowSource

_PARTS: Final = 65_536
"""Rows of a batch."""


class CsvRows:
    """The rows of a CSV file. Each method reads the file from its begin. All raise `FileRefused`.

    A cell without anything in it is null, and so is one that is not quoted and among `nulls`. With an empty text in
    `nulls` quoted cells are looked at as well. Any other cell is its text.
    """

    def __init__(self, source: RowSource, delimiter: str | None = None, nulls: Sequence[str] = ()) -> None:
        self._source = source
        self._nulls = tuple(nulls)
        with source.open() as stream:
            head = _read_up_to(stream, CHUNK_BYTES)
            self._dialect = dialect_of(head, delimiter, is_whole=len(head) < CHUNK_BYTES)

    @property
    def dialect(self) -> Dialect:
        """How the file is written."""
        return self._dialect

    def columns(self, _: Sequence[str]) -> tuple[str, ...]:
        """The names of the columns."""
        return self._dialect.names

    def shapes(self) -> dict[str, Shape]:
        """The shape of each column, from all of its texts."""
        found = dict.fromkeys(self._dialect.names, NOTHING)
        for chunk in self._chunks():
            table = self._texts(chunk)
            for name, shape in found.items():
                if shape != TEXT:
                    found[name] = joined(shape, guessed(table.column(name)))
            if all(shape == TEXT for shape in found.values()):
                break
        return found

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of a schema, all of which the file must have."""
        for chunk in self._chunks():
            table = self._texts(chunk).select(schema.names)
            columns = [self._column(chunk, table.column(field.name), field) for field in schema]
            yield from pa.Table.from_arrays(columns, schema=schema).to_batches(_PARTS)

    def _column(self, chunk: Chunk, texts: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        cells = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
        try:
            column = parsed_cells(cells, field.type) if pa.types.is_nested(field.type) else typed(cells, field.type)
        except CellMisfit as misfit:
            raise FileRefused(f"line {self._line(chunk, misfit.position)}: column {field.name}: {misfit}") from None
        if column.null_count and not field.nullable:
            line = self._line(chunk, column.is_null().index(True).as_py())
            raise FileRefused(f"line {line}: column {field.name}: expected a value, found null")
        return column

    def _chunks(self) -> Iterator[Chunk]:
        delimiter = self._dialect.delimiter
        with self._source.open() as stream:
            _read_up_to(stream, self._dialect.header_bytes)
            for chunk in chunks(stream, partial(last_row_end, delimiter=delimiter), self._dialect.header_lines + 1):
                if self._has_blank_rows or chunk.data.strip(b"\r\n"):
                    check_quotes(chunk, delimiter)
                    yield chunk

    @property
    def _has_blank_rows(self) -> bool:
        return len(self._dialect.names) == 1

    def _texts(self, chunk: Chunk) -> pa.Table:
        names = list(self._dialect.names)
        # Pyarrow takes an empty cell for a quoted one where it ends the file and comes after a quoted one.
        data = chunk.data if chunk.data.endswith((b"\n", b"\r")) else chunk.data + b"\n"
        if data.startswith(MARK):  # a letter of the first cell, where pyarrow would leave one out
            data = MARK + data
        with self._explained(chunk):
            return csv.read_csv(
                pa.BufferReader(data),
                csv.ReadOptions(column_names=names, block_size=len(data) + 1),
                csv.ParseOptions(
                    delimiter=self._dialect.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=not self._has_blank_rows,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=["", *self._nulls],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null="" in self._nulls,
                ),
            )

    @contextmanager
    def _explained(self, chunk: Chunk) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            try:
                chunk.data.decode()
            except UnicodeDecodeError as wrong:
                raise FileRefused(not_utf8(chunk.data, wrong, chunk.line)) from None
            expected = len(self._dialect.names)
            for place, row in rows_of(chunk, self._dialect.delimiter, blank=self._has_blank_rows):
                line = chunk.line_at(place)
                if (found := len(cells_of(row, self._dialect.delimiter, line))) != expected:
                    raise FileRefused(f"line {line}: expected {expected} cells, found {found}") from None
            raise FileRefused(f"from line {chunk.line}: {error}") from error

    def _line(self, chunk: Chunk, position: int) -> int:
        """The line of a row of a chunk."""
        rows = rows_of(chunk, self._dialect.delimiter, blank=self._has_blank_rows)
        return next(chunk.line_at(place) for number, (place, _) in enumerate(rows) if number == position)


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    """So many bytes of a stream, or all that it has."""
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
