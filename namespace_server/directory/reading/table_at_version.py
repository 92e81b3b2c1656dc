"""The manifest and location of a table at a version, for reads and changes of its rows."""

from __future__ import annotations

from lance_namespace.errors import ServiceUnavailableError, TableBranchNotFoundError, TableVersionNotFoundError

from lance_core.versions import find_contents
from namespace_server.directory.manifests.manifest_reader import is_row
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.reading import table_versions
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.outcomes import with_nothing_done
from table_data.batch_operations import TableState, VersionIdentity


def table_at_version(context: ReadContext, request: Request) -> TableState:
    """The table at the version (`version`, `branch`) that a request names, or at its head; promoted (rule M3).

    A table that is only declared has no version. Raises TableNotFoundError (4), TableVersionNotFoundError (11) and
    TableBranchNotFoundError (22).
    """
    table = table_versions.require_table(context, request)
    branch, version = request_fields.branch(request), request_fields.integer(request, "version")
    entry = table_versions.find(context, table, branch, version)
    uri, properties = context.naming.object_uri(table.location), dict(table.properties)
    if entry is None:
        if version is not None:
            raise TableVersionNotFoundError(f"table {join(table.id)}: version {version} does not exist")
        if branch is not None:
            raise TableBranchNotFoundError(f"table {join(table.id)}: branch {branch!r} does not exist")
        head = context.about(table.id).head(table.id, None)
        if head is not None:
            raise TableVersionNotFoundError(
                f"table {join(table.id)}: version {head.version} was removed, or replaced by another one"
            )
        return TableState(table.id, uri, None, properties)
    if not context.is_promoted(entry):
        context.catalog.promoter.promote([entry], context.catalog.table.current)
        _require_name(context, entry)
    identity = VersionIdentity(entry.sha256, entry.timestamp_ms) if entry.sha256 else None
    return TableState(table.id, uri, entry.version, properties, branch, identity=identity)


def _require_name(context: ReadContext, entry: VersionEntry) -> None:
    """Raise ServiceUnavailableError (17) if another writer's file has the name of a version, by which it is opened."""
    if context.is_promoted(entry):
        return
    found = find_contents(context.catalog.store, entry.canonical_path)
    if found is not None and not is_row(entry, found):
        raise with_nothing_done(
            ServiceUnavailableError(
                f"table {join(entry.table_id)}: nothing was done: version {entry.version} cannot be given its name "
                f"now: expected its manifest at {entry.canonical_path}, found another writer's; repeat the request"
            )
        )
