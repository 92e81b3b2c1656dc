"""The keys that a check writes, all in one new directory below `_staging/`, and their removal."""

from __future__ import annotations

import uuid
from itertools import count

from lance_core.errors import NotFound, StorageError
from lance_core.format.naming import join_key, manifest_path
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.root_layout import scratch_directory


class Workspace:
    """A new directory below `_staging/` with the form of a compaction clone.

    This and earlier releases remove such a directory as garbage once it is old: what a check leaves that dies.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.directory = scratch_directory(str(uuid.uuid4()), str(uuid.uuid4()))
        self._store = store
        self._slots = count()
        self._keys: list[str] = []

    def key(self, name: str) -> str:
        """The key called `name`, which `clear` removes."""
        self._keys.append(join_key(self.directory, name))
        return self._keys[-1]

    def slot(self) -> str:
        """The key of a first version, as a commit claims it; each time of another table."""
        return self.key(manifest_path(f"slot/{next(self._slots)}", 1))

    def clear(self) -> list[str]:
        """Remove everything. Returns the keys that are, or may be, still there. Raises nothing but interrupts."""
        keys = list(dict.fromkeys([*self._keys, *self._listed()]))
        left = self._store.map(self._remove, keys)
        return [key for key, stays in zip(keys, left, strict=True) if stays]

    def _listed(self) -> list[str]:
        """The keys that a listing shows: a manifest store puts objects under names of its own."""
        try:
            return [meta.path for meta in self._store.list(self.directory)]
        except StorageError:
            return []

    def _remove(self, key: str) -> bool:
        try:
            self._store.delete(key)
        except StorageError:
            try:
                self._store.head(key)
            except NotFound:
                return False
            except StorageError:
                return True
            return True
        return False
