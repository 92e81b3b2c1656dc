"""The schema of a table with the columns of new rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from spark_catalog.errors import InvalidWrite


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """The schema of a table and of new rows.

    Attributes:
        schema: The columns of the table, then those that only the rows have.
        added: Columns that only the rows have; nullable.
        filled: Columns that only the table has, and that are null in the rows.
    """

    schema: pa.Schema
    added: tuple[pa.Field, ...]
    filled: tuple[str, ...]


def merge_schemas(name: str, stored: pa.Schema, rows: pa.Schema, required: tuple[str, ...] = ()) -> MergedSchema:
    """Combine the schema of a table with that of new rows.

    Args:
        name: Name of the table, for messages.
        stored: Schema of the table.
        rows: Schema of the rows.
        required: Columns that must not be null, nullable or not.

    Raises:
        InvalidWrite: A column has another kind of type, or one that must not be null is missing.
    """
    for item in rows:
        if item.name in stored.names and not _is_kindred(item.type, stored.field(item.name).type):
            expected = stored.field(item.name).type
            raise InvalidWrite(f"{name}.{item.name}: expected {expected}, found {item.type}: types are not changed")
    filled = [item for item in stored if item.name not in rows.names]
    missing = [item.name for item in filled if not item.nullable or item.name in required]
    if missing:
        raise InvalidWrite(f"{name}: expected the columns {missing}, which must not be null, found {rows.names}")
    added = [item.with_nullable(True) for item in rows if item.name not in stored.names]
    schema = pa.schema([*stored, *added], metadata=stored.metadata)
    return MergedSchema(schema, tuple(added), tuple(item.name for item in filled))


def _is_kindred(found: pa.DataType, stored: pa.DataType) -> bool:
    """Whether values of one type are meant as values of the other. The cast checks that each of them fits."""
    if isinstance(stored, pa.BaseExtensionType):
        return _is_kindred(found, stored.storage_type)
    if pa.types.is_dictionary(stored):
        return _is_kindred(found, stored.value_type)
    kinds = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        _is_text,
        _is_binary,
        pa.types.is_timestamp,
        pa.types.is_date,
        _is_list,
    )
    return found == stored or found.id == stored.id or any(kind(found) and kind(stored) for kind in kinds)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
