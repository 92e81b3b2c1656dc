"""Restores the row of an expired version that a reference named meanwhile (rule G17).

A tag is a file, and no flip sees it: one may be written between a look at references and the flip that removes rows.
That flip leaves a record of the versions. References are read again, and then one flip puts back the rows that are
named by then, as the catalog had them before, and removes the record. Any process can do this, at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial

from lance_core.errors import CorruptFile, ReferenceNotFound
from lance_core.storage.port import ObjectStore
from namespace_server.directory.gc.lost_versions import references_of
from namespace_server.directory.gc.table_retention import CommitChanges
from namespace_server.directory.model.entries import (
    DROPPED,
    EXPIRING,
    Changes,
    Place,
    RecordEntry,
    VersionEntry,
    changes_of,
    place_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)


def put_back_named(
    store: ObjectStore,
    snapshot: CatalogSnapshot,
    kept: Callable[[int], CatalogSnapshot],
    commit: CommitChanges,
) -> None:
    """Put back the rows of expired versions that references name, by the records of `snapshot`; ends these records.

    `kept` reads an earlier catalog version. Where references cannot be read all rows come back. The record of a table
    that is dropped stays until that is back or purged. Idempotent; any number of processes may do it.

    Raises `StorageError`, `CatalogDamaged`, and as `commit`.
    """
    for record in snapshot.records():
        if record.state == EXPIRING:
            named = _named(store, record)
            rows = _rows(kept, record, named) if named else ()
            commit(partial(_conclusion, record=record, rows=rows))


def _named(store: ObjectStore, record: RecordEntry) -> set[Place]:
    """The places of a record that references name."""
    found: set[Place] = set()
    places: dict[str, list[Place]] = {}
    for party in record.participants:
        places.setdefault(party.location, []).append(place_of(party))
    for location, versions in places.items():
        try:
            referred = references_of(store, location)
        except CorruptFile:
            found.update(versions)
        else:
            found.update(place for place in versions if place[1:] in referred)
    return found


def _rows(
    kept: Callable[[int], CatalogSnapshot], record: RecordEntry, places: Collection[Place]
) -> tuple[VersionEntry, ...]:
    """The rows at these places before the record was written."""
    try:
        before = kept(record.catalog_version)
    except ReferenceNotFound as error:
        logger.error("versions that references name cannot come back into the catalog: %s", error)
        return ()
    parties = (party for party in record.participants if place_of(party) in places)
    rows = (before.version_entry(party.table_id, party.branch, party.version) for party in parties)
    return tuple(row for row in rows if row is not None)


def _conclusion(snapshot: CatalogSnapshot, record: RecordEntry, rows: Collection[VersionEntry]) -> Changes:
    """The changes that put rows back, of chains that are still where they were, and end the record."""
    has_ended = snapshot.record(record.batch_uuid) is None
    if has_ended or any(_is_dropped(snapshot, row.location) for row in rows):
        return changes_of()
    return changes_of(_returning(snapshot, rows), removes=[record.object_id])


def _returning(snapshot: CatalogSnapshot, rows: Collection[VersionEntry]) -> Iterator[VersionEntry]:
    for row in rows:
        table_id = snapshot.table_at(row.location)
        head = None if table_id is None else snapshot.top(table_id, row.branch)
        if table_id is None or head is None or head[0] <= row.version:
            continue
        if snapshot.version_entry(table_id, row.branch, row.version) is None:
            yield replace(row, table_id=table_id)


def _is_dropped(snapshot: CatalogSnapshot, location: str) -> bool:
    tombstone = snapshot.tombstone_at(location)
    return tombstone is not None and tombstone.state == DROPPED
