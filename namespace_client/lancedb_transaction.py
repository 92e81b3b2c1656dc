"""Tables of a transaction with the methods and arguments that tables of lancedb have.

Tables of lancedb themselves cannot stage a change: each of their methods commits before it returns, and reads the
version that it made. Their conversion of rows also cuts 2.9 to 2 in a column of integers, and drops what the first row
has no key for. So these are tables of their own, whose rows pass the rules of the transaction.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from pyarrow import types
from pydantic import BaseModel

from namespace_client.errors import InvalidCall
from table_data.arrow.exact import Misfit, is_list
from table_data.arrow.python_values import array_of
from table_data.arrow.sources import rows_of
from table_data.requests.field_paths import dotted

if TYPE_CHECKING:
    import lance
    import pandas as pd

    from namespace_client.reading import TableReader
    from namespace_client.staged_transaction import TableName
    from namespace_client.transaction import MultiTableTransaction

_NAMES_OF_VECTORS: Final = ("vector", "embedding")
"""Columns with such names are vectors, as lancedb has it."""
_EMBEDDINGS: Final = b"embedding_functions"
"""Key of the metadata of a schema in which lancedb has the functions that compute its vectors."""


@dataclass(frozen=True, slots=True)
class RowsUpdated:
    """What `TransactionTable.update` did."""

    rows_updated: int


@dataclass(frozen=True, slots=True)
class RowsDeleted:
    """What `TransactionTable.delete` did."""

    num_deleted_rows: int


@dataclass(frozen=True, slots=True)
class RowsMerged:
    """What `TransactionMerge.execute` did."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class TransactionDatabase:
    """The tables of a transaction, as a connection of lancedb has them. See `lancedb`.

    A table without `namespace_path` is in the default namespace of the transaction, which is the database; the names of
    a `namespace_path` begin at the root of the catalog.
    """

    def __init__(self, transaction: MultiTableTransaction) -> None:
        self._transaction = transaction

    def open_table(self, name: str, *, namespace_path: Sequence[str] | None = None) -> TransactionTable:
        """A table as the transaction sees it.

        Raises:
            InvalidCall: There is no such table.
        """
        table = _table_name(name, namespace_path)
        self._transaction.table(table)
        return TransactionTable(self._transaction, name, table)

    def create_table(
        self,
        name: str,
        data: Any = None,
        schema: pa.Schema | type[BaseModel] | None = None,
        mode: Literal["create", "overwrite"] = "create",
        *,
        namespace_path: Sequence[str] | None = None,
    ) -> TransactionTable:
        """Create a table, or replace one with `mode="overwrite"`.

        Without a schema, columns of lists of numbers that are called a vector or an embedding become vectors of a
        fixed size, of 32-bit floats; and models give theirs.

        Args:
            name: Name of the table.
            data: Rows, as for `TransactionTable.add`.
            schema: Schema of Arrow, or a `LanceModel`.
            mode: Whether a table of this name is refused, or replaced.
            namespace_path: Names before that of the table, from the root of the catalog.

        Raises:
            InvalidCall: There is a table of this name, or neither data nor a schema are given, or they do not fit.
        """
        if mode not in {"create", "overwrite"}:
            raise InvalidCall(f"create_table: mode {mode!r}: expected create or overwrite")
        table = _table_name(name, namespace_path)
        schema, rows = _schema_of(schema, data), _rows(data)
        vectors = None
        if schema is None and rows is not None:
            rows = rows_of(rows)
            vectors = [field.name for field in rows.schema if _is_vector(field)] or None
        elif schema is not None and rows is not None:
            rows = _with_embeddings(rows, schema)
        if mode == "overwrite" and self._transaction.exists(table):
            self._transaction.overwrite(table, _or_none(rows, schema), schema=schema, vectors=vectors)
        else:
            self._transaction.create(table, rows, schema=schema, vectors=vectors)
        return TransactionTable(self._transaction, name, table)


