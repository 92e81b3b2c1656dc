"""New columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa
from lance.udf import BatchUDF

from lance_core.data import arrow_schema, fragment_message, schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Merge
from table_data.arrow.dictionaries import widened
from table_data.arrow.fitting import for_lance
from table_data.arrow.intake import Refusals, refused_as_such
from table_data.arrow.sources import rows_of
from table_data.arrow.storable import check_storable
from table_data.errors import InvalidCall
from table_data.staging.handles import expression_of
from table_data.staging.overflow import check_results


def stage_columns(
    dataset: lance.LanceDataset, manifest: pb.Manifest, columns: Any, read_columns: Sequence[str] | None
) -> Merge:
    """Add columns: SQL expressions by name, a function over batches, or a schema for columns of nulls.

    Raises `InvalidCall` if a column exists already, if a function is given for a table without fragments, for a wrong
    expression, for integer arithmetic that overflows, and for values that Lance does not give back.
    """
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])
    if isinstance(columns, pa.Schema):
        columns = widened(columns)
    if isinstance(columns, (Mapping, pa.Schema)):
        _check_new_names(dataset.schema.names, columns if isinstance(columns, Mapping) else columns.names)
    if isinstance(columns, Mapping):
        columns = {name: expression_of(dataset, text, f"column {name}") for name, text in columns.items()}
    fragments = dataset.get_fragments()
    if isinstance(columns, Mapping):
        check_results(dataset, columns)
    if isinstance(columns, Mapping) and not fragments:
        # Constants alone would be no scan.
        computed = dataset.scanner(columns=dict(columns), with_row_address=True).projected_schema
        columns = pa.schema([computed.field(name).with_nullable(True) for name in columns])
    if isinstance(columns, pa.Schema):
        check_storable(columns, dataset.data_storage_version)
        added = _renumbered(schema_fields(columns), next_field_id(manifest))
        return _with_fields(manifest, (*manifest.fields, *added), tuple(manifest.fragments))
    if not fragments:
        raise InvalidCall("columns computed by a function for a table without rows: give a schema instead")
    read = None if read_columns is None else list(read_columns)
    with refused_as_such() as refusals:
        values = columns if isinstance(columns, Mapping) else _from_outside(columns, refusals)
        made = [fragment.merge_columns(values, columns=read) for fragment in fragments]
    _, (_, *encoded) = made[0][1].__reduce__()
    fields = tuple(pb.Field.FromString(field) for field in encoded)
    stored = arrow_schema(fields)
    new = [stored.field(name) for name in stored.names if name not in dataset.schema.names]
    check_storable(pa.schema(new), dataset.data_storage_version)
    return _with_fields(manifest, fields, tuple(fragment_message(fragment) for fragment, _ in made))


def _from_outside(columns: Any, refusals: Refusals) -> Any:
    """The values of a function, of a `BatchUDF` or of rows, as Lance takes them; see `for_lance`."""
    if not isinstance(columns, BatchUDF) and not callable(columns):
        return for_lance(rows_of(columns), refusals)
    function = columns.func if isinstance(columns, BatchUDF) else columns

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = function(batch)
        try:
            return for_lance(
                found if isinstance(found, pa.RecordBatch) else pa.RecordBatch.from_pandas(found), refusals
            )
        except InvalidCall as refusal:
            refusals.append(refusal)
            raise

    schema = columns.output_schema if isinstance(columns, BatchUDF) else None
    return BatchUDF(compute, None if schema is None else widened(schema))


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
