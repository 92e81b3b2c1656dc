"""Versions that chains have on storage: above the head of a chain (P5), all of a dataset, and those that are missing.

A version is gone if a client's cleanup removed it (rule M5): its canonical name is vacant below a higher one, or was
vacated after its promotion. A head is never gone, nor is a version whose file is in quarantine (rule G22).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from lance_core.errors import CorruptFile, NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    NamingScheme,
    branch_base,
    parse_manifest_name,
    versions_directory,
)
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, list_versions, read_manifest
from namespace_server.directory.model.entries import TableEntry, VersionEntry, canonical_path
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

FoundVersion = tuple[str, ManifestFile, str | None]
"""Naming scheme, parsed file, e_tag of a manifest that stands under its canonical name."""


def versions_above(
    store: ObjectStore, snapshot: CatalogSnapshot, chains: Iterable[ChainKey]
) -> Mapping[ChainKey, list[FoundVersion]]:
    """Canonical manifests above the head of each chain, upward and contiguous; one request where there are none.

    What is left of a deleted branch is none of these (B2). A chain without a table has nothing above it. What
    cannot be parsed ends the chain and is reported.
    """
    looks = [(chain, location) for chain in chains if (location := snapshot.location(chain[0])) is not None]
    found = store.map(lambda look: _above(store, snapshot, *look), looks)
    return {chain: versions for (chain, _), versions in zip(looks, found, strict=True) if versions}


def _above(store: ObjectStore, snapshot: CatalogSnapshot, chain: ChainKey, location: str) -> list[FoundVersion]:
    base = branch_base(location, chain[1])
    if chain[1] is not None and snapshot.tombstone_at(base) is not None:
        return []
    first = _first_above(snapshot, *chain)
    if first is None:
        listed = list_versions(store, base)
        if not listed:
            return []
        first = listed[0].version, listed[0].scheme.value
    return _read_upward(store, location, chain[1], *first)


def _read_upward(
    store: ObjectStore, location: str, branch: str | None, version: int, scheme: str
) -> list[FoundVersion]:
    found: list[FoundVersion] = []
    while True:
        key = canonical_path(location, branch, version, scheme)
        try:
            if (data := store.find(key)) is None:
                return found
            found.append((scheme, parse_manifest_file(data, expected_version=version), None))
        except CorruptFile as error:
            logger.error("unmanaged file %s is not adopted: %s", key, error.reason)
            return found
        version += 1


def key_above(snapshot: CatalogSnapshot, chain: ChainKey) -> str | None:
    """The path of the first version above the head of a chain; None where only a listing finds it."""
    location, first = snapshot.location(chain[0]), _first_above(snapshot, *chain)
    return None if location is None or first is None else canonical_path(location, chain[1], *first)


def _first_above(snapshot: CatalogSnapshot, table_id: ObjectId, branch: str | None) -> tuple[int, str] | None:
    """Version and naming scheme."""
    top = snapshot.top(table_id, branch)
    if top is not None:
        return top[0] + 1, top[1]
    return (1, NamingScheme.V2.value) if branch is None else None


def stored_entries(store: ObjectStore, table: TableEntry, branch: str | None) -> list[VersionEntry]:
    """Rows for every readable version that a chain has on storage, ascending; the others are reported."""
    return [found_entry(table, branch, file, None, scheme) for scheme, file in stored_versions(store, table, branch)]


def stored_versions(store: ObjectStore, table: TableEntry, branch: str | None) -> list[tuple[str, ManifestFile]]:
    """Naming scheme and manifest of every readable version that a chain has on storage, ascending."""
    listed = list_versions(store, branch_base(table.location, branch))
    files = store.map(partial(_readable, store), listed)
    return [
        (location.scheme.value, file)
        for location, file in zip(listed, files, strict=True)
        if file is not None and file.branch == branch
    ]


def dataset_versions(store: ObjectStore, table: TableEntry) -> tuple[VersionEntry, ...]:
    """Rows for every readable version that a dataset has on storage, of main and of all branches."""
    branches = [None, *stored_branches(store, table.location)]
    return tuple(entry for branch in branches for entry in stored_entries(store, table, branch))


def _readable(store: ObjectStore, location: ManifestLocation) -> ManifestFile | None:
    try:
        return read_manifest(store, location)
    except (CorruptFile, NotFound) as error:
        logger.error("%s is left out: %s", location.path, error)
        return None


def stored_branches(store: ObjectStore, location: str) -> list[str]:
    """The branches that have versions on storage, by name. One listing."""
    prefix = f"{location}/tree/"
    marker = "/_versions/"
    paths = (meta.path for meta in store.list(f"{location}/tree"))
    return sorted({path[len(prefix) : path.index(marker)] for path in paths if marker in path})


def first_version(store: ObjectStore, location: str) -> str | None:
    """The key of a version of a dataset at a location; None where none stands. One listing."""
    listed = store.list(versions_directory(location))
    return next((meta.path for meta in listed if parse_manifest_name(meta.path.rpartition("/")[2])), None)


def is_vacant_below_higher(version: int, canonical: Collection[int]) -> bool:
    """Whether a chain with these canonical names has none for `version`, but one above it.

    For a row that is not the head, and whose promotion is not known to have happened, this means that it is gone.
    """
    return version not in canonical and max(canonical, default=0) > version


def find_removed(
    store: ObjectStore,
    head: VersionEntry,
    promoted: Sequence[VersionEntry],
    quarantined_paths: Callable[[], frozenset[str]],
) -> list[VersionEntry]:
    """Of versions of the chain of `head` that are known to be promoted, and are not the head, those that are gone.

    Storage is read after the call: a version that was promoted between two looks is not taken for a removed one.
    `quarantined_paths` gives the canonical names of the files that are in quarantine now. Raises `StorageError`.
    """
    if len(promoted) == 1:
        try:
            store.head(promoted[0].canonical_path)
        except NotFound:
            pass
        else:
            return []
    quarantined = quarantined_paths()
    present = {found.version for found in list_versions(store, head.base)}
    return [entry for entry in promoted if entry.version not in present and entry.canonical_path not in quarantined]


def found_entry(
    table: TableEntry, branch: str | None, file: ManifestFile, e_tag: str | None, scheme: str
) -> VersionEntry:
    """The row of a version that has its canonical name already."""
    return VersionEntry(
        table_id=table.id,
        branch=branch,
        version=file.version,
        location=table.location,
        size=file.identity.size,
        sha256=file.identity.sha256,
        transaction_uuid=file.identity.transaction_uuid,
        timestamp_ms=file.timestamp_ms,
        e_tag=e_tag,
        naming_scheme=scheme,
        staged_path=None,
        metadata={},
    )
