"""Versions of tables that stay open: for the queries that follow, and for the next change of their table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final

import lance

from table_data.batch_operations import TableState
from table_data.errors import InvalidCall
from table_data.open_datasets import OpenDatasets
from table_data.table_changes import OpenedVersion, TableChanges

_MOST: Final = 8
"""Versions that stay open for changes."""


class OpenTables:
    """The datasets that were read last, whose indices and metadata stay in memory. Not thread-safe."""

    def __init__(self) -> None:
        self._open = OpenDatasets()

    def open(self, table: TableState, options: Mapping[str, str]) -> lance.LanceDataset:
        """A read-only dataset of the table's version. Raises `InvalidCall` if it has none."""
        changes = TableChanges(table, options)
        if table.version is None:
            raise InvalidCall(f"{changes.name} has no version yet: create it")
        manifest = changes.manifest_sha256 or changes.require_head().identity.sha256
        return self._open.find((changes.uri, table.version, manifest), changes.dataset)


class OpenVersions:
    """The last few versions that changes made: their manifests, and their datasets in pylance. Not thread-safe.

    Versions are distinguished by their identity, never by a number alone.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, OpenedVersion] = OrderedDict()

    def open(self, table: TableState, options: Mapping[str, str]) -> None:
        """Open a version. Raises as `TableChanges.open`."""
        self._open[_key(table, options)] = TableChanges(table, options).open()
        if len(self._open) > _MOST:
            self._open.popitem(last=False)

    def take(self, table: TableState, options: Mapping[str, str]) -> OpenedVersion | None:
        """The version, which is not kept any longer; None if it is not open."""
        return self._open.pop(_key(table, options), None)


def _key(table: TableState, options: Mapping[str, str]) -> Hashable:
    return (table.uri, table.branch, table.version, table.identity, *sorted(options.items()))
