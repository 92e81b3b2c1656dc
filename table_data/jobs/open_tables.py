"""Datasets that stay open between queries, so that their indices and metadata stay in memory."""

from __future__ import annotations

from collections.abc import Mapping

import lance

from table_data.batch_operations import TableState
from table_data.errors import InvalidCall
from table_data.open_datasets import OpenDatasets
from table_data.table_changes import TableChanges


class OpenTables:
    """The datasets that were read last. Not thread-safe."""

    def __init__(self) -> None:
        self._open = OpenDatasets()

    def open(self, table: TableState, options: Mapping[str, str]) -> lance.LanceDataset:
        """A read-only dataset of the table's version. Raises `InvalidCall` if it has none."""
        changes = TableChanges(table, options)
        if table.version is None:
            raise InvalidCall(f"{changes.name} has no version yet: create it")
        manifest = changes.manifest_sha256 or changes.require_head().identity.sha256
        return self._open.find((changes.uri, table.version, manifest), changes.dataset)
