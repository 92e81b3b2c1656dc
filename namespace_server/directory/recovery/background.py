"""The sweep: finishes, in the background, the open work of this process and of others (rule M7).

One sweep takes the steps of `Recovery.sweep` in order. A step that fails is logged and met again by the next sweep; it
keeps no other step from being done. A problem that lasts is logged once, by the first sweep that meets it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.background.scheduler import JobResult
from namespace_server.directory.committing.committer import Committer
from namespace_server.directory.committing.record_housekeeping import RecordHousekeeping, RecordRetention, find_expired
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.conditional_removal import finish_removals
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.errors import CatalogBusy, CatalogDamaged
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.recovery.backup_note import BackupNote
from namespace_server.directory.recovery.branch_refs import BranchRefs
from namespace_server.directory.recovery.branch_removal import BranchRemoval
from namespace_server.directory.recovery.lost_version import LostVersionCheck
from namespace_server.directory.recovery.unmanaged_manifests import UnmanagedManifests

logger = logging.getLogger(__name__)

_LEFT_TO_OTHERS: Final = 10.0
"""Seconds for which the open records of other processes are left to them, while these commit."""
_TRIES: Final = 2
"""How often a sweep tries to flip for record housekeeping alone."""
_RECOMMITS: Final = 100
"""How many flips of a sweep commit again, one after the other, what other writers committed on each other."""
EXPIRY_INTERVAL: Final = 60.0
"""Seconds between two looks for expired records, each of which reads all records."""


class Recovery:
    """A job that sweeps every `interval` seconds. Thread-safe.

    It is over once a local root was removed; started again, it sweeps the next one.
    """

    name: Final = "recovery"
    at_both_ends: Final = True
    """What others left open is finished at once, and the record housekeeping that waits at the end."""

    def __init__(
        self,
        store: ObjectStore,
        table: ManifestTable,
        committer: Committer,
        promoter: Promoter,
        record_housekeeping: RecordHousekeeping,
        unmanaged_manifests: UnmanagedManifests,
        branch_refs: BranchRefs,
        branch_removal: BranchRemoval,
        backup_note: BackupNote,
        retention: RecordRetention,
        interval: timedelta,
    ) -> None:
        self._store = store
        self._table = table
        self._committer = committer
        self._promoter = promoter
        self._record_housekeeping = record_housekeeping
        self._unmanaged_manifests = unmanaged_manifests
        self._branch_refs = branch_refs
        self._branch_removal = branch_removal
        self._backup_note = backup_note
        self._lost_version = LostVersionCheck(store, table)
        self._retention = retention
        self._interval = interval.total_seconds()
        self._is_last = False
        self._last_expiry = time.monotonic()
        self._left: dict[str, float] = {}
        self._logged: set[str] = set()

    def delay(self) -> float:
        """See `BackgroundJob`."""
        return self._interval

    def run(self, stopping: threading.Event) -> JobResult:
        """Sweep; see `BackgroundJob`."""
        self._is_last = stopping.is_set()
        if self._is_root_removed():
            logger.warning("sweep: root %s was removed; sweeping ends until the catalog is used again", self._store.uri)
            return JobResult.OVER
        self.sweep(stopping.is_set)
        self._backup_note.look()
        return JobResult.FAILED if self._logged else JobResult.DONE

    def sweep(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Take every step once: promote, make durable, remove staged names, close and expire records (M7, M8, A2).

        Once `is_stopping` says so, files in quarantine wait for the next sweep: a chain of them can take minutes.
        Raises nothing but errors of the operating system; other problems are logged, each once while it lasts.
        """
        problems: set[str] = set()
        try:
            snapshot = self._table.refresh()
        except (LanceCoreError, LanceNamespaceError) as error:
            problems.add(str(error))
        else:
            self._take_steps(snapshot, problems, is_stopping)
        new, self._logged = problems - self._logged, problems
        if not self._is_root_removed():  # else the thread says so, and ends
            for problem in sorted(new):
                logger.warning("sweep: %s", problem)

    def _take_steps(self, snapshot: CatalogSnapshot, problems: set[str], is_stopping: Callable[[], bool]) -> None:
        steps: Sequence[Callable[[CatalogSnapshot], None]] = (
            self._lost_version.compare,
            lambda found: self._table.clock.look(found.timestamp_ms),
            lambda _: finish_removals(self._store),
            self._finish_open_records,
            self._branch_refs.complete_forming,
            self._remove_branches,
            self._expire_records,
            lambda _: self._recommit_quarantined(is_stopping),
            self._flush_record_housekeeping,
            lambda _: self._committer.remove_failed_attempts(),
            lambda _: self._lost_version.compare(self._table.current),  # after the flips of these steps
        )
        for step in steps:
            try:
                step(snapshot)
            except (LanceCoreError, LanceNamespaceError) as error:
                problems.add(str(error))

    def finish_batches(self, batches: Iterable[str]) -> None:
        """Finish the open records of these batches (by uuid) in the calling thread, which has just committed them.

        Does nothing unless the store writes without syncs: only then it takes no time, while a thread beside the
        committer would contend for the GIL at every file. Raises nothing but errors of the operating system.
        """
        if not self._store.unsynced:
            return
        snapshot = self._table.current
        records = [record for name in batches if (record := snapshot.record(name)) is not None]
        waiting = [record for record in records if record.state == "open"]
        try:
            self._record_housekeeping.close(self._promoter.finish_records(waiting, snapshot))
        except LanceCoreError as error:
            logger.warning("left to the sweep: %s", error)

    def _is_root_removed(self) -> bool:
        """Whether the catalog of a local root is gone. A sweep in progress may have left a file below the root.

        The directory is looked for again once a version is known: a first commit may have made it since.
        """
        store = self._store.innermost
        if not isinstance(store, LocalStore):
            return False
        directory = Path(store.root, MANIFEST_TABLE)
        if directory.exists():
            return False
        try:
            had_versions = bool(self._table.current.version)
        except CatalogDamaged:
            had_versions = True
        return had_versions and not directory.exists()

    def _finish_open_records(self, snapshot: CatalogSnapshot) -> None:
        waiting = [record for record in snapshot.open_records() if not self._record_housekeeping.is_closing(record)]
        left = self._left_to_others(waiting, snapshot)
        due = [record for record in waiting if record.batch_uuid not in left]
        self._record_housekeeping.close(self._promoter.finish_records(due, snapshot))

    def _left_to_others(self, records: Sequence[RecordEntry], snapshot: CatalogSnapshot) -> frozenset[str]:
        """Those that other processes are finishing: they are seen to commit, and these records were met just now."""
        now = time.monotonic()
        others = [] if not self._table.peers.lately() else records
        self._left = {
            record.batch_uuid: self._left.get(record.batch_uuid, now)
            for record in others
            if not self._promoter.has_promoted(record, snapshot)
        }
        return frozenset(name for name, met in self._left.items() if now - met < _LEFT_TO_OTHERS)

    def _remove_branches(self, snapshot: CatalogSnapshot) -> None:
        self.remove_branches(self._branch_removal.left_by_others(snapshot), snapshot)

    def remove_branches(self, records: Iterable[RecordEntry], snapshot: CatalogSnapshot) -> None:
        """Remove the files of deleted branches, as far as that can be done now; their records go with a flip (B2).

        Raises `StorageError` if the quarantine cannot be listed.
        """
        removed = self._branch_removal.remove_files(records)
        self._unmanaged_manifests.give_up({party.location for each in removed for party in each.participants}, snapshot)
        self._record_housekeeping.remove(removed)

    def _expire_records(self, snapshot: CatalogSnapshot) -> None:
        if time.monotonic() - self._last_expiry < EXPIRY_INTERVAL:
            return
        self._last_expiry = time.monotonic()
        self._promoter.forget_closed(snapshot)
        self._record_housekeeping.remove(find_expired(snapshot, self._retention, self._table.clock.earlier_ms()))

    def _recommit_quarantined(self, is_stopping: Callable[[], bool]) -> None:
        for _ in range(_RECOMMITS):
            if is_stopping() or not (batches := self._unmanaged_manifests.recommits(is_stopping)):
                return
            for pending in self._committer.decide(batches):
                error = pending.verdict if isinstance(pending.verdict, LanceNamespaceError) else None
                outcome = "committed" if error is None else f"not committed, kept in quarantine: {error}"
                logger.warning("%s: %s", pending.batch.message, outcome)
                self._unmanaged_manifests.conclude(pending.batch.uuid, error)

    def _flush_record_housekeeping(self, snapshot: CatalogSnapshot) -> None:
        """Flip for record housekeeping alone, if no batch carried it for an interval, or at a clean shutdown.

        While another server is busy this one does not fight for slots: each that it wins costs the other one a flip.
        What waits is done later, by this server or by one that recovers its records.
        """
        idle = time.monotonic() - self._committer.last_commit > self._interval
        if snapshot.managed and (idle or self._is_last):
            with suppress(CatalogBusy):
                self._committer.flush_record_housekeeping(tries=None if self._is_last else _TRIES)
