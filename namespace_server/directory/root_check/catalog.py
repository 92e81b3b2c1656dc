"""The catalog that is at a root already: its newest version, and whether this release can read and write it."""

from __future__ import annotations

from lance_core.amounts import counted
from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound, UnsupportedFeature
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_latest, read_manifest
from namespace_server.directory.manifest_table.schema import (
    MANAGED_KEY,
    check_catalog_readable,
    frame_of,
    row_file_of,
    writer_of,
)
from namespace_server.directory.manifest_table.unlisted_tables import listed_tables
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.root_check.report import FoundCatalog, RootFinding, told_by


def _tables_without_catalog(store: ObjectStore) -> list[RootFinding]:
    """The finding on a root whose tables no catalog has: nothing is committed there before they are adopted."""
    tables = listed_tables(store)
    if not tables:
        return []
    text = f"expected a catalog or an empty root, found {counted(len(tables), 'table')} and no catalog"
    return [RootFinding("catalog-unmanaged", text)]


def look_at_catalog(store: ObjectStore) -> tuple[FoundCatalog | None, list[RootFinding]]:
    """The catalog below the root, None if there is none or it cannot be read. Reads no rows: two requests.

    Raises `StorageError`.
    """
    try:
        location = find_latest(store, MANIFEST_TABLE)
        file = read_manifest(store, location)
    except ReferenceNotFound:
        return None, _tables_without_catalog(store)
    except NotFound as error:
        return None, [
            RootFinding("listing-differs", f"expected the newest catalog version, as listed, found {told_by(error)}")
        ]
    except UnsupportedFeature as error:
        return None, [RootFinding("catalog-unsupported", f"expected a catalog of this release, found {told_by(error)}")]
    except CorruptFile as error:
        return None, [RootFinding("catalog-damaged", f"expected a version of the catalog, found {told_by(error)}")]
    managed = file.manifest.table_metadata.get(MANAGED_KEY) == "true"
    found = FoundCatalog(file.version, writer_of(file.manifest), managed)
    findings = []
    try:
        check_catalog_readable(file.manifest)
        row_file_of(frame_of(file.manifest))
    except UnsupportedFeature as error:
        text = f"expected a catalog that this release can read and change, found one of {found.written_by}"
        findings.append(RootFinding("catalog-unsupported", f"{text}: {told_by(error)}"))
    if not managed:
        text = f"expected a catalog that keeps the versions of its tables, found one of {found.written_by}"
        findings.append(RootFinding("catalog-unmanaged", text))
    return found, findings
