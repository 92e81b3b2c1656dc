"""Files of rows: Parquet, Arrow IPC, CSV and JSON lines, told by the ends of their names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from namespace_server.cli.command import refusal
from namespace_server.cli.row_output import json_value

if TYPE_CHECKING:
    import pyarrow as pa

FileFormat = Literal["parquet", "arrow", "csv", "jsonl"]
_ENDS: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_BATCH_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class RowFile:
    """The rows of a file: their schema, their number if the file tells it, and the batches, which are read once."""

    schema: pa.Schema
    rows: int
    batches: Iterator[pa.RecordBatch]


def format_of(file: Path, given: str | None = None) -> FileFormat:
    """The format of a file, by its name unless it is given. Ends the command if the name does not tell."""
    named: dict[str, FileFormat] = {each: each for each in _ENDS.values()}
    found = _ENDS.get(file.suffix.lower()) if given is None else named.get(given)
    if found is None:
        raise refusal(f"{given or file}: expected one of {', '.join(_ENDS)} or --format {', '.join(named)}")
    return found


def open_rows(file: Path, given: str | None = None) -> RowFile:
    """The rows of a file. Types in CSV and JSON lines are inferred. Raises `OSError`, `ValueError`."""
    import pyarrow as pa

    kind = format_of(file, given)
    if not file.is_file():
        raise refusal(f"{file}: expected a file, found {'a directory' if file.is_dir() else 'none'}")
    try:
        return _READERS[kind](str(file))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise refusal(f"{file}: not read as {kind}: {error}") from error


def _parquet(file: str) -> RowFile:
    from pyarrow import parquet

    opened = parquet.ParquetFile(file)
    return RowFile(opened.schema_arrow, opened.metadata.num_rows, opened.iter_batches(_BATCH_ROWS))


def _arrow(file: str) -> RowFile:
    import pyarrow as pa

    source = pa.memory_map(file)
    try:
        reader = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return RowFile(stream.schema, 0, iter(stream))
    return RowFile(reader.schema, 0, (reader.get_batch(number) for number in range(reader.num_record_batches)))


def _csv(file: str) -> RowFile:
    from pyarrow import csv

    reader = csv.open_csv(file)
    return RowFile(reader.schema, 0, iter(reader))


def _jsonl(file: str) -> RowFile:
    from pyarrow import json as arrow_json

    table = arrow_json.read_json(file)  # in whole: a later line may have a column that the first ones have not
    return RowFile(table.schema, table.num_rows, iter(table.to_batches(_BATCH_ROWS)))


_READERS: Final[dict[str, Callable[[str], RowFile]]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _csv,
    "jsonl": _jsonl,
}


def write_rows(file: Path | None, kind: FileFormat, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows to a file, or to standard output without one. A file appears when it is whole."""
    if file is None:
        _WRITERS[kind](sys.stdout.buffer, schema, batches)
        sys.stdout.buffer.flush()
        return
    with _appearing(file) as stream:
        _WRITERS[kind](stream, schema, batches)


@contextmanager
def _appearing(file: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that has its name after the block, and is gone if the block fails."""
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _write_parquet(stream: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_arrow(stream: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(stream, schema) if stream.seekable() else pa.ipc.new_stream(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(stream: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    try:
        with csv.CSVWriter(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        hint = f"; choose --columns without {', '.join(nested)}, or another format" if nested else ""
        raise refusal(f"CSV: {error}{hint}") from error


def _write_jsonl(stream: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    del schema
    for batch in batches:
        for row in batch.to_pylist():
            stream.write(json.dumps(json_value(row), ensure_ascii=False).encode() + b"\n")


_WRITERS: Final[dict[str, Callable[[IO[bytes], Any, Iterable[Any]], None]]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}
