"""The index that a search of tables by their names needs, made ahead of the first one."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar, Final

from namespace_server.background.scheduler import JobResult
from namespace_server.directory.manifest_table.table import ManifestTable

_SECONDS: Final = 1.0


@dataclass(slots=True)
class NameSearch:
    """A job that makes the index of names of the newest catalog version that this process knows, and keeps it near.

    It reads no storage, and pauses after each fraction of a millisecond: requests wait no longer for it.

    Attributes:
        table: The rows of the catalog.
    """

    table: ManifestTable
    name: ClassVar[str] = "names"
    at_both_ends: ClassVar[bool] = False

    def delay(self) -> float:
        """See `BackgroundJob`."""
        return _SECONDS

    def run(self, stopping: threading.Event) -> JobResult:
        """Make the index, if there is none yet or much has changed; see `BackgroundJob`."""
        snapshot = self.table.known
        is_made = snapshot is not None and snapshot.prepare_search(stopping)
        return JobResult.DONE if is_made else JobResult.IDLE
