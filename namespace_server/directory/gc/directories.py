"""The directories below the root of a catalog, and the tables that they belong to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from lance_core.cleanup.kinds import UUID_PATTERN, FileKind, FileRole, role_of
from lance_core.format.naming import BRANCHES_DIRECTORY, VERSIONS_DIRECTORY, join_key, parse_manifest_name
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.entries import DEREGISTERED, VersionEntry
from namespace_server.directory.model.errors import table_not_found
from namespace_server.directory.model.naming_rules import is_managed_location
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.root_layout import (
    BACKUP_NOTE,
    EXPIRING,
    GC_PERIODS,
    GC_RUNS,
    HIGH_WATER_MARKS,
    KEPT_VERSIONS,
    MAINTENANCE_CLAIMS,
    NEWEST_VERSION_NOTE,
    QUARANTINE,
    REMOVALS,
    RESERVED,
    RESTORE_CLAIM,
    SCAN_STATE,
    STAGING,
    TURN_REQUESTS,
    UPLOADS,
    is_built_manifest,
    is_bundle,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot

_MOVED: Final = re.compile(
    rf"(?:{QUARANTINE}/{UUID_PATTERN}(?:\.[0-9]+)?|{REMOVALS}/{UUID_PATTERN}/[^/]+|{GC_RUNS}/{UUID_PATTERN}/{EXPIRING}/{UUID_PATTERN})"
    r"/(.+)/_versions/[^/]+",
    re.ASCII,
)
_BOOKKEEPING: Final = re.compile(
    rf"(?:{HIGH_WATER_MARKS}|{MAINTENANCE_CLAIMS})/[0-9]+|{re.escape(NEWEST_VERSION_NOTE)}"
    rf"|{re.escape(RESTORE_CLAIM)}|{re.escape(BACKUP_NOTE)}|{STAGING}/{UUID_PATTERN}/probe"
    rf"|{GC_RUNS}/{UUID_PATTERN}/(?:clock|(?:plan|done)-[0-9]+)|{KEPT_VERSIONS}/[0-9]+\.manifest"
    rf"|{GC_PERIODS}/[0-9]+|{SCAN_STATE}|{TURN_REQUESTS}/{UUID_PATTERN}"
    rf"|{UPLOADS}/{UUID_PATTERN}/(?:upload|end|part-[A-Za-z0-9_-]{{1,64}})",
    re.ASCII,
)


@dataclass(slots=True)
class Places:
    """Directories by kind.

    Attributes:
        judged: Locations of the tables to judge, with their ids.
        skipped: Locations of tables that the catalog does not own and that were not asked for, with their ids.
        others: Locations of the other tables, when only some were asked for.
        removed: Locations of dropped and deregistered tables, with the state of their tombstones.
        unexplained: Directories that no row and no tombstone names, and that hold no table.
    """

    judged: dict[str, ObjectId] = field(default_factory=dict)
    skipped: dict[str, ObjectId] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    removed: dict[str, str] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)

    def leave_out(self, locations: Collection[str]) -> None:
        """Remove tables, also dropped ones, by their locations."""
        for group in (self.judged, self.skipped, self.removed):
            for location in group.keys() & set(locations):
                del group[location]


def find_places(store: ObjectStore, snapshot: CatalogSnapshot, wanted: Collection[ObjectId]) -> Places:
    """The places of all tables, and the directories that belong to none.

    Requests: one listing of the directories at the root, and one of those in each directory that holds tables further
    down. The catalog owns a location of the form that it gives to new tables (rule N1: a location is used by one
    incarnation of one table). With `wanted` only these tables are judged, owned or not. Raises TableNotFoundError (4).
    """
    for table_id in wanted:
        if snapshot.table(table_id) is None:
            raise table_not_found(table_id)
    places = Places()
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        if table is None:
            continue
        if table_id in wanted or (not wanted and is_owned(table.location)):
            places.judged[table.location] = table_id
        elif is_owned(table.location):
            places.others.append(table.location)
        else:
            places.skipped[table.location] = table_id
    for directory in sorted(_without_table(store, snapshot)):
        tombstone = snapshot.tombstone_at(directory)
        if tombstone is None:
            places.unexplained.append(directory)
        else:
            places.removed[directory] = DEREGISTERED if tombstone.state == DEREGISTERED else "dropped"
    return places


def _without_table(store: ObjectStore, snapshot: CatalogSnapshot) -> Iterator[str]:
    """The directories that are no table and hold none, each the highest of its kind. None of the catalog's own."""
    holding, left = snapshot.directories_of_tables(), [""]
    while left:
        parent = left.pop()
        for name in store.directories(parent):
            directory = join_key(parent, name)
            if directory in RESERVED or snapshot.table_at(directory):
                continue
            if directory in holding:
                left.append(directory)
            else:
                yield directory


def role_at_root(key: str) -> FileRole | None:
    """The role of a file below `_staging/` at the root of the catalog."""
    if is_built_manifest(key):
        return FileRole(FileKind.STAGED)
    if is_bundle(key):
        return FileRole(FileKind.BUNDLE, key)
    return FileRole(FileKind.BOOKKEEPING) if _BOOKKEEPING.fullmatch(key) else role_of(key)


def former_base(key: str) -> str | None:
    """The root of the table or branch that a manifest was quarantined or is removed from; None for all other files."""
    moved = _MOVED.fullmatch(key)
    return None if moved is None else moved[1]


def is_owned(location: str) -> bool:
    """Whether the server chose a location, by its form."""
    return "/" not in location and is_managed_location(location)


def row_of_manifest(snapshot: CatalogSnapshot, location: str, key: str) -> VersionEntry | None:
    """The row of a version of the table at a location whose manifest has this key, if there is one."""
    place, table_id = place_of_manifest(location, key), snapshot.table_at(location)
    row = None if place is None or table_id is None else snapshot.version_entry(table_id, *place)
    return row if row is not None and row.canonical_path == key else None


def place_of_manifest(location: str, key: str) -> tuple[str | None, int] | None:
    """Branch (None is main) and version of a canonical manifest, by its key; None for every other key."""
    directory, _, name = key.removeprefix(f"{location}/").rpartition("/")
    named = parse_manifest_name(name)
    if named is None:
        return None
    if directory == VERSIONS_DIRECTORY:
        return None, named[0]
    branch = directory.removeprefix(f"{BRANCHES_DIRECTORY}/").removesuffix(f"/{VERSIONS_DIRECTORY}")
    return (branch, named[0]) if directory == f"{BRANCHES_DIRECTORY}/{branch}/{VERSIONS_DIRECTORY}" else None
