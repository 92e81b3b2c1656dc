"""Stored Arrow types as types of Spark, and batches cast to them."""

from __future__ import annotations

import inspect
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from spark_catalog.tables.scans import ROW_ADDRESS, ROW_ID
from table_data.errors import InvalidCall

_ROW_OVERHEAD: Final = 8
_VARIABLE_WIDTH: Final = 20
_ELEMENTS: Final = 4
_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_HAS_TIMEZONE: Final = "timezone" in inspect.signature(to_arrow_schema).parameters


def spark_schema(schema: pa.Schema) -> StructType:
    """The schema of a DataFrame of stored rows. Unsigned integers become the next wider signed type.

    Raises `InvalidCall` for a type that Spark does not have.
    """
    shown = []
    for item in schema:
        try:
            shown.append(item.with_type(_readable(item.type)).remove_metadata())
            arrow_schema(from_arrow_schema(pa.schema([shown[-1]]), prefer_timestamp_ntz=True))
        except (PySparkTypeError, pa.ArrowInvalid, ValueError) as refusal:
            raise InvalidCall(f"column {item.name}: {item.type} has no type in Spark: {refusal}") from None
    return from_arrow_schema(pa.schema(shown), prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema that Spark requires of the batches of a DataFrame, exactly."""
    return to_arrow_schema(schema, timezone="UTC") if _HAS_TIMEZONE else to_arrow_schema(schema)


def storable_schema(table: str, schema: StructType) -> pa.Schema:
    """The schema of a new table, or of new columns, for rows of a DataFrame.

    Raises `InvalidCall` for a type that Lance does not have, or has without a part of it, such as a collation, and for
    a name by which Lance does not find the column again.
    """
    stored = []
    for item in schema:
        check_name(table, item.name)
        try:
            [converted] = arrow_schema(StructType([item]))
            [shown] = spark_schema(pa.schema([converted]))
        except PySparkException:
            shown = None
        if shown is None or shown.dataType.simpleString() != item.dataType.simpleString():
            raise InvalidCall(f"{table}.{item.name}: Lance has no type for {item.dataType.simpleString()}") from None
        stored.append(converted)
    return pa.schema(stored)


def check_name(table: str, column: str) -> None:
    """Raise `InvalidCall` for a name that a column of Lance cannot have. Fields of structs can have any."""
    if not column or "`" in column or "." in column:
        raise InvalidCall(f"{table}: column {column!r}: expected a name that is not empty and has no ` and no .")


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch with the columns of `schema`, in its order, to exactly that schema.

    Digits of a timestamp below a microsecond are dropped. Raises `InvalidCall` for a value without a counterpart.
    """
    return pa.RecordBatch.from_arrays(
        [
            column if column.type == wanted.type else _cast(column, wanted)
            for column, wanted in zip(batch.columns, schema, strict=True)
        ],
        schema=schema,
    )


def row_width(schema: pa.Schema) -> int:
    """Estimated bytes of a row in memory, by the widths that Spark assumes."""
    return _ROW_OVERHEAD + sum(_width(item.type) for item in schema)


def _cast(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if wanted.name in (ROW_ID, ROW_ADDRESS) and pa.types.is_uint64(column.type):
        return column.view(wanted.type)
    try:
        return pc.cast(column, options=pc.CastOptions(wanted.type, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
        raise InvalidCall(f"column {wanted.name}: expected {wanted.type}, found {column.type}: {refusal}") from None


def _readable(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _readable(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _readable(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([item.with_type(_readable(item.type)) for item in kind])
    if pa.types.is_map(kind):
        key, value = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_readable(key.type)), value.with_type(_readable(value.type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return _WIDER.get(kind, kind)


def _width(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pa.types.is_struct(kind):
        return sum(_width(item.type) for item in kind)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_map(kind):
        return _ELEMENTS * (_width(kind.key_type) + _width(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _ELEMENTS * _width(kind.value_type)
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _VARIABLE_WIDTH
