"""A catalog: one root, its `__manifest`, and the parts that commit, promote, repair and sweep."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from lance_namespace.errors import LanceNamespaceError, TableVersionNotFoundError

from lance_core.errors import LanceCoreError, ReferenceNotFound
from lance_core.storage.port import ObjectStore
from namespace_server.directory.committing.committer import Committer, Pending
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.committing.record_maintenance import RecordMaintenance
from namespace_server.directory.committing.verifier import Verifier
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import TOMBSTONES, VersionEntry
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.operations import AssertTableVersion, Batch, CommitTransaction
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.recovery.branch_refs import BranchRefs
from namespace_server.directory.recovery.foreign_manifests import ForeignManifests
from namespace_server.directory.recovery.witness import Witness

logger = logging.getLogger(__name__)

RECORD_AGE = timedelta(minutes=2)
"""Younger records stay, however many there are: a flip whose proof was delayed is recognised by them (G7)."""


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """What may be set. `sweep_interval` 0 means that nothing happens in the background."""

    group_limit: int = 64
    tries: int = 20
    sweep_interval: timedelta = timedelta(seconds=2)
    stage_max_age: timedelta = timedelta(days=3)
    record_retention: timedelta = timedelta(days=1)
    record_limit: int = 100_000
    manifest_cache_bytes: int = 64 << 20
    limits: Limits = field(default_factory=Limits)


class Catalog:
    """The catalog below a store's root. Opening does no I/O; nothing is written before the first commit.

    Thread-safe. Several processes may have the same root open.
    """

    def __init__(self, store: ObjectStore, options: CatalogOptions | None = None) -> None:
        self.store = store
        self.options = options or CatalogOptions()
        self.table = ManifestTable(store)
        self.manifests = ManifestCache(self.options.manifest_cache_bytes)
        self.promoter = Promoter(store, self._repair, self.table.refresh)
        self.record_maintenance = RecordMaintenance(self.promoter.forget)
        self.foreign_manifests = ForeignManifests(
            store, self.table.refresh, self.promoter.read, self.record_maintenance.report
        )
        self.branch_refs = BranchRefs(store, self.promoter, self.manifests)
        self.verifier = Verifier(store, stage_max_age=self.options.stage_max_age, known=self.manifests.get)
        self.committer = Committer(
            store,
            self.table,
            self.verifier,
            self.promoter,
            self.manifests,
            group_limit=self.options.group_limit,
            tries=self.options.tries,
            record_maintenance=self.record_maintenance,
        )
        self._witness = Witness(store)
        self._forming: set[tuple[ObjectId, str]] | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._sweeper: threading.Thread | None = None
        self._last_commit = 0.0
        self._last_expiry = time.monotonic()

    def snapshot(self, at: int | None = None) -> CatalogSnapshot:
        """The newest snapshot, in one request, or the one of catalog version `at`.

        Raises TableVersionNotFoundError (11) for a catalog version that is not, or no longer, there.
        """
        self.start()
        if at is None:
            return self.table.refresh()
        try:
            return self.table.at(at)
        except ReferenceNotFound as error:
            raise TableVersionNotFoundError(f"catalog version {at} does not exist or is no longer kept") from error

    def is_newest(self, snapshot: CatalogSnapshot, *, vacant: str) -> bool:
        """Whether a snapshot is still the newest, and nothing stands under the key `vacant`; in one round trip."""
        self.start()
        looks: list[Callable[[], Any]] = [self.table.refresh, partial(self.is_vacant, vacant)]
        newest, is_vacant = self.store.gather(looks)
        return newest is snapshot and is_vacant

    def is_vacant(self, key: str) -> bool:
        """Whether nothing stands under a key."""
        return self.store.find(key) is None

    def reconciled_snapshot(self, chain: ChainKey) -> CatalogSnapshot:
        """The newest snapshot, after adopting what others committed above the head of a chain (P5).

        A writer opens the head that it is told and looks at storage for what came after; where it cannot rebase over
        that it gives up and sends nothing that could adopt it: an append after an overwrite, for ever (invariant 12).
        One round trip where there is nothing to adopt.
        """
        self.start()
        known = self.table.current
        looks: list[Callable[[], Any]] = [self.table.refresh, partial(self.verifier.probe, known, [chain])]
        snapshot: CatalogSnapshot
        snapshot, above = self.store.gather(looks)
        if snapshot is not known and _place(snapshot, chain) != _place(known, chain):
            above = self.verifier.probe(snapshot, [chain])
        if not above or not snapshot.managed:
            return snapshot
        top = above[chain][-1][1].version
        name = str(uuid.uuid4())
        self.commit([Batch(name, (AssertTableVersion(*chain, top),), request_hash=name)])
        return self.table.current

    def commit(self, batches: Sequence[Batch]) -> list[Pending]:
        """Commit batches as a group; see `Committer.commit`."""
        self.start()
        decided = self.committer.commit(batches)
        self._last_commit = time.monotonic()
        for pending in decided:
            if isinstance(pending.verdict, Plan):
                self._note_forks(pending.batch, pending.verdict)
        return decided

    def finish_batches(self, batches: Iterable[str]) -> None:
        """What the sweep would do about these batches, in the thread that has just committed them.

        Only where nothing has to be synced first: it is over in no time then, while a thread beside the committer would
        wait for the interpreter at every file.
        """
        if not self.store.unsynced:
            return
        snapshot = self.table.current
        records = [record for name in batches if (record := snapshot.record(name)) is not None]
        try:
            self.record_maintenance.close(
                self.promoter.finish_records([each for each in records if each.state == "open"], snapshot)
            )
        except LanceCoreError as error:
            logger.warning("left to the sweep: %s", error)

    def flush_record_maintenance(self) -> None:
        """Do the waiting record_maintenance now, in flips of its own."""
        while self.record_maintenance.waiting:
            before = self.record_maintenance.waiting
            self.committer.flip(self.record_maintenance.plan_many)
            if self.record_maintenance.waiting >= before:
                return

    def sweep(self) -> None:
        """Finish what is open: promote, make durable, remove staged names, close and expire records (M7, M8, A2).

        Raises nothing but what the operating system does to it; problems are logged and met again next time. What one
        step cannot do keeps no other from being done.
        """
        try:
            snapshot = self.table.refresh()
        except (LanceCoreError, LanceNamespaceError) as error:
            logger.warning("sweep: %s", error)
            return
        steps: Sequence[Callable[[CatalogSnapshot], None]] = (
            self._witness.compare,
            self._settle_open,
            self._complete_branches,
            self._expire,
            self._recommit_foreign,
            self._flip_when_idle,
            lambda _: self._witness.compare(self.table.current),  # with what these have flipped
        )
        for step in steps:
            try:
                step(snapshot)
            except (LanceCoreError, LanceNamespaceError) as error:
                logger.warning("sweep: %s", error)

    def _settle_open(self, snapshot: CatalogSnapshot) -> None:
        records = [record for record in snapshot.open_records() if not self.record_maintenance.is_closing(record)]
        self.record_maintenance.close(self.promoter.finish_records(records, snapshot))

    def _recommit_foreign(self, _snapshot: CatalogSnapshot) -> None:
        for pending in self.commit(batches) if (batches := self.foreign_manifests.recommits()) else ():
            logger.warning("%s: %s", pending.batch.message, _outcome(pending))
            error = pending.verdict if isinstance(pending.verdict, LanceNamespaceError) else None
            self.foreign_manifests.conclude(pending.batch.uuid, error)

    def _flip_when_idle(self, snapshot: CatalogSnapshot) -> None:
        idle = time.monotonic() - self._last_commit > self.options.sweep_interval.total_seconds()
        if snapshot.managed and (idle or self._closed):  # a clean shutdown leaves nothing for others to finish
            self.flush_record_maintenance()

    def close(self) -> None:
        """Stop the sweeper after a last sweep and release the store."""
        with self._lock:
            self._closed = True
        self._wake.set()
        if self._sweeper is not None:
            self._sweeper.join()
        self.store.close()

    def _repair(self, entry: VersionEntry, ours: bytes, theirs: bytes | None) -> None:
        self.foreign_manifests.repair(entry, ours, theirs)

    def _note_forks(self, batch: Batch, plan: Plan) -> None:
        """BranchRefs that begin: a client writes the ref file of its own, nobody else that of a Clone we built (M8)."""
        forks = {
            (version.entry.table_id, version.entry.branch)
            for version in plan.published
            if version.entry.branch is not None and version.file.operation == "clone"
        }
        if not forks:
            return
        if self._forming is not None:
            with self._lock:
                self._forming |= forks
        for operation in batch.operations:
            if isinstance(operation, CommitTransaction) and (operation.id, operation.branch) in forks:
                self._make_known(operation.id, operation.branch or "")

    def _make_known(self, table_id: ObjectId, branch: str) -> None:
        try:
            self.branch_refs.complete(self.table.current, table_id, branch, after=timedelta(0))
        except LanceCoreError as error:  # the sweep will
            logger.warning("branch %s: its ref file is not written yet: %s", branch, error)

    def _complete_branches(self, snapshot: CatalogSnapshot) -> None:
        if self._forming is None:  # the first sweep of this process: anything may have been left behind
            found = set(snapshot.all_branches())
            with self._lock:
                self._forming = found
        for table_id, branch in list(self._forming):
            try:
                complete = self.branch_refs.complete(snapshot, table_id, branch)
            except LanceCoreError as error:
                logger.warning("branch %s of table %s: %s", branch, "$".join(table_id), error)
                continue
            if complete:
                with self._lock:
                    self._forming.discard((table_id, branch))

    def _expire(self, snapshot: CatalogSnapshot) -> None:
        """Old records of finished batches go, and the oldest beyond the limit; a minute apart, for it looks at all.

        Tombstones go when every manifest that was staged for their tables is too old to be published (S2, G15).
        """
        if time.monotonic() - self._last_expiry < 60:
            return
        self._last_expiry = time.monotonic()
        self.promoter.forget_closed(snapshot)
        records = list(snapshot.records())
        closed = [record for record in records if record.state == "closed"]
        closed.sort(key=lambda record: (record.timestamp_ms, record.batch_uuid))
        before = time.time_ns() // 1_000_000 - self.options.record_retention // timedelta(milliseconds=1)
        surplus = len(closed) - self.options.record_limit
        settled = time.time_ns() // 1_000_000 - RECORD_AGE // timedelta(milliseconds=1)
        self.record_maintenance.remove(
            record
            for number, record in enumerate(closed)
            if record.timestamp_ms < before or (number < surplus and record.timestamp_ms < settled)
        )
        kept = max(self.options.record_retention, 2 * self.options.stage_max_age)
        before = time.time_ns() // 1_000_000 - kept // timedelta(milliseconds=1)
        self.record_maintenance.remove(
            record for record in records if record.state in TOMBSTONES and record.timestamp_ms < before
        )

    def start(self) -> None:
        """Begin to sweep in the background (M7), unless that is switched off. Every call of a catalog does so."""
        if self._sweeper is not None or not self.options.sweep_interval:
            return
        with self._lock:
            if self._sweeper is None and not self._closed:
                self._sweeper = threading.Thread(target=self._run, name="catalog-sweep", daemon=True)
                self._sweeper.start()

    def _run(self) -> None:
        while not self._closed:
            self.sweep()
            self._wake.wait(self.options.sweep_interval.total_seconds())
        self.sweep()


def _place(snapshot: CatalogSnapshot, chain: ChainKey) -> tuple[object, object]:
    """Where a chain goes on."""
    return snapshot.table(chain[0]), snapshot.head(*chain)


def _outcome(pending: Pending) -> str:
    return "committed" if isinstance(pending.verdict, Plan) else f"not committed, kept aside: {pending.verdict}"
