"""Verification of locations that clients choose: vacant ones of new tables, and datasets to be registered."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import orjson
from lance_namespace.errors import InvalidInputError

from lance_core.errors import StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.storage.port import ObjectStore
from namespace_server.directory.manifests.stored_versions import (
    first_version,
    found_entry,
    stored_branches,
    stored_versions,
)
from namespace_server.directory.model.entries import DEREGISTERED, RecordEntry, TableEntry, VersionEntry
from namespace_server.directory.model.errors import shown, unreadable
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import Operation, RegisterTable
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Finding, VacantLocation
from namespace_server.directory.verifying.allowed_locations import AllowedLocations


class LocationChecks:
    """Looks at locations. `allowed` says where tables may lie and base paths may lead."""

    def __init__(self, store: ObjectStore, allowed: AllowedLocations) -> None:
        self._store = store
        self._allowed = allowed

    def require_vacant(self, operation: Operation, vacant: VacantLocation) -> Finding:
        """No version of a dataset stands at a location that a client chose; one listing (G15).

        Data files and staged manifests may: clients stage a table's first version there before they declare it.
        """
        try:
            found = first_version(self._store, vacant.location)
        except StorageError as error:
            return unreadable(operation.id, error)
        if found is None:
            return replace(vacant, seen=True)
        return InvalidInputError(
            f"table {join(operation.id)}: location {vacant.location!r} holds files of a dataset ({found}), expected a "
            "location without versions; register_table takes a dataset into the catalog"
        )

    def dataset(self, operation: RegisterTable, snapshot: CatalogSnapshot) -> Finding:
        """The versions of a dataset that may be registered: one of its own, below the root, with a main chain.

        A table that was deregistered before it had a version comes back without one. Of a table that was in the
        catalog what stands above its head is left to be adopted, or kept aside, as above any head (P15).
        """
        place = f"table {join(operation.id)}: location {shown(operation.location)}"
        table = TableEntry(operation.id, operation.location, operation.properties)
        parents = operation.location.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            parent = "/".join(parents[:depth])
            if first_version(self._store, parent) is not None:
                raise InvalidInputError(f"{place} lies inside the dataset at {parent!r}, expected one of its own")
        tables = (snapshot.table(table_id) for table_id in snapshot.all_tables() if table_id != operation.id)
        reason = self._allowed.link_refusal(operation.location, (each.location for each in tables if each is not None))
        if reason is not None:
            raise InvalidInputError(f"{place}: {reason}")
        tombstone = snapshot.tombstone_at(operation.location)
        versions: list[VersionEntry] = []
        for branch in (None, *stored_branches(self._store, operation.location)):
            if branch is not None and snapshot.tombstone_at(branch_base(operation.location, branch)) is not None:
                continue
            found = stored_versions(self._store, table, branch)
            head = _known_head(snapshot, operation.location, branch, tombstone)
            if head is not None and any(head.is_of(file) for _, file in found):
                found = [(scheme, file) for scheme, file in found if file.version <= head.version]
            for scheme, file in found:
                for refused in self._allowed.refused_bases(file.outline.base_paths).values():
                    raise InvalidInputError(f"{place}: version {file.version} has the base path {refused}")
                versions.append(found_entry(table, branch, file, None, scheme))
        deregistered = tombstone is not None and tombstone.state == DEREGISTERED
        if not deregistered and not any(entry.branch is None for entry in versions):
            raise InvalidInputError(f"{place} holds no dataset, expected one with at least one version")
        return tuple(versions)


class _KnownHead(NamedTuple):
    """The head of a chain; a tombstone of a release before does not state its SHA-256."""

    version: int
    sha256: str | None

    def is_of(self, file: ManifestFile) -> bool:
        """Whether a file is this head, not that of another table in its place."""
        return file.version == self.version and self.sha256 in {None, file.identity.sha256}


def _known_head(
    snapshot: CatalogSnapshot, location: str, branch: str | None, tombstone: RecordEntry | None
) -> _KnownHead | None:
    """The head of a chain of the table at a location, or the one that it had when the table was deregistered."""
    head = snapshot.head_at(location, branch)
    if head is not None:
        return _KnownHead(head.version, head.sha256)
    if tombstone is None:
        return None
    digests = orjson.loads(tombstone.results) if tombstone.results else [None] * len(tombstone.participants)
    parties = zip(tombstone.participants, digests, strict=True)
    chain = location, branch
    return next(
        (_KnownHead(party.version, sha) for party, sha in parties if (party.location, party.branch) == chain), None
    )
