"""Rows that tasks in other processes write for one change of a table.

A `RowWriter` is pickled into the tasks. Each writes data files and returns what it wrote; the process that has the
transaction makes one operation of all parts. Nothing is visible to readers before that is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, get_args

import lance
import pyarrow as pa

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import Append, Overwrite, decode_operation, encode_transaction
from table_data import staging
from table_data.arrow.dictionaries import widened
from table_data.arrow.fitting import ArrowRows, named, write_fitted
from table_data.arrow.sources import rows_of
from table_data.batch_operations import TableId
from table_data.errors import InvalidCall
from table_data.pinned_datasets import DatasetSource
from table_data.pylance_errors import explained
from table_data.staging.handles import open_serialized

RowMode: TypeAlias = Literal["append", "overwrite", "create"]


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The files of one call of `RowWriter.write`. It can be pickled.

    Attributes:
        transaction: The serialized transaction that would commit it alone.
        rows: Number of rows.
    """

    transaction: bytes = field(repr=False)
    rows: int

    @classmethod
    def of(cls, operation: Append | Overwrite) -> Self:
        """The files that an operation adds."""
        message = encode_transaction(operation, read_version=0, uuid="")
        return cls(message.SerializeToString(), sum(fragment.physical_rows for fragment in operation.fragments))

    @property
    def operation(self) -> Append | Overwrite:
        """The operation that would commit it alone."""
        operation = decode_operation(pb.Transaction.FromString(self.transaction))
        assert isinstance(operation, Append | Overwrite)
        return operation


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes rows of one table in any process. It can be pickled, secrets included. Made by a transaction.

    Attributes:
        name: The table, for messages.
        mode: What becomes of the rows.
        uri: Root of the table or of the branch.
        schema: Names and types of the columns; those of the rows if None.
        base: The version that rows are appended to: published, or the serialized manifest of one that is not.
        exists: Whether the table has a version.
        data_version: Version of the data format of a whole table.
        storage_options: Options of Lance for its object store.
        table_id: Path of the table.
        branch: Name of the branch, None for main.
    """

    name: str
    mode: RowMode
    uri: str
    schema: pa.Schema | None
    base: DatasetSource | bytes | None
    exists: bool
    data_version: str
    storage_options: Mapping[str, str] = field(repr=False)
    table_id: TableId
    branch: str | None

    def __post_init__(self) -> None:
        if self.mode not in get_args(RowMode):
            raise InvalidCall(f"{self.name}: mode {self.mode!r}: expected one of {get_args(RowMode)}")

    def write(self, data: Any) -> WrittenRows:
        """Write rows as data files of their own. They are visible to nobody until the transaction commits.

        Values are cast to the types of the table, or of `schema`, if they fit. Columns are matched by name. Nullable
        columns that the rows do not have are null.

        Args:
            data: Arrow data, a DataFrame of pandas or polars, a list of dicts or a dict of columns.

        Raises:
            InvalidCall: A column or a value does not fit.
            WorkFailed: The files could not be written.
        """
        with explained(f"{self.name}: {self.mode}"):
            dataset = self._dataset()
            with named(self.name):
                rows = rows_of(data, self.schema if dataset is None else dataset.schema)
            return self._write([rows] if isinstance(rows, pa.Table) else rows, dataset)

    def write_parts(self, parts: Iterable[ArrowRows]) -> WrittenRows:
        """Write Arrow tables or batches as one stream, see `write`. The types of a column may differ among them.

        Raises `InvalidCall` if the types differ although neither the table nor `schema` says which ones to take.
        """
        with explained(f"{self.name}: {self.mode}"):
            return self._write(parts, self._dataset())

    def joined(self, parts: Sequence[WrittenRows]) -> Append | Overwrite:
        """One operation of all parts. Without parts, rows of the whole table are none, of `schema`.

        Raises `InvalidCall` if the parts have different columns or modes, or there are neither parts nor a schema.
        """
        operations = [part.operation for part in parts]
        if not all(isinstance(operation, Append if self.mode == "append" else Overwrite) for operation in operations):
            raise InvalidCall(f"expected parts of mode {self.mode}, found others")
        fragments = tuple(fragment for operation in operations for fragment in operation.fragments)
        if self.mode == "append":
            return Append(fragments)
        if not operations:
            return self._whole_table(None)
        first, *others = (operation for operation in operations if isinstance(operation, Overwrite))
        for other in others:
            if (other.schema, other.schema_metadata) != (first.schema, first.schema_metadata):
                found = " and ".join(_columns(each) for each in (first, other))
                raise InvalidCall(f"expected the same columns in all parts, found {found}: give a schema")
        return replace(first, fragments=fragments)

    def _write(self, parts: Iterable[ArrowRows], dataset: lance.LanceDataset | None) -> WrittenRows:
        if dataset is None:
            wide = None if self.schema is None else widened(self.schema)
            return WrittenRows.of(write_fitted(self.name, parts, wide, self._whole_table))

        def append(rows: pa.RecordBatchReader) -> Append:
            return Append(staging.stage_rows(dataset, rows, checked=True))

        return WrittenRows.of(write_fitted(self.name, parts, dataset.schema, append))

    def _whole_table(self, data: Any) -> Overwrite:
        return staging.stage_table(
            self.uri, data, self.schema, self.data_version, self.storage_options, exists=self.exists, checked=True
        )

    def _dataset(self) -> lance.LanceDataset | None:
        """The version that rows are appended to; None if they are a whole table."""
        if self.mode != "append":
            return None
        match self.base:
            case DatasetSource() as source:
                return source.open()
            case bytes() as manifest:
                return open_serialized(self.uri, manifest, self.storage_options)
        raise InvalidCall(f"{self.name} has no version: expected mode create")


def _columns(operation: Overwrite) -> str:
    return ", ".join(f"{each.name} {each.logical_type}" for each in operation.schema)
