"""The catalog's own history: which of its versions are kept, and what nothing of it needs (rules G3 and G6).

A version of the catalog is a manifest of `__manifest`. It names row files and deletion files, most of which many
versions share. A file that a later version was the first to name was written after the version before it was there. So
what was written before the oldest kept version, and is named neither by that nor by the newest one, is needed by none
of those in between, and only these two are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from lance_core.cleanup.kinds import role_of
from lance_core.cleanup.plan import read_needs
from lance_core.errors import AlreadyExists, LanceCoreError, NotFound
from lance_core.format.naming import NamingScheme, manifest_path, parse_manifest_name, versions_directory
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.collection.errors import CollectionStopped
from namespace_server.directory.collection.settings import CollectionSettings
from namespace_server.directory.collection.stored_plan import Removal
from namespace_server.directory.model.entries import DROPPED
from namespace_server.directory.model.root_layout import KEPT_VERSIONS, MANIFEST_TABLE, kept_version_key
from namespace_server.directory.model.snapshot import CatalogSnapshot

SUPERSEDED: Final = "earlier version of the catalog"
UNNAMED_ROWS: Final = "rows of earlier versions of the catalog"
ENDED: Final = "copy of a catalog version that nothing needs any more"

_MARGIN: Final = timedelta(hours=1)
"""Machines that write to one file system may date their files by clocks of their own."""


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """A version of the catalog, and its file."""

    number: int
    scheme: NamingScheme
    meta: ObjectMeta


def list_catalog_versions(store: ObjectStore) -> list[CatalogVersion]:
    """The versions of the catalog, ascending. One listing. Raises `StorageError`."""
    found: list[CatalogVersion] = []
    for meta in store.list(versions_directory(MANIFEST_TABLE)):
        named = parse_manifest_name(meta.path.rpartition("/")[2])
        if named is not None:
            found.append(CatalogVersion(*named, meta))
    return sorted(found, key=lambda version: version.number)


def oldest_to_keep(versions: Sequence[CatalogVersion], settings: CollectionSettings, now: datetime) -> int:
    """The lowest version that is among the newest, or was superseded less than the age ago; 1 if there is none.

    A version is superseded when the next one is written, by the store's dates.
    """
    counted = versions[-settings.catalog_count :]
    oldest = counted[0].number if counted else 1
    for version, successor in pairwise(versions):
        if now - successor.meta.last_modified < settings.catalog_age:
            return min(oldest, version.number)
    return oldest


def needed_versions(snapshot: CatalogSnapshot) -> set[int]:
    """The catalog versions that are kept in any case: pinned ones, and those from which dropped tables come back."""
    dropped = {record.catalog_version for record in snapshot.records() if record.state == DROPPED}
    return (dropped | {pin.version for pin in snapshot.pins()}) - {0}


def copy_versions(store: ObjectStore, versions: Sequence[CatalogVersion], numbers: Collection[int]) -> None:
    """Copy these versions to where they are read once they are below the oldest kept one. Raises `StorageError`.

    One that is gone is left out: what needed it cannot be done any more, or it was copied before.
    """
    for version in versions:
        if version.number in numbers:
            with suppress(AlreadyExists, NotFound):
                store.put_if_absent(kept_version_key(version.number), store.get(version.meta.path))


def oldest_allowed(snapshot: CatalogSnapshot, oldest: int, seen: CatalogSnapshot) -> int:
    """The oldest kept version that a fence may set on `snapshot`, which wants `oldest`, and copied what `seen` needs.

    What is needed since then, by a pin or a drop, was not copied, and stays above.
    """
    return min([oldest, *(needed_versions(snapshot) - needed_versions(seen))])


def superseded_versions(versions: Sequence[CatalogVersion], oldest: int) -> list[Removal]:
    """The versions below the oldest kept one, ascending."""
    return [
        Removal(each.meta.path, each.meta.size, each.meta.last_modified, SUPERSEDED)
        for each in versions
        if each.number < oldest
    ]


def unnamed_files(
    store: ObjectStore, versions: Sequence[CatalogVersion], snapshot: CatalogSnapshot, horizon: datetime
) -> list[Removal]:
    """The row, deletion and transaction files of `__manifest` that no kept version names, nor a copy that is needed.

    Files are listed first, then manifests are read. Copies that nothing needs are among the result: what only they name
    is found by the next run. Raises `StorageError`, `CollectionStopped` for a manifest that cannot be understood.
    """
    prefix = f"{MANIFEST_TABLE}/"
    listed = [(meta, role_of(meta.path.removeprefix(prefix))) for meta in store.list(MANIFEST_TABLE)]
    oldest = next((each for each in versions if each.number >= snapshot.collector.oldest), None)
    if oldest is None:
        return []
    wanted = needed_versions(snapshot)
    copies = list(_copies(store))
    newest = manifest_path(MANIFEST_TABLE, snapshot.version, oldest.scheme)
    read = [oldest.meta.path, newest, *(meta.path for number, meta in copies if number in wanted)]
    needed = {name for key in read for name in _names(store, key)}
    before = min(horizon, oldest.meta.last_modified - _MARGIN)
    found = [
        Removal(meta.path, meta.size, meta.last_modified, UNNAMED_ROWS)
        for meta, role in listed
        if role is not None and role.name and role.name not in needed and meta.last_modified < before
    ]
    ended = [
        Removal(meta.path, meta.size, meta.last_modified, ENDED) for number, meta in copies if number not in wanted
    ]
    return [*found, *ended]


def _copies(store: ObjectStore) -> Iterator[tuple[int, ObjectMeta]]:
    for meta in store.list(KEPT_VERSIONS):
        number = meta.path.removeprefix(f"{KEPT_VERSIONS}/").removesuffix(".manifest")
        if number.isascii() and number.isdigit():
            yield int(number), meta


def _names(store: ObjectStore, key: str) -> frozenset[str]:
    data, meta = store.get_with_meta(key)
    try:
        return read_needs(store, meta, data)[1]
    except LanceCoreError as error:
        raise CollectionStopped(f"a version of the catalog cannot be understood: {error}") from error
