"""Which canonical manifests are of versions that nothing keeps (rules G3 and G17).

A version of a table goes by its row: `delete_table_versions` removes the row, and the manifest stays. It is garbage
when no kept version of the catalog has the row any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property

from lance_core.errors import CorruptFile, ReferenceNotFound
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.gc.directories import place_of_manifest
from namespace_server.directory.gc.lost_versions import references_of, rows_of
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Place, VersionEntry, place_of
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.intents import read_versions
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state import VersionKey


class ExpiredVersions:
    """Distinguishes expired manifests of tables, whose rows are those of `snapshot`, from all others.

    `removed` gives the rows that earlier kept versions of the catalog have, and `snapshot` has not, by place (see
    `removed_rows`); it is asked at most once. A manifest that was written at or after `cutoff` is never expired, nor
    is one that a tag names or that a branch began from, by the reference files of its table. Where these cannot be read
    nothing is expired, and no version is that a registered job may read (G11). Where a kept catalog version cannot be
    read, nothing is expired at all.

    Attributes:
        problems: Why rows of the catalog are not known, by its location.
        waiting: The locations of manifests without a row that are not expired, or not yet.
    """

    def __init__(
        self,
        store: ObjectStore,
        snapshot: CatalogSnapshot,
        removed: Callable[[], Mapping[Place, VersionEntry]],
        cutoff: datetime,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._read_removed = removed
        self._cutoff = cutoff
        self._read_from = read_versions(snapshot)
        self.problems: dict[str, str] = {}
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
            if referred is not None and place not in referred and self._is_removed((location, branch, version)):
                return True
        self.waiting.add(location)
        return False

    def _is_removed(self, place: Place) -> bool:
        """Whether no kept version of the catalog has a row at this place, as far as they can be read."""
        return place not in self._earlier and not self.problems

    @cached_property
    def _earlier(self) -> Mapping[Place, VersionEntry]:
        try:
            return self._read_removed()
        except (ReferenceNotFound, CatalogDamaged) as error:
            self.problems[MANIFEST_TABLE] = f"rows of an earlier version are not known, so no version expires: {error}"
            return {}

    @property
    def removed(self) -> Collection[VersionEntry]:
        """The rows that earlier kept versions of the catalog have, if they were read."""
        return self._earlier.values() if "_earlier" in self.__dict__ else ()

    def _references(self, location: str) -> frozenset[tuple[str | None, int]] | None:
        """The versions that references of a table name, as (branch, version); None if one cannot be read."""
        if location not in self._referred:
            try:
                self._referred[location] = references_of(self._store, location)
            except CorruptFile:
                self._referred[location] = None
        return self._referred[location]


def removed_rows(table: ManifestTable, newest: CatalogSnapshot) -> dict[Place, VersionEntry]:
    """The rows that kept catalog versions have, and that a later one of them removed or replaced, by their places.

    Of pinned versions below the oldest kept one, all rows. Reads each kept version. Raises
    `ReferenceNotFound` if one was removed meanwhile, `CatalogDamaged`, `StorageError`.
    """
    found: dict[Place, VersionEntry] = {}
    for pin in newest.pins():
        if pin.version < newest.collector.oldest:
            found.update((place_of(row), row) for row in rows_of(table.kept(pin.version)))
    for snapshot, changes in table.steps(newest.collector.oldest, newest.version):
        if changes is None:
            found.update((place_of(row), row) for row in rows_of(snapshot))
            continue
        for object_id in (*changes.removes, *changes.puts):
            key = snapshot.state.resolve(object_id)
            if isinstance(key, VersionKey) and (row := snapshot.version_entry(*key)) is not None:
                found[place_of(row)] = row
    return found
