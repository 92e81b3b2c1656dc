"""Turn a root that stock clients made into a managed catalog, in one flip."""

from __future__ import annotations

from dataclasses import dataclass

from lance_namespace.errors import InvalidInputError

from lance_core.storage.port import ObjectStore
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.committing.stored_versions import dataset_versions
from namespace_server.directory.manifest_table.schema import MANAGED_METADATA
from namespace_server.directory.model.entries import Changes, Entry, TableEntry, changes_of
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.progress import Progress, untold
from namespace_server.directory.model.snapshot import CatalogSnapshot


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was adopted: tables with the number of their versions, and the catalog version that holds them."""

    catalog_version: int
    tables: tuple[tuple[ObjectId, int], ...]
    already_managed: bool


def adopt_root(catalog: StoredCatalog, *, strict: bool, progress: Progress = untold) -> Adoption:
    """See `DirectoryNamespace.adopt`."""
    found: list[tuple[ObjectId, int]] = []
    snapshot = catalog.snapshot()
    if snapshot.managed and not strict:
        return Adoption(snapshot.version, (), already_managed=True)
    already = snapshot.managed
    if snapshot.version == 0 and not _unlisted_tables(catalog.store, snapshot):
        raise InvalidInputError(f"{catalog.store.uri}: expected a catalog or tables to adopt, found none")

    def plan(current: CatalogSnapshot) -> Changes:
        found.clear()
        if current.managed:
            return Changes()
        _refuse_tables_below_tables(current)
        tables = [table for table_id in current.all_tables() if (table := current.table(table_id)) is not None]
        unlisted = _unlisted_tables(catalog.store, current)
        rows: list[Entry] = [*unlisted]
        for number, table in enumerate(every := [*tables, *unlisted]):
            progress("list versions", number, len(every))
            versions = dataset_versions(catalog.store, table)
            found.append((table.id, len(versions)))
            rows += versions
        return changes_of(rows)

    flipped = catalog.committer.commit_changes(plan, table_metadata=MANAGED_METADATA, strict=strict)
    return Adoption(flipped.version, tuple(found), already_managed=already)


def _refuse_tables_below_tables(snapshot: CatalogSnapshot) -> None:
    """Stock servers do not check parents; such a table's id could collide with a version row's (N4)."""
    below = [
        join(table_id)
        for table_id in snapshot.all_tables()
        if any(snapshot.table(table_id[:depth]) is not None for depth in range(1, len(table_id)))
    ]
    if below:
        raise InvalidInputError(f"these tables lie below another table's id, rename them first: {', '.join(below)}")


def _unlisted_tables(store: ObjectStore, snapshot: CatalogSnapshot) -> list[TableEntry]:
    """Root tables that directory-listing clients made without a row: `<name>.lance` with at least one version."""
    created: set[str] = set()
    deregistered: set[str] = set()
    for meta in store.list(""):
        location, _, rest = meta.path.partition("/")
        if location.endswith(".lance") and rest.startswith("_versions/"):
            created.add(location)
        elif rest == ".lance-deregistered":
            deregistered.add(location)
    return [
        TableEntry((location.removesuffix(".lance"),), location)
        for location in sorted(created - deregistered)
        if snapshot.table_at(location) is None
        and snapshot.table((location.removesuffix(".lance"),)) is None
        and snapshot.namespace((location.removesuffix(".lance"),)) is None
    ]
