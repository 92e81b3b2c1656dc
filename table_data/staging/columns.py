"""New columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import lance
import pyarrow as pa
from lance.udf import BatchUDF

from lance_core.data import arrow_schema, fragment_message, schema_fields
from lance_core.format.blobs import is_blob
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Merge
from table_data.arrow.dictionaries import widened
from table_data.arrow.fitting import for_lance
from table_data.arrow.intake import Refusals, given_by_caller, refused_as_such, taken_from_caller
from table_data.arrow.sources import rows_of
from table_data.arrow.storable import check_storable
from table_data.errors import InvalidCall
from table_data.sql.expressions import SqlExpression
from table_data.staging.handles import expression_of
from table_data.staging.overflow import check_results

_OLD_BLOBS: Final = frozenset({"2.0", "2.1"})


def stage_columns(
    dataset: lance.LanceDataset, manifest: pb.Manifest, columns: Any, read_columns: Sequence[str] | None
) -> Merge:
    """Add columns: SQL expressions by name, a function over batches, rows, or a schema for columns of nulls.

    Rows are one for each row of the table, in the order of a scan. Raises `InvalidCall` if they are more or fewer, if a
    column exists already, if a function or rows are given for a table without fragments, if `read_columns` are given
    without a function, for a wrong expression, for arithmetic that overflows, and for values that Lance does not give
    back.
    """
    if read_columns is not None and not (isinstance(columns, BatchUDF) or callable(columns)):
        raise InvalidCall("read_columns: expected with a function for new columns, which gets them")
    fragments = dataset.get_fragments()
    if isinstance(columns, (pa.Field, pa.Schema)):
        columns = widened(pa.schema([columns]) if isinstance(columns, pa.Field) else columns)
        _check_new_names(dataset.schema.names, columns.names)
    elif isinstance(columns, Mapping):
        columns = _expressions(dataset, columns)
        if not fragments:
            # Constants alone would be no scan.
            computed = dataset.scanner(columns=columns, with_row_address=True).projected_schema
            columns = pa.schema([computed.field(name).with_nullable(True) for name in columns])
    if isinstance(columns, pa.Schema):
        _check_addable(columns, dataset.data_storage_version)
        added = _renumbered(schema_fields(columns), next_field_id(manifest))
        return _with_fields(manifest, (*manifest.fields, *added), tuple(manifest.fragments))
    if not fragments:
        raise InvalidCall("columns with values for a table without rows: give a schema instead")
    read = None if read_columns is None else list(read_columns)
    with refused_as_such() as refusals:
        if isinstance(columns, Mapping):
            made = [fragment.merge_columns(columns) for fragment in fragments]
        elif isinstance(columns, BatchUDF) or callable(columns):
            function = _checked_function(columns, dataset, refusals)
            made = [fragment.merge_columns(function, columns=read) for fragment in fragments]
        else:
            given = rows_of(columns)
            _check_addable(widened(given.schema), dataset.data_storage_version)
            rows = _RowsInOrder(given, refusals)
            made = [fragment.merge_columns(rows.first(fragment.count_rows())) for fragment in fragments]
            rows.check_end()
    _, (_, *encoded) = made[0][1].__reduce__()
    fields = tuple(pb.Field.FromString(field) for field in encoded)
    stored = arrow_schema(fields)
    new = [stored.field(name) for name in stored.names if name not in dataset.schema.names]
    _check_addable(pa.schema(new), dataset.data_storage_version)
    return _with_fields(manifest, fields, tuple(fragment_message(fragment) for fragment, _ in made))


def _expressions(dataset: lance.LanceDataset, columns: Mapping[str, Any]) -> dict[str, SqlExpression]:
    """Expressions as pylance takes them."""
    _check_new_names(dataset.schema.names, columns)
    found = {name: expression_of(dataset, text, f"column {name}") for name, text in columns.items()}
    check_results(dataset, found)
    return found


def _checked_function(given: Any, dataset: lance.LanceDataset, refusals: Refusals) -> BatchUDF:
    """A function whose values are as Lance takes them; see `for_lance`."""
    if isinstance(given, BatchUDF) and given.cache is not None:
        raise InvalidCall("a function with a checkpoint_file: expected one without, since nothing is kept of it")
    function = given.func if isinstance(given, BatchUDF) else given
    seen: list[pa.Schema] = []

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            with given_by_caller("the function for new columns"):
                found = function(batch)
            if hasattr(found, "iloc"):  # a frame of pandas
                found = pa.RecordBatch.from_pandas(found)
            if not isinstance(found, pa.RecordBatch):
                raise InvalidCall(
                    f"a function for new columns: expected a RecordBatch or a DataFrame, found {type(found).__name__}"
                )
            batch = for_lance(found, refusals)
            if batch.schema not in seen:
                _check_addable(batch.schema, dataset.data_storage_version)
                seen.append(batch.schema)
            return batch
        except BaseException as refusal:
            refusals.append(refusal)
            raise

    schema = given.output_schema if isinstance(given, BatchUDF) else None
    return BatchUDF(compute, None if schema is None else widened(schema))


def _check_addable(columns: pa.Schema, data_version: str) -> None:
    """Raise `InvalidCall` for new columns that Lance does not give back.

    Beside fragments that are there it writes blobs as formats before 2.2 have them. In such a column it cannot read the
    rows that are added later, which are written as the table's format has them.
    """
    check_storable(columns, data_version)
    if data_version in _OLD_BLOBS:
        return
    for field in columns:
        if _holds_blobs(field):
            raise InvalidCall(
                f"column {field.name[:80]!r}: expected none of blobs, which a table has from its first version on"
            )


def _holds_blobs(field: pa.Field) -> bool:
    kind = field.type
    return is_blob(field) or any(_holds_blobs(kind.field(place)) for place in range(kind.num_fields))


class _RowsInOrder:
    """Rows that are taken in parts, which Lance writes beside the fragments of a table."""

    def __init__(self, rows: pa.Table | pa.RecordBatchReader, refusals: Refusals) -> None:
        self._schema = rows.schema
        self._batches = taken_from_caller(rows.to_reader() if isinstance(rows, pa.Table) else rows, refusals)
        self._rest: pa.RecordBatch | None = None
        self._refusals = refusals
        self._wanted = 0

    def first(self, count: int) -> pa.RecordBatchReader:
        """The next so many rows, which are read when Lance asks for them."""
        self._wanted += count
        part = pa.RecordBatchReader.from_batches(self._schema, self._next(count))
        return for_lance(part, self._refusals)

    def check_end(self) -> None:
        """Raise `InvalidCall` if there are more rows."""
        if self._next_batch() is not None:
            raise InvalidCall(f"new columns: expected {self._wanted} rows, one for each of the table's, found more")

    def _next(self, count: int) -> Iterator[pa.RecordBatch]:
        left = count
        while left:
            batch = self._next_batch()
            if batch is None:
                found = self._wanted - left
                refusal = InvalidCall(f"new columns: expected a row for each of the table's, found {found} rows")
                self._refusals.append(refusal)
                raise refusal
            self._rest = batch.slice(left) if batch.num_rows > left else None
            batch = batch.slice(0, left)
            left -= batch.num_rows
            yield batch

    def _next_batch(self) -> pa.RecordBatch | None:
        rest, self._rest = self._rest, None
        return rest if rest is not None else next((batch for batch in self._batches if batch.num_rows), None)


def next_field_id(manifest: pb.Manifest) -> int:
    """The next field id. Data files still hold the ids of dropped columns, so these are not used again."""
    used = {field.id for field in manifest.fields}
    for fragment in manifest.fragments:
        for file in fragment.files:
            used.update(file.fields)
    return max(used, default=-1) + 1


def _renumbered(fields: Sequence[pb.Field], first: int) -> list[pb.Field]:
    for field in fields:
        field.id += first
        if field.parent_id != -1:
            field.parent_id += first
    return list(fields)


def _check_new_names(present: Sequence[str], wanted: Iterable[str]) -> None:
    names = list(wanted)
    double = [name for name in names if name in present]
    if double or not names:
        raise InvalidCall(f"new columns {names}: expected some that are not among {list(present)}")


def _with_fields(manifest: pb.Manifest, fields: tuple[pb.Field, ...], fragments: tuple[pb.DataFragment, ...]) -> Merge:
    before = {field.id for field in manifest.fields}
    nullable = all(field.nullable for field in fields if field.id not in before)
    return Merge(fragments, fields, preserves_nullability=nullable)
