"""The places of the rows of a table, by the values of a key column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table_data.errors import InvalidCall


class KeyPlaces:
    """The keys of a table in order, and the place of the row of each. Numbers take 16 bytes a row."""

    def __init__(self, ordered: Any, places: Any) -> None:
        self._ordered = ordered
        self._places = places

    @classmethod
    def of(cls, keys: pa.Array, what: str) -> KeyPlaces:
        """Of all keys of a table, in the order of its rows. Nulls are no keys. Raises `InvalidCall` for one twice."""
        # Nulls come last.
        places = pc.sort_indices(keys).to_numpy()[: len(keys) - keys.null_count]
        ordered = keys.take(pa.array(places)).to_numpy(zero_copy_only=False)
        again = ordered[1:] == ordered[:-1]
        if again.any():
            raise InvalidCall(f"{what}: expected each key once, found {ordered[int(np.argmax(again))]!s} twice")
        return cls(ordered, places.astype(np.int64))

    def find(self, keys: pa.Array) -> Any:
        """The place of the row of each key, -1 where there is none."""
        found = np.full(len(keys), -1, np.int64)
        there = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        wanted = keys.drop_null().to_numpy(zero_copy_only=False)
        if not len(self._ordered) or not len(wanted):
            return found
        at = np.minimum(np.searchsorted(self._ordered, wanted), len(self._ordered) - 1)
        is_there = self._ordered[at] == wanted
        found[there[is_there]] = self._places[at[is_there]]
        return found
