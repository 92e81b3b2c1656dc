"""Rows of Ray datasets for tables of one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from ray.data import Datasink
from ray.data.block import Block, BlockAccessor

from namespace_client.errors import InvalidCall
from namespace_client.names import AnyName
from table_data.row_writers import RowMode, RowWriter, WrittenRows

if TYPE_CHECKING:
    from ray.data.datasource.datasink import WriteResult

    from namespace_client.distributed import DistributedTransaction


class TableSink(Datasink):  # type: ignore[misc]
    """A sink for `Dataset.write_datasink`: rows of one table of a transaction. Used once.

    The tasks of Ray write data files side by side. The rows are visible when the transaction commits, with those of all
    its other tables. If a job fails, nothing of it is a part of the transaction; what its tasks wrote goes with a
    garbage collection. Columns of tensors of one dimension become vectors of a fixed size.

    Example:
        ```python
        with catalog.begin(message="nightly") as tx:
            orders.write_datasink(TableSink(tx, "orders"))
            embeddings.write_datasink(TableSink(tx, "embeddings", mode="overwrite"))
        ```

    Args:
        transaction: The transaction, which has begun.
        table: Name of the table.
        mode: As in `row_writer` of a transaction, like the arguments below.
        schema: Names and types of the columns of a new or overwritten table. By default those of the rows, which must
            then be the same in all blocks: Ray gives a column without values in one block another type there.
        properties: Properties that the catalog stores with a new table.
        stable_row_ids: Whether rows of a new table keep their ids.
        branch: Name of the branch to change.
        min_rows_per_file: How many rows a task should write at least, as far as the dataset has them.

    Attributes:
        rows: Number of rows that the job wrote, None before it is done.

    Raises:
        InvalidCall: As `row_writer` of a transaction.
    """

    def __init__(
        self,
        transaction: DistributedTransaction,
        table: AnyName,
        *,
        mode: RowMode = "append",
        schema: pa.Schema | None = None,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
        branch: str | None = None,
        min_rows_per_file: int | None = None,
    ) -> None:
        self._writer: RowWriter = transaction.row_writer(
            table, mode=mode, schema=schema, properties=properties, stable_row_ids=stable_row_ids, branch=branch
        )
        self._transaction: DistributedTransaction | None = transaction
        self._min_rows = min_rows_per_file
        self.rows: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_transaction": None}

    @property
    def min_rows_per_write(self) -> int | None:
        """See `ray.data.Datasink`."""
        return self._min_rows

    def on_write_start(self, schema: pa.Schema | None = None) -> None:  # noqa: ARG002 - as in Ray
        """See `ray.data.Datasink`. Raises `InvalidCall` for a sink that was used."""
        if self.rows is not None:
            raise InvalidCall(f"{self._writer.name}: this sink was used; make another one for each dataset")

    def write(self, blocks: Iterable[Block], ctx: object) -> WrittenRows | None:  # noqa: ARG002 - as in Ray
        """See `ray.data.Datasink`. Runs in a task."""
        tables = (_plain(BlockAccessor.for_block(block).to_arrow()) for block in blocks)
        filled = (table for table in tables if table.num_rows)
        first = next(filled, None)
        return None if first is None else self._writer.write_parts(chain([first], filled))

    def on_write_complete(self, write_result: WriteResult[WrittenRows | None]) -> None:
        """See `ray.data.Datasink`. Adds the rows to the transaction."""
        assert self._transaction is not None
        parts = [part for part in write_result.write_returns if part is not None]
        self.rows = self._transaction.add_written(self._writer, parts)

    def get_name(self) -> str:
        """See `ray.data.Datasink`."""
        return f"{self._writer.mode} {self._writer.name}"


def _plain(table: pa.Table) -> pa.Table:
    """The rows without the metadata and the types of Ray."""
    columns = [_plain_column(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return pa.table(columns, names=table.column_names)


def _plain_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if not isinstance(kind, pa.BaseExtensionType) or not type(kind).__module__.startswith("ray."):
        return column
    if len(getattr(kind, "shape", ())) != 1:
        raise InvalidCall(f"column {name}: expected values of Arrow or tensors of one dimension, found {kind}")
    storage = [chunk.storage for chunk in column.chunks]
    if kind.shape[0] is None:  # the sizes differ
        return pa.chunked_array(
            [pc.struct_field(chunk, "data") for chunk in storage], kind.storage_type.field("data").type
        )
    vectors = pa.list_(kind.storage_type.value_type, kind.shape[0])
    return pa.chunked_array([chunk.cast(vectors) for chunk in storage], vectors)
