"""`SqlTransaction`: the changes of one statement, or of several, on one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lance_core.transaction.operations import Operation
from namespace_client.access import CatalogAccess
from namespace_client.staged_transaction import Isolation, StagedTransaction
from namespace_client.wire import CatalogHead
from spark_catalog.sql.errors import NoSuchTable, TableExists
from table_data.batch_operations import DELIMITER, BatchOperation, PropertyChange, TableId
from table_data.table_changes import TableChanges


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Files that a statement wrote, relative to the table; `is_new` if only this transaction uses the location."""

    uri: str
    paths: tuple[str, ...]
    is_new: bool
    storage_options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChangedProperties:
    """The changes of a table's properties: all others stay, or with `replace` none of those that there were.

    The value None removes a property.
    """

    values: Mapping[str, str | None]
    replace: bool = False

    def of(self, before: Mapping[str, str]) -> dict[str, str]:
        """The properties after the changes."""
        after: dict[str, str | None] = {} if self.replace else dict(before)
        after.update(self.values)
        return {name: value for name, value in after.items() if value is not None}


_UNCHANGED = ChangedProperties({})


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The state of a transaction before a statement."""

    steps: Mapping[tuple[TableId, str | None], int]
    properties: Mapping[TableId, ChangedProperties]
    files: int


class SqlTransaction(StagedTransaction):
    """A transaction whose statements can be taken back one by one. Not thread-safe: a session serialises its calls.

    Properties of tables are changed in the same batch. The files of statements are remembered, so that those of an
    unsuccessful transaction can be deleted.

    Args:
        access: The catalog.
        head: Catalog version that it begins at.
        isolation: "snapshot" or "serializable".
        message: Text that is stored with the batch.
        storage_options: Options of Lance for the object store of the tables.
        fixed: Whether reads stay at `head`, because the query was planned with tables of it.
    """

    def __init__(
        self,
        access: CatalogAccess,
        head: CatalogHead,
        *,
        isolation: Isolation,
        message: str | None,
        storage_options: Mapping[str, str],
        fixed: bool = False,
    ) -> None:
        super().__init__(
            access, isolation=isolation, message=message, storage_options=storage_options, key_prefix="spark-sql"
        )
        self._begin_at(head, fixed=fixed)
        self.files: list[StagedFiles] = []
        self._properties: dict[TableId, ChangedProperties] = {}

    def describe_batch(self, *, message: str | None, isolation: Isolation | None) -> None:
        """Set the message that is stored with the batch, and its isolation. What is None stays as it was."""
        if message is not None:
            self._message = message
        if isolation is not None:
            self._serializable = isolation == "serializable"

    def find(self, table: TableId) -> TableChanges | None:
        """The table as of the begin, with the changes of this transaction. None if there is none."""
        return self._find(table, None)

    def require(self, table: TableId) -> TableChanges:
        """As `find`. Raises `NoSuchTable`."""
        changes = self._find(table, None)
        if changes is None:
            raise NoSuchTable(f"{DELIMITER.join(table)}: no such table at catalog version {self.catalog_version}")
        return changes

    def add_table(self, table: TableId, properties: Mapping[str, str], *, stable_row_ids: bool) -> TableChanges:
        """A new table, which the batch creates with its first step. Raises `TableExists`."""
        if self._find(table, None) is not None:
            raise TableExists(f"{DELIMITER.join(table)} exists")
        changes = self._new_changes(table, properties, stable_row_ids)
        self._take_up((table, None), changes)
        return changes

    def take(self, changes: TableChanges, operation: Operation, *, call: str, guard: str | None = None) -> None:
        """Add an operation whose files are written. With `guard` the batch asserts the version of the table."""
        with self._named(call, changes):
            changes.take(call, operation, message=self._message, guard=guard)

    def note_read(self, table: TableId, version: int) -> None:
        """Record that a statement read published rows of a table.

        A read of an earlier version than that at the begin is time travel, and no part of the snapshot.
        """
        changes = self._find(table, None)
        if changes is not None and not changes.new and changes.state.version == version:
            changes.note_read()

    def new_names(self, namespace: TableId) -> list[str]:
        """Names of the tables of a namespace that this transaction creates."""
        return [table[-1] for (table, _), changes in self._tables.items() if changes.new and table[:-1] == namespace]

    def properties(self, changes: TableChanges) -> Mapping[str, str]:
        """The properties of a table with the changes of this transaction."""
        return self._properties.get(changes.state.id, _UNCHANGED).of(changes.state.properties)

    def change_property(self, changes: TableChanges, name: str, value: str | None) -> None:
        """Set one property of a table, or remove it. The others stay, also those that another client sets meanwhile."""
        before = self._properties.get(changes.state.id, _UNCHANGED)
        self._properties[changes.state.id] = replace(before, values={**before.values, name: value})

    def replace_properties(self, changes: TableChanges, properties: Mapping[str, str]) -> None:
        """Replace all properties of a table."""
        self._properties[changes.state.id] = ChangedProperties(dict(properties), replace=True)

    def savepoint(self) -> Savepoint:
        """The present state, for `roll_back`."""
        steps = {key: len(changes.steps) for key, changes in self._tables.items()}
        return Savepoint(steps, dict(self._properties), len(self.files))

    def roll_back(self, savepoint: Savepoint) -> list[StagedFiles]:
        """Take back all that was done since. Returns the files of it, which nothing refers to any more."""
        for key, changes in list(self._tables.items()):
            if changes.new and key not in savepoint.steps:
                del self._tables[key]
            else:
                del changes.steps[savepoint.steps.get(key, 0) :]
        self._properties = dict(savepoint.properties)
        taken_back = self.files[savepoint.files :]
        del self.files[savepoint.files :]
        return taken_back

    def _compose(self) -> list[BatchOperation]:
        composed = super()._compose()
        return [*composed, *(self._property_change(*each) for each in self._properties.items())]

    def _property_change(self, table: TableId, changed: ChangedProperties) -> PropertyChange:
        return PropertyChange(
            table,
            {name: value for name, value in changed.values.items() if value is not None},
            frozenset(name for name, value in changed.values.items() if value is None),
            changed.replace,
            self._tables[table, None].state.uri,
        )
