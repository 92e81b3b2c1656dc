"""Datasets that stay open between queries, so that their indices and metadata stay in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import lance

from table_data.batch_operations import TableState
from table_data.errors import InvalidCall
from table_data.jobs import OPEN_TABLES
from table_data.table_changes import TableChanges


class OpenTables:
    """The datasets that were read last. Not thread-safe."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, int], lance.LanceDataset] = OrderedDict()

    def open(self, table: TableState, options: Mapping[str, str]) -> lance.LanceDataset:
        """A read-only dataset of the table's version. Raises `InvalidCall` if it has none."""
        changes = TableChanges(table, options)
        if table.version is None:
            raise InvalidCall(f"{changes.name} has no version yet: create it")
        key = (changes.uri, table.version)
        found = self._open.pop(key, None)
        if found is None:
            found = changes.dataset()
        self._open[key] = found
        if len(self._open) > OPEN_TABLES:
            self._open.popitem(last=False)
        return found
