"""Columns of another type: new data files beside the others, fragment by fragment.

Such a column is a new field with a new id. Where it is inside of structs or lists, the new data file holds only this
leaf, in structs and lists of the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.udf import BatchUDF

from lance_core.data import arrow_schema, fragment_message, schema_fields
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOP_LEVEL
from table_data.errors import InvalidCall
from table_data.requests.arrow_types import is_castable
from table_data.requests.schema_paths import canonical_path, names_to
from table_data.staging.columns import next_field_id

_OLD_FORMATS = ("", "0.1", "2.0")
"""Their data files also hold structs and lists as columns of their own."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A new type for a leaf. `names` are those of the fields on the way to it, outermost first."""

    field: int
    names: tuple[str, ...]
    source: pa.DataType
    target: pa.DataType


def cast_of(manifest: pb.Manifest, identifier: int, target: pa.DataType) -> Cast:
    """The cast of a field. Raises `InvalidCall` unless it is a leaf and the types are of one family."""
    path = canonical_path(manifest.fields, identifier)
    names = tuple(names_to(manifest.fields, identifier))
    alone = pb.Field()
    alone.CopyFrom(next(field for field in manifest.fields if field.id == identifier))
    if any(field.parent_id == identifier for field in manifest.fields):
        raise InvalidCall(f"column {path!r}: expected one without fields in it to cast, found {alone.logical_type}")
    if len(names) > 1 and manifest.data_format.version in _OLD_FORMATS:
        raise InvalidCall(f"column {path!r}: expected data files of version 2.1 or later to cast a field in a column")
    alone.parent_id = TOP_LEVEL
    source = arrow_schema([alone]).field(0).type
    if source != target and not is_castable(source, target):
        raise InvalidCall(f"column {path!r}: expected a type that {source} can be cast to, found {target}")
    return Cast(identifier, names, source, target)


def write_casts(
    dataset: lance.LanceDataset, manifest: pb.Manifest, casts: Sequence[Cast]
) -> tuple[Sequence[pb.DataFragment], Mapping[int, pb.Field]]:
    """Write the columns. Returns all fragments with their new files, and the new fields by the ids of the old ones.

    Raises `InvalidCall` for a value that does not fit.
    """
    fragments = dataset.get_fragments()
    if not fragments:
        made = schema_fields(pa.schema([pa.field(f"c{place}", cast.target) for place, cast in enumerate(casts)]))
        for place, field in enumerate(made, next_field_id(manifest)):
            field.id = place
        return (), {cast.field: field for cast, field in zip(casts, made, strict=True)}
    used = {field.name for field in manifest.fields}
    names = [_unused(f"__cast_{place}", used) for place in range(len(casts))]
    sources = [dataset.schema.field(cast.names[0]).type for cast in casts]
    schema = pa.schema(
        [
            pa.field(name, _cast_type(source, cast.names[1:], cast.target))
            for name, source, cast in zip(names, sources, casts, strict=True)
        ]
    )

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [_cast_array(batch.column(cast.names[0]), cast.names[1:], cast.target) for cast in casts]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    read = sorted({cast.names[0] for cast in casts})
    try:
        written = [fragment.merge_columns(BatchUDF(convert, schema), columns=read) for fragment in fragments]
    except (pa.ArrowException, ValueError, OSError, RuntimeError) as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise InvalidCall(f"cast of columns {read}: {reason}") from error
    _, (_, *encoded) = written[0][1].__reduce__()
    fields = [pb.Field.FromString(field) for field in encoded]
    leaves = {cast.field: _leaf(fields, name) for cast, name in zip(casts, names, strict=True)}
    return [fragment_message(fragment) for fragment, _ in written], leaves


def _unused(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    return name


def _reason(error: BaseException) -> str | None:
    """The error of pyarrow, which pylance shows with a trace; None if the values were not even read."""
    text = str(error)
    for line in reversed(text.splitlines()):
        if "Arrow" in line and ": " in line:
            return line.rpartition("Arrow")[2].partition(": ")[2][:300]
    return None


def _leaf(fields: Sequence[pb.Field], name: str) -> pb.Field:
    [found] = (field for field in fields if field.parent_id == TOP_LEVEL and field.name == name)
    while below := [field for field in fields if field.parent_id == found.id]:
        [found] = below
    return found


def _cast_type(source: pa.DataType, names: Sequence[str], target: pa.DataType) -> pa.DataType:
    """The type of a column with only the leaf at `names` in it."""
    if not names:
        return target
    if pa.types.is_struct(source):
        child = _cast_type(source.field(names[0]).type, names[1:], target)
        return pa.struct([pa.field(names[0], child)])
    if pa.types.is_list(source) or pa.types.is_large_list(source):
        child = _cast_type(source.value_type, names[1:], target)
        item = pa.field(source.value_field.name, child)
        return pa.list_(item) if pa.types.is_list(source) else pa.large_list(item)
    raise InvalidCall(f"a cast in a column of {source}: expected a struct or a list")


def _cast_array(array: pa.Array, names: Sequence[str], target: pa.DataType) -> pa.Array:
    """A column with only the leaf at `names` in it, cast."""
    if not names:
        return pc.cast(array, options=_options(target))
    if pa.types.is_struct(array.type):
        child = _cast_array(pc.struct_field(array, [names[0]]), names[1:], target)
        return pa.StructArray.from_arrays([child], fields=[pa.field(names[0], child.type)], mask=array.is_null())
    values = _cast_array(array.values, names[1:], target)
    item = pa.field(array.type.value_field.name, values.type)
    kind = pa.list_(item) if pa.types.is_list(array.type) else pa.large_list(item)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _options(target: pa.DataType) -> pc.CastOptions:
    """As pylance casts: integers and times that do not fit are errors, what is more precise is rounded."""
    return pc.CastOptions(
        target,
        allow_int_overflow=False,
        allow_time_truncate=True,
        allow_time_overflow=False,
        allow_decimal_truncate=False,
        allow_float_truncate=True,
        allow_invalid_utf8=False,
    )
