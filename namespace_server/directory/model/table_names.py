"""The index of the names of all tables that a snapshot has: made when it is first searched, and edited from then on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.name_index import NameIndex

_MOST_EDITS: Final = 65_536
"""Changes of names since the index was last searched, after which the next search makes it anew."""
_making: Final = threading.Lock()


class TablesBelow(Protocol):
    """The names of the tables directly below a namespace."""

    @property
    def tables(self) -> Collection[str]:
        """In order."""
        ...


class IndexedNames:
    """The index of the names of one snapshot, or how it follows from that of an earlier one. Thread-safe.

    A catalog whose names nobody searches has no index. While it is searched, each snapshot keeps what differs from the
    last one that was searched: the index of a million tables takes most of a second, an edit of it a millisecond.
    """

    __slots__ = ("_known",)

    def __init__(self, index: NameIndex | None = None) -> None:
        self._known: tuple[NameIndex, _Edit | None] | None = None if index is None else (index, None)

    def edited(self, names: Mapping[ObjectId, bool]) -> IndexedNames:
        """Those of the snapshot after a change, in which each of these tables is there, or is not."""
        after = IndexedNames()
        if self._known is not None:
            index, before = self._known
            edit = _Edit(names, before)
            after._known = (index, edit) if edit.count <= _MOST_EDITS else None
        return after

    def index(self, children: Mapping[ObjectId, TablesBelow]) -> NameIndex:
        """The index. `children` are those of the same snapshot."""
        known = self._known
        if known is None or known[1] is not None:
            with _making:  # one search makes it, the others wait
                known = self._known = (_made(self._known, children), None)
        return known[0]


def _made(known: tuple[NameIndex, _Edit | None] | None, children: Mapping[ObjectId, TablesBelow]) -> NameIndex:
    if known is None:
        return NameIndex.of((parent, children[parent].tables) for parent in sorted(children))
    index, edit = known
    return index if edit is None else index.edited(edit.all())


class _Edit:
    """What one change made of the names of some tables, and the changes before it."""

    __slots__ = ("before", "count", "names")

    def __init__(self, names: Mapping[ObjectId, bool], before: _Edit | None) -> None:
        self.names = names
        self.before = before
        self.count: int = len(names) + (0 if before is None else before.count)

    def all(self) -> dict[ObjectId, bool]:
        """What all changes made of them."""
        edits: list[_Edit] = []
        edit: _Edit | None = self
        while edit is not None:
            edits.append(edit)
            edit = edit.before
        return {path: there for each in reversed(edits) for path, there in each.names.items()}


NO_TABLES: Final = IndexedNames(NameIndex(()))
