"""Rows as an Arrow IPC file, written as they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def write_file(reader: pa.RecordBatchReader, sink: Any) -> None:
    """Write all rows to a file-like object, nothing before the first are there.

    Each column has one dictionary in a file, to which values may be added. Fragments of a table have their own.
    """
    batch = next(reader, None)
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    dictionaries = {at: _Dictionary() for at, field in enumerate(reader.schema) if pa.types.is_dictionary(field.type)}
    writer = pa.ipc.new_file(sink, reader.schema, options=options)
    while batch is not None:
        for at, dictionary in dictionaries.items():
            batch = batch.set_column(at, reader.schema[at], dictionary.encoded(batch.column(at)))
        writer.write_batch(batch)
        batch = next(reader, None)
    writer.close()  # not after an error: a file without its footer is not whole


class _Dictionary:
    """The values of one column in all batches so far."""

    def __init__(self) -> None:
        self._values: pa.Array | None = None

    def encoded(self, column: pa.DictionaryArray) -> pa.DictionaryArray:
        """The column with all values that were seen before, and its own after them.

        Raises `pyarrow.ArrowInvalid` if they are more than the type of its indices can count.
        """
        if self._values is None:
            self._values = column.dictionary
            return column
        if not column.dictionary.equals(self._values):
            places = pc.index_in(column.dictionary, self._values)
            added = column.dictionary.filter(pc.is_null(places))
            if len(added):
                self._values = pa.concat_arrays([self._values, added])
                places = pc.index_in(column.dictionary, self._values)
            column = pa.DictionaryArray.from_arrays(
                places.take(column.indices).cast(column.type.index_type), self._values
            )
        return column
