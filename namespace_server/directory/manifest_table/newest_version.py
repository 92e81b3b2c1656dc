"""Which version of `__manifest` is the newest.

A vacant slot may be one that a clean-up has freed. So neither writing it nor finding it vacant proves that the version
before it is the newest (rules G7, G8). A listing proves it. On a bucket that is one request. In a directory its cost
grows with the number of names, so a proof by a bounded number of look-ups takes its place there.
"""

from __future__ import annotations

from typing import Final

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_latest
from namespace_server.directory.model.root_layout import HIGH_WATER_MARKS

STRIDE: Final = 8
"""High-water mark k, an empty file of that name: a version of at least k x `STRIDE` may have been written."""

SAME_SECOND: Final = 1.0
"""No clean-up removes a version within so many seconds of its commit."""

_MARKS_KEPT: Final = 4


class NewestVersion:
    """Finds the newest version of the dataset at key `root` of `store`, or proves that one is. Thread-safe."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root
        self._marked = 0

    def find(self) -> tuple[int, NamingScheme] | None:
        """The newest version by listing, None if there is none. Among V2 names that is the first key."""
        try:
            latest = find_latest(self._store, self._root)
        except ReferenceNotFound:
            return None
        return latest.version, latest.scheme

    def mark(self, version: int) -> None:
        """Note that `version` is about to be written. Every flip does so before its slot is claimed."""
        mark = version // STRIDE
        if not self._store.local or mark <= self._marked:
            return
        marks = self._marks()
        if not marks or marks[-1] < mark:
            path = f"{HIGH_WATER_MARKS}/{mark}"
            self._store.put(path, b"", durable=False)
            self._store.sync([path])
            for old in marks[:-_MARKS_KEPT]:  # never the highest: a listing that runs meanwhile must find one
                self._store.delete(f"{HIGH_WATER_MARKS}/{old}")
        self._marked = mark

    def is_newest(self, version: int, scheme: NamingScheme) -> bool:
        """Whether `version`, which is there, is certainly the newest. False also when only a listing can decide.

        Asks storage at the time of the call, in one round trip. In a directory: a newer version of the same stride is
        met going upward, because the newest one is never removed before there is a newer one; one beyond the stride
        has left its mark. The version before must still be there, which also detects newer versions that other writers
        made without marks.
        """
        if not self._store.local:
            found = self.find()
            return found is not None and found[0] == version
        for newer in range(version + 1, (version // STRIDE + 1) * STRIDE):
            if self._store.find(manifest_path(self._root, newer, scheme)) is not None:
                return False
        marks = self._marks()
        if marks and marks[-1] > version // STRIDE:
            return False
        return version <= 1 or self.is_there(version - 1, scheme)

    def is_there(self, version: int, scheme: NamingScheme) -> bool:
        """Whether the file of a version is there."""
        try:
            self._store.require([manifest_path(self._root, version, scheme)])
        except NotFound:
            return False
        return True

    def _marks(self) -> list[int]:
        names = self._store.names(HIGH_WATER_MARKS)
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())
