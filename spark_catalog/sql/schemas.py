"""Schemas of Spark as schemas of Arrow, and back. Comments of columns are in the metadata of fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from spark_catalog.errors import InvalidWrite
from spark_catalog.sql.errors import Unsupported
from spark_catalog.tables.types import spark_schema, storable_schema

COMMENT = b"comment"


def shown_schema(stored: pa.Schema, name: str) -> StructType:
    """The schema that Spark sees. Raises `Unsupported` for a column whose type Spark does not have."""
    fields = []
    for field in stored:
        try:
            [shown] = spark_schema(pa.schema([field])).fields
        except InvalidWrite as error:
            raise Unsupported(f"{name}: {error}") from error
        comment = (field.metadata or {}).get(COMMENT)
        metadata = {} if comment is None else {"comment": comment.decode()}
        fields.append(StructField(field.name, shown.dataType, field.nullable, metadata))
    return StructType(fields)


def stored_schema(shown: StructType, name: str) -> pa.Schema:
    """The schema of a new table. Raises `Unsupported` for a column whose name or type Lance does not have."""
    fields = []
    for field in shown.fields:
        try:
            [converted] = storable_schema(name, StructType([field]))
        except InvalidWrite as error:
            raise Unsupported(str(error)) from error
        comment = (field.metadata or {}).get("comment")
        metadata = None if comment is None else {COMMENT: comment.encode()}
        fields.append(pa.field(field.name, converted.type, field.nullable, metadata))
    return pa.schema(fields)


def parse_schema(json: dict[str, Any]) -> StructType:
    """The schema from JSON of Spark."""
    return StructType.fromJson(json)
