"""Rows as data files: new rows, a whole table, deleted rows, updated rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments
from pyroaring import BitMap

from lance_core.data import decoded_rows
from lance_core.errors import CorruptFile
from lance_core.format.bitmaps import bitmap_of
from lance_core.format.blobs import is_blob
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.table_files import TableFiles
from lance_core.transaction.fields import descendants
from lance_core.transaction.operations import Delete, Overwrite, Update
from lance_core.transaction.row_ids import encode_row_ids
from table_data.arrow.dictionaries import has_narrow_dictionary, widened
from table_data.arrow.file import table_or_stream
from table_data.arrow.fitting import check_columns, columns_for, fit, for_lance, with_blobs
from table_data.arrow.intake import refused_as_such
from table_data.arrow.sources import rows_of
from table_data.arrow.storable import check_readable_types, check_storable
from table_data.descriptions import new_fragments, overwrite_operation, written_fields
from table_data.errors import ColumnNotFound, InvalidCall
from table_data.sql.expressions import column_expression
from table_data.staging.matching import ADDRESS, ROW_ID, matching_addresses, matching_rows

_OFFSET_BITS: Final = np.uint64(32)


class RowSet:
    """Rows by their addresses. Takes a few bits for each, where rows follow one another."""

    def __init__(self) -> None:
        self._rows: dict[int, BitMap] = {}

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    @property
    def by_fragment(self) -> Mapping[int, BitMap]:
        """The offsets of the rows in their fragments, by the id of the fragment."""
        return self._rows

    def add(self, addresses: npt.NDArray[np.uint64]) -> None:
        """Add rows. Pylance's scanner gives the rows of one fragment together, most of the time."""
        if not len(addresses):
            return
        fragments = addresses >> _OFFSET_BITS
        offsets = addresses.astype(np.uint32)
        if fragments.min() == fragments.max():
            self._add(int(fragments[0]), offsets)
            return
        for fragment in np.unique(fragments).tolist():
            self._add(fragment, offsets[fragments == fragment])

    def _add(self, fragment: int, offsets: npt.NDArray[np.uint32]) -> None:
        found = bitmap_of(offsets)
        known = self._rows.get(fragment)
        self._rows[fragment] = found if known is None else known | found


_OUTGROWN: Final = "Dictionary key bigger than the key type"
"""What pylance says of more values than the indices of a dictionary count."""


def _reader(rows: pa.Table | pa.RecordBatchReader) -> pa.RecordBatchReader:
    return rows.to_reader() if isinstance(rows, pa.Table) else rows


def validated_rows(data: Any) -> pa.Table | pa.RecordBatchReader:
    """The rows of `rows_of`, whose values are those of their types. Raises `InvalidCall`; a stream as it is read."""
    return for_lance(rows_of(data), [])


def check_rows(data: Any, table: pa.Schema | None, data_version: str, *, whole: bool = True) -> None:
    """Read rows that are to be added to a table, or without `table` those of a new one, and write nothing.

    Raises as `stage_rows` and `stage_table` for what is wrong with them. Without `whole` columns may be missing.
    """
    given = rows_of(data, table)
    if table is None:
        check_storable(widened(given.schema), data_version)
        rows = for_lance(given, [])
    else:
        rows = for_lance(given, [], schema=columns_for(given.schema, table, whole=whole))
        check_readable_types(rows.schema, data_version)
    for _ in _reader(rows):
        pass


def stage_rows(dataset: lance.LanceDataset, data: Any, *, checked: bool = False) -> tuple[pb.DataFragment, ...]:
    """Write rows in the schema of the table, as new fragments. No rows give no fragments.

    Nullable columns that the rows do not have are null. Raises `SchemaMismatch` for rows that do not fit, and
    `InvalidCall` for those that Lance would not give back. With `checked` their values were validated before.
    """
    schema = dataset.schema
    with refused_as_such() as refusals:
        given = rows_of(data, schema)
        rows = for_lance(given, refusals, schema=columns_for(given.schema, schema), checked=checked)
        check_readable_types(rows.schema, dataset.data_storage_version)
        written = write_fragments(_reader(rows), dataset, mode="append")
    return _checked_fragments(dataset, written)


def stage_table(
    uri: str,
    data: Any,
    schema: pa.Schema | None,
    data_version: str,
    options: Mapping[str, str],
    *,
    exists: bool,
    checked: bool = False,
) -> Overwrite:
    """Write rows, with their schema (or `schema`), as the whole table. Without rows a schema is required.

    Indices of dictionaries with less than 32 bits get as many: a column has one type for all rows that will be added.
    Nullable columns of `schema` that the rows do not have are null. Raises `SchemaMismatch` for rows that do not fit
    it, and `InvalidCall` for those that Lance would not give back. With `checked` their values were validated before.
    """
    if data is None:
        if schema is None:
            raise InvalidCall("a table needs rows or a schema, found neither")
        data = schema.empty_table()
    with refused_as_such() as refusals:
        rows = rows_of(data, schema)
        if not rows.schema.names and schema is None:
            raise InvalidCall("a table needs columns, found none")
        stored = widened(rows.schema if schema is None else with_blobs(schema, rows.schema))
        filled = {field.name for field in stored if field.nullable}
        check_columns(rows.schema.names, stored, filled)
        check_storable(stored, data_version)
        written = write_fragments(
            _reader(for_lance(rows, refusals, schema=stored, filled=filled, checked=checked)),
            uri,
            mode="overwrite" if exists else "create",
            data_storage_version=data_version,
            storage_options=dict(options) or None,
            return_transaction=True,
        ).operation
    return overwrite_operation(stored, written.fragments, written_fields(written.new_schema))


