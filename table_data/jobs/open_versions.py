"""Versions that stay open for the changes that are staged on them next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final

from table_data.batch_operations import TableState
from table_data.table_changes import OpenedVersion, TableChanges

_MOST: Final = 8


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
