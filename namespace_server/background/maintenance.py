"""Maintenance in the background of a server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.port import ObjectStore
from namespace_server.answer import Answer
from namespace_server.background.periods import claim_period
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.root_layout import MAINTENANCE_CLAIMS
from namespace_server.maintenance.report import MaintenanceReport, TableStatus
from namespace_server.maintenance.run import Maintenance
from namespace_server.read_only import NEVER_READ_ONLY
from table_data.requests.table_requests import TableRequest

_log = logging.getLogger(__name__)

AsyncTableChange = Callable[[str, TableRequest], Awaitable[Answer]]
"""As `TableChange`, on the event loop."""


@dataclass(slots=True)
class MaintenanceSchedule:
    """Maintains the tables of a catalog once in each period, in one of the servers on its root.

    Periods begin at the multiples of `interval`, in seconds since the epoch. The work of a run is begun within its
    period. Belongs to one event loop.

    Attributes:
        store: The root of the catalog.
        table: Its rows.
        interval: Length of a period in seconds.
        defaults: Properties of tables that have none themselves.
        paused: Whether nothing is to be changed now.
    """

    store: ObjectStore
    table: ManifestTable
    interval: int
    defaults: Mapping[str, str] = field(default_factory=dict)
    paused: Callable[[], bool] = NEVER_READ_ONLY.is_on
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self, change: AsyncTableChange) -> None:
        """Run until `stop`. What a run meets is logged; nothing is raised."""
        loop = asyncio.get_running_loop()

        def change_from_thread(operation: str, request: TableRequest) -> Answer:
            async def make() -> Answer:
                return await change(operation, request)

            return asyncio.run_coroutine_threadsafe(make(), loop).result()

        maintenance = Maintenance(self.store, self.table, change_from_thread, self.defaults, stopped=self._is_stopped)
        while not await self._is_stopped_within(self.interval - time.time() % self.interval):
            await asyncio.to_thread(self._run_once, maintenance)

    def stop(self) -> None:
        """End `run` after the commit that is under way."""
        self._stopping.set()

    def _is_stopped(self) -> bool:
        return self._stopping.is_set() or self.paused()

    async def _is_stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _run_once(self, maintenance: Maintenance) -> None:
        if self.paused():
            return
        began = int(time.time()) // self.interval * self.interval
        try:
            if claim_period(self.store, MAINTENANCE_CLAIMS, began):
                _report(maintenance.run(seconds=self.interval))
        except (LanceCoreError, LanceNamespaceError) as error:
            _log.warning("maintenance: %s", error)
        except Exception:  # noqa: BLE001 - the next run comes
            if not self._stopping.is_set():  # else the catalog is closed, perhaps in the midst of a look at it
                _log.exception("maintenance failed")


def _report(report: MaintenanceReport) -> None:
    for outcome in report.outcomes:
        level = logging.WARNING if outcome.status is TableStatus.FAILED else logging.INFO
        _log.log(level, "maintenance: %s", outcome.line())
    *_, last = report.lines()
    _log.info("maintenance: %s", last)
