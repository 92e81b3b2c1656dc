"""Give committed manifests their canonical names.

The rows are the truth; promotion follows the flip, and any process may finish it (M7). It goes upward per chain (M1),
never uses a store's copy (M2), and takes a canonical name for the row's only after comparing the bytes (M3).
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from lance_core.errors import (
    AlreadyExists,
    LanceCoreError,
    NotFound,
    PreconditionFailed,
    ReferenceNotFound,
    StorageError,
)
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import branch_base
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_contents, find_latest, list_versions
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.manifests.manifest_reader import ManifestReader, has_row, is_row, is_whole
from namespace_server.directory.manifests.staged_bundles import is_staged_alone
from namespace_server.directory.manifests.stored_versions import is_vacant_below_higher
from namespace_server.directory.model.entries import (
    DROPPED,
    Participant,
    Place,
    RecordEntry,
    VersionEntry,
    canonical_path,
    place_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.durations import elapsed_clock

logger = logging.getLogger(__name__)

_version_of = attrgetter("version")
_AT_ONCE: Final = 1.0
"""Seconds from a flip to the end of a promotion that followed it at once."""


class PromotionState(Enum):
    """Whether a row's manifest has its canonical name."""

    PROMOTED = "promoted"
    UNPROMOTED = "unpromoted"
    GONE = "gone"


class _Promotion(NamedTuple):
    """The result for one row.

    `written` are the bytes that got the canonical name, from this call or from another process that may have died
    before it checked them (G21); None if the name was known to have them.
    """

    entry: VersionEntry
    state: PromotionState
    written: bytes | None = None


class _Unchecked(NamedTuple):
    """A version that got its canonical name, with these bytes, perhaps late; promoted once that is checked (G21)."""

    entry: VersionEntry
    data: bytes


class NameRepair(Protocol):
    """Gives a canonical name that another writer has taken back to its row (M6)."""

    def repair(self, entry: VersionEntry, ours: bytes, theirs: bytes | None) -> None:
        """Put `ours` under the row's canonical name, which holds another writer's bytes `theirs`.

        `theirs` is None where no other writer has the name of a head: then what was built on an unmanaged file that
        had it is moved to quarantine. Raises `LanceCoreError` when that cannot be done now.
        """
        ...


