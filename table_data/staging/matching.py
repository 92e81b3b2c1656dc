"""The rows that match an SQL expression: all rows are read, or those that match are taken where that is less work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import lance
import numpy as np
import pyarrow as pa

from lance_core.data import scanned
from table_data.arrow.batch_sizes import BATCH_BYTES, batch_rows, in_fewer_rows
from table_data.sql.expressions import SqlExpression
from table_data.staging.handles import expression_of
from table_data.staging.overflow import OverflowCheck

_UNITS: Final = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_NAMES: Final = {
    pa.null(): "Null",
    pa.bool_(): "Boolean",
    **{pa.type_for_alias(f"int{bits}"): f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"uint{bits}"): f"UInt{bits}" for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"float{bits}"): f"Float{bits}" for bits in (16, 32, 64)},
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}


def cast_expressions(
    expressions: Mapping[str, SqlExpression], found: pa.Schema, wanted: pa.Schema, *, numbers: bool = False
) -> dict[str, SqlExpression]:
    """The checked expressions whose values have a type that is not the wanted one, with a cast around them.

    Pylance's own update casts with DataFusion, whose rules and texts are not those of pyarrow: so the cast is a part of
    the expression. Numbers are cast by pyarrow: pylance gives a literal the type of the column beside it only where
    nothing is around the two, so a cast would change their arithmetic. Of what is cast to other types, only the last
    digit of a product such as `float32_column * 1.1` differs for this reason.

    Those from number to number are left out unless `numbers` is set, and those of types without a name in DataFusion.
    """
    casts = {}
    for name, expression in expressions.items():
        source, target = found.field(name).type, wanted.field(name).type
        if source == target or (not numbers and _is_cast_by_arrow(source, target)):
            continue
        names = [type_name(kind) for kind in (source, target)]
        if None not in names:
            casts[name] = SqlExpression(f"arrow_cast(arrow_cast({expression}, '{names[0]}'), '{names[1]}')")
    return casts


def type_name(kind: pa.DataType) -> str | None:
    """The name of a type in DataFusion's `arrow_cast`, None if it has none there."""
    types = pa.types
    if types.is_decimal128(kind) or types.is_decimal256(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if types.is_fixed_size_binary(kind):
        return f"FixedSizeBinary({kind.byte_width})"
    if types.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp({_UNITS[kind.unit]}, {zone})"
    if types.is_time(kind):
        return f"Time{kind.bit_width}({_UNITS[kind.unit]})"
    if types.is_duration(kind):
        return f"Duration({_UNITS[kind.unit]})"
    if types.is_nested(kind) or types.is_dictionary(kind):
        return _name_of_parts(kind)
    return _NAMES.get(kind)


def _name_of_parts(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_dictionary(kind):
        parts, form = [kind.index_type, kind.value_type], "Dictionary({}, {})"
    elif types.is_list(kind):
        parts, form = [kind.value_type], "List({})"
    elif types.is_large_list(kind):
        parts, form = [kind.value_type], "LargeList({})"
    elif types.is_fixed_size_list(kind):
        parts, form = [kind.value_type], f"FixedSizeList({kind.list_size}, {{}})"
    else:
        return None
    names = [type_name(part) for part in parts]
    return None if None in names else form.format(*names)


def _is_cast_by_arrow(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_decimal(source):  # pylance cuts off its fraction
        return bool(pa.types.is_integer(target))
    return _is_number(source) and _is_number(target)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


ADDRESS: Final = "_rowaddr"
ROW_ID: Final = "_rowid"

_MANY: Final = 1 << 20
"""Values of a table: to read fewer takes less time than to look for the rows first."""
_MOST: Final = 8192
"""Rows that are taken at once: as many as pylance reads at once."""
_MOST_OF_ANY_SIZE: Final = 1024
_ROWS_PER_RUN: Final = 4096
"""To take rows that follow one another takes less time than to read so many rows of the same columns."""

_FRAGMENTS_AHEAD: Final = 64
"""Fragments that are opened ahead. Changes leave small fragments, of which pylance opens too few at once."""


def matching_rows(
    dataset: lance.LanceDataset, columns: Mapping[str, str], where: str | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """The columns (SQL expressions by name) of the rows that match, or of all rows without `where`.

    They have the types of the table's columns, but a number may be of another type of numbers. Each batch also has the
    addresses of its rows and, in a table with stable row ids, their ids. `rows` is the number of rows of the table.
    Pylance decides by the width of a column alone whether it reads it as a whole. Raises for a wrong expression and for
    a literal that does not fit, if no row matches too; and `InvalidCall` for integer arithmetic that overflows.
    """
    where = None if where is None else expression_of(dataset, where, "predicate")
    expressions = {name: expression_of(dataset, text, f"column {name}") for name, text in columns.items()}
    check = OverflowCheck(expressions, dataset.schema)
    found = None if where is None or rows * len(expressions) < _MANY else _few(dataset, where)
    few = found is not None and bool(found.num_rows) and _runs(found) * _ROWS_PER_RUN <= rows

    def read(columns: Mapping[str, str], most: int | None = None) -> pa.RecordBatchReader:
        computed = {**columns, **check.columns}
        return _taken(dataset, computed, found, most) if few else _scanner(dataset, computed, where, most).to_reader()

    if found is None or found.num_rows:
        matching = scanned(lambda most: read(expressions, most))
        types = matching.schema
        casts = cast_expressions(expressions, types, dataset.schema)
        if casts:
            matching = scanned(lambda most: read({**expressions, **casts}, most))
        some = False
        for batch in in_fewer_rows(matching, lambda most: read({**expressions, **casts}, most)):
            some = some or bool(batch.num_rows)
            yield check.check(batch)
        if some:
            return
    else:
        types = _scanner(dataset, expressions, where).projected_schema
    casts = cast_expressions(expressions, types, dataset.schema, numbers=True)
    if casts:
        _scanner(dataset, {**expressions, **casts}, where).explain_plan()


def _scanner(
    dataset: lance.LanceDataset, columns: Mapping[str, str], where: str | None, most: int | None = None
) -> lance.LanceScanner:
    return dataset.scanner(
        columns=dict(columns),
        filter=where,
        with_row_address=True,
        with_row_id=dataset.has_stable_row_ids,
        batch_size=most or batch_rows(dataset.schema, None),
        batch_size_bytes=BATCH_BYTES,
        fragment_readahead=_FRAGMENTS_AHEAD,
    )


def matching_addresses(dataset: lance.LanceDataset, where: str, *, with_ids: bool = False) -> pa.RecordBatchReader:
    """The addresses of the rows that match, and their ids if wanted. Reads the columns of the filter only."""
    where = expression_of(dataset, where, "predicate")
    size = batch_rows(dataset.schema, [where])
    return dataset.scanner(
        columns=[],
        filter=where,
        with_row_address=True,
        with_row_id=with_ids,
        batch_size=size,
        batch_size_bytes=BATCH_BYTES,
        fragment_readahead=_FRAGMENTS_AHEAD,
    ).to_reader()


def _few(dataset: lance.LanceDataset, where: str) -> pa.Table | None:
    """The addresses, and stable ids, of the rows that match; None if they are many."""
    found, count = [], 0
    reader = matching_addresses(dataset, where, with_ids=dataset.has_stable_row_ids)
    for batch in reader:
        count += batch.num_rows
        if count > _MOST:
            return None
        found.append(batch)
    return pa.Table.from_batches(found, reader.schema)


def _runs(found: pa.Table) -> int:
    """The number of runs of rows that follow one another."""
    return int(np.count_nonzero(np.diff(found.column(ADDRESS).to_numpy()) != 1)) + 1


def _taken(
    dataset: lance.LanceDataset, columns: Mapping[str, str], wanted: pa.Table, most: int | None
) -> pa.RecordBatchReader:
    """The wanted rows, at once if their columns have values of one width: others may be of any size.

    `most` is how many at once; None leaves it to the widths.
    """
    most = most or (_MOST if batch_rows(dataset.schema, None) is not None else _MOST_OF_ANY_SIZE)
    parts = (_take(dataset, columns, wanted.slice(start, most)) for start in range(0, wanted.num_rows, most))
    first = next(parts)
    return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], parts))


def _take(dataset: lance.LanceDataset, columns: Mapping[str, str], wanted: pa.Table) -> pa.RecordBatch:
    numbers = wanted.column(ROW_ID if dataset.has_stable_row_ids else ADDRESS).combine_chunks()
    taken = dataset._take_rows(numbers, columns=dict(columns))  # noqa: SLF001 - no public method takes rows by address
    if taken.num_rows != wanted.num_rows:
        raise AssertionError(f"{wanted.num_rows} rows that match: expected to take all of them, found {taken.num_rows}")
    for name in wanted.column_names:
        taken = taken.append_column(name, wanted.column(name))
    (batch,) = taken.combine_chunks().to_batches()
    return batch
