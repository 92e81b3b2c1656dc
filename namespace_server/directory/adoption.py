"""Turn a root that stock clients made into a managed catalog, in one flip."""

from __future__ import annotations

from dataclasses import dataclass

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifest_table.schema import MANAGED_METADATA
from namespace_server.directory.manifest_table.unlisted_tables import listed_tables
from namespace_server.directory.manifests.stored_versions import dataset_versions
from namespace_server.directory.model.entries import Changes, Entry, TableEntry, changes_of
from namespace_server.directory.model.naming_rules import check_id
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.verifying.allowed_locations import AllowedLocations
from namespace_server.observability.observation import Progress, no_progress


@dataclass(frozen=True, slots=True)
class Adoption:
    """The result of an adoption: tables with the number of their versions, and the catalog version that holds them.

    `unlisted` are tables at the root of a catalog that was managed already and has no row of them: `register` takes
    each in.
    """

    catalog_version: int
    tables: tuple[tuple[ObjectId, int], ...]
    already_managed: bool
    unlisted: tuple[TableEntry, ...] = ()


def adopt_root(catalog: StoredCatalog, *, strict: bool, progress: Progress = no_progress) -> Adoption:
    """See `DirectoryNamespace.adopt`."""
    found: list[tuple[ObjectId, int]] = []
    snapshot = catalog.snapshot()
    if snapshot.managed and not strict:
        return Adoption(snapshot.version, (), already_managed=True, unlisted=tuple(_unlisted(catalog, snapshot)))
    already = snapshot.managed
    if snapshot.is_empty_root:
        raise InvalidInputError(f"{catalog.store.uri}: expected a catalog or tables to adopt, found none")

    def plan(current: CatalogSnapshot) -> Changes:
        found.clear()
        if current.managed:
            return Changes()
        _refuse_tables_below_tables(current)
        tables = [table for table_id in current.all_tables() if (table := current.table(table_id)) is not None]
        # Without a catalog the tables of the snapshot are those that were listed, and have no rows yet.
        unlisted = _unlisted(catalog, current) if current.version else tables
        every = [*tables, *unlisted] if current.version else tables
        _refuse_names_and_links(catalog, unlisted, every)
        rows: list[Entry] = [*unlisted]
        for number, table in enumerate(every):
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


def _refuse_names_and_links(catalog: StoredCatalog, tables: list[TableEntry], every: list[TableEntry]) -> None:
    """A directory becomes a table by a name that may be one, and in a place that has one name, also by links (N7)."""
    allowed = AllowedLocations(catalog.store, catalog.options.allowed_locations)
    for table in tables:
        check_id(table.id, f"directory {table.location}: table")
        others = (each.location for each in every if each.id != table.id)
        if (reason := allowed.link_refusal(table.location, others)) is not None:
            raise InvalidInputError(f"table {join(table.id)}: {reason}")


def _unlisted(catalog: StoredCatalog, snapshot: CatalogSnapshot) -> list[TableEntry]:
    """Tables at the root that the catalog has no row of, and whose name and place are free."""
    return [
        table
        for table in listed_tables(catalog.store)
        if snapshot.table_at(table.location) is None
        and snapshot.tombstone_at(table.location) is None
        and snapshot.table(table.id) is None
        and snapshot.namespace(table.id) is None
    ]
