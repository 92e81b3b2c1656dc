"""Rows in the columns of a table. All rows from outside pass here on their way to Lance.

Columns are matched by name. A value is cast if it stays what it is, and refused by the names of column and row
otherwise; see `exact`. Values that are none of their own type are refused before, see `intake`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.format.blobs import as_bytes, is_blob
from table_data.arrow.dictionaries import widened
from table_data.arrow.exact import Misfit, cast, has_nulls, is_kept
from table_data.arrow.intake import Refusals, given_by_caller, refused_as_such, taken_from_caller, validated
from table_data.arrow.memory import readable_by_lance
from table_data.errors import InvalidCall, SchemaMismatch, WorkFailed

ArrowRows: TypeAlias = pa.RecordBatch | pa.Table
_T = TypeVar("_T")
_MOST_BYTES: Final = 1 << 30
"""Bytes of rows that are cast at once. A column of texts holds 2 GiB."""
_MOST_NAMES: Final = 20


def check_columns(found: Sequence[str], schema: pa.Schema, filled: Collection[str] = ()) -> None:
    """Raise `SchemaMismatch` unless the columns are those of the schema, in any order. `filled` may be missing."""
    given, wanted = set(found), schema.names
    if found == wanted and len(found) == len(given):
        return
    known = set(wanted)
    if len(found) != len(given):
        double = next(name for name in found if found.count(name) > 1)
        raise SchemaMismatch(f"expected columns with different names, found {double[:80]!r} twice")
    missing = [column for column in wanted if column not in given and column not in filled]
    surplus = [column for column in found if column not in known]
    if missing or surplus:
        some = f"{wanted[:_MOST_NAMES]}{' and more' if len(wanted) > _MOST_NAMES else ''}"
        raise SchemaMismatch(
            f"expected columns {some}, missing {missing[:_MOST_NAMES]}, surplus {surplus[:_MOST_NAMES]}"
        )


def columns_for(found: pa.Schema, table: pa.Schema, *, whole: bool = True) -> pa.Schema:
    """The columns of a table that rows have, in the table's order and types.

    Raises `SchemaMismatch` for others, and with `whole` if one is missing that must not be null.
    """
    names = found.names
    if names == table.names:
        return with_blobs(table, found)
    check_columns(names, table, {field.name for field in table if field.nullable or not whole})
    given = set(names)
    return pa.schema([field for field in with_blobs(table, found) if field.name in given], table.metadata)


def fit(
    rows: ArrowRows,
    schema: pa.Schema,
    *,
    filled: Collection[str] = (),
    required: Collection[str] = (),
    checked: bool = False,
    first_row: int | None = 0,
) -> Any:
    """Cast a batch or a table to a schema. Columns of `filled` may be missing, for nulls.

    `first_row` is the number of rows before these, for errors, and None if rows have no numbers. With `checked` values
    were `validated` before.

    Raises:
        InvalidCall: A value is none of its own type.
        SchemaMismatch: A column is missing or surplus, a value does not fit, or is null in a column that must not have
            nulls, by the schema or by `required`. Lance itself does not refuse such nulls.
    """
    names = rows.schema.names
    if not names and rows.num_rows:
        raise SchemaMismatch(f"expected columns, found none in {rows.num_rows} rows")
    check_columns(names, schema, filled)
    given = set(names)
    if not checked:
        validated(rows)
    columns = []
    for wanted in schema:
        if wanted.name not in given:
            columns.append(pa.nulls(rows.num_rows, wanted.type))
            continue
        column = _cast(rows.column(wanted.name), wanted, first_row)
        if (not wanted.nullable or wanted.name in required) and has_nulls(column):
            raise _null(wanted.name, column.is_null(), first_row)
        columns.append(readable_by_lance(column))
    return type(rows).from_arrays(columns, schema=schema)


def for_lance(
    rows: ArrowRows | pa.RecordBatchReader,
    refusals: Refusals,
    *,
    schema: pa.Schema | None = None,
    filled: Collection[str] = (),
    checked: bool = False,
) -> Any:
    """Rows as Lance takes them and gives them back; a stream stays one. See `fit`.

    Without a schema they keep their types, but for the indices of dictionaries, which get 32 bits. Refusals of a stream
    are added to `refusals`, see `refused_as_such`; those of a table are raised.
    """
    target = widened(rows.schema) if schema is None else schema
    if isinstance(rows, pa.RecordBatchReader):
        check_columns(rows.schema.names, target, filled)
        return pa.RecordBatchReader.from_batches(target, _batches(rows, target, refusals, filled, checked=checked))
    parts = [fit(part, target, filled=filled, checked=checked, first_row=start) for start, part in _parts(rows, target)]
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _batches(
    parts: Iterable[ArrowRows], schema: pa.Schema, refusals: Refusals, filled: Collection[str], *, checked: bool
) -> Iterator[pa.RecordBatch]:
    row = 0
    try:
        for given in taken_from_caller(parts, refusals):
            for start, part in _parts(given, schema):
                fitting = fit(part, schema, filled=filled, checked=checked, first_row=row + start)
                yield from fitting.to_batches() if isinstance(fitting, pa.Table) else [fitting]
            row += given.num_rows
    except InvalidCall as refusal:
        refusals.append(refusal)
        raise


def _parts(rows: ArrowRows, schema: pa.Schema) -> Iterator[tuple[int, ArrowRows]]:
    """The rows in parts that can be cast at once, each with the number of rows before it."""
    if rows.schema.types == schema.types or rows.nbytes <= _MOST_BYTES:
        yield 0, rows
        return
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    count = max(rows.num_rows * _MOST_BYTES // rows.nbytes, 1)
    for start in range(0, rows.num_rows, count):
        yield start, table.slice(start, count)


def write_fitted(
    name: str, parts: Iterable[ArrowRows], schema: pa.Schema | None, write: Callable[[pa.RecordBatchReader], _T]
) -> _T:
    """Call `write` with a stream of the rows in a schema. Nullable columns that they do not have are null.

    Without a schema it is that of the first rows, and the others must have it, too. Raises as `fit` does, also where
    `write` hides it, and whatever else `write` raises.
    """
    given = schema
    left = iter(parts)
    with named(name), given_by_caller():
        first = next(left, None)
    if first is not None:
        left = chain([first], left)
        schema = first.schema if schema is None else with_blobs(schema, first.schema)
    if schema is None:
        raise InvalidCall(f"{name}: expected rows or a schema, found neither")
    filled = {item.name for item in schema if item.nullable}

    def same() -> Iterator[ArrowRows]:
        for part in left:
            if given is None and part.schema != schema:
                raise InvalidCall(f"{_difference(schema, part.schema)}: give a schema")
            yield part

    with named(name), refused_as_such() as refusals:
        return write(
            pa.RecordBatchReader.from_batches(schema, _batches(same(), schema, refusals, filled, checked=False))
        )


@contextmanager
def named(name: str) -> Iterator[None]:
    """Put a name before the text of an `InvalidCall` or `WorkFailed`."""
    try:
        yield
    except (InvalidCall, WorkFailed) as error:
        error.args = (f"{name}: {error}",)
        raise


def with_blobs(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The schema of a table with columns of blobs as Lance takes them: binary values with a mark, or its own type."""
    if not any(map(is_blob, schema)):
        return schema
    fields = []
    for item in schema:
        if is_blob(item) and not pa.types.is_large_binary(item.type) and item.name in found.names:
            given = found.field(item.name)
            is_own = isinstance(given.type, pa.BaseExtensionType) or pa.types.is_nested(given.type)
            item = given if is_own else as_bytes(item)  # noqa: PLW2901
        fields.append(item)
    return pa.schema(fields, schema.metadata)


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field, first_row: int | None) -> pa.Array | pa.ChunkedArray:
    if is_kept(column.type, field.type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    row, found = first_row or 0, []
    try:
        for chunk in chunks:
            found.append(cast(chunk, field.type))
            row += len(chunk)
    except Misfit as misfit:
        if first_row is None:
            misfit.position = None
        raise misfit.refusal(field.name, row) from None
    return pa.chunked_array(found, field.type) if isinstance(column, pa.ChunkedArray) else found[0]


def _null(name: str, nulls: pa.Array | pa.ChunkedArray, first_row: int | None) -> SchemaMismatch:
    place = pc.index(nulls, pa.scalar(value=True)).as_py()
    row = "" if first_row is None else f", row {first_row + place + 1}"
    return SchemaMismatch(
        f"column {name[:80]!r}{row}: expected no nulls, found {pc.sum(nulls)} nulls among {len(nulls)} rows"
    )


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    found = [f"{item.name} {item.type}" for item in other if item not in list(one)]
    expected = [f"{item.name} {item.type}" for item in one if item not in list(other)]
    return f"expected the same columns in all parts, found {', '.join(expected)} and {', '.join(found)}"
