"""Unreferenced files of this process, removed at once and not by a garbage collection (the first tier of clean-up).

Those of attempts that are in no history, and what is left of staged manifests whose records are closed.

Their names hold the uuid of the attempt, so no other attempt can name them. An attempt is in no history if its commit
step never began, or was refused. After an unknown outcome, and where a slot was won that is not the newest (G9),
everything stays. Transaction files stay too: their names are those of the client's transaction, which another process
may be committing.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.group_planner import GroupAttempt
from namespace_server.directory.manifest_table.flip import Flip
from namespace_server.directory.manifests.staged_bundles import ClosedRecords, keys_of_staged
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.root_layout import is_in_staging
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

_MOST: Final = 10_000
"""Names that are kept for the next removal; those of further files are left to a garbage collection."""
_AT_ONCE: Final = 256


class FailedAttempts:
    """The names of files to remove. They are lost with the process: what is left is garbage. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._keys: deque[str] = deque(maxlen=_MOST)
        self._closed = ClosedRecords(store)
        self._lock = threading.Lock()

    def add(self, attempt: GroupAttempt, flip: Flip | None, *, rows: bool = True) -> None:
        """Note the files of an attempt that is in no history: its staged manifests, and with `rows` its row files."""
        keys = [key for plan in attempt.plans for key, _ in plan.staged if is_in_staging(key)]
        keys = keys_of_staged(self._store, attempt.snapshot, keys)
        if rows and flip is not None:
            keys += (path for path, _ in flip.files)
        with self._lock:
            self._keys.extend(keys)

    def add_closed(self, records: Sequence[RecordEntry], snapshot: CatalogSnapshot) -> None:
        """Note the objects that may be left of staged manifests whose records are closed in `snapshot`."""
        with self._lock:
            self._keys.extend(self._closed.add(records, snapshot))

    def remove(self, snapshot: CatalogSnapshot) -> None:
        """Remove the files noted so far, except those that a record needs that is open in `snapshot`.

        `snapshot` is not older than the records that were noted as closed. What cannot be removed is tried again.
        """
        with self._lock:
            keys = [*self._keys, *self._closed.take(snapshot)]
            self._keys.clear()
        for first in range(0, len(keys), _AT_ONCE):
            try:
                self._store.delete_all(keys[first : first + _AT_ONCE])
            except LanceCoreError as error:
                logger.info("unreferenced files are left for now: %s", error)
                with self._lock:
                    self._keys.extend(keys[first:])
                return
