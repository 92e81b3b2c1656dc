"""Plan a shallow clone: a new table whose first version refers to the files of another one (P14)."""

from __future__ import annotations

from typing import Final

from lance_namespace.errors import TableVersionNotFoundError, UnsupportedOperationError

from lance_core.errors import NotFound
from lance_core.format.naming import BRANCHES_DIRECTORY
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import clone_source_not_found
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import CloneTable, CommitTransaction, DeclareTable
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.namespaces_and_tables import declare_table
from namespace_server.directory.planning.plan_builder import PlanBuilder
from namespace_server.directory.planning.transactions import begin_clone

OF_A_BRANCH: Final = "expected a version of main without files of branches, since these go when the branch is deleted"


def clone_table(builder: PlanBuilder, index: int, operation: CloneTable) -> OperationResult:
    """Declare a table, and publish a copy of the manifest of the version as its first one, under the same number.

    The version is a row of the snapshot that is flipped: so its files are named by what garbage collection takes for
    needed before the clone is, and by the clone afterwards (G2, G19).
    """
    declared = DeclareTable(operation.id, operation.location, {}, implicit_namespaces=operation.implicit_namespaces)
    declare_table(builder, index, declared)
    source = _cloned_version(builder, operation)
    clone = Clone(builder.context.root_path(source), source.version, None, None)
    transaction = encode_transaction(clone, read_version=source.version, uuid=operation.transaction_uuid)
    published = begin_clone(builder, index, CommitTransaction(operation.id, None, transaction), source)
    return {"location": operation.location, "version": published["version"]}


def cloned_bases(builder: PlanBuilder, operation: CloneTable) -> frozenset[str]:
    """The base paths of the version that is cloned: roots of tables whose files the clone will refer to, too."""
    row = _row(builder, operation)
    if row is None:
        return frozenset()
    try:
        return frozenset(base.path for base in builder.context.manifest(row).outline.base_paths)
    except NotFound:
        return frozenset()  # planning says that it is gone


def _row(builder: PlanBuilder, operation: CloneTable) -> VersionEntry | None:
    source = builder.table_at(operation.source)
    return None if source is None else builder.view(source).version_entry(source, None, operation.version)


def _cloned_version(builder: PlanBuilder, operation: CloneTable) -> VersionEntry:
    """The row of the version, which is still the one that was found, and has all files in roots of tables."""
    source, row = builder.table_at(operation.source), _row(builder, operation)
    if source is None:
        raise clone_source_not_found()
    place = f"table {join(operation.id)}: version {operation.version} of table {join(source)}"
    if row is None or row.sha256 != operation.sha256:
        raise TableVersionNotFoundError(f"{place} was removed meanwhile")
    try:
        manifest = builder.context.manifest(row)
    except NotFound as error:
        raise TableVersionNotFoundError(f"{place} was removed by a cleanup: {error}") from error
    if any(_is_of_branch(builder, base.path) for base in manifest.outline.base_paths):
        raise UnsupportedOperationError(f"{place} has files of a branch: {OF_A_BRANCH}")
    return row


def _is_of_branch(builder: PlanBuilder, path: str) -> bool:
    """Whether a base path leads into a branch of a table of the catalog, or of one that was dropped."""
    parts = (builder.context.root_key(path) or "").split("/")
    tables = ("/".join(parts[:end]) for end, part in enumerate(parts) if part == BRANCHES_DIRECTORY)
    return any(builder.table_at(table) is not None or builder.tombstone_at(table) is not None for table in tables)
