"""Loading files into tables within one transaction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.data import DATA_STORAGE_VERSION
from lance_core.format.blobs import as_bytes, is_blob
from namespace_server.cli.files.arrow_files import ArrowRows
from namespace_server.cli.files.csv_files import CsvRows
from namespace_server.cli.files.formats import TEXT_FORMATS, delimiter_of
from namespace_server.cli.files.guesses import guessed
from namespace_server.cli.files.json_files import JsonRows
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.shapes import NOTHING, TEXT, Shape, ShapeConflict, joined_fields
from namespace_server.cli.files.sources import RowSource, SourceFinder
from namespace_server.cli.row_output import batches_with_progress
from table_data.arrow.fitting import columns_for, fit, named
from table_data.errors import InvalidCall
from table_data.staging import check_rows
from table_data.values.misfits import CellMisfit
from table_data.values.texts import typed

if TYPE_CHECKING:
    from namespace_client import MultiTableTransaction
    from namespace_server.cli.progress import ProgressLine

_NEW = frozenset({"create", "overwrite"})


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of a load.

    Attributes:
        mode: append, create, overwrite or upsert.
        keys: The key columns of each table, for upsert.
        vectors: Columns whose lists become vectors.
        branch: The branch that is changed.
        schema: Types of columns of a new table; those of others are found in the text files.
        as_text: Whether all columns of text files are texts, but for those of `schema`.
        delimiter: The delimiter of CSV files, None to find it.
        nulls: Cells of CSV files that are null, beside empty ones.
    """

    mode: str = "append"
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors: Sequence[str] = ()
    branch: str | None = None
    schema: pa.Schema | None = None
    as_text: bool = False
    delimiter: str | None = None
    nulls: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LoadItem:
    """A file and the table that it goes to."""

    table: str
    source: RowSource


