"""The catalog's own dataset: read as snapshots, changed by flips."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import LanceCoreError, StorageError
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifest_table.flip import (
    Flip,
    FlipClaimed,
    FlipCommitted,
    FlipLost,
    FlipRefused,
    FlipSuperseded,
    FlipUnknown,
    check_changeable,
    prepare_flip,
)
from namespace_server.directory.manifest_table.history import CatalogHistoryEntry, CatalogStep, VersionHistory
from namespace_server.directory.manifest_table.newest_version import SAME_SECOND
from namespace_server.directory.manifest_table.snapshots import Snapshots
from namespace_server.directory.manifest_table.store_clock import StoreClock
from namespace_server.directory.manifest_table.unlisted_tables import check_first_flip
from namespace_server.directory.model.entries import Changes
from namespace_server.directory.model.history import NO_OUTLINE, FlipOutline
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.durations import elapsed_clock
from namespace_server.observability.observation import SILENT, Observer

logger = logging.getLogger(__name__)

LISTING_INTERVAL: Final = 60.0
"""Seconds that a snapshot may be brought up to date by probing alone, by a clock that counts suspension (G8)."""
RECORD_LIFETIME: Final = 60.0
"""Seconds for which the newest version certainly holds the records of a flip that was committed; records are kept for
at least twice that time."""


class ManifestTable(Snapshots):
    """The dataset at key `path` of `store`: its snapshots, and the flips that change it. Thread-safe.

    `now` gives nanoseconds since the epoch. `clock` compares it with the store's. The `observer` receives the steps of
    a commit. `peers` are the processes whose flips of batches were seen; flips of batches name this one.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        path: str = MANIFEST_TABLE,
        now: Callable[[], int] = time.time_ns,
        listing_interval: float = LISTING_INTERVAL,
        observer: Observer = SILENT,
    ) -> None:
        super().__init__(store, path, listing_interval)
        self._now = now
        self._observer = observer
        self.clock = StoreClock(store, now)
        self._history = VersionHistory(store, self)

    def check_changeable(self) -> None:
        """Raise `CatalogTooNew` if this release must not change the newest version that this process knows."""
        check_changeable(self.current)

    def refresh_for_flip(self) -> CatalogSnapshot:
        """As `refresh`; on a bucket it was proved to be the newest so lately that a flip on it is `never_taken`."""
        return self.refresh(SAME_SECOND / 2)

    def history(self, limit: int, before: int | None = None) -> list[CatalogHistoryEntry]:
        """See `VersionHistory.newest_first`."""
        return self._history.newest_first(limit, before)

    def versions_after(self, version: int, newest: CatalogSnapshot, limit: int) -> Iterator[CatalogStep]:
        """See `VersionHistory.after`."""
        return self._history.after(version, newest, limit)

    def prepare(
        self,
        snapshot: CatalogSnapshot,
        changes: Changes,
        *,
        attempt: str,
        table_metadata: Mapping[str, str] | None = None,
        strict: bool = False,
        outline: FlipOutline = NO_OUTLINE,
    ) -> Flip:
        """Build the flip that makes `changes` on `snapshot`, which must be no overlay. Writes nothing.

        `attempt` is a fresh uuid (F2). Raises `CatalogTooNew` for a root that this release must not write. See
        `prepare_flip` for the rest.
        """
        return prepare_flip(
            self._path,
            snapshot,
            changes,
            attempt=attempt,
            now_ns=self._now(),
            read=self.read_fragment,
            table_metadata=table_metadata,
            strict=strict,
            outline=outline,
            introduce=self.peers.introduction if outline.batches else None,
        )

    def stage(self, flip: Flip) -> None:
        """Write the files of a flip, durably, in one parallel step (S1). It may be repeated. Raises `StorageError`.

        The first flip of a root looks before whether a backup is being restored there, or tables are there that it does
        not put, and raises `RootBeingRestored`, `TablesWithoutCatalog` or `CatalogDamaged`.
        """
        if not flip.base.version:
            check_first_flip(self._store, self._newest, flip.changes.puts)
        self._newest.mark(flip.version)
        writes = [partial(self._store.put, path, data, durable=False) for path, data in flip.files]
        if len(writes) == 1:
            writes[0]()
        elif writes:
            self._store.gather(writes)
        if writes:
            self._store.sync([path for path, _ in flip.files])

    def claim(self, flip: Flip) -> FlipClaimed | FlipLost | FlipUnknown | FlipRefused:
        """Put the manifest of a staged flip, if its version is vacant: the commit point.

        Only an occupied slot is an answer (F1). `prove` decides whether a slot that was won is a commit.
        """
        sent_at, listed_at = elapsed_clock(), self.nothing_above(flip.base)
        try:
            with self._observer.step("flip"):
                slot = claim_slot(self._store, flip.path, flip.manifest)
        except StorageError as error:
            return FlipRefused(error)
        if isinstance(slot, SlotUnknown):
            return FlipUnknown(slot.reason)
        if isinstance(slot, SlotLost):
            # After a lost answer ours may have stood there, been built on, and been removed since (G9).
            return FlipClaimed(flip, sent_at, None, False) if slot.answer_was_lost else FlipLost(slot.data)
        won_at = elapsed_clock()
        self.clock.wrote(flip.path)
        return FlipClaimed(flip, sent_at, won_at, not self._store.local and won_at - listed_at < SAME_SECOND)

    def prove(self, claimed: FlipClaimed) -> FlipCommitted | FlipSuperseded | FlipUnknown:
        """Decide whether a flip is a commit, and if so make its snapshot the current one (G7).

        Its version is the newest, or the newest one holds the flip's records: the slot may have been vacant because a
        clean-up removed its version. Raises nothing: where it cannot be decided, the outcome is `FlipUnknown`.
        """
        flip, proved = claimed.flip, False
        if claimed.won_at is not None:
            try:
                with self._observer.step("prove"):
                    proved = self._newest.is_newest(flip.version, flip.disk.scheme)
            except StorageError as error:
                return FlipUnknown(f"{flip.path} is written, but cannot be proved to be the newest version: {error}")
        outcome = FlipCommitted(flip.snapshot(claimed.won_at or 0.0)) if proved else self._trace(claimed)
        if isinstance(outcome, FlipCommitted):
            self.accept(outcome.snapshot)
            if flip.has_records:
                self.peers.flipped()
        return outcome

    def _trace(self, claimed: FlipClaimed) -> FlipCommitted | FlipSuperseded | FlipUnknown:
        """The outcome of a flip whose version is, or may be, below the newest: by the records of the newest version."""
        flip, won = claimed.flip, claimed.won_at is not None
        try:
            newest = self.refresh_by_listing()
        except LanceCoreError as error:
            return FlipUnknown(f"{flip.path} may be written, but the newest version cannot be read: {error}")
        if (won and newest.version == flip.version) or flip.is_part_of(newest):
            return FlipCommitted(flip.snapshot(newest.listed_at))
        if newest.version < flip.version:
            return FlipUnknown(f"{flip.path} is written, but the newest version that is listed is {newest.version}")
        if elapsed_clock() - claimed.sent_at > RECORD_LIFETIME:
            return FlipUnknown(f"{flip.path} was written long ago: records that would show its outcome may be gone")
        if won and not flip.has_records:  # it may well be part of the newest version; made again, it changes nothing
            logger.info(
                "catalog version %d is followed by %d: the changes are planned again", flip.version, newest.version
            )
        elif won:
            logger.error(
                "catalog version %d was removed and written again below version %d, the newest: it is in no history",
                flip.version,
                newest.version,
            )
            self._withdraw(flip)
        return FlipSuperseded(newest)

    def _withdraw(self, flip: Flip) -> None:
        """Remove the file of a version that is in no history, so that it is never read.

        Only a flip that has records of its own is known to be in no history, by the newest version without them. The
        file is removed by name: no committed version is ever written where one was superseded. The files that it names
        stay (G9).
        """
        if not flip.has_records:
            return
        try:
            self._store.delete(flip.path)
        except StorageError as error:
            logger.error("%s is no version of the catalog and cannot be removed: %s", flip.path, error)

    def discard(self, flip: Flip) -> None:
        """Remove the files of a flip that is known to be lost; a file that cannot be removed is left."""
        for path, _ in flip.files:
            try:
                self._store.delete(path)
            except StorageError:
                return
