"""A cache that is bounded by the memory that its values take."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """Values by key, least recently used first out. Thread-safe.

    `limit` is in bytes, of which a value takes `size_of`. One that is larger than the limit is kept alone.
    """

    def __init__(self, limit: int, size_of: Callable[[V], int]) -> None:
        self.limit = limit
        self._size_of = size_of
        self._size = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[K, V] = OrderedDict()

    @property
    def size(self) -> int:
        """The bytes that count against the limit."""
        return self._size

    def get(self, key: K) -> V | None:
        """The value of a key, which is used now."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Keep the value of a key; a value that is kept already stays."""
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self._size += self._size_of(value)
            while self._size > self.limit and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._size -= self._size_of(dropped)
