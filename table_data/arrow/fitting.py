"""Rows in the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from table_data.arrow.intake import validated
from table_data.arrow.memory import readable_by_lance
from table_data.errors import InvalidCall

ArrowRows: TypeAlias = pa.RecordBatch | pa.Table
_T = TypeVar("_T")
_BLOB: Final = "lance-encoding:blob"
_BLOB_TYPES: Final = "lance.blob"


def check_columns(name: str, found: Sequence[str], schema: pa.Schema, filled: Sequence[str] = ()) -> None:
    """Raise `InvalidCall` unless the column names are those of the schema, in any order. `filled` may be missing."""
    missing = [column for column in schema.names if column not in found and column not in filled]
    surplus = [column for column in found if column not in schema.names]
    if missing or surplus or len(found) != len(set(found)):
        raise InvalidCall(f"{name}: expected columns {schema.names}, missing {missing}, surplus {surplus}")


def fit_columns(
    name: str,
    batch: ArrowRows,
    schema: pa.Schema,
    *,
    filled: Sequence[str] = (),
    required: Sequence[str] = (),
) -> Any:
    """Cast a batch (or table) to a schema. Columns are matched by name; those of `filled` may be missing, for nulls.

    Raises `InvalidCall` for a missing or surplus column, a value that is not `validated` or out of the range of its
    type, or a null in a column that must not have nulls, by the schema or by `required`. Lance itself does not refuse
    such nulls.
    """
    check_columns(name, batch.schema.names, schema, filled)
    validated(batch)
    columns = []
    for wanted in schema:
        if wanted.name in filled and wanted.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        column = batch.column(wanted.name)
        if column.null_count and (not wanted.nullable or wanted.name in required):
            raise InvalidCall(
                f"{name}.{wanted.name}: {column.null_count} nulls among {batch.num_rows} rows, expected none"
            )
        if column.type != wanted.type:
            try:
                column = column.cast(wanted.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
                raise InvalidCall(f"{name}.{wanted.name}: expected {wanted.type}: {refusal}") from None
        columns.append(readable_by_lance(column))
    return type(batch).from_arrays(columns, schema=schema)


def write_fitted(
    name: str, rows: Iterable[ArrowRows], schema: pa.Schema | None, write: Callable[[pa.RecordBatchReader], _T]
) -> _T:
    """Call `write` with a stream of the rows in a schema. Nullable columns that they do not have are null.

    Without a schema it is that of the first rows, and the others must have it, too. Raises `InvalidCall` as
    `fit_columns` does, also where `write` hides it, and whatever else `write` raises.
    """
    given = schema is not None
    parts = iter(rows)
    first = next(parts, None)
    if first is not None:
        parts = chain([first], parts)
        schema = first.schema if schema is None else _with_blobs(schema, first.schema)
    if schema is None:
        raise InvalidCall(f"{name}: expected rows or a schema, found neither")
    filled = [item.name for item in schema if item.nullable]
    refusals: list[InvalidCall] = []

    def fit() -> Iterator[pa.RecordBatch]:
        try:
            for part in parts:
                if not given and part.schema != schema:
                    raise InvalidCall(f"{name}: {_difference(schema, part.schema)}: give a schema")
                fitting = fit_columns(name, part, schema, filled=filled)
                yield from fitting.to_batches() if isinstance(fitting, pa.Table) else [fitting]
        except InvalidCall as refusal:
            refusals.append(refusal)
            raise

    try:
        return write(pa.RecordBatchReader.from_batches(schema, fit()))
    except Exception:
        if refusals:  # pylance raises the exception of its input as text
            raise refusals[0] from None
        raise


def _with_blobs(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The schema of a table with columns of blobs as Lance takes them: binary values with a mark, or its own type."""
    fields = []
    for item in schema:
        if str(getattr(item.type, "extension_name", "")).startswith(_BLOB_TYPES) and item.name in found.names:
            given = found.field(item.name)
            marked = pa.field(item.name, pa.large_binary(), item.nullable, {_BLOB: "true"})
            item = given if isinstance(given.type, pa.BaseExtensionType) else marked  # noqa: PLW2901
        fields.append(item)
    return pa.schema(fields, schema.metadata)


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    found = [f"{item.name} {item.type}" for item in other if item not in list(one)]
    expected = [f"{item.name} {item.type}" for item in one if item not in list(other)]
    return f"expected the same columns in all parts, found {', '.join(expected)} and {', '.join(found)}"
