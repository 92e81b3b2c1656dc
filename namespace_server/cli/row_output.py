"""Rows of tables on the terminal and as JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from namespace_server.cli.output import print_table

if TYPE_CHECKING:
    import pyarrow as pa

_WIDEST: Final = 60
_ITEMS: Final = 3


def print_rows(rows: pa.Table, *, title: str | None = None) -> None:
    """Print rows as a table. Long values are cut: the other forms of output have them whole."""
    import pyarrow as pa

    names = rows.schema.names
    kinds = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
    numbers = [field.name for field in rows.schema if any(is_kind(field.type) for is_kind in kinds)]
    columns = [[_shown(value) for value in _values(column)] for column in rows.columns]
    print_table(names, zip(*columns, strict=True), numbers=numbers, title=title)


def json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as values of JSON, see `json_column`."""
    from table_data.values.written import json_column

    columns = [[value for chunk in _chunks(column) for value in json_column(chunk)] for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _chunks(column: Any) -> list[Any]:
    return list(column.chunks) if hasattr(column, "chunks") else [column]


def _values(column: Any) -> list[Any]:
    """The values of a column; as texts where Python has no such date or time."""
    from table_data.values.written import json_column

    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [value for chunk in _chunks(column) for value in json_column(chunk)]


def json_value(value: object) -> Any:
    """A value of a row as one of JSON: times as ISO 8601, bytes as base64, decimals as texts, intervals in seconds."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return value


def _shown(value: object) -> str:
    """A value in one cell."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_first(value))}]"
    text = str(json_value(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _first(values: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    yield from (_shown(each) for each in values[:_ITEMS])
    if len(values) > _ITEMS:
        yield f"… {len(values)} in all"


def batches_with_progress(
    batches: Iterable[pa.RecordBatch], progress: Any, phase: str, total: int = 0
) -> Iterator[pa.RecordBatch]:
    """The batches; `progress` is called with the number of rows that went by."""
    done = 0
    progress(phase, done, total, "rows")
    for batch in batches:
        yield batch
        done += batch.num_rows
        progress(phase, done, total, "rows")
