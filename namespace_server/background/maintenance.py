"""Maintenance of the tables of a catalog in the background of a server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lance_core.storage.port import ObjectStore
from namespace_server.background.periods import Periods
from namespace_server.background.scheduler import JobResult
from namespace_server.data.port import CommitChange
from namespace_server.directory.maintenance.report import MaintenanceReport, TableStatus
from namespace_server.directory.maintenance.run import Maintenance
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.root_layout import MAINTENANCE_CLAIMS
from namespace_server.read_only import NEVER_READ_ONLY

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class TableMaintenance:
    """A job that maintains the tables of a catalog once in each period, in one of the servers on its root.

    Periods begin at the multiples of `interval`, in seconds since the epoch. The work of a run is begun within its
    period.

    Attributes:
        store: The root of the catalog.
        table: Its rows.
        change: Commits the changes.
        interval: Length of a period in seconds.
        defaults: Properties of tables that have none themselves.
        paused: Whether nothing is to be changed now.
    """

    store: ObjectStore
    table: ManifestTable
    change: CommitChange
    interval: int
    defaults: Mapping[str, str] = field(default_factory=dict)
    paused: Callable[[], bool] = NEVER_READ_ONLY.is_on
    name: ClassVar[str] = "maintenance"
    at_both_ends: ClassVar[bool] = False
    _periods: Periods = field(init=False)
    _maintenance: Maintenance = field(init=False)

    def __post_init__(self) -> None:
        self._periods = Periods(self.store, MAINTENANCE_CLAIMS, self.interval, unit=self.interval)
        self._maintenance = Maintenance(self.store, self.table, self.change, self.defaults)

    def delay(self) -> float:
        """See `BackgroundJob`."""
        return self._periods.until_next()

    def run(self, stopping: threading.Event) -> JobResult:
        """Maintain the tables, if no other server does in this period; see `BackgroundJob`."""
        if self.paused() or not self._periods.claim():
            return JobResult.IDLE
        self._maintenance.stopped = lambda: stopping.is_set() or self.paused()
        return _log_report(self._maintenance.run(seconds=self.interval))


def _log_report(report: MaintenanceReport) -> JobResult:
    has_failed = False
    for outcome in report.outcomes:
        failed = outcome.status is TableStatus.FAILED
        has_failed |= failed
        _log.log(logging.WARNING if failed else logging.INFO, "maintenance: %s", outcome.line())
    *_, last = report.lines()
    _log.info("maintenance: %s", last)
    return JobResult.FAILED if has_failed else JobResult.DONE
