"""Reads of a table inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from namespace_client.access import CatalogAccess
from table_data.arrow.batch_sizes import table_of
from table_data.batch_operations import VersionIdentity
from table_data.pinned_datasets import DatasetSource
from table_data.pylance_errors import explained
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    import lance


def source_of(access: CatalogAccess, changes: TableChanges, catalog_version: int) -> DatasetSource:
    """The version of a table at a catalog version, as other processes open it. Raises as `TableChanges.base` does."""
    state, identity = changes.state, changes.state.identity
    if identity is None:
        head = changes.require_head()
        identity = VersionIdentity(head.identity.sha256, head.timestamp_ms)
    return DatasetSource(
        state.id,
        state.root,
        state.version or 0,
        catalog_version,
        identity,
        dict(changes.options),
        access.server,
        dict(access.headers),
        access.ca,
    )


class TableReader:
    """A table as a transaction sees it: its version at the begin, with the changes of the transaction applied.

    A read after a later call of the transaction shows the changes of that call, too. A reader of a fixed version
    (`tag=` or `version=` of `MultiTableTransaction.table`) always shows that version.

    Example:
        ```python
        with catalog.begin() as tx:
            features = tx.table("features")
            recent = features.to_table(columns=["id"], filter="day >= 300")
        ```
    """

    def __init__(self, changes: TableChanges, fixed: tuple[str | None, int] | None = None) -> None:
        self._changes = changes
        self._fixed = fixed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._changes.name}, version {self.version}>"

    @property
    def version(self) -> int | None:
        """The published version that the rows are from. None for a table that the transaction creates."""
        return self._fixed[1] if self._fixed is not None else self._changes.state.version

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        return self.to_pylance().schema

    def to_pylance(self) -> lance.LanceDataset:
        """A read-only dataset of pylance. Its methods that commit raise `InvalidCall`."""
        if self._fixed is not None:
            return self._changes.dataset_at(self._fixed[1], self._fixed[0])
        return self._changes.dataset()

    def to_table(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> pa.Table:  # noqa: A002 - the name in pylance
        """Read rows.

        Args:
            columns: Names of the columns, all columns if None.
            filter: SQL expression or pyarrow expression.
            **options: Further arguments of `lance.LanceDataset.to_table`.

        Returns:
            The rows as an Arrow table.
        """
        chosen = None if columns is None else list(columns)
        with explained(f"read of {self._changes.name}"):
            return table_of(self.to_pylance(), columns=chosen, filter=filter, **options)

    def count_rows(self, filter: Any = None) -> int:  # noqa: A002 - the name in pylance
        """The number of rows, or of the rows that match a filter."""
        with explained(f"count of {self._changes.name}"):
            return int(self.to_pylance().count_rows(filter))