class Promoter:
    """Promotes versions, and remembers which are promoted while their records are open.

    Nothing here decides a batch: a failure leaves the version to the next attempt. Thread-safe.
    """

    def __init__(
        self, store: ObjectStore, table: ManifestTable, reader: ManifestReader, name_repair: NameRepair
    ) -> None:
        self._store = store
        self._table = table
        self._reader = reader
        self._name_repair = name_repair
        self._lock = threading.Lock()
        self._promoted: dict[Place, str] = {}
        self._unchecked: dict[Place, _Unchecked] = {}

    def is_done(self, entry: VersionEntry) -> bool:
        """Whether this process saw the version promoted, while its record was open."""
        return self._promoted.get(place_of(entry)) == entry.sha256

    def is_promoted(self, entry: VersionEntry, snapshot: CatalogSnapshot) -> bool:
        """Whether the canonical file of a committed row was seen to be the row's: promoted here, or record closed."""
        return self.is_done(entry) or _open_path(entry, snapshot) is None

    def backlog(self, snapshot: CatalogSnapshot) -> int:
        """The number of versions of open records that were not seen to have their canonical names."""
        return sum(place not in self._promoted for place in snapshot.state.open_places)

    def locate(self, entry: VersionEntry, snapshot: CatalogSnapshot) -> VersionEntry:
        """The entry with its full staged path, which the open record has."""
        return _staged_at(entry, _open_path(entry, snapshot))

    def known_path(self, entry: VersionEntry, snapshot: CatalogSnapshot) -> str:
        """The path of the row's manifest: the canonical one if seen to be the row's, else the staged one (M3).

        A manifest that is staged together with others is put under its path before that is answered. Raises nothing.
        """
        if self.is_promoted(entry, snapshot):
            return entry.canonical_path
        located = self.locate(entry, snapshot)
        path = located.staged_path
        if path is None or is_staged_alone(self._store, snapshot, path):
            return path or entry.canonical_path
        try:
            return self._stage_alone(located, path)
        except LanceCoreError as error:
            logger.warning("%s is not at the staged path that is answered: %s", entry.canonical_path, error)
        except Exception:  # such as that no thread can be started; the version is committed all the same
            logger.exception("%s is not at the staged path that is answered", entry.canonical_path)
        return path

    def _stage_alone(self, entry: VersionEntry, path: str) -> str:
        """The staged path, at which the manifest is now; the canonical one if its record was closed meanwhile.

        The process that closes a record removes the staged paths after that, and this one does if it comes later: what
        stays may bring back a version that was cleaned up (M2).
        """
        data = self._reader.from_memory(entry) or self._reader.find_staged(entry)
        if data is None:
            return path
        with suppress(AlreadyExists):
            self._store.put_if_absent(path, data, durable=False)
        if _open_path(entry, self._table.refresh()) is not None:
            return path
        self._store.delete(path)
        return entry.canonical_path

    def promote(self, entries: Sequence[VersionEntry], snapshot: CatalogSnapshot | None = None) -> None:
        """Promote versions: chains in parallel, each upward; a failure ends its chain for now (M1).

        With a `snapshot` the unpromoted versions below them are promoted too, and staged paths come from its open
        records. Raises nothing: a version that could not be promoted, or checked where that was late, is logged, and
        `is_promoted` stays false.
        """
        wanted = entries if snapshot is None else self._with_those_below(entries, snapshot)
        chains: defaultdict[tuple[str, str | None], list[VersionEntry]] = defaultdict(list)
        for entry in wanted:
            if not self.is_done(entry) and self._find_unchecked(entry) is None:
                chains[entry.location, entry.branch].append(entry)
        self._store.map(self._promote_chain, list(chains.values()))
        self._check_late([waiting for entry in wanted if (waiting := self._find_unchecked(entry)) is not None])

    def _with_those_below(self, entries: Sequence[VersionEntry], snapshot: CatalogSnapshot) -> list[VersionEntry]:
        tops = {(entry.location, entry.branch): 0 for entry in entries}
        for entry in entries:
            chain = (entry.location, entry.branch)
            tops[chain] = max(tops[chain], entry.version)
        below = [
            row
            for record in snapshot.open_records()
            for party in record.participants
            if party.version <= tops.get((party.location, party.branch), 0)
            and (row := participant_entry(party, snapshot)) is not None
            and not self.is_done(row)
        ]
        return list({place_of(entry): entry for entry in below}.values())

    def _promote_chain(self, chain: Sequence[VersionEntry]) -> None:
        for entry in sorted(chain, key=_version_of):
            data, sent_at = self._reader.recall(entry)
            try:
                promotion = self._promote_one(entry, data, sent_at)
            except LanceCoreError as error:  # a repair also reads the catalog, and files of other writers
                logger.warning("promotion of %s is left to the sweep: %s", entry.canonical_path, error)
                return
            if promotion.state is PromotionState.UNPROMOTED:
                return
            if promotion.written is not None and (self._store.local or _is_late(sent_at)):
                with self._lock:
                    self._unchecked[place_of(entry)] = _Unchecked(entry, promotion.written)
            elif self._find_unchecked(entry) is None:  # by another thread neither
                self._conclude(entry)

    def _conclude(self, entry: VersionEntry) -> None:
        with self._lock:
            self._promoted[place_of(entry)] = entry.sha256
        self._reader.forget([entry])

    def _find_unchecked(self, entry: VersionEntry) -> _Unchecked | None:
        waiting = self._unchecked.get(place_of(entry))
        return None if waiting is None or waiting.entry.sha256 != entry.sha256 else waiting

    def _promote_one(self, entry: VersionEntry, data: bytes | None, sent_at: float) -> _Promotion:
        at_once = self._store.local or not _is_late(sent_at)  # a directory's link fails where the staged name is gone
        may_be_removed = False
        if data is None:
            if self.is_done(entry):  # another thread has just promoted it
                return _Promotion(entry, PromotionState.PROMOTED)
            data = self._recover(entry)
            if data is None:
                return _Promotion(entry, self._state_on_storage(entry))
            at_once = False
        if not at_once:
            found = self._versions_of(entry)
            if self._is_gone(entry, data, found):
                return _Promotion(entry, PromotionState.GONE)
            may_be_removed = _is_out_of_place(entry, found)
        try:
            if entry.staged_path is None:
                self._store.put_if_absent(entry.canonical_path, data, durable=False)
            else:
                self._store.publish(entry.staged_path, entry.canonical_path, data, durable=False)
        except AlreadyExists:
            promotion = self._compare(entry, data)
            return promotion._replace(written=data) if may_be_removed else promotion
        except NotFound:  # the staged name is gone: promoted by another process and perhaps removed since, or taken
            if self._is_gone(entry, data, self._versions_of(entry)) or not has_row(entry, self._table.refresh()):
                return _Promotion(entry, PromotionState.GONE)
            return self._put(entry, data)
        return _Promotion(entry, PromotionState.PROMOTED, data)

    def _put(self, entry: VersionEntry, data: bytes) -> _Promotion:
        try:
            self._store.put_if_absent(entry.canonical_path, data, durable=True)
        except AlreadyExists:
            return self._compare(entry, data)
        return _Promotion(entry, PromotionState.PROMOTED, data)

    def _compare(self, entry: VersionEntry, ours: bytes) -> _Promotion:
        theirs = find_contents(self._store, entry.canonical_path)
        if theirs is None:
            raise NotFound(f"{entry.canonical_path}: the file that had this name is gone")
        if theirs == ours:
            return _Promotion(entry, PromotionState.PROMOTED)
        try:
            self._name_repair.repair(entry, ours, theirs)
        except StorageError:
            if find_contents(self._store, entry.canonical_path) != ours:  # else another process has repaired it
                raise
        return _Promotion(entry, PromotionState.PROMOTED, ours)

    def _is_gone(self, entry: VersionEntry, data: bytes, found: Collection[int]) -> bool:
        """Whether a client's cleanup removed the version: its name is vacant below a higher one (M5).

        A head is never gone: a file above its vacant name was built on an unmanaged file, and is quarantined.
        """
        if not is_vacant_below_higher(entry.version, found):
            return False
        if not self._is_head(entry, self._table.refresh()):
            return True
        self._name_repair.repair(entry, data, None)
        return False

    def _is_head(self, entry: VersionEntry, newest: CatalogSnapshot) -> bool:
        top = newest.top_at(entry.location, entry.branch)
        return top is not None and top[0] == entry.version

    def _versions_of(self, entry: VersionEntry) -> set[int]:
        """The versions that have canonical names in the chain of a row; of those below it only some, if none is higher.

        A bucket lists the newest name first: a listing of all takes as long as there are versions.
        """
        if not self._store.local:
            try:
                newest = find_latest(self._store, entry.base).version
            except ReferenceNotFound:
                return set()
            if newest <= entry.version:
                return {newest}
        return {location.version for location in list_versions(self._store, entry.base)}

    def _check_late(self, waiting: Iterable[_Unchecked]) -> None:
        """Take back names of versions that had been promoted, superseded and removed before by other processes (G21).

        Those are superseded ones whose files are missing, and those of a branch that was deleted since. In a directory
        every version that got its name is checked, because that costs next to nothing. On a bucket those are whose
        promotion did not follow their flip at once: no clean-up removes a version that was superseded in the same
        second. What cannot be checked is left to the next promotion, or to the sweep.
        """
        chains: defaultdict[tuple[str, str | None], list[_Unchecked]] = defaultdict(list)
        for each in waiting:
            chains[each.entry.location, each.entry.branch].append(each)
        if not chains:
            return
        try:
            newest = self._table.refresh()
            self._store.map(lambda chain: self._check_late_chain(chain, newest), list(chains.values()))
        except LanceCoreError as error:
            logger.warning("late promotions are not checked yet: %s", error)
        except Exception:  # such as that no thread can be started
            logger.exception("late promotions are not checked yet")

    def _check_late_chain(self, chain: Sequence[_Unchecked], newest: CatalogSnapshot) -> None:
        """Check versions of a chain, the highest first. Right below one that was never superseded, none was removed."""
        kept: int | None = None
        for each in sorted(chain, key=lambda each: each.entry.version, reverse=True):
            entry, data = each
            if not has_row(entry, newest):
                self._take_back(entry, data)
            elif kept == entry.version + 1 or not self._is_superseded(entry, newest):
                kept = entry.version
            elif self._is_head(entry, newest):
                self._name_repair.repair(entry, data, None)
            elif not is_whole(self._store, entry.base, parse_manifest_file(data)):
                self._take_back(entry, data)
            self._conclude(entry)
            place = place_of(entry)
            with self._lock:
                if self._unchecked.get(place) is each:
                    del self._unchecked[place]

    def _take_back(self, entry: VersionEntry, data: bytes) -> None:
        """Remove a version that had been removed before, if its canonical file still has these bytes."""
        try:
            e_tag = self._store.head(entry.canonical_path).e_tag
        except NotFound:
            return
        if find_contents(self._store, entry.canonical_path) == data:
            try:
                remove_if(self._store, entry.canonical_path, e_tag)
            except PreconditionFailed:
                return
            logger.warning(
                "%s had been removed before it was promoted here, and is removed again", entry.canonical_path
            )

    def _is_superseded(self, entry: VersionEntry, newest: CatalogSnapshot) -> bool:
        top = newest.top_at(entry.location, entry.branch)
        if top is not None and top[0] > entry.version:
            return True
        following = canonical_path(entry.location, entry.branch, entry.version + 1, entry.naming_scheme)
        return find_contents(self._store, following) is not None

    def _recover(self, entry: VersionEntry) -> bytes | None:
        """The row's bytes from its staged path; None if they are not there."""
        data = self._reader.find_staged(entry)
        if data is None and entry.staged_path is not None and any(self._reader.staged_copies(entry.staged_path)):
            logger.error("%s is not the manifest that was committed from it", entry.staged_path)
        return data

    def _state_on_storage(self, entry: VersionEntry) -> PromotionState:
        """The state of a row that has no usable staged file, from its canonical name and those above it (M5)."""
        theirs = find_contents(self._store, entry.canonical_path)
        if theirs is None:
            vacant = is_vacant_below_higher(entry.version, self._versions_of(entry))
            if vacant and not self._is_head(entry, self._table.refresh()):
                return PromotionState.GONE
            logger.error("no manifest of %s is left under any name", entry.canonical_path)
            return PromotionState.UNPROMOTED
        if is_row(entry, theirs):
            return PromotionState.PROMOTED
        logger.error("%s holds another writer's file; ours is missing", entry.canonical_path)
        return PromotionState.UNPROMOTED

    def has_promoted(self, record: RecordEntry, snapshot: CatalogSnapshot) -> bool:
        """Whether all versions that a record published, and that still exist, were promoted in this process."""
        return all(map(self.is_done, open_versions(record, snapshot)))

    def finish_records(self, records: Iterable[RecordEntry], snapshot: CatalogSnapshot) -> list[RecordEntry]:
        """Promote the versions of open records, make them durable, then remove the staged names (S1, M2).

        Returns the records that may be closed. A version without a row is left out, and its staged name stays: of a
        dropped table it may be the only name, and older catalog versions refer to it. Then its record stays open
        until the table comes back, or is purged (G13).
        """
        published = [(record, open_versions(record, snapshot)) for record in records]
        with self._lock:
            unchecked = list(self._unchecked.values())
        self._check_late(unchecked)  # others may have closed their records
        self.promote([row for _, rows in published for row in rows])
        done = [
            (record, rows)
            for record, rows in published
            if all(map(self.is_done, rows)) and not self._has_dropped_unpromoted(record, snapshot)
        ]
        try:
            self._clear([row for _, rows in done for row in rows], snapshot)
        except LanceCoreError:
            return [record for record, rows in done if self._clears(record, rows, snapshot)]
        return [record for record, _ in done]

    def _has_dropped_unpromoted(self, record: RecordEntry, snapshot: CatalogSnapshot) -> bool:
        """Whether a version of a dropped table may not be promoted. The canonical names of all others are durable."""
        dropped = [party for party in record.participants if _is_dropped(party, snapshot)]
        try:
            return any(self._may_be_unpromoted(party) for party in dropped)
        except LanceCoreError as error:
            logger.warning("record %s stays open: %s", record.batch_uuid, error)
            return True

    def _may_be_unpromoted(self, party: Participant) -> bool:
        staged = () if party.staged_path is None else tuple(self._reader.staged_copies(party.staged_path))
        if not staged:
            return False
        versions = list_versions(self._store, branch_base(party.location, party.branch))
        names = [version.path for version in versions if version.version == party.version]
        if not {find_contents(self._store, name) for name in names}.issuperset(staged):
            return True
        self._sync(names)
        return False

    def _clears(self, record: RecordEntry, rows: Sequence[VersionEntry], snapshot: CatalogSnapshot) -> bool:
        """Clean up after one record. False, with a log entry, if that fails: the other records go on."""
        try:
            self._clear(rows, snapshot)
        except LanceCoreError as error:
            logger.warning("record %s stays open: %s", record.batch_uuid, error)
            return False
        return True

    def _clear(self, rows: Sequence[VersionEntry], snapshot: CatalogSnapshot) -> None:
        """Make canonical names durable, and remove the staged ones, except those that are removed later."""
        self._sync([row.canonical_path for row in rows])
        paths = [row.staged_path for row in rows if row.staged_path]
        self._store.delete_all([path for path in paths if is_staged_alone(self._store, snapshot, path)])

    def _sync(self, paths: Sequence[str]) -> None:
        """Make promoted manifests durable, except those that a client's cleanup removed; it never removes a head."""
        try:
            self._store.sync(paths)
        except NotFound:
            for path in paths:
                try:
                    self._store.sync([path])
                except NotFound as error:
                    logger.info("a promoted manifest was removed: %s", error)

    def forget_closed(self, snapshot: CatalogSnapshot) -> None:
        """Forget the versions of records that other processes closed.

        A version that is forgotten too early, because its record is newer than the snapshot, is compared once more.
        """
        still_open = {place_of(party) for record in snapshot.open_records() for party in record.participants}
        with self._lock:
            for place in self._promoted.keys() - still_open:
                del self._promoted[place]

    def forget(self, records: Iterable[RecordEntry]) -> None:
        """Forget the versions of records that are closed now."""
        with self._lock:
            for record in records:
                for party in record.participants:
                    self._promoted.pop(place_of(party), None)


