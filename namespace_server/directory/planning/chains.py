"""Chains of versions while a batch is planned: their names in errors, their heads, the content of conflicts."""

from __future__ import annotations

from urllib.parse import unquote

from lance_namespace.errors import (
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import ConflictDetail, ConflictKind
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    CreateTableVersion,
    SetTableProperties,
    TableOperation,
)
from namespace_server.directory.planning.plan_builder import PlanBuilder
from namespace_server.outcomes import with_nothing_done


def chain_name(operation: TableOperation) -> str:
    """The chain of an operation as errors name it: `table a$t`, or `branch dev of table a$t`."""
    name = join(operation.id)
    return f"table {name}" if operation.branch is None else f"branch {operation.branch} of table {name}"


def table_at_location(
    builder: PlanBuilder, operation: AssertTableVersion | CommitTransaction | SetTableProperties
) -> TableEntry:
    """The table, or TableNotFoundError (4) if it is not at the location that the client expects (N1).

    Another table of the same name has versions from 1 on as well, so a version number does not distinguish them.
    """
    table = builder.table(operation.id)
    if operation.location not in {None, table.location, unquote(table.location)}:
        raise TableNotFoundError(
            f"Table not found: table {join(operation.id)} at {operation.location} does not exist any more; "
            f"the table of that name is at {table.location}"
        )
    return table


def replacement(entry: VersionEntry, manifest_sha256: str | None) -> str | None:
    """The reason why a row is of another version than the one that a client read under its number (P11), in words.

    None if it is that one, or where that is not known: the client does not say what it read, or the row is of a writer
    that keeps no hash.
    """
    if manifest_sha256 is None or entry.sha256 in {"", manifest_sha256}:
        return None
    return (
        f"version {entry.version} is another one than was read: expected the manifest with SHA-256 {manifest_sha256}, "
        f"found {entry.sha256}"
    )


def require_removed(builder: PlanBuilder, table: TableEntry, operation: TableOperation) -> None:
    """Raise ServiceUnavailableError (17) while files of a deleted branch of the same name are being removed (B2)."""
    if operation.branch is None:
        return
    tombstone = builder.tombstone_at(branch_base(table.location, operation.branch))
    if tombstone is not None:
        raise with_nothing_done(
            ServiceUnavailableError(
                f"{chain_name(operation)}: nothing was done: the branch of this name was deleted and its files are not "
                "all removed; repeat it"
            )
        )


def require_head(builder: PlanBuilder, operation: TableOperation) -> VersionEntry:
    """The head of the chain; TableBranchNotFoundError (22) or TableVersionNotFoundError (11) if there is none."""
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is not None:
        return head
    if operation.branch is not None:
        raise TableBranchNotFoundError(f"{chain_name(operation)} does not exist")
    raise TableVersionNotFoundError(f"{chain_name(operation)} has no versions yet")


def forked_version(
    builder: PlanBuilder, operation: CreateTableVersion | CommitTransaction, clone: pb.Transaction.Clone
) -> VersionEntry:
    """The row of the version that a Clone forks, or TableVersionNotFoundError (11)."""
    parent = clone.ref_name or None
    entry = builder.view(operation.id).version_entry(operation.id, parent, clone.ref_version)
    if entry is None:
        origin = join(operation.id) if parent is None else f"{join(operation.id)} branch {parent}"
        raise TableVersionNotFoundError(
            f"{chain_name(operation)}: version {clone.ref_version} of {origin} does not exist"
        )
    return entry


def rows_added(file: ManifestFile, below: ManifestFile | None) -> int | None:
    """By how many rows a version is larger than the one below it; None where that is not known at once.

    For the history alone: a first version of a branch has the rows of another chain, and is not compared.
    """
    if file.operation == "clone":
        return None
    try:
        after, before = file.known_rows, 0 if below is None else below.known_rows
    except CorruptFile:
        return None
    return None if after is None or before is None else after - before


def conflict_detail(
    builder: PlanBuilder,
    index: int,
    operation: TableOperation,
    expected: int,
    hint: str,
    winner: int | None = None,
    kind: ConflictKind = "retryable",
) -> ConflictDetail:
    """The entry of a 409 answer for an operation: the head that was met, and the transaction of version `winner`."""
    head = builder.view(operation.id).head(operation.id, operation.branch)
    won = head if winner is None else builder.view(operation.id).version_entry(operation.id, operation.branch, winner)
    return ConflictDetail(
        operation_index=index,
        id=operation.id,
        branch=operation.branch,
        expected=expected,
        actual=None if head is None else head.version,
        winner_transaction_id=None if won is None else won.transaction_uuid,
        hint=hint,
        kind=kind,
    )