@dataclass(frozen=True, slots=True)
class OpenItem:
    """A file whose rows can be read. `columns` are those that it has of its table, in the order of the table."""

    source: RowSource
    rows: CsvRows | JsonRows | ArrowRows
    state: object
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The sources and the schema of a load into one table.

    Attributes:
        table: Its name.
        schema: Its columns. Arrow files of a table that is there have their own.
        is_guessed: Whether types were found in the values of text files.
        files: The files.
    """

    table: str
    schema: pa.Schema
    is_guessed: bool
    files: Sequence[OpenItem]

    def described(self) -> str:
        """The columns in a line."""
        return f"{self.table}: " + ", ".join(f"{each.name} {each.type}" for each in self.schema)


def find_items(items: Sequence[str], finder: SourceFinder) -> list[LoadItem]:
    """The tables and files of TABLE=FILE arguments. Raises `FileRefused`."""
    found = []
    for item in items:
        table, equals, place = item.partition("=")
        if not equals or not table or not place:
            raise FileRefused(f"{item}: expected TABLE=FILE")
        found += [LoadItem(table, source) for source in finder.find(place)]
    places: dict[tuple[str, str], str] = {}
    for each in found:
        if each.source.place is None:
            continue
        key = (each.table, each.source.place)
        if before := places.get(key):
            raise FileRefused(f"{each.table}: expected each file once, found {before} again as {each.source.name}")
        places[key] = each.source.name
    return found


def parse_keys(given: Sequence[str], tables: Sequence[str]) -> dict[str, list[str]]:
    """The key columns of each table that is loaded, as `--on` names them. Raises `FileRefused`.

    One without a table is for those that no other one names.
    """
    keys: dict[str | None, list[str]] = {}
    for item in given:
        table, equals, names = item.rpartition("=")
        columns = [name.strip() for name in names.split(",") if name.strip()]
        if not columns or (equals and table not in tables):
            raise FileRefused(f"--on {item}: expected KEY or TABLE=KEY, with one of the tables that are loaded")
        named = table if equals else None
        if (before := keys.get(named)) is not None or len(set(columns)) < len(columns):
            both = ",".join(dict.fromkeys([*(before or ()), *columns]))
            raise FileRefused(f"--on {item}: expected each column of a key once, in one --on: {both}")
        keys[named] = columns
    found = {each: keys.get(each) or keys.get(None) for each in tables}
    if given and (without := [each for each, columns in found.items() if columns is None]):
        raise FileRefused(f"--on: expected the key of {without[0]}")
    return {each: columns for each, columns in found.items() if columns is not None}


def plan_loads(tx: MultiTableTransaction, items: Sequence[LoadItem], options: LoadOptions) -> Iterator[TablePlan]:
    """Plan the load into each table. Reads text files for new tables in whole. Raises `FileRefused`.

    Also for a table that is there although it is to be created, and for one that is not there otherwise.
    """
    _check_options(items, options)
    unused = set(options.vectors)
    for table in dict.fromkeys(item.table for item in items):
        if options.mode in _NEW:
            _check_presence(tx, table, options)
        opened = [_opened(item.source, options) for item in items if item.table == table]
        if options.mode in _NEW:
            schema, is_guessed = _new_schema(opened, options)
        else:
            schema, is_guessed = tx.table(table, branch=options.branch).schema, False
            if unknown := [name for name in options.keys.get(table, ()) if name not in schema.names]:
                raise FileRefused(f"--on {unknown[0]}: expected columns of {table} among {', '.join(schema.names)}")
        unused -= set(schema.names)
        yield TablePlan(table, schema, is_guessed, [_with_columns(table, each, schema) for each in opened])
    if unused:
        raise FileRefused(f"--vector {min(unused)}: expected a column of the files, found none of this name")


def _check_presence(tx: MultiTableTransaction, table: str, options: LoadOptions) -> None:
    found = tx.describe(table, branch=options.branch)
    if options.mode == "create" and found is not None and found.version is not None:
        raise FileRefused(f"{table}: expected no table of this name with --mode create, found one")
    if options.mode == "overwrite" and found is None:
        raise FileRefused(f"{table}: expected a table with --mode overwrite, found none; --mode create makes one")


def check_table(
    tx: MultiTableTransaction,
    plan: TablePlan,
    options: LoadOptions,
    progress: ProgressLine,
    check: Callable[[], None],
) -> None:
    """Read the rows of all files of a table as `load_table` does, and stage none. Raises as it does for the files."""
    is_new = options.mode in _NEW
    version = DATA_STORAGE_VERSION
    if not is_new:
        version = tx.table(plan.table, branch=options.branch).to_pylance().data_storage_version
    for schema, files in _streams(plan, options.mode):
        stream = _Stream(files, schema, progress, check)
        with stream.explained(), named(plan.table):
            reader = pa.RecordBatchReader.from_batches(schema, stream.batches())
            check_rows(reader, None if is_new else plan.schema, version, whole=options.mode != "upsert")


def load_table(
    tx: MultiTableTransaction,
    plan: TablePlan,
    options: LoadOptions,
    progress: ProgressLine,
    check: Callable[[], None],
) -> dict[str, int]:
    """Stage the rows of all files of a table. Returns the numbers of rows by what became of them.

    `check` is called again and again, and may raise. Raises `FileRefused`.
    """
    counts: dict[str, int] = {}
    mode = options.mode
    for schema, files in _streams(plan, mode):
        stream = _Stream(files, schema, progress, check)
        with stream.explained():
            reader = pa.RecordBatchReader.from_batches(schema, stream.batches())
            done = _stage(tx, plan.table, reader, mode, options)
        mode = "append" if mode in _NEW else mode
        for what, count in done.items():
            counts[what] = counts.get(what, 0) + count
    return counts


def _check_options(items: Sequence[LoadItem], options: LoadOptions) -> None:
    """Raise `FileRefused` for an option that has no effect on these files."""
    formats = {item.source.format for item in items}
    is_new, has_text = options.mode in _NEW, bool(formats & TEXT_FORMATS)
    for name, value in (("--schema", options.schema is not None), ("--text", options.as_text)):
        if value and not is_new:
            raise FileRefused(f"{name}: expected with --mode create or overwrite: a table that is there has its types")
        if value and not has_text:
            raise FileRefused(f"{name}: expected CSV or JSON files: others have their types")
    if options.vectors and not is_new:
        raise FileRefused("--vector: expected with --mode create or overwrite: a table that is there has its types")
    for name, given in (("--delimiter", options.delimiter), ("--null", options.nulls)):
        if given and "csv" not in formats:
            raise FileRefused(f"{name}: expected CSV files, found {', '.join(sorted(formats))}")
    if options.schema is not None and len({item.table for item in items}) > 1:
        raise FileRefused("--schema: expected one table")


def _opened(source: RowSource, options: LoadOptions) -> OpenItem:
    state = source.state()
    with _named(source):
        rows: CsvRows | JsonRows | ArrowRows
        if source.format == "csv":
            rows = CsvRows(source, options.delimiter or delimiter_of(source.name), options.nulls)
        else:
            rows = JsonRows(source) if source.format == "jsonl" else ArrowRows(source)
    return OpenItem(source, rows, state)


@contextmanager
def _named(source: RowSource) -> Iterator[None]:
    """Put the name of a file before what is wrong with it."""
    try:
        yield
    except (FileRefused, InvalidCall) as error:
        raise FileRefused(f"{source.name}: {error}") from error.__cause__
    except (pa.ArrowException, OSError, EOFError) as error:
        if getattr(error, "filename", None):
            raise
        raise FileRefused(f"{source.name}: not read: {error}") from error


def _new_schema(opened: Sequence[OpenItem], options: LoadOptions) -> tuple[pa.Schema, bool]:
    """The columns of a new table, and whether any type was found in values."""
    of_directories = _shapes_of_directories(opened, as_text=options.as_text)
    for each in opened:
        if isinstance(each.rows, ArrowRows):
            if options.schema is not None:
                raise FileRefused(f"--schema: {each.source.name} has types of its own")
            with _named(each.source):
                schema = _with_vectors(each.rows, options.vectors)
            added = [pa.field(name, _type(each.source.name, name, shape)) for name, shape in of_directories.items()]
            return pa.schema([*schema, *added]), bool(added)
    given = options.schema or pa.schema([])
    shapes: dict[str, Shape] = {}
    for each in opened:
        with _named(each.source):
            shapes = _joined(shapes, _shapes(each.rows, given, as_text=options.as_text))
    shapes |= of_directories
    first = opened[0].source.name
    if surplus := [name for name in given.names if name not in shapes]:
        if unnamed := [name for name in shapes if name not in given.names]:
            raise FileRefused(
                f"--schema: {first} has no column {surplus[0]}, and has {unnamed[0]}, which it does not name"
            )
        shapes = dict.fromkeys(given.names, NOTHING)
    if stated := [name for name in options.vectors if name in given.names]:
        raise FileRefused(f"--vector {stated[0]}: expected a column without a type in --schema")
    if not shapes:
        raise FileRefused(f"{first}: expected rows, found an empty file; --schema says the columns")
    if set(shapes) == set(given.names):
        return given, False
    fields = []
    for name, shape in shapes.items():
        is_vector = name in options.vectors
        kind = given.field(name).type if name in given.names else _type(first, name, shape, is_vector=is_vector)
        fields.append(pa.field(name, kind))
    return pa.schema(fields), not options.as_text


def _shapes_of_directories(opened: Sequence[OpenItem], *, as_text: bool) -> dict[str, Shape]:
    """The shapes of columns that directories such as `year=2026` say."""
    values: dict[str, set[str | None]] = {}
    for each in opened:
        for name, value in each.source.partition.items():
            values.setdefault(name, set()).add(value)
    return {name: TEXT if as_text else guessed(pa.array(list(found), pa.string())) for name, found in values.items()}


def _type(file: str, name: str, shape: Shape, *, is_vector: bool = False) -> pa.DataType:
    if is_vector:
        if shape.kind != "list" or shape.item is None or shape.item.kind not in {"integer", "number"} or not shape.most:
            raise FileRefused(f"--vector {name}: expected lists of numbers in {file}; for CSV use --schema")
        return pa.list_(pa.float32(), shape.most)
    try:
        return shape.type
    except ShapeConflict as conflict:
        raise FileRefused(
            f"{file}: column {name}: expected {conflict.other}, found {conflict.one}; --schema or --text say the type"
        ) from None


def _with_vectors(rows: ArrowRows, names: Sequence[str]) -> pa.Schema:
    """The schema with fixed-size vectors as long as the first ones. Raises `FileRefused`."""
    schema = rows.schema
    for name in (each for each in names if each in schema.names):
        first = next((item for batch in rows.batches() for item in batch.column(name).drop_null()), None)
        if first is None or not hasattr(first, "values") or not len(first.values):
            raise FileRefused(f"--vector {name}: expected lists of numbers")
        place = schema.get_field_index(name)
        schema = schema.set(place, pa.field(name, pa.list_(pa.float32(), len(first.values))))
    return schema


def _shapes(rows: Any, given: pa.Schema, *, as_text: bool) -> dict[str, Shape]:
    if isinstance(rows, CsvRows):
        if as_text or set(rows.dialect.names) <= set(given.names):
            return dict.fromkeys(rows.dialect.names, TEXT)
        return rows.shapes()
    found = dict.fromkeys(rows.columns(given.names), NOTHING) if given.names else {}
    return {**rows.shapes(given.names, as_text=as_text), **found}


def _joined(one: Mapping[str, Shape], other: Mapping[str, Shape]) -> dict[str, Shape]:
    try:
        return joined_fields(one, other)
    except ShapeConflict as conflict:
        raise FileRefused(
            f"column {'.'.join(conflict.path)}: expected {conflict.one} as before, found {conflict.other}; "
            "--schema says the type, --text makes all texts"
        ) from None


def _with_columns(table: str, opened: OpenItem, schema: pa.Schema) -> OpenItem:
    """The file with the columns that it has. Raises `FileRefused` for one that the table has not."""
    said = opened.source.partition
    with _named(opened.source):
        rows = opened.rows
        found: Sequence[str]
        found = rows.schema.names if isinstance(rows, ArrowRows) else rows.columns([*schema.names, *said])
        if both := [name for name in said if name in found]:
            raise FileRefused(f"expected column {both[0]} in the file or in its directory, found it in both")
        if isinstance(rows, ArrowRows):
            columns_for(_own_schema(opened, schema), schema, whole=False)
            return opened
        found = [*found, *said]
        if unknown := [name for name in found if name not in schema.names]:
            raise FileRefused(f"{table} has no column {unknown[0]}, expected {', '.join(schema.names)}")
        if missing := [each.name for each in schema if not each.nullable and each.name not in found]:
            raise FileRefused(f"expected column {missing[0]}, which must not be null, found {', '.join(found)}")
    return OpenItem(opened.source, opened.rows, opened.state, tuple(name for name in schema.names if name in found))


def _streams(plan: TablePlan, mode: str) -> Iterator[tuple[pa.Schema, list[OpenItem]]]:
    """Files that are staged together, with the schema of their rows."""
    if mode == "upsert":  # a later file replaces rows of an earlier one
        for each in plan.files:
            yield _schema_of([each], plan.schema), [each]
        return
    is_new = mode in _NEW
    for is_arrow, files in itertools.groupby(plan.files, lambda each: isinstance(each.rows, ArrowRows)):
        if not is_arrow:
            together = list(files)
            yield (_with_blobs(plan.schema) if is_new else _schema_of(together, plan.schema)), together
        else:
            for _, alike in itertools.groupby(files, lambda each: str(_own_schema(each, plan.schema))):
                together = list(alike)
                yield (plan.schema if is_new else _schema_of(together, plan.schema)), together
                is_new = False
        is_new = False


def _own_schema(opened: OpenItem, schema: pa.Schema) -> pa.Schema:
    """The columns of a Parquet or Arrow file, and those that its directories say in their types in the table."""
    assert isinstance(opened.rows, ArrowRows)
    said = [
        schema.field(name) if name in schema.names else pa.field(name, pa.string()) for name in opened.source.partition
    ]
    return pa.schema([*opened.rows.schema, *said])


def _schema_of(files: Sequence[OpenItem], schema: pa.Schema) -> pa.Schema:
    """The columns of a table that any of the files has."""
    if isinstance(files[0].rows, ArrowRows):
        return columns_for(_own_schema(files[0], schema), schema, whole=False)
    named = {name for each in files for name in each.columns}
    return _with_blobs(pa.schema([each for each in schema if each.name in named]))


def _with_blobs(schema: pa.Schema) -> pa.Schema:
    """The schema with blobs as Lance takes them: bytes with a mark."""
    return pa.schema([as_bytes(each) if is_blob(each) else each for each in schema])


class _Stream:
    """The rows of files one after another, and what was wrong with them."""

    def __init__(
        self, files: Sequence[OpenItem], schema: pa.Schema, progress: ProgressLine, check: Callable[[], None]
    ) -> None:
        self._files, self._schema, self._progress, self._check = files, schema, progress, check
        self.failure: Exception | None = None
        self.reading: str | None = None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Within it the rows are read. Raises what was wrong with a file, by its name, in place of what others say."""
        try:
            yield
        except Exception as error:
            self._check()
            if self.failure is not None:
                raise self.failure from error
            if self.reading is not None and isinstance(error, InvalidCall):
                raise FileRefused(f"{self.reading}: {error}") from error
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for each in self._files:
                total = each.rows.rows if isinstance(each.rows, ArrowRows) else 0
                name = each.source.name.rpartition("/")[2]
                self.reading = each.source.name
                with _named(each.source):
                    for batch in batches_with_progress(self._rows(each), self._progress, f"load {name}", total):
                        self._check()
                        yield batch
                    if each.source.state() != each.state:
                        raise FileRefused("it was changed while it was read")
            self.reading = None
        except Exception as error:
            self.failure = error
            raise

    def _rows(self, opened: OpenItem) -> Iterator[pa.RecordBatch]:
        said = opened.source.partition
        if isinstance(opened.rows, ArrowRows):
            row = 0
            for batch in opened.rows.batches():
                given = _filled(batch, _own_schema(opened, self._schema), said) if said else batch
                yield given if given.schema == self._schema else fit(given, self._schema, first_row=row)
                row += batch.num_rows
            return
        schema = pa.schema([each for each in self._schema if each.name in opened.columns and each.name not in said])
        for batch in opened.rows.batches(schema):
            yield batch if schema == self._schema else _filled(batch, self._schema, said)


