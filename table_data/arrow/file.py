"""Rows on their way out of a process: a table if they are few, an Arrow IPC file or stream, written as they come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from table_data.arrow.dictionaries import has_dictionary, widened

FEW: Final = 16 << 20
"""Bytes of rows that are made before pylance asks for them: otherwise its threads wait for Python."""


def table_or_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], most: int = FEW
) -> pa.Table | pa.RecordBatchReader:
    """The rows as a table if they have at most so many bytes.

    Otherwise they are a stream, in which those that were made already come first.
    """
    left = iter(batches)
    made, size = [], 0
    for batch in left:
        made.append(batch)
        size += batch.nbytes
        if size > most:
            return pa.RecordBatchReader.from_batches(schema, itertools.chain(made, left))
    return pa.Table.from_batches(made, schema)


def write_rows(rows: pa.Table | pa.RecordBatchReader, sink: Any, *, as_stream: bool = False) -> None:
    """Write all rows to a file-like object, as an Arrow IPC file or stream, nothing before the first are there.

    Each column, or field in one, has one dictionary in a file, to which values may be added. Fragments of a table have
    their own. Together they may have more values than indices of 8 or 16 bits can count: a table gets wider ones then.
    A stream gets them in any case, since its schema is written before its values are known.
    """
    if not any(map(has_dictionary, rows.schema.types)):
        batches: Iterator[pa.RecordBatch] = iter(rows.to_batches() if isinstance(rows, pa.Table) else rows)
        schema = rows.schema
    elif isinstance(rows, pa.Table):
        unified = _unified(rows)
        schema, batches = unified.schema, iter(unified.to_batches())
    else:
        schema = widened(rows.schema)
        batches = _with_one_dictionary(batch.cast(schema) for batch in rows)
    batch = next(batches, None)
    new = pa.ipc.new_stream if as_stream else pa.ipc.new_file
    writer = new(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True))
    while batch is not None:
        writer.write_batch(batch)
        batch = next(batches, None)
    writer.close()  # not after an error: one without its end is not whole


def _unified(rows: pa.Table) -> pa.Table:
    try:
        return rows.unify_dictionaries()
    except pa.ArrowInvalid:  # more values than the indices can count
        return rows.cast(widened(rows.schema)).unify_dictionaries()


def _with_one_dictionary(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each with all values of the dictionaries before it, and its own after them."""
    known: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if known is None:
            known = pa.RecordBatch.from_arrays([_seed(column) for column in batch.columns], schema=batch.schema)
        known = pa.Table.from_batches([known.slice(0, 0), batch]).unify_dictionaries().to_batches()[-1]
        yield known


def _seed(array: pa.Array) -> pa.Array:
    """No rows, with the dictionaries of `array`. An empty one gets a value that no row has: Arrow adds to no other."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = array.dictionary if len(array.dictionary) else _zero(kind.value_type)
        return pa.DictionaryArray.from_arrays(pa.array([], kind.index_type), values)
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays([_seed(array.field(place)) for place in range(len(fields))], fields=fields)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array([0], pa.int32()), _seed(array.values), type=kind)
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array([0], pa.int64()), _seed(array.values), type=kind)
    return array.slice(0, 0)


def _zero(kind: pa.DataType) -> pa.Array:
    """One value of a type: an empty text, the number 0."""
    return pa.Array.from_buffers(kind, 1, [None, *pa.nulls(1, kind).buffers()[1:]])
