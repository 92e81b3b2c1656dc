"""Arguments of the calls of a graph write, compared with the table and its declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Node
from spark_catalog.graph_writes.calls.columns import MergedSchema, merge_schemas
from spark_catalog.graph_writes.table_calls import TableCalls
from spark_catalog.tables.types import storable_schema
from table_data.arrow.fitting import check_columns, named

SchemaOption: TypeAlias = pa.Schema | Literal["merge"] | None


def given_schema(schema: SchemaOption) -> pa.Schema | None:
    """The schema, if one is given."""
    return schema if isinstance(schema, pa.Schema) else None


def merged_schema(write: TableCalls, df: DataFrame, schema: SchemaOption) -> MergedSchema | None:
    """The schema of a table with the columns of new rows, if it is to be merged; else None.

    Raises `InvalidWrite` if the columns do not fit.
    """
    if schema == "merge":
        required = write.target.required
        return merge_schemas(write.name, write.schema, storable_schema(write.name, df.schema), required)
    with named(write.name):
        check_columns(df.columns, write.schema)
    return None


def check_upsert_key(name: str, on: Sequence[str], schema: pa.Schema, declared: Node | Edge | None) -> None:
    """Raise `InvalidWrite` unless the key columns are there, and are those of the declared key if there is one."""
    unknown = [column for column in on if column not in schema.names]
    if unknown or not on:
        raise InvalidWrite(f"{name}: upsert on {list(on)}, expected columns among {schema.names}")
    if declared is not None and declared.unique and set(declared.unique) != set(on):
        raise InvalidWrite(f"{name}: upsert on {list(on)}, the declared key is {list(declared.unique)}")


def delete_key(write: TableCalls, rows: DataFrame, on: str | Sequence[str] | None) -> tuple[str, ...]:
    """The key columns of a deletion, by default the declared key. Raises `InvalidWrite` if one of them is missing."""
    if on is None:
        on = write.declared.unique if write.declared is not None else ()
    key = (on,) if isinstance(on, str) else tuple(on)
    unknown = [column for column in key if column not in write.schema.names or column not in rows.columns]
    if unknown or not key:
        both = [name for name in write.schema.names if name in rows.columns]
        raise InvalidWrite(
            f"{write.name}: delete on {list(key)}, expected columns of the table and of the rows: {both}"
        )
    return key