def _filled(batch: pa.RecordBatch, schema: pa.Schema, said: Mapping[str, str | None]) -> pa.RecordBatch:
    """The batch with the columns that it lacks: what its directories say, or null. Raises `FileRefused`."""
    names = batch.schema.names
    columns = [
        batch.column(each.name) if each.name in names else _repeated(each, said.get(each.name), batch.num_rows)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _repeated(field: pa.Field, text: str | None, count: int) -> pa.Array:
    """A column of which all values are that of a text."""
    try:
        value = typed(pa.array([text], pa.string()), field.type) if text is not None else pa.nulls(1, field.type)
    except (CellMisfit, ValueError) as misfit:
        raise FileRefused(f"column {field.name} in the name of its directory: {misfit}") from None
    if text is None and not field.nullable:
        raise FileRefused(f"column {field.name}: expected a value, found null in the name of its directory")
    return value.take(pa.repeat(0, count))


def _stage(
    tx: MultiTableTransaction, table: str, rows: pa.RecordBatchReader, mode: str, options: LoadOptions
) -> dict[str, int]:
    if mode == "upsert":
        merged = tx.merge(table, rows, list(options.keys[table]), branch=options.branch)
        return {"inserted": merged.inserted, "updated": merged.updated}
    if mode == "append":
        return {"appended": tx.append(table, rows, branch=options.branch)}
    if mode == "overwrite":
        return {"written": tx.overwrite(table, rows, branch=options.branch)}
    return {"created": tx.create(table, rows)}
