"""Datasets that stay open after their use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import lance


OPEN_TABLES: Final = 64
"""Tables that one process keeps open."""


class OpenDatasets:
    """The datasets that were used last, by key. Not thread-safe."""

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, lance.LanceDataset] = OrderedDict()

    def find(self, key: Hashable, open_dataset: Callable[[], lance.LanceDataset]) -> lance.LanceDataset:
        """The dataset under a key; opened if there is none. Raises what that raises."""
        found = self._open.pop(key, None)
        if found is None:
            found = open_dataset()
        self._open[key] = found
        if len(self._open) > OPEN_TABLES:
            self._open.popitem(last=False)
        return found
