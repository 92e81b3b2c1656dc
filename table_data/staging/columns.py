"""New columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lance
import pyarrow as pa

from lance_core.data import fragment_message, schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Merge
from table_data.errors import InvalidCall
from table_data.staging.handles import expression_of
from table_data.staging.overflow import check_results


def stage_columns(
    dataset: lance.LanceDataset, manifest: pb.Manifest, columns: Any, read_columns: Sequence[str] | None
) -> Merge:
    """Add columns: SQL expressions by name, a function over batches, or a schema for columns of nulls.

    Raises `InvalidCall` if a column exists already, if a function is given for a table without fragments, for a wrong
    expression, and for integer arithmetic that overflows.
    """
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])
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
        added = _renumbered(schema_fields(columns), next_field_id(manifest))
        return _with_fields(manifest, (*manifest.fields, *added), tuple(manifest.fragments))
    if not fragments:
        raise InvalidCall("columns computed by a function for a table without rows: give a schema instead")
    read = None if read_columns is None else list(read_columns)
    made = [fragment.merge_columns(columns, columns=read) for fragment in fragments]
    _, (_, *fields) = made[0][1].__reduce__()
    return _with_fields(
        manifest,
        tuple(pb.Field.FromString(field) for field in fields),
        tuple(fragment_message(fragment) for fragment, _ in made),
    )


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