def check_written(dataset: lance.LanceDataset, written: Sequence[FragmentMetadata]) -> None:
    """Raise `InvalidCall` if new fragments hold more values of a dictionary column than its indices count.

    Only tables that were made without this engine have such columns. What was written stays: no version names it.
    """
    for name in _narrow_columns(dataset):
        try:
            decoded_rows(dataset, written, [name])
        except CorruptFile as error:
            raise _outgrown(dataset, name) from error


@contextmanager
def outgrown_as_such(dataset: lance.LanceDataset) -> Iterator[None]:
    """Raise `InvalidCall` where pylance itself meets more values than the indices of a dictionary column count."""
    try:
        yield
    except Exception as error:
        narrow = _narrow_columns(dataset) if _OUTGROWN in str(error) else []
        if narrow:
            raise _outgrown(dataset, *narrow) from error
        raise


def _narrow_columns(dataset: lance.LanceDataset) -> list[str]:
    return [field.name for field in dataset.schema if has_narrow_dictionary(field.type)]


def _outgrown(dataset: lance.LanceDataset, *names: str) -> InvalidCall:
    columns = ", ".join(repr(name[:80]) for name in names)
    kinds = ", ".join(str(dataset.schema.field(name).type)[:200] for name in names)
    return InvalidCall(
        f"column {columns}: expected no more values at once than {kinds} counts; add them in parts, or write the table "
        "again, which makes the indices wider"
    )


def data_format(name: str) -> str:
    """The number of a version of the data format, which pylance also calls `stable` or `next`. Writes no file."""
    empty = pa.schema([pa.field("x", pa.int8())]).empty_table()
    return str(lance.write_dataset(empty, f"memory://{uuid.uuid4()}", data_storage_version=name).data_storage_version)


def stage_delete(
    dataset: lance.LanceDataset, files: TableFiles, file: ManifestFile, predicate: str
) -> tuple[Delete, int]:
    """Mark the rows that match an SQL expression as deleted; the operation and the number of rows.

    `file` is the version that is open as `dataset`, `files` are the table's.
    """
    rows = RowSet()
    for batch in matching_addresses(dataset, predicate):
        rows.add(batch.column(ADDRESS).to_numpy())
    updated, removed = files.delete_rows(file.outline, rows.by_fragment)
    return Delete(updated, removed, predicate), len(rows)


def stage_update(
    dataset: lance.LanceDataset,
    files: TableFiles,
    file: ManifestFile,
    assignments: Mapping[str, str],
    where: str | None,
) -> tuple[Update, int]:
    """Rewrite the rows that match with new values (SQL expressions by column); the operation and the number of rows.

    `file` is the version that is open as `dataset`, `files` are the table's.
    """
    fields = file.outline.fields
    schema = dataset.schema
    _check_update(schema, fields, assignments)
    stable = dataset.has_stable_row_ids
    columns = {name: assignments.get(name, column_expression(name)) for name in schema.names}
    rows = RowSet()
    ids: list[np.ndarray[Any, np.dtype[np.uint64]]] = []
    misfits: list[InvalidCall] = []

    def moved() -> Iterator[pa.RecordBatch]:
        try:
            for batch in matching_rows(dataset, columns, where, file.facts.rows or 0):
                rows.add(batch.column(ADDRESS).to_numpy())
                if stable:
                    ids.append(batch.column(ROW_ID).to_numpy())
                yield fit(batch.select(schema.names), schema, checked=True, first_row=None)
        except InvalidCall as error:  # pylance would hide its kind
            misfits.append(error)
            raise

    try:
        moving = table_or_stream(schema, moved())
        steps: tuple[Callable[[], Any], ...] = (
            lambda: _checked_fragments(dataset, write_fragments(moving, dataset, mode="append")),
            lambda: files.delete_rows(file.outline, rows.by_fragment),
        )
        # All rows of a table were found before it is written; those of a stream are found meanwhile.
        if isinstance(moving, pa.Table):
            new, (updated, removed) = files.store.gather(steps)
        else:
            new, (updated, removed) = (step() for step in steps)
    except Exception as error:
        if misfits:
            raise InvalidCall(f"update of columns {list(assignments)}: {misfits[0]}") from error
        raise
    if stable:
        new = with_row_ids(new, np.concatenate(ids) if ids else np.empty(0, np.uint64))
    changed = descendants(fields, {field.id for field in fields if _is_top(field, assignments)})
    return Update(updated, removed, new, value_fields=tuple(sorted(changed))), len(rows)


def _check_update(schema: pa.Schema, fields: Sequence[pb.Field], assignments: Mapping[str, str]) -> None:
    if not assignments or not assignments.keys() <= set(schema.names):
        raise ColumnNotFound(f"update of columns {list(assignments)}: expected some of {schema.names}")
    blobs = [field.name for field in fields if is_blob(field)]
    if blobs:
        raise InvalidCall(f"update of rows with blob columns {blobs}, which cannot be written again; use merge")


def _checked_fragments(dataset: lance.LanceDataset, written: Sequence[FragmentMetadata]) -> tuple[pb.DataFragment, ...]:
    check_written(dataset, written)
    return new_fragments(written)


def with_row_ids(
    fragments: tuple[pb.DataFragment, ...], ids: np.ndarray[Any, np.dtype[np.uint64]]
) -> tuple[pb.DataFragment, ...]:
    """The fragments with the ids of their rows, which are in the order of `ids`."""
    start = 0
    for fragment in fragments:
        fragment.inline_row_ids = encode_row_ids(ids[start : start + fragment.physical_rows])
        start += fragment.physical_rows
    return fragments


def _is_top(field: pb.Field, names: Mapping[str, str]) -> bool:
    return field.parent_id == -1 and field.name in names
