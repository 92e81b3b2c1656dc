"""A flip that won its slot and is not yet proved to be the newest version, and what may be planned on it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from namespace_server.directory.committing.group_planner import PendingBatch
from namespace_server.directory.manifest_table.flip import Flip
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import AssertTableVersion, CommitTransaction, CreateTableVersion
from namespace_server.directory.model.snapshot import CatalogSnapshot

_OF_ONE_TABLE: Final = (CommitTransaction, CreateTableVersion, AssertTableVersion)


class UnprovedFlip:
    """The flip of one group: the next one is planned on it, and its files are staged, while it is proved (F8).

    Nothing of the next group is decided, sent or promoted before it is known what became of this flip. Thread-safe.
    """

    def __init__(self) -> None:
        self.snapshot = CatalogSnapshot()
        self._tables: set[ObjectId] = set()
        self._settled = threading.Event()
        self._committed = False

    def won(self, flip: Flip, snapshot: CatalogSnapshot) -> None:
        """Note that the flip has its slot. `snapshot` is the catalog if it is a commit."""
        self.snapshot = snapshot
        self._tables = {entry.table_id for entry in flip.changes.puts.values() if isinstance(entry, VersionEntry)}

    def settle(self, *, committed: bool) -> None:
        """Tell whether the flip is a commit, whose group is then concluded. What is told first counts."""
        if not self.is_settled:
            self._committed = committed
            self._settled.set()

    @property
    def is_settled(self) -> bool:
        """Whether it is known what became of the flip."""
        return self._settled.is_set()

    def is_committed(self) -> bool:
        """Whether the flip is a commit; waits until that is known."""
        self._settled.wait()
        return self._committed

    def is_apart_from(self, group: Iterable[PendingBatch]) -> bool:
        """Whether planning the group can neither promote nor read a version that this flip made.

        So it is with new versions of other tables, and assertions about them. Whatever else batches do waits.
        """
        return all(
            isinstance(operation, _OF_ONE_TABLE) and operation.id not in self._tables
            for pending in group
            for operation in pending.batch.operations
        )
