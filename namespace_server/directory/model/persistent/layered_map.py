"""An immutable map for entries that are loaded at once and then change one by one: a dictionary under the changes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, Generic, TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")


class _Removed(Enum):
    REMOVED = "removed"


_REMOVED: Final = _Removed.REMOVED


class LayeredMap(Generic[K, V]):
    """A dictionary (`base`) that all versions share and nothing changes, under a persistent map of the changes since.

    `set` and `delete` give a new map in O(log c) after c changes. No value is None.

    An `immutables.Map` alone would do. With it a million tables are loaded in 2.6 s of processor time, with this in
    1.3 s, and a lookup takes 1.3 µs in place of 0.6. The price is that keys and values of the base which were replaced
    or deleted stay in memory for as long as the map does: at most once for each entry that was loaded.
    """

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, base: dict[K, V] | None = None) -> None:
        self._base: dict[K, V] = {} if base is None else base
        self._changes: Map[K, V | _Removed] = Map()
        self._size = len(self._base)

    def get(self, key: K) -> V | None:
        """The value of a key, or None."""
        found = self._changes.get(key)
        if found is None:
            return self._base.get(key)
        return None if found is _REMOVED else found

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._size

    def items(self) -> Iterator[tuple[K, V]]:
        """All keys and their values, in no particular order."""
        changes = self._changes
        for key, value in self._base.items():
            if key not in changes:
                yield key, value
        for key, changed in changes.items():
            if changed is not _REMOVED:
                yield key, changed

    def values(self) -> Iterator[V]:
        """All values, in no particular order."""
        return (value for _, value in self.items())

    def set(self, key: K, value: V) -> LayeredMap[K, V]:
        """The map with this value for the key."""
        return self._with(self._changes.set(key, value), self._size + (self.get(key) is None))

    def delete(self, key: K) -> LayeredMap[K, V]:
        """The map without the key. Raises `KeyError` when it is not there."""
        if key not in self:
            raise KeyError(key)
        changes = self._changes.set(key, _REMOVED) if key in self._base else self._changes.delete(key)
        return self._with(changes, self._size - 1)

    def _with(self, changes: Map[K, V | _Removed], size: int) -> LayeredMap[K, V]:
        after: LayeredMap[K, V] = LayeredMap.__new__(LayeredMap)
        after._base, after._changes, after._size = self._base, changes, size
        return after
