"""Rows as files: what is written is read again as the same values, or the column is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from namespace_server.cli.files.formats import FileFormat
from namespace_server.cli.files.refusals import FileRefused
from table_data.values.written import json_column, text_column

Batches = Iterable[pa.RecordBatch]


def write_rows(
    stream: IO[bytes], kind: FileFormat, schema: pa.Schema, batches: Batches, delimiter: str | None = None
) -> None:
    """Write rows to a stream. Raises `FileRefused` for a column that the format does not hold."""
    if kind == "csv":
        _write_csv(stream, schema, batches, delimiter or ",")
    else:
        _WRITERS[kind](stream, schema, batches)


def _write_parquet(stream: IO[bytes], schema: pa.Schema, batches: Batches) -> None:
    from pyarrow import parquet

    try:
        with parquet.ParquetWriter(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FileRefused(f"Parquet: {error}") from error


def _write_arrow(stream: IO[bytes], schema: pa.Schema, batches: Batches) -> None:
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    opened = pa.ipc.new_file if _is_seekable(stream) else pa.ipc.new_stream
    with opened(stream, schema, options=options) as writer:
        for batch in _with_growing_dictionaries(schema, batches):
            writer.write_batch(batch)


def _is_seekable(stream: Any) -> bool:
    return bool(stream.seekable())


def _with_growing_dictionaries(schema: pa.Schema, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The batches with dictionaries each of which begins with the one before: a file has one for each column."""
    known: dict[int, Any] = {
        place: pa.array([], field.type.value_type)
        for place, field in enumerate(schema)
        if pa.types.is_dictionary(field.type)
    }
    for batch in batches:
        columns = list(batch.columns)
        for place, values in known.items():
            column, kind = columns[place], schema.field(place).type
            used = column.dictionary
            new = used.filter(pc.invert(pc.is_in(used, values)))
            known[place] = pa.concat_arrays([values, new])
            places = pc.index_in(used, known[place]).take(column.indices)
            columns[place] = pa.DictionaryArray.from_arrays(
                places.cast(kind.index_type), known[place], ordered=kind.ordered
            )
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _write_csv(stream: IO[bytes], schema: pa.Schema, batches: Batches, delimiter: str) -> None:
    from pyarrow import csv

    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise FileRefused(
            f"CSV: column {nested[0]} holds lists or objects; choose --columns without {', '.join(nested)}, or another "
            "format"
        )
    plain = pa.schema([pa.field(field.name, _csv_type(field.type)) for field in schema])
    with csv.CSVWriter(stream, plain, write_options=csv.WriteOptions(delimiter=delimiter)) as writer:
        for batch in batches:
            columns = [_csv_column(column).cast(field.type) for column, field in zip(batch.columns, plain, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))


def _csv_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return kind
    return pa.string()


def _csv_column(column: Any) -> Any:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = text_column(column)
    return column if text is None else text


def _write_jsonl(stream: IO[bytes], schema: pa.Schema, batches: Batches) -> None:
    for batch in batches:
        columns = [json_column(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            stream.write(orjson.dumps(dict(zip(schema.names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE))


_WRITERS: Final[dict[str, Callable[[IO[bytes], Any, Batches], None]]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "jsonl": _write_jsonl,
}
