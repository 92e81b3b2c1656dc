"""The tables whose files a place below the root holds: who reads through a base path reads rows of these."""

from __future__ import annotations

from typing import NamedTuple

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot


class ReachedObject(NamedTuple):
    """An object whose grants decide who may read the files of a place.

    `id` is that of a table, or `()` for all of the catalog. `version` is the catalog version before the table was
    removed; None for one that is there.
    """

    id: ObjectId
    version: int | None = None


def reached_objects(snapshot: CatalogSnapshot, key: str) -> list[ReachedObject]:
    """The objects that the files below a key belong to: a table, tables that were removed, or the catalog.

    What belongs to no table, as a directory above several of them does, belongs to the catalog.
    """
    parts = [part for part in key.split("/") if part]
    prefixes = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    for prefix in prefixes:
        table_id = snapshot.table_at(prefix)
        if table_id is not None:
            return [ReachedObject(table_id)]
    for prefix in prefixes:
        record = snapshot.tombstone_at(prefix)
        if record is not None:
            gone = [party.table_id for party in record.participants if party.location == prefix]
            return [ReachedObject(table_id, record.catalog_version) for table_id in gone]
    return [ReachedObject(())]
