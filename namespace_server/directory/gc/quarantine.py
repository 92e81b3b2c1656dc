"""Finds quarantined files of other writers that no version needs (rule G22)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from lance_core.errors import CorruptFile
from lance_core.format.manifest import parse_manifest_file
from lance_core.storage.port import ObjectStore
from lance_core.transaction.readings import is_same_fragment
from lance_core.versions import find_contents
from namespace_server.directory.gc.plan import Removal
from namespace_server.directory.gc.report import QUARANTINED
from namespace_server.directory.model.entries import DROPPED, PURGING, RecordEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.root_layout import QUARANTINE
from namespace_server.directory.model.snapshot import CatalogSnapshot

_KEPT: Final = timedelta(days=30)


def find_quarantined(
    store: ObjectStore, snapshot: CatalogSnapshot, horizon: datetime, now: datetime
) -> Iterator[Removal]:
    """The files in quarantine that go: 30 days old, and of no row, by their bytes, whatever their names say.

    Those of a table that may come back stay, and those that show that one of the head's fragments had another one of
    the same id beside it: a writer by path may still hold a handle of that (P12). Requests: a listing, and two for each
    file of that age. Raises `StorageError`.
    """
    before = min(horizon, now - _KEPT)
    for meta in store.list(QUARANTINE):
        if meta.last_modified >= before:
            continue
        tombstone, table_id = _owner(snapshot, meta.path.removeprefix(f"{QUARANTINE}/").partition("/")[2])
        if tombstone is not None and tombstone.state in {DROPPED, PURGING}:
            continue
        data = find_contents(store, meta.path)
        if data is None or (table_id and _is_of_a_row(snapshot, table_id, sha256(data).hexdigest())):
            continue
        if table_id is None or not _has_other_fragments(store, snapshot, table_id, data):
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


def _has_other_fragments(store: ObjectStore, snapshot: CatalogSnapshot, table_id: ObjectId, data: bytes) -> bool:
    """Whether a quarantined manifest has a fragment with the id of one of the head's, and other data files."""
    try:
        file = parse_manifest_file(data)
        row = snapshot.head(table_id, file.branch)
        head = None if row is None else find_contents(store, row.canonical_path)
        if head is None:
            return False
        ours = {fragment.id: fragment for fragment in parse_manifest_file(head).manifest.fragments}
    except CorruptFile:
        return False
    theirs = file.manifest.fragments
    return any(each.id in ours and not is_same_fragment(ours[each.id], each) for each in theirs)
