"""Which versions of tables go by `gc.tables.age` and `gc.tables.count` (rule G17).

A version goes by its row: its manifest and its files follow when no kept version of the catalog has the row any more
(`expired_versions`). Candidates follow from the rows, without I/O. Of tables with candidates the references are read,
and the directory of versions is listed: a version was superseded when the manifest after it was written, by the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from lance_core.errors import CorruptFile
from lance_core.format.naming import parse_manifest_name, versions_directory
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.lost_versions import references_of
from namespace_server.directory.gc.settings import GcSettings
from namespace_server.directory.manifest_table.store_clock import MOST_APART
from namespace_server.directory.model.entries import (
    EXPIRING,
    Changes,
    Participant,
    RecordEntry,
    VersionEntry,
    changes_of,
    place_of,
)
from namespace_server.directory.model.intents import read_versions
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.retention import Kept, kept_of, versions_beyond
from namespace_server.directory.model.snapshot import CatalogSnapshot

ROWS_AT_ONCE: Final = 10_000
"""The most rows that one flip removes."""

Version = tuple[str | None, int]


CommitChanges = Callable[[Callable[[CatalogSnapshot], Changes]], CatalogSnapshot]
"""Commits changes that are planned on the newest snapshot. Returns the newest afterwards."""


@dataclass(slots=True)
class Superseded:
    """The rows of versions that go.

    Attributes:
        rows: By table, its rows, and the branches that it had.
        problems: By location, why the versions of a table were not judged.
    """

    rows: dict[ObjectId, tuple[tuple[VersionEntry, ...], frozenset[str]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rows."""
        return sum(len(rows) for rows, _ in self.rows.values())

    def expire(self, commit: CommitChanges) -> Superseded:
        """Remove the rows, in as few flips as `ROWS_AT_ONCE` allows; returns those that went. Raises as `commit`."""
        rows = (row for found, _ in self.rows.values() for row in found)
        gone: set[str] = set()
        while part := list(islice(rows, ROWS_AT_ONCE)):
            after = commit(partial(self._removal, part=part))
            gone.update(
                row.object_id for row in part if after.version_entry(row.table_id, row.branch, row.version) is None
            )
        return self._only(gone)

    def _removal(self, snapshot: CatalogSnapshot, part: Iterable[VersionEntry]) -> Changes:
        """The changes that remove these rows, as far as nothing was changed that matters, and the record of that.

        A row stays if it is another one by now, or the head, or is in an open record, or if a job reads it (G11), or if
        its table has other branches than when the references were read: a new one may have begun there.
        """
        going, places, read = [], list[Participant](), read_versions(snapshot)
        for row in part:
            head = snapshot.top(row.table_id, row.branch)
            is_there = snapshot.version_entry(row.table_id, row.branch, row.version) == row
            is_below = head is not None and row.version < head[0]
            same_branches = _branches(snapshot, row.table_id) == self.rows[row.table_id][1]
            if is_there and is_below and same_branches and _is_free(snapshot, row, read):
                going.append(row.object_id)
                places.append(Participant(row.table_id, row.branch, row.version, row.location, None))
        record = RecordEntry(str(uuid.uuid4()), EXPIRING, participants=tuple(places), catalog_version=snapshot.version)
        return changes_of([record] if going else (), removes=going)

    def _only(self, object_ids: Collection[str]) -> Superseded:
        rows = {
            table_id: (tuple(row for row in found if row.object_id in object_ids), branches)
            for table_id, (found, branches) in self.rows.items()
        }
        return Superseded({table_id: found for table_id, found in rows.items() if found[0]}, self.problems)


def find_superseded(store: ObjectStore, snapshot: CatalogSnapshot, settings: GcSettings, now: datetime) -> Superseded:
    """The rows of versions that nothing keeps at the time `now` of the store. Raises `StorageError`.

    Never a head, one that a tag names or a branch began from, one in an open record, one that a job reads (G11), or one
    that was superseded within the hour.
    Requests: some five for each table with candidates, and one for each of its references.
    """
    found, read = Superseded(), read_versions(snapshot)
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        if table is None:
            continue
        try:
            kept = kept_of(snapshot, table_id, settings.tables_age, settings.tables_count)
            if kept is None:
                continue
            rows_beyond = versions_beyond(snapshot, table_id, kept, now, now + MOST_APART)
            candidates = [each for each in rows_beyond if _is_free(snapshot, each[0], read)]
            rows = _confirmed(store, table.location, candidates, kept, now) if candidates else []
        except (ValueError, CorruptFile) as error:
            found.problems[table.location] = f"versions of {join(table_id)}: {error}"
            continue
        if rows:
            found.rows[table_id] = tuple(rows), _branches(snapshot, table_id)
    return found


def _confirmed(
    store: ObjectStore,
    location: str,
    candidates: Sequence[tuple[VersionEntry, VersionEntry]],
    kept: Kept,
    now: datetime,
) -> list[VersionEntry]:
    """Those that no reference names, and whose successors the store dates early enough. Raises `CorruptFile`."""
    referred = references_of(store, location)
    written: dict[Version, datetime] = {}
    for branch, base in {(row.branch, row.base) for row, _ in candidates}:
        for meta in store.list(versions_directory(base)):
            named = parse_manifest_name(meta.path.rpartition("/")[2])
            if named is not None:
                written[branch, named[0]] = meta.last_modified
    latest = now - kept.age
    return [
        row
        for row, successor in candidates
        if (row.branch, row.version) not in referred and written.get((row.branch, successor.version), now) < latest
    ]


def _is_free(snapshot: CatalogSnapshot, row: VersionEntry, read: Mapping[tuple[str, str | None], int]) -> bool:
    """Whether no open record has a row, so that its manifest is promoted, and no job reads it."""
    is_read = row.version >= read.get((row.location, row.branch), row.version + 1)
    return place_of(row) not in snapshot.state.open_places and not is_read


def _branches(snapshot: CatalogSnapshot, table_id: ObjectId) -> frozenset[str]:
    return frozenset(snapshot.branches(table_id))
