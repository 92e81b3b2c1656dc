"""A collector beside the clients of a history. Its horizon is always now, so nothing but the rules protects files.

It is held between two calls, and dies at a write, at moments that the seed chooses; then the next one goes on.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_client import CatalogUnreachable, CommitUnknown, MultiTableTransaction
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.gc.run import Collector
from namespace_server.directory.model.root_layout import GC_RUNS
from tests.directory.tables import QUIET
from tests.histories.clients import OwnClient
from tests.histories.history import Event
from tests.storage.faults import Crashed, Fault, FaultStore


class SlowClient(OwnClient):
    """Takes seconds from its first file to its commit: collections come between."""

    def meet(self) -> None:
        time.sleep(self.chance.choice((0, 0, 1.5, 3.0)))


class LongJob(SlowClient):
    """The same with an intent, registered before its first file: no collection is in its way, and none may be."""

    refusals = ()

    def _change(self, event: Event, tx: MultiTableTransaction, compacted: str | None) -> None:
        for table in {*event.tables, *([] if compacted is None else [compacted])}:
            tx.exists(table)
        tx._intent._seconds = 30 * 86_400  # the horizon of these collections is a week ahead
        try:
            tx.register_intent()
        except CommitUnknown as unknown:
            raise CatalogUnreachable(f"it is not known whether the intent is registered: {unknown}") from unknown
        super()._change(event, tx, compacted)


GRACE = timedelta(days=7)
KEPT = {"gc.catalog.age": "30d"}
"""All catalog versions stay: the checker reads them."""


def collect_now(store: ObjectStore, *, everywhere: bool = True) -> None:
    """One run, whose horizon is the second that has begun."""
    clock = datetime.now(UTC).replace(microsecond=0) + GRACE
    collector = Collector(StoredCatalog(store, QUIET), settle=timedelta(0), clock=lambda *_: clock)
    collector.collect(KEPT, everywhere=everywhere)


class Collections:
    """Runs on the root of a history. `removed` counts files, of all runs; `faults` counts what befell them."""

    def __init__(self, seed: str, root: Path) -> None:
        self._chance = random.Random(f"{seed} collections")
        self._root = root
        self.removed = 0
        self.faults: Counter[str] = Counter()

    def run_until(self, over: Callable[[], bool]) -> None:
        """One run after the other."""
        while not over():
            store = FaultStore(LocalStore(self._root, "none"))
            if not self.faults["death"] or self._chance.random() < 0.4:
                fault = self._chance.choice([Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
                store.fail(fault, nth=self._chance.randrange(12 if self.faults["death"] else 3))
            store.before(self._hold)
            try:
                collect_now(store, everywhere=self._chance.random() < 0.5)
            except Crashed:
                self.faults["death"] += 1
            except (LanceNamespaceError, LanceCoreError):  # busy, or a manifest went while it was read
                self.faults["given up"] += 1
            deleted = (write.path for write in store.writes if write.verb == "delete")
            self.removed += sum(not path.startswith(f"{GC_RUNS}/") for path in deleted)
            time.sleep(self._chance.uniform(0, 0.5))

    def _hold(self, _verb: str, _path: str) -> None:
        if self._chance.random() < (0.01 if self.faults["hold"] else 0.1):  # a first one on a slow machine, too
            self.faults["hold"] += 1
            time.sleep(self._chance.choice((0.01, 0.1, 1.2)))


def collect_rest(root: Path) -> None:
    """Two runs on a quiet root."""
    for _ in range(2):
        time.sleep(1.1)  # what was written last is older than the horizon
        with suppress(Crashed):
            collect_now(LocalStore(root, "none"))
