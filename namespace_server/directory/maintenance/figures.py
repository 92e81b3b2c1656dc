"""Rows, bytes and work that waits in the tables of a catalog, as far as the manifests of their heads are known.

Nothing is read before the figures are asked for. Each look reads a bounded number of heads that are not known yet, for
a bounded time, and remembers of each table some numbers: so a small catalog is known at once, and of a large one more
with each look. What a table holds follows from its head, which never changes; a table is looked at again when its rows
in the catalog are others, and after a while without a request, since versions grow old and settings change. Looks take
a small part of the time, whatever is asked: in a catalog that changes all the time the figures of some seconds ago are
told, with the catalog version that they are of.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice, takewhile
from operator import add, sub
from typing import Final, NamedTuple

from lance_core.errors import LanceCoreError, NotFound, StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from namespace_server.directory.maintenance.coverage import plan_indices
from namespace_server.directory.maintenance.fragments import plan_fragments
from namespace_server.directory.maintenance.policy import Policy, WrongPolicy, policy_of
from namespace_server.directory.manifest_table.store_clock import MOST_APART
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.retention import catalog_retention, kept_of, versions_beyond
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import StoredTable

LOOKED_AT: Final = 256
"""The most tables of one look."""
REMEMBERED: Final = 1 << 15
"""The most tables that are remembered, each with some hundred bytes."""
_WALKED: Final = 1 << 14
"""The most names of tables that a look goes through for those that are not known."""
_AT_ONCE: Final = 64
_SECONDS: Final = 0.1
"""Time after which a look reads no more heads."""
_SHARE: Final = 0.02
"""Part of the time that looks may take when they are asked for all the time."""
_FREE_SECONDS: Final = 0.25
"""Time that looks may take at once, after a pause."""
_MOST_BYTES: Final = 32 << 20
"""Bytes of the manifests of a look, about: the first may be larger."""
_LASTING: Final = 600.0
"""Seconds after which a table is looked at again that did not change."""
_WAIT: Final = 1.0
"""Seconds that a look waits for another one; then it tells what that one told before."""
_SHOWN: Final = 10


class Amounts(NamedTuple):
    """Sums over tables.

    Attributes:
        tables: How many tables there are whose head is known, or that have no version.
        rows: Rows of their heads, without deleted ones.
        size: Bytes of the data files that these name, also of those that a clone has from its source, as far as the
            manifests state them.
        files: How many data files these are.
        versions: Versions of the tables, of all branches.
        beyond: Those of them that are older and more than the retention of their table keeps, by their rows alone.
        worth: Tables whose fragments or indices are worth maintenance.
    """

    tables: int = 0
    rows: int = 0
    size: int = 0
    files: int = 0
    versions: int = 0
    beyond: int = 0
    worth: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """The sums with those of `other`."""
        return Amounts(*map(add, self, other))

    def minus(self, other: Amounts) -> Amounts:
        """The sums without those of `other`."""
        return Amounts(*map(sub, self, other))


class PendingWork(NamedTuple):
    """Work on a table that maintenance would do: fragments that it would rewrite, indices that it would extend."""

    fragments: int = 0
    indices: int = 0


@dataclass(frozen=True, slots=True)
class KnownFigures:
    """What is known of the tables of a catalog.

    Attributes:
        catalog_version: The catalog version that all of it is of.
        namespaces: How many namespaces there are.
        tables: How many tables there are.
        amounts: Sums over the tables that are known.
        worth: Some tables that are worth maintenance, those with the most fragments to be rewritten first.
    """

    catalog_version: int
    namespaces: int
    tables: int
    amounts: Amounts = field(default_factory=Amounts)
    worth: tuple[tuple[ObjectId, PendingWork], ...] = ()


class _LookedAt(NamedTuple):
    """A table as it was looked at. Of one whose head cannot be read all amounts are 0."""

    table: StoredTable
    at: float
    amounts: Amounts
    work: PendingWork


class TableFigures:
    """The figures of the tables of one catalog. Thread-safe; one thread looks at a time.

    `defaults` are properties of tables that have none themselves, `now` the time in seconds since the epoch, and
    `elapsed` one that is never set back.
    """

    def __init__(
        self,
        store: ObjectStore,
        manifests: ManifestCache,
        defaults: Mapping[str, str],
        now: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._manifests = manifests
        self._defaults = defaults
        self._now = now
        self._elapsed = elapsed
        self._allowance = _FREE_SECONDS
        self._ended = elapsed()
        self._lock = threading.Lock()
        self._looked: dict[ObjectId, _LookedAt] = {}
        """By the time of the look, the earliest first."""
        self._working: dict[ObjectId, PendingWork] = {}
        self._sum = Amounts()
        self._reached: ObjectId | None = None
        self._told: KnownFigures | None = None

    def look(self, snapshot: CatalogSnapshot) -> KnownFigures:
        """What is known of the tables of the newest snapshot, after a look at some that were not.

        At most `LOOKED_AT` heads are read, in some tenths of a second; a head that this process has committed or read
        lately needs no request. One that is damaged, missing or cannot be read now is not known, and no error. What a
        look some seconds ago told is told again if looks have taken their part of the time, or another thread looks for
        long; never that of a version before one that was told already.
        """
        if not self._lock.acquire(timeout=_WAIT):
            return self._told or _nothing_known(snapshot)
        try:
            if self._told is None or (snapshot.version >= self._told.catalog_version and self._has_time()):
                began = self._elapsed()
                if snapshot.managed:
                    self._read(snapshot, self._chosen(snapshot))
                self._told = replace(_nothing_known(snapshot), amounts=self._sum, worth=self._most_work())
                self._ended = self._elapsed()
                self._allowance = max(self._allowance - (self._ended - began), -_SECONDS)
            return self._told
        finally:
            self._lock.release()

    def _has_time(self) -> bool:
        """Whether looks have taken less of the time than they may."""
        now = self._elapsed()
        self._allowance = min(self._allowance + _SHARE * (now - self._ended), _FREE_SECONDS)
        self._ended = now
        return self._allowance > 0

    def _chosen(self, snapshot: CatalogSnapshot) -> list[tuple[ObjectId, VersionEntry | None]]:
        """The tables of this look with their heads: those that changed, some that were looked at long ago, new ones."""
        tables = snapshot.state.tables
        changed: list[ObjectId] = []
        if self._told is None or snapshot.version != self._told.catalog_version:
            changed = [each for each, looked in self._looked.items() if tables.get(each) is not looked.table]
        for table_id in changed:
            self._forget(table_id)
        there = [table_id for table_id in changed if table_id in tables]
        room = min(len(tables), REMEMBERED) - len(self._looked) - len(there)
        unknown = islice(self._unknown(snapshot), max(room, 0))
        chosen: dict[ObjectId, VersionEntry | None] = {}
        size = 0
        for table_id in chain(there, islice(self._aged(), LOOKED_AT // 4), unknown, self._aged()):
            head = chosen[table_id] = snapshot.head(table_id)
            size += 0 if head is None else head.size
            if len(chosen) == LOOKED_AT or size >= _MOST_BYTES:
                break
        return list(chosen.items())

    def _aged(self) -> Iterator[ObjectId]:
        """Tables that were looked at long ago, the first of them first."""
        since = self._now() - _LASTING
        return (table_id for table_id, _ in takewhile(lambda item: item[1].at <= since, self._looked.items()))

    def _unknown(self, snapshot: CatalogSnapshot) -> Iterator[ObjectId]:
        """Tables that are not remembered, from where the last look ended."""
        around = chain(snapshot.all_tables(self._reached), snapshot.all_tables())
        for table_id in islice(around, min(len(snapshot.state.tables), _WALKED)):
            self._reached = table_id
            if table_id not in self._looked:
                yield table_id

    def _read(self, snapshot: CatalogSnapshot, chosen: list[tuple[ObjectId, VersionEntry | None]]) -> None:
        look = partial(self._look_at, snapshot, datetime.fromtimestamp(self._now(), UTC))
        end = time.monotonic() + _SECONDS
        for begin in range(0, len(chosen), _AT_ONCE):
            found = self._store.map(look, chosen[begin : begin + _AT_ONCE])
            for looked in found:
                if looked is not None:
                    self._remember(looked)
            if None in found or time.monotonic() >= end:
                return

    def _look_at(
        self, snapshot: CatalogSnapshot, now: datetime, chosen: tuple[ObjectId, VersionEntry | None]
    ) -> _LookedAt | None:
        """A table as it is now; None if storage cannot be asked for it."""
        table_id, head = chosen
        table, before = snapshot.state.tables[table_id], self._looked.get(table_id)
        amounts, work = Amounts(tables=1), PendingWork()
        if before is not None and before.amounts.tables and before.table is table:
            amounts, work = before.amounts, before.work
        elif head is not None:
            try:
                file = self._manifests.get(head) or self._manifests.read(head)
                amounts, work = _amounts(file, _policy(snapshot, table_id, self._defaults))
            except StorageError as error:
                if not isinstance(error, NotFound):
                    return None
                amounts = Amounts()
            except LanceCoreError:
                amounts = Amounts()
        if amounts.tables:
            versions = sum(map(len, table.chains))
            amounts = amounts._replace(versions=versions, beyond=_count_beyond(snapshot, table_id, now))
        return _LookedAt(table, now.timestamp(), amounts, work)

    def _remember(self, looked: _LookedAt) -> None:
        table_id = looked.table.id
        self._forget(table_id)
        self._looked[table_id] = looked
        self._sum = self._sum.plus(looked.amounts)
        if looked.amounts.worth:
            self._working[table_id] = looked.work

    def _forget(self, table_id: ObjectId) -> None:
        looked = self._looked.pop(table_id, None)
        if looked is not None:
            self._sum = self._sum.minus(looked.amounts)
            self._working.pop(table_id, None)

    def _most_work(self) -> tuple[tuple[ObjectId, PendingWork], ...]:
        return tuple(heapq.nlargest(_SHOWN, self._working.items(), key=lambda item: item[1]))


def _nothing_known(snapshot: CatalogSnapshot) -> KnownFigures:
    return KnownFigures(snapshot.version, len(snapshot.state.namespaces), len(snapshot.state.tables))


def _policy(snapshot: CatalogSnapshot, table_id: ObjectId, defaults: Mapping[str, str]) -> Policy | None:
    """The maintenance policy of a table; None if a property of it is wrong, so that nothing is worth it."""
    try:
        return policy_of(snapshot, table_id, defaults)
    except WrongPolicy:
        return None


def _amounts(file: ManifestFile, policy: Policy | None) -> tuple[Amounts, PendingWork]:
    """What a version holds, and the work that waits in it. Raises `CorruptFile`."""
    rows = file.facts.rows
    if rows is None:
        return Amounts(), PendingWork()
    sizes = [each.file_size_bytes for fragment in file.manifest.fragments for each in fragment.files]
    plan = None if policy is None else plan_fragments(file, policy)
    indices = None if policy is None else plan_indices(file, policy)
    work = PendingWork(
        0 if plan is None else plan.small + plan.deleted,
        0 if indices is None else len(indices.names),
    )
    return Amounts(1, rows, sum(sizes), len(sizes), worth=int(any(work))), work


def _count_beyond(snapshot: CatalogSnapshot, table_id: ObjectId, now: datetime) -> int:
    """Versions of a table that its retention does not keep; 0 if a property of it is wrong, or all are kept."""
    try:
        kept = kept_of(snapshot, table_id, *catalog_retention(snapshot))
    except ValueError:
        return 0
    if kept is None:
        return 0
    return sum(1 for _ in versions_beyond(snapshot, table_id, kept, now, now + MOST_APART))
