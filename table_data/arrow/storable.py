"""Types whose values Lance gives back as they were written.

Pylance takes some others as well, and writes files that it cannot read: all columns after the one may be lost. These,
and those that it refuses in words of its own, are refused here by the name of the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import pyarrow as pa

from lance_core.data import schema_fields
from lance_core.errors import UnsupportedFeature
from table_data.errors import InvalidCall

_LEVELS: Final = 62
"""Types below that of a column which Arrow passes from one library to another."""


def check_storable(schema: pa.Schema, data_version: str) -> None:
    """Raise `InvalidCall` for the first column that files of a version of the data format do not give back.

    Also for a name that a column cannot have. Fields of structs can have any.
    """
    for name in schema.names:
        if name in {"", "*"} or any(sign in name for sign in ".`\0"):
            raise InvalidCall(
                f"column {name[:80]!r}: expected a name that is not empty, is not '*', and has no '.', '`' and NUL"
            )
    check_readable_types(schema, data_version)
    try:
        schema_fields(schema)
    except UnsupportedFeature:
        for field in schema:
            _check_known(field)
        raise


def check_readable_types(schema: pa.Schema, data_version: str) -> None:
    """The same for types that pylance writes, and does not read. For rows in the types of a table this is enough."""
    check_names(schema)
    for field in schema:
        for path, found in _unreadable(field.type, field.name, data_version):
            raise InvalidCall(f"column {path[:80]!r}: {found}, which a data file of Lance does not give back")


def check_names(schema: pa.Schema) -> None:
    """Raise `InvalidCall` for a column with a name, of its own or of a field in it, that Lance does not give back.

    Names, time zones and metadata must be UTF-8; pyarrow decodes them when it is asked for them. Of a name with a zero
    byte Lance gets the part before it.
    """
    for place in range(len(schema)):
        try:
            _decode(schema.field(place))
        except UnicodeDecodeError as error:
            raise InvalidCall(f"column {place}: expected names, time zones and metadata in UTF-8: {error}") from None
    try:
        _decode_metadata(schema.metadata)
    except UnicodeDecodeError as error:
        raise InvalidCall(f"schema: expected metadata in UTF-8: {error}") from None


def _decode(field: pa.Field) -> None:
    if "\0" in field.name:
        raise InvalidCall(f"column {field.name[:80]!r}: expected a name without NUL")
    if pa.types.is_timestamp(field.type):
        _ = field.type.tz
    _decode_metadata(field.metadata)
    for place in range(field.type.num_fields):
        _decode(field.type.field(place))


def _decode_metadata(metadata: Mapping[bytes, bytes] | None) -> None:
    for text in chain.from_iterable((metadata or {}).items()):
        text.decode()


def _check_known(field: pa.Field) -> None:
    try:
        schema_fields(pa.schema([field]))
    except UnsupportedFeature as error:
        raise InvalidCall(
            f"column {field.name[:80]!r} has type {str(field.type)[:200]}: expected one that Lance has"
        ) from error


def _unreadable(kind: pa.DataType, path: str, data_version: str, level: int = 0) -> Iterator[tuple[str, str]]:
    if level > _LEVELS:
        yield path, f"a type with more than {_LEVELS} types in each other"
        return
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind) and not kind.num_fields and data_version != "2.0":
        yield path, "an object without fields"
    elif pa.types.is_fixed_size_binary(kind) and not kind.byte_width and data_version in {"2.0", "2.1"}:
        yield path, "values of no bytes"
    elif pa.types.is_fixed_size_list(kind) and not _is_flat(kind.value_type):
        yield path, f"lists of one length of {str(kind.value_type)[:80]}"
    for place in range(kind.num_fields):
        field = kind.field(place)
        yield from _unreadable(field.type, f"{path}.{field.name}", data_version, level + 1)


def _is_flat(kind: pa.DataType) -> bool:
    """Whether all values of a type have one width, so that lists of one length of them do too."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_fixed_size_list(kind):
        return _is_flat(kind.value_type)
    return bool(
        pa.types.is_primitive(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_null(kind)
    )
