"""Loading files into tables within one transaction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from namespace_server.cli.command import refusal
from namespace_server.cli.row_files import FileFormat, format_of, open_rows
from namespace_server.cli.row_output import batches_with_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from namespace_client import MultiTableTransaction
    from namespace_server.cli.progress import ProgressLine

_WITH_TYPES: frozenset[FileFormat] = frozenset({"parquet", "arrow"})


@dataclass(frozen=True, slots=True)
class LoadItem:
    """A file and the table that it goes to."""

    table: str
    file: Path
    file_format: FileFormat


def parse_items(items: Sequence[str], file_format: str | None) -> list[LoadItem]:
    """The tables and files of TABLE=FILE arguments."""
    found = []
    for item in items:
        table, equals, file = item.partition("=")
        if not equals or not table or not file:
            raise refusal(f"{item}: expected TABLE=FILE")
        found.append(LoadItem(table, Path(file), format_of(Path(file), file_format)))
    return found


def parse_keys(given: Sequence[str], items: Sequence[LoadItem]) -> dict[str, list[str]]:
    """The key columns of each table that is loaded, as `--on` names them."""
    keys: dict[str, list[str]] = {}
    for item in given:
        table, equals, names = item.rpartition("=")
        columns = [name.strip() for name in names.split(",") if name.strip()]
        known = [each.table for each in items if not equals or each.table == table]
        if not columns or not known:
            raise refusal(f"--on {item}: expected KEY or TABLE=KEY, with one of the tables that are loaded")
        keys |= {each: columns for each in known if equals or each not in keys}
    if given and (without := [each.table for each in items if each.table not in keys]):
        raise refusal(f"--on: expected the key of {without[0]}")
    return keys


def load_all(
    tx: MultiTableTransaction,
    items: Sequence[LoadItem],
    mode: str,
    keys: Mapping[str, Sequence[str]],
    vectors: Sequence[str],
    branch: str | None,
    progress: ProgressLine,
) -> dict[str, dict[str, int]]:
    """Stage the rows of all files. Returns the numbers of rows by table and by what became of them."""
    counts: dict[str, dict[str, int]] = {}
    for item in items:
        again = item.table in counts
        target = None
        if item.file_format not in _WITH_TYPES and (again or mode in {"append", "upsert"}):
            target = tx.table(item.table, branch=branch).schema
        source = _Source(item)
        rows = _rows(source, target, vectors, progress)
        try:
            done = _stage(tx, item.table, rows, "append" if again and mode != "upsert" else mode, keys, branch)
        except Exception as error:
            if source.failure is None:
                raise
            raise refusal(source.failure) from error  # in place of what pylance makes of it
        known = counts.setdefault(item.table, {})
        for what, count in done.items():
            known[what] = known.get(what, 0) + count
    return counts


def _stage(
    tx: MultiTableTransaction,
    table: str,
    rows: pa.RecordBatchReader,
    mode: str,
    keys: Mapping[str, Sequence[str]],
    branch: str | None,
) -> dict[str, int]:
    if mode == "upsert":
        merged = tx.merge(table, rows, list(keys[table]), branch=branch)
        return {"inserted": merged.inserted, "updated": merged.updated}
    if mode == "append":
        return {"appended": tx.append(table, rows, branch=branch)}
    if mode == "overwrite":
        return {"written": tx.overwrite(table, rows, branch=branch)}
    if branch is not None:
        raise refusal("--branch: goes without --mode create")
    return {"created": tx.create(table, rows)}


class _Source:
    """The rows of a file while they are read, and what was wrong with them."""

    def __init__(self, item: LoadItem) -> None:
        self.item = item
        self.opened = open_rows(item.file, item.file_format)
        self.failure: str | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            yield from self.opened.batches
        except (pa.ArrowInvalid, OSError) as error:
            self.failure = f"{self.item.file}: not read as {self.item.file_format}: {error}"
            raise

    def cast(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches in other types."""
        import pyarrow as pa

        for batch in batches:
            columns: list[Any] = []
            for field, column in zip(schema, batch.columns, strict=True):
                try:
                    columns.append(column.cast(field.type))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    self.failure = f"{self.item.file}: column {field.name}: not {field.type}: {error}"
                    raise
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows(
    source: _Source, target: pa.Schema | None, vectors: Sequence[str], progress: ProgressLine
) -> pa.RecordBatchReader:
    """The rows of a file as a stream, in the types of the table if these are given."""
    import pyarrow as pa

    item, opened = source.item, source.opened
    batches = batches_with_progress(source.batches(), progress, f"load {item.file.name}", opened.rows)
    schema = opened.schema if target is None else _typed(item, opened.schema, target)
    if named := [name for name in vectors if name in schema.names]:
        first = next(batches, None)
        batches = itertools.chain([] if first is None else [first], batches)
        schema = _with_vectors(item, schema, named, first)
    if schema != opened.schema:
        batches = source.cast(schema, batches)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _typed(item: LoadItem, found: pa.Schema, target: pa.Schema) -> pa.Schema:
    """The columns of the file in the types of the table."""
    import pyarrow as pa

    if unknown := [name for name in found.names if name not in target.names]:
        raise refusal(f"{item.file}: {item.table} has no column {unknown[0]}, expected {', '.join(target.names)}")
    return pa.schema([target.field(name) for name in found.names])


def _with_vectors(item: LoadItem, schema: pa.Schema, names: Sequence[str], first: pa.RecordBatch | None) -> pa.Schema:
    """The schema with fixed-size vectors as long as the first ones."""
    import pyarrow as pa

    for name in names:
        place = schema.names.index(name)
        lists = [] if first is None else first.column(place).drop_null()
        if len(lists) == 0 or not hasattr(lists[0], "values"):
            raise refusal(f"--vector {name}: expected lists of numbers in {item.file}")
        schema = schema.set(place, pa.field(name, pa.list_(pa.float32(), len(lists[0].values))))
    return schema
