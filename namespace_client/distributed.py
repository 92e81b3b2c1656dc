"""Rows that other processes write for a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lance_core.format.manifest import serialized_manifest
from lance_core.transaction.operations import Append, Overwrite
from namespace_client.errors import InvalidCall, TableTaken
from namespace_client.reading import source_of
from namespace_client.staged_transaction import StagedTransaction, TableName
from table_data.pinned_datasets import DatasetSource
from table_data.row_writers import RowMode, RowWriter, WrittenRows
from table_data.table_changes import TableChanges


class DistributedTransaction(StagedTransaction):
    """The calls of `MultiTableTransaction` with which tasks of other processes write the rows of a change.

    Example:
        ```python
        with catalog.begin() as tx:
            writer = tx.row_writer("orders")
            with ProcessPoolExecutor() as pool:
                tx.add_written(writer, list(pool.map(writer.write, parts)))
        ```
    """

    def row_writer(
        self,
        table: TableName,
        *,
        mode: RowMode = "append",
        schema: pa.Schema | None = None,
        properties: Mapping[str, str] | None = None,
        stable_row_ids: bool = False,
        branch: str | None = None,
    ) -> RowWriter:
        """A writer of rows for one change of a table, for any process. `add_written` adds the change itself.

        The transaction is registered as a job (`register_intent`) once it is open for a minute, so that the files that
        are written meanwhile are kept. Files of parts that are never added go with a garbage collection.

        Args:
            table: Name of the table.
            mode: "append" adds rows; "overwrite" replaces all rows and the schema; "create" makes a table, or the first
                version of one that was only declared.
            schema: Names and types of the columns of a new or overwritten table; by default those of the rows, which
                must then be the same in all parts.
            properties: Properties that the catalog stores with a new table.
            stable_row_ids: Whether rows of a new table keep their ids when they are updated or compacted.
            branch: Name of the branch to change.

        Returns:
            A writer that can be pickled, secrets included, and used any number of times.

        Raises:
            InvalidCall: There is no such table, or there is one already, or the arguments contradict each other.
        """
        if mode == "append" and schema is not None:
            raise InvalidCall("append: the table has a schema; expected none")
        if mode != "create" and (properties or stable_row_ids):
            raise InvalidCall(f"{mode}: expected properties and stable_row_ids for a new table only")
        if mode == "create":
            if not self.exists(table):
                self.declare(table, properties=properties, stable_row_ids=stable_row_ids)
            changes = self._require(table, branch)
            self._require_vacant(changes, None if changes.new else properties)
            if not changes.new:
                changes.stable_row_ids = stable_row_ids
        else:
            changes = self._require(table, branch)
            changes.require_head()
        with self._named(mode, changes):
            base = self._base_of(changes) if mode == "append" else None
        return RowWriter(
            changes.name,
            mode,
            changes.uri,
            schema,
            base,
            changes.has_version,
            changes.data_version,
            dict(changes.options),
            changes.state.id,
            changes.state.branch,
        )

    def add_written(self, writer: RowWriter, parts: Sequence[WrittenRows]) -> int:
        """Add the change of which a writer of this transaction wrote all parts, in their order.

        The files are removed if the transaction is certainly not committed, as those of its other calls are.

        Args:
            writer: What `row_writer` gave.
            parts: What its calls returned, each once. Those of attempts that were repeated are left out.

        Returns:
            The number of rows.

        Raises:
            InvalidCall: The parts have different columns, or one of them was added before, or they do not fit what
                became of the table meanwhile. Nothing was added.
        """
        changes = self._require(writer.table_id, writer.branch)
        with self._named(writer.mode, changes):
            operation = writer.joined(parts)
            if writer.uri != changes.uri:
                raise InvalidCall(f"rows at {changes.uri}: expected parts of a writer of this transaction")
            if writer.mode == "create" and changes.has_version:
                raise InvalidCall("the table was created before: expected parts to append, or one writer for all")
            earlier = (step.operation for step in changes.steps if isinstance(step.operation, Append | Overwrite))
            files = [file.path for each in (operation, *earlier) for part in each.fragments for file in part.files]
            if len(files) > len(set(files)):
                raise InvalidCall("expected each part once")
            if operation.fragments or writer.mode != "append":
                changes.take(writer.mode, operation, message=self._message)
        return sum(part.rows for part in parts)

    @staticmethod
    def _require_vacant(changes: TableChanges, properties: Mapping[str, str] | None) -> None:
        """Raise `InvalidCall` if the table has a version, or if it is there and others are wanted as its properties."""
        if changes.has_version:
            raise TableTaken(f"{changes.name} exists: overwrite it, or append to it")
        if properties:
            raise InvalidCall(
                f"{changes.name} is declared already, with the properties {dict(changes.state.properties)}"
            )

    def _base_of(self, changes: TableChanges) -> bytes | DatasetSource:
        if changes.steps:
            return serialized_manifest(changes.require_head())
        return source_of(self._access, changes, self.catalog_version)
