"""Quarantined files, which another writer had put under a name of the catalog, and which nothing needs (rule G22)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from lance_core.storage.port import ObjectStore
from lance_core.versions import find_contents
from namespace_server.directory.collection.stored_plan import Removal
from namespace_server.directory.model.entries import DROPPED, PURGING, RecordEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.root_layout import QUARANTINE
from namespace_server.directory.model.snapshot import CatalogSnapshot

QUARANTINED: Final = "quarantined, and of no version"
_KEPT: Final = timedelta(days=30)


def find_quarantined(
    store: ObjectStore, snapshot: CatalogSnapshot, horizon: datetime, now: datetime
) -> Iterator[Removal]:
    """The files in quarantine that go: 30 days old, and of no row, by their bytes, whatever their names say.

    Those of a table that may come back stay. Requests: a listing, and one for each file of that age. Raises
    `StorageError`.
    """
    before = min(horizon, now - _KEPT)
    for meta in store.list(QUARANTINE):
        if meta.last_modified >= before:
            continue
        tombstone, table_id = _owner(snapshot, meta.path.removeprefix(f"{QUARANTINE}/").partition("/")[2])
        if tombstone is not None and tombstone.state in {DROPPED, PURGING}:
            continue
        data = find_contents(store, meta.path)
        if data is not None and not (table_id and _is_of_a_row(snapshot, table_id, sha256(data).hexdigest())):
            yield Removal(meta.path, meta.size, meta.last_modified, QUARANTINED)


def _owner(snapshot: CatalogSnapshot, former: str) -> tuple[RecordEntry | None, ObjectId | None]:
    """The tombstone and the id of the table that has, or had, the key `former`: locations may be of several parts."""
    parts = former.split("/")
    for location in ("/".join(parts[:end]) for end in range(1, len(parts))):
        tombstone, table_id = snapshot.tombstone_at(location), snapshot.table_at(location)
        if tombstone is not None or table_id is not None:
            return tombstone, table_id
    return None, None


def _is_of_a_row(snapshot: CatalogSnapshot, table_id: ObjectId, digest: str) -> bool:
    branches = snapshot.chains(table_id)
    rows = (row for branch in branches for row in snapshot.versions(table_id, branch))
    return any(row.sha256 in {digest, ""} for row in rows)
