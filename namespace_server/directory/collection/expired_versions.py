"""Which canonical manifests are of versions that nothing keeps (rules G3 and G17).

A version of a table goes by its row: `delete_table_versions` removes the row, and the manifest stays. It is garbage
when no kept version of the catalog has the row any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from functools import cached_property

from lance_core.errors import CorruptFile
from lance_core.format.naming import BRANCHES_DIRECTORY, MAIN_BRANCH, VERSIONS_DIRECTORY, parse_manifest_name
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Place, place_of
from namespace_server.directory.model.intents import read_versions
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import VersionKey


class ExpiredVersions:
    """Tells expired manifests of tables, whose rows are those of `snapshot`, from all others.

    `removed` tells the places of rows that earlier kept versions of the catalog have, and `snapshot` has not (see
    `removed_places`); it is asked at most once. A manifest that was written at or after `cutoff` is never expired, nor
    is one that a tag names or that a branch began from, by the reference files of its table. Where these cannot be read
    nothing is expired, and no version is that a registered job may read (G11).

    Attributes:
        waiting: The locations of manifests without a row that are not expired, or not yet.
    """

    def __init__(
        self,
        store: ObjectStore,
        snapshot: CatalogSnapshot,
        removed: Callable[[], Collection[Place]],
        cutoff: datetime,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._read_removed = removed
        self._cutoff = cutoff
        self._read_from = read_versions(snapshot)
        self.waiting: set[str] = set()
        self._referred: dict[str, frozenset[tuple[str | None, int]] | None] = {}

    def __call__(self, location: str, meta: ObjectMeta) -> bool:
        """Whether the manifest `meta`, below the root of the table at `location`, is of an expired version."""
        place = place_of_manifest(location, meta.path)
        table_id = self._snapshot.table_at(location)
        if place is None or table_id is None:
            return False
        branch, version = place
        head = self._snapshot.top(table_id, branch)
        if head is None or version >= head[0]:
            return False
        if self._snapshot.version_entry(table_id, branch, version) is not None:
            return False
        is_read = version >= self._read_from.get((location, branch), head[0])
        if meta.last_modified < self._cutoff and not is_read:
            referred = self._references(location)
            if referred is not None and place not in referred and (location, branch, version) not in self._removed:
                return True
        self.waiting.add(location)
        return False

    @cached_property
    def _removed(self) -> Collection[Place]:
        return self._read_removed()

    def _references(self, location: str) -> frozenset[tuple[str | None, int]] | None:
        """The versions that references of a table name, as (branch, version); None if one cannot be read."""
        if location not in self._referred:
            try:
                self._referred[location] = references_of(self._store, location)
            except CorruptFile:
                self._referred[location] = None
        return self._referred[location]


def references_of(store: ObjectStore, location: str) -> frozenset[tuple[str | None, int]]:
    """The versions that tags of a table name and that its branches began from, as (branch, version).

    Raises `CorruptFile` for a reference that cannot be read, `StorageError`.
    """
    tags, branches = Tags(store, location).list().values(), Branches(store, location).list().values()
    named = [(tag.branch, tag.version) for tag in tags]
    named += [(branch.parent_branch, branch.parent_version) for branch in branches]
    return frozenset((None if branch == MAIN_BRANCH else branch, version) for branch, version in named)


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


def removed_places(table: ManifestTable, newest: CatalogSnapshot) -> set[Place]:
    """The places of rows that kept catalog versions have, and that a later one of them removed or replaced.

    Of pinned versions below the oldest kept one, the places of all rows. Reads each kept version. Raises
    `ReferenceNotFound` if one was removed meanwhile, `CatalogDamaged`, `StorageError`.
    """
    found: set[Place] = set()
    for pin in newest.pins():
        if pin.version < newest.collector.oldest:
            found.update(_all_places(table.kept(pin.version)))
    for snapshot, changes in table.steps(newest.collector.oldest, newest.version):
        if changes is None:
            found.update(_all_places(snapshot))
            continue
        for object_id in (*changes.removes, *changes.puts):
            key = snapshot.state.resolve(object_id)
            if isinstance(key, VersionKey) and (row := snapshot.version_entry(*key)) is not None:
                found.add(place_of(row))
    return found


def _all_places(snapshot: CatalogSnapshot) -> set[Place]:
    return {
        place_of(row)
        for table_id in snapshot.all_tables()
        for branch in snapshot.chains(table_id)
        for row in snapshot.versions(table_id, branch)
    }
