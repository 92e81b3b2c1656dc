"""Datasets that new rows are written through. They stay open from one version to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from table_data.jobs import OPEN_TABLES

if TYPE_CHECKING:
    import lance


class OpenLayouts:
    """The datasets of the layouts that rows were written in last. Not thread-safe.

    Files of new rows depend on the layout of a version alone. Without this, an insertion would read the manifest of
    each new version, with all of its fragments.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, lance.LanceDataset] = OrderedDict()

    def find(self, key: Hashable, open_dataset: Callable[[], lance.LanceDataset]) -> lance.LanceDataset:
        """The dataset of a layout of a table, of any version; opened if there is none. Raises what that raises."""
        found = self._open.pop(key, None)
        if found is None:
            found = open_dataset()
        self._open[key] = found
        if len(self._open) > OPEN_TABLES:
            self._open.popitem(last=False)
        return found