def open_versions(record: RecordEntry, snapshot: CatalogSnapshot) -> list[VersionEntry]:
    """The rows that a record published and that still exist, with their full staged paths."""
    return [entry for party in record.participants if (entry := participant_entry(party, snapshot)) is not None]


def participant_entry(party: Participant, snapshot: CatalogSnapshot) -> VersionEntry | None:
    """The live row of a participant, with its full staged path; the table may have another name by now."""
    entry = snapshot.version_at(party.location, party.branch, party.version)
    if entry is None or party.staged_path is None or not entry.matches_staged_path(party.staged_path):
        return None
    return _staged_at(entry, party.staged_path)


def _is_dropped(party: Participant, snapshot: CatalogSnapshot) -> bool:
    """Whether a participant is a version of a dropped table that can come back."""
    tombstone = snapshot.tombstone_at(party.location)
    return tombstone is not None and tombstone.state == DROPPED


def _open_path(entry: VersionEntry, snapshot: CatalogSnapshot) -> str | None:
    """The path at which an open record staged this very row; None if none did."""
    path = snapshot.open_path(place_of(entry))
    return path if path is not None and entry.matches_staged_path(path) else None


def _staged_at(entry: VersionEntry, path: str | None) -> VersionEntry:
    return entry if path is None or path == entry.staged_path else replace(entry, staged_path=path)


def _is_late(sent_at: float) -> bool:
    """Whether a flip that was sent at this time (see `elapsed_clock`) is no recent one."""
    return elapsed_clock() - sent_at > _AT_ONCE


def _is_out_of_place(entry: VersionEntry, found: Collection[int]) -> bool:
    """Whether a superseded version has canonical neighbours missing: then a clean-up may have removed it as well."""
    neighbours = {entry.version - 1, entry.version + 1} - {0}
    return max(found, default=0) > entry.version and not neighbours.issubset(found)