class TransactionTable:
    """A table of a transaction, with methods of lancedb's. It shows the changes of the transaction.

    Nothing is committed before the block ends, so no method returns a version. Reads that it does not have are those of
    `to_lance`, and changes those of the transaction.
    """

    def __init__(self, transaction: MultiTableTransaction, name: str, table: TableName) -> None:
        self.name = name
        self._transaction = transaction
        self._table = table

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # -- reads

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        return self._reader().schema

    def count_rows(self, filter: str | None = None) -> int:  # noqa: A002 - the name in lancedb
        """The number of rows, or of those that match an SQL expression."""
        return self._reader().count_rows(filter)

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self._reader().to_table()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a frame of pandas."""
        return self.to_arrow().to_pandas()

    def to_lance(self) -> lance.LanceDataset:
        """A dataset of pylance that commits nothing: searches, scans, indices."""
        return self._reader().to_pylance()

    # -- changes

    def add(self, data: Any, mode: Literal["append", "overwrite"] = "append") -> None:
        """Add rows, or replace all rows and keep the schema.

        Args:
            data: A list of dicts or of models (`LanceModel`), a DataFrame of pandas or polars, Arrow tables, batches,
                readers and datasets, or a list or an iterator of batches. Values are cast where that changes none.
            mode: "append", or "overwrite".

        Raises:
            InvalidCall: A column or key is unknown, a value is not one of its column, or the rows do not have vectors
                that lancedb would compute.
        """
        if mode not in {"append", "overwrite"}:
            raise InvalidCall(f"add: mode {mode!r}: expected append or overwrite")
        schema = self.schema
        rows = _with_embeddings(_rows(data), schema)
        if mode == "append":
            self._transaction.append(self._table, rows)
        else:
            self._transaction.overwrite(self._table, rows, schema=schema)

    def merge_insert(self, on: str | Iterable[str]) -> TransactionMerge:
        """A merge by key, which its `execute` makes.

        Args:
            on: Key column or columns.
        """
        return TransactionMerge(self, [on] if isinstance(on, str) else list(on))

    def update(
        self,
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        values_sql: Mapping[str, str] | None = None,
    ) -> RowsUpdated:
        """Set columns in the rows that match.

        Args:
            where: SQL expression over the columns, all rows if None.
            values: Values of Python by column: of simple types, or lists of these.
            values_sql: SQL expressions over the old row by column, instead of `values`.

        Raises:
            InvalidCall: There is no such column, a value is not one of its column, or not exactly one of `values` and
                `values_sql` is given.
        """
        if (values is None) == (values_sql is None):
            raise InvalidCall("update: expected either values or values_sql")
        if values is not None:
            values_sql = _expressions(values, self.schema)
        assert values_sql is not None
        _check_text("update", where)
        return RowsUpdated(self._transaction.update(self._table, values_sql, where=where))

    def delete(self, where: str) -> RowsDeleted:
        """Delete the rows that match an SQL expression."""
        _check_text("delete", where)
        return RowsDeleted(self._transaction.delete(self._table, where))

    def _reader(self) -> TableReader:
        return self._transaction.table(self._table)

    def _merge(self, data: Any, **clauses: Any) -> RowsMerged:
        rows = _with_embeddings(_rows(data), self.schema)
        counts = self._transaction.merge(self._table, rows, **clauses)
        return RowsMerged(counts.inserted, counts.updated, counts.deleted)


class TransactionMerge:
    """A merge that is put together: see `TransactionTable.merge_insert`."""

    def __init__(self, table: TransactionTable, on: list[str]) -> None:
        self._table = table
        self._clauses: dict[str, Any] = {"on": on, "matched": "keep", "not_matched": "ignore"}

    def when_matched_update_all(self, *, where: str | None = None) -> TransactionMerge:
        """Update rows that are in both, or those of them that match an SQL expression over `source` and `target`."""
        _check_text("when_matched_update_all", where)
        self._clauses |= {"matched": "update", "condition": where}
        return self

    def when_not_matched_insert_all(self) -> TransactionMerge:
        """Insert rows that are only in the new data."""
        self._clauses["not_matched"] = "insert"
        return self

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> TransactionMerge:
        """Delete rows that are only in the table, or those of them that match an SQL expression."""
        _check_text("when_not_matched_by_source_delete", condition)
        self._clauses |= {"not_matched_by_source": "delete", "delete_condition": condition}
        return self

    def execute(self, new_data: Any) -> RowsMerged:
        """Make the merge with these rows, as for `TransactionTable.add`.

        Raises:
            InvalidCall: No action was chosen, there is no such key column, or the rows do not fit.
        """
        chosen = (self._clauses["matched"], self._clauses["not_matched"], self._clauses.get("not_matched_by_source"))
        if chosen == ("keep", "ignore", None):
            raise InvalidCall("merge_insert: expected an action for rows that match, or for those that do not")
        return self._table._merge(new_data, **self._clauses)  # noqa: SLF001 - its table's


# -- names and rows


def _table_name(name: str, namespace_path: Sequence[str] | None) -> TableName:
    """A name of lancedb may have a dot, which is none between names."""
    return dotted([name]) if namespace_path is None else (*namespace_path, name)


def _rows(data: Any) -> Any:
    """The data in a form that the transaction takes, which refuses what is none of lancedb's nor Arrow's."""
    if isinstance(data, BaseModel | Mapping):
        raise InvalidCall(f"rows: expected a list of dicts or models, found one {type(data).__name__}")
    if isinstance(data, list | tuple):
        if data and all(isinstance(row, BaseModel) for row in data):
            return [row.model_dump() for row in data]
        if data and all(isinstance(part, pa.RecordBatch) for part in data):
            return pa.Table.from_batches(data)
    elif isinstance(data, Iterator) and not isinstance(data, pa.RecordBatchReader):
        first = next(data, None)
        if not isinstance(first, pa.RecordBatch):
            raise InvalidCall(f"rows: expected an iterator of record batches, found one of {type(first).__name__}")
        return pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], data))
    return data


def _schema_of(schema: pa.Schema | type[BaseModel] | None, data: Any) -> pa.Schema | None:
    """The schema as Arrow has it. Without one, models give theirs."""
    if schema is None and isinstance(data, list | tuple) and data and isinstance(data[0], BaseModel):
        schema = type(data[0])
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    convert = getattr(schema, "to_arrow_schema", None)
    if convert is None:
        raise InvalidCall(f"schema: expected a schema of Arrow or a LanceModel, found {schema!r:.80}")
    return convert()


def _is_vector(field: pa.Field) -> bool:
    named = any(name in field.name.lower() for name in _NAMES_OF_VECTORS)
    kind = field.type
    if not named or not (types.is_list(kind) or types.is_large_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _or_none(rows: Any, schema: pa.Schema | None) -> Any:
    """No data with a schema: a table without rows."""
    return schema.empty_table() if rows is None and schema is not None else rows


def _with_embeddings(data: Any, schema: pa.Schema) -> Any:
    """The rows, which have the vectors that lancedb would compute. Raises `InvalidCall` if they do not."""
    stated = (schema.metadata or {}).get(_EMBEDDINGS)
    if stated is None:
        return data
    rows = rows_of(data, schema)
    for function in json.loads(stated):
        vector = function.get("vector_column")
        if vector not in rows.schema.names:
            raise InvalidCall(
                f"column {vector!r}: lancedb computes it from {function.get('source_column')!r}, which a transaction "
                "does not: expected its values"
            )
    return rows


# -- SQL expressions


def _check_text(call: str, condition: object) -> None:
    if condition is not None and not isinstance(condition, str):
        raise InvalidCall(f"{call}: expected an SQL text, found {type(condition).__name__}")


def _expressions(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, str]:
    found = {}
    for name, value in values.items():
        place = schema.get_field_index(name)
        if place < 0:
            raise InvalidCall(f"update of columns {list(values)}: expected some of {schema.names}")
        try:
            exact = array_of([value], schema.field(place).type)[0]
        except Misfit as misfit:
            misfit.position = None
            raise misfit.refusal(name) from None
        found[name] = _expression(name, exact)
    return found


def _expression(column: str, value: pa.Scalar) -> str:
    """An SQL expression of exactly this value, which is one of the column's type."""
    kind = value.type
    if types.is_dictionary(kind):
        return _expression(column, pa.scalar(value.as_py(), kind.value_type))
    if not value.is_valid:
        return "NULL"
    if types.is_boolean(kind) or types.is_integer(kind):
        return str(value.as_py()).upper()
    if types.is_floating(kind):
        return _float(float(value.as_py()))
    if types.is_decimal(kind):
        return f"CAST('{value.as_py():f}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if types.is_duration(kind):
        return str(value.cast(pa.int64()).as_py())
    if types.is_timestamp(kind) and kind.tz is not None:
        value = value.cast(pa.timestamp(kind.unit, "UTC"))
    if types.is_temporal(kind):
        return f"'{value.cast(pa.string()).as_py()}'"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "'" + str(value.as_py()).replace("'", "''") + "'"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return f"x'{value.as_py().hex()}'"
    if not is_list(kind):
        found = f"one of {kind}"
    elif not len(value.values) or value.values.null_count:
        found = "an empty list or one with nulls"
    elif types.is_nested(kind.value_type):
        found = f"a list of {kind.value_type}"
    else:
        return "[" + ", ".join(_expression(column, each) for each in value.values) + "]"
    raise InvalidCall(
        f"column {column!r}: expected a simple value or a list of such, found {found}: values_sql or merge_insert can"
    )


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{name}' AS DOUBLE)"
