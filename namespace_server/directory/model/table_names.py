"""The index of the names of all tables of a snapshot: made by its first search or ahead of it, then edited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.name_index import NameIndex
from namespace_server.durations import elapsed_clock

if TYPE_CHECKING:
    from namespace_server.directory.model.state import Children

_MOST_EDITS: Final = 65_536
"""Changes of names since the index was last searched, after which the next search makes it anew."""
_MANY_EDITS: Final = 1_024
"""Changes of names from which on the index is edited ahead of a search."""
_PAUSE: Final = 9.0
"""How long an index that is made ahead pauses after each block, in the time that the block took: it takes a tenth of a
processor, and less of a busy one."""
_making: Final = threading.Lock()
_is_wanted: Final = threading.Event()
"""Whether a search waits for the index: then it is made without pauses."""


class IndexedNames:
    """The index of the names of one snapshot, or how it follows from that of an earlier one. Thread-safe.

    A catalog whose names are not searched has no index. Once there is one, or it is being made, each later snapshot
    keeps what differs: the index of a million tables takes a second, an edit of it a millisecond.
    """

    __slots__ = ("_known",)

    def __init__(self, index: NameIndex | None = None) -> None:
        self._known: tuple[_Base, _Edit | None] | None = None if index is None else (_Base(index), None)

    def edited(self, names: Mapping[ObjectId, bool]) -> IndexedNames:
        """Those of the snapshot after a change, in which each of these tables is there, or is not."""
        after = IndexedNames()
        if self._known is not None:
            base, before = self._known
            edit = _Edit(names, before)
            after._known = (base, edit) if edit.count <= _MOST_EDITS else None
        return after

    def index(self, children: Mapping[ObjectId, Children]) -> NameIndex:
        """The index. `children` are those of the same snapshot."""
        known = self._known
        if known is not None and known[1] is None and known[0].index is not None:
            return known[0].index
        _is_wanted.set()
        with _making:  # one search makes it, the others wait
            _is_wanted.clear()
            return self._made(children)

    def prepare(self, children: Mapping[ObjectId, Children], stopping: threading.Event) -> bool:
        """Make the index ahead of a search, with pauses; or edit it, if much has changed.

        Args:
            children: Those of the same snapshot.
            stopping: Ends it soon, once it is set: the next search begins anew.

        Returns:
            Whether it was made or edited.
        """
        began = elapsed_clock()

        def pause() -> None:
            nonlocal began
            if stopping.is_set():
                raise _Stopped
            _is_wanted.wait(_PAUSE * (elapsed_clock() - began))
            began = elapsed_clock()

        known = self._known
        if known is not None and known[0].index is not None and (known[1] is None or known[1].count < _MANY_EDITS):
            return False
        try:
            with _making:
                self._made(children, pause)
        except _Stopped:
            return False
        return True

    def _made(self, children: Mapping[ObjectId, Children], pause: Callable[[], None] | None = None) -> NameIndex:
        """The index; the caller holds the lock."""
        index, edit = (None, None) if self._known is None else (self._known[0].index, self._known[1])
        if index is not None and edit is None:
            return index
        pauses = [] if pause is None else [pause]
        base = _Base()
        self._known = base, None  # snapshots that follow while it is made keep what differs from it
        if index is None or edit is None:
            base.index = NameIndex.of(((parent, children[parent].tables) for parent in sorted(children)), *pauses)
        else:
            base.index = index.edited(edit.all(), *pauses)
        return base.index


class _Base:
    """An index that others follow from; None while it is made, and if that was given up."""

    __slots__ = ("index",)

    def __init__(self, index: NameIndex | None = None) -> None:
        self.index = index


class _Stopped(Exception):
    """The index is not made to its end."""


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
