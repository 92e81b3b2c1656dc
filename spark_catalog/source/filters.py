"""Filters of Spark as SQL of Lance, where both mean the same. Pure.

Left to Spark are: floating-point numbers, whose NaN and negative zero compare otherwise; stored types that Spark shows
as others (unsigned integers, timestamps not of microseconds); nested columns; and names with a backtick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource as ds

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_STRINGS: Final = (pa.string(), pa.large_string())
_COMPARED: Final[Mapping[type, str]] = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_MATCHED: Final[Mapping[type, str]] = {
    ds.StringStartsWith: "starts_with",
    ds.StringEndsWith: "ends_with",
    ds.StringContains: "contains",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def lance_filter(given: ds.Filter, schema: pa.Schema) -> str | None:
    """The SQL for a filter on a table with this schema; None if Spark has to apply it."""
    if isinstance(given, ds.Not):
        inner = lance_filter(given.child, schema)
        return None if inner is None else f"NOT ({inner})"
    column = _column(given, schema)
    if column is None:
        return None
    name, kind = f"`{column.name}`", column.type
    match given:
        case ds.IsNull():
            return f"{name} IS NULL"
        case ds.IsNotNull():
            return f"{name} IS NOT NULL"
        case ds.EqualNullSafe():
            value = _literal(given.value, kind)
            if given.value is None:
                return f"{name} IS NULL"
            return None if value is None else f"({name} IS NOT NULL AND {name} = {value})"
        case ds.In():
            values = [_literal(value, kind) for value in given.value]
            if not values or any(value is None for value in values):
                return None
            return f"{name} IN ({', '.join(map(str, values))})"
    if type(given) in _MATCHED and kind in _STRINGS:
        return f"{_MATCHED[type(given)]}({name}, {_text(given.value)})"
    if type(given) in _COMPARED:
        value = _literal(given.value, kind)
        return None if value is None else f"{name} {_COMPARED[type(given)]} {value}"
    return None


def _column(given: ds.Filter, schema: pa.Schema) -> pa.Field | None:
    path: Sequence[str] = getattr(given, "attribute", ())
    if len(path) != 1 or "`" in path[0] or path[0] not in schema.names:
        return None
    return schema.field(path[0])


def _literal(value: Any, kind: pa.DataType) -> str | None:
    """A value as SQL for a column of the type; None if its comparison would differ from that of Spark."""
    for fits, expected, write in _LITERALS:
        if fits(kind):
            return write(value, kind) if type(value) is expected else None
    return None


def _integer(value: int, kind: pa.DataType) -> str | None:
    return str(value) if abs(value) < 2 ** (kind.bit_width - 1) else None


def _boolean(value: bool, _kind: pa.DataType) -> str:
    return "true" if value else "false"


def _text(value: str, _kind: pa.DataType | None = None) -> str:
    return "'" + value.replace("'", "''") + "'"


def _date(value: date, _kind: pa.DataType) -> str | None:
    return f"date '{value.isoformat()}'"


def _decimal(value: Decimal, kind: pa.DataType) -> str | None:
    return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))" if value.is_finite() else None


def _timestamp(value: datetime, kind: pa.DataType) -> str | None:
    if (kind.tz is None) != (value.tzinfo is None):
        return None
    instant = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"arrow_cast({(instant - _EPOCH) // datetime.resolution}, 'Timestamp(Microsecond, {zone})')"


_LITERALS: Final[tuple[tuple[Callable[[pa.DataType], bool], type, Callable[[Any, pa.DataType], str | None]], ...]] = (
    (lambda kind: kind in _INTEGERS, int, _integer),
    (pa.types.is_boolean, bool, _boolean),
    (lambda kind: kind in _STRINGS, str, _text),
    (pa.types.is_date32, date, _date),
    (pa.types.is_decimal128, Decimal, _decimal),
    (lambda kind: pa.types.is_timestamp(kind) and kind.unit == "us", datetime, _timestamp),
)
