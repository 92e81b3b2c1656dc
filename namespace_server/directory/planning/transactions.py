"""Plan the commit of a transaction: rebased over concurrent versions, or a branch begun by a Clone."""

from __future__ import annotations

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
)

from lance_core.commit.prepare import PreparedCommit
from lance_core.errors import (
    InvalidTransaction,
    NotFound,
    RetryableTransaction,
    TransactionConflict,
    UnsupportedFeature,
)
from namespace_server.directory.manifests.manifest_reader import PlannedVersion
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import BatchConflict, ConflictKind
from namespace_server.directory.model.operations import (
    CommitTransaction,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.root_layout import staged_manifest_key
from namespace_server.directory.planning.chains import (
    chain_name,
    conflict_detail,
    forked_version,
    replacement,
    require_removed,
    rows_added,
    table_at_location,
)
from namespace_server.directory.planning.freshness import require_fresh
from namespace_server.directory.planning.plan_builder import (
    AddedFiles,
    PlanBuilder,
    version_result,
)
from namespace_server.directory.planning.planning_context import Basis


def commit_transaction(builder: PlanBuilder, index: int, operation: CommitTransaction) -> OperationResult:
    """Commit a transaction as head + 1, rebased over the versions since its read version; a Clone begins a branch.

    A transaction that is committed already is answered as before (P1).
    """
    table = builder.table_in_place(table_at_location(builder, operation).id)
    transaction = operation.transaction
    if transaction.WhichOneof("operation") == "clone":
        return begin_branch(builder, index, operation, table)
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is None and operation.branch is not None:
        raise TableBranchNotFoundError(f"{chain_name(operation)} does not exist; fork it before committing to it")
    concurrent = _concurrent(builder, index, operation, head)
    if concurrent and concurrent[-1].transaction_uuid == transaction.uuid:
        return {**version_result(concurrent[-1]), "rebased": False}
    read = builder.view(operation.id).version_entry(operation.id, operation.branch, transaction.read_version)
    _require_read_version(builder, index, operation, read)
    basis = Basis(read, head, tuple(concurrent))
    _require_files(builder, index, operation, table, basis)
    if head is not None:
        builder.require_head_promoted(head)
    prepared = _prepare(builder, index, operation, table, basis)
    if head is not None and operation.manifest_sha256 is None and not builder.publishes(read):
        _refuse_dirty_read(builder, operation, head, prepared)
    return _publish(builder, index, operation, table, prepared, "V2" if head is None else head.naming_scheme)


def _refuse_dirty_read(
    builder: PlanBuilder, operation: CommitTransaction, head: VersionEntry, prepared: PreparedCommit
) -> None:
    """Refuse what has something of a version that was never the table's; the transaction does not say what it read."""
    reason = builder.context.dirty_read(builder.view(operation.id), head, prepared.file)
    if reason is not None:
        raise InvalidInputError(
            f"transaction {operation.transaction.uuid} on {chain_name(operation)}: {reason}; reopen the table and redo "
            "the operation, or state manifest_sha256 of the version that was read"
        )


def _concurrent(
    builder: PlanBuilder, index: int, operation: CommitTransaction, head: VersionEntry | None
) -> list[VersionEntry]:
    """The versions since the read version; the last one is that of the transaction itself if it is committed already.

    Refuses a read version above the head.
    """
    transaction, top = operation.transaction, 0 if head is None else head.version
    if transaction.read_version > top:
        found = f"read version {transaction.read_version}, but the head is {top}"
        if operation.manifest_sha256 is not None and head is not None:
            raise _conflict(builder, index, operation, f"retryable: {found}; redo the operation on the latest version")
        raise InvalidInputError(f"transaction {transaction.uuid} on {chain_name(operation)}: {found}")
    concurrent: list[VersionEntry] = []
    for version in range(transaction.read_version + 1, top + 1):
        entry = builder.view(operation.id).version_entry(operation.id, operation.branch, version)
        if entry is None:
            raise _conflict(builder, index, operation, f"version {version} is no longer readable; redo the operation")
        concurrent.append(entry)
        if entry.transaction_uuid == transaction.uuid:
            break
    return concurrent


def _require_files(
    builder: PlanBuilder, index: int, operation: CommitTransaction, table: TableEntry, basis: Basis
) -> None:
    """Refuse a transaction whose files are missing, lie at another location, or may be deleted by gc."""
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        if basis.concurrent:  # a conflict says more: files were compared with the schema of a version that was not read
            _prepare(builder, index, operation, table, basis)
        raise finding
    if isinstance(finding, AddedFiles) and finding.location != table.location:
        raise InvalidInputError(
            f"transaction {operation.transaction.uuid} on {chain_name(operation)}: its files lie at "
            f"{finding.location}, the table of that name is at {table.location} now; stage again"
        )
    if finding is not None:
        require_fresh(builder, operation, table, finding)


def _require_read_version(
    builder: PlanBuilder, index: int, operation: CommitTransaction, read: VersionEntry | None
) -> None:
    """Refuse a transaction that was computed on another version of this number, or that may have been (P11)."""
    if operation.manifest_sha256 is not None and read is None:
        gone = f"version {operation.transaction.read_version} is no longer readable; redo the operation"
        raise _conflict(builder, index, operation, gone)
    replaced = None if read is None else replacement(read, operation.manifest_sha256)
    if replaced is not None:
        raise _conflict(builder, index, operation, f"retryable: {replaced}; redo the operation on the latest version")


def begin_branch(builder: PlanBuilder, index: int, operation: CommitTransaction, table: TableEntry) -> OperationResult:
    """Commit a Clone as the first version of a new branch, under the number of its parent (P4)."""
    clone = operation.transaction.clone
    place = f"transaction {operation.transaction.uuid} on {chain_name(operation)}"
    if operation.branch is None:
        raise InvalidInputError(f"{place}: a Clone begins a branch, expected the name of one")
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is not None:
        first = builder.view(operation.id).version_entry(operation.id, operation.branch, clone.ref_version)
        if first is not None and first.transaction_uuid == operation.transaction.uuid:
            return {**version_result(first), "rebased": False}
        raise TableBranchAlreadyExistsError(f"{chain_name(operation)} exists, at version {head.version}")
    require_removed(builder, table, operation)
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    parent = forked_version(builder, operation, clone)
    replaced = replacement(parent, operation.manifest_sha256)
    if replaced is not None:
        hint = f"retryable: {replaced}; begin the branch at the version that there is"
        detail = conflict_detail(builder, index, operation, clone.ref_version, hint)
        raise BatchConflict(f"{place}: {replaced}", detail, "clone")
    prepared = _prepare(builder, index, operation, table, Basis(cloned=parent))
    return _publish(builder, index, operation, table, prepared, "V2")


def begin_clone(
    builder: PlanBuilder, index: int, operation: CommitTransaction, source: VersionEntry
) -> OperationResult:
    """Commit a Clone of a version of another table as the first version of a table that was declared (P14)."""
    table = builder.table(operation.id)
    prepared = _prepare(builder, index, operation, table, Basis(cloned=source))
    return _publish(builder, index, operation, table, prepared, "V2")


def _publish(
    builder: PlanBuilder,
    index: int,
    operation: CommitTransaction,
    table: TableEntry,
    prepared: PreparedCommit,
    scheme: str,
) -> OperationResult:
    entry = VersionEntry(
        table_id=operation.id,
        branch=operation.branch,
        version=prepared.version,
        location=table.location,
        size=prepared.file.identity.size,
        sha256=prepared.file.identity.sha256,
        transaction_uuid=prepared.file.identity.transaction_uuid,
        timestamp_ms=prepared.file.timestamp_ms,
        naming_scheme=scheme,
        staged_path=staged_manifest_key(builder.batch.uuid, builder.context.attempt, index, prepared.version),
    )
    builder.staged += [*prepared.files, (entry.staged_path or "", prepared.manifest)]
    result = builder.publish(
        PlannedVersion(entry, prepared.manifest, prepared.file, rows_added(prepared.file, prepared.head))
    )
    return {**result, "rebased": prepared.rebased}


def _prepare(
    builder: PlanBuilder,
    index: int,
    operation: CommitTransaction,
    table: TableEntry,
    basis: Basis,
) -> PreparedCommit:
    place = f"transaction {operation.transaction.uuid} on {chain_name(operation)}"
    try:
        return builder.context.prepare(
            operation.transaction,
            table,
            operation.branch,
            basis,
            stable_row_ids=operation.stable_row_ids,
            data_storage_version=operation.data_storage_version,
        )
    except NotFound as error:
        raise _conflict(builder, index, operation, f"{error} is no longer readable; redo the operation") from error
    except TransactionConflict as error:
        kind: ConflictKind = "retryable" if isinstance(error, RetryableTransaction) else "incompatible"
        redo = "redo the operation on the latest version" if kind == "retryable" else "it cannot be redone as is"
        hint = f"{kind}: {error.reason}; {redo}"
        raise _conflict(builder, index, operation, hint, error.committed, kind) from error
    except (InvalidTransaction, UnsupportedFeature) as error:
        raise InvalidInputError(f"{place}: {error}") from error


def _conflict(
    builder: PlanBuilder,
    index: int,
    operation: CommitTransaction,
    hint: str,
    committed: str | None = None,
    kind: ConflictKind = "retryable",
) -> LanceNamespaceError:
    message = f"transaction {operation.transaction.uuid} on {chain_name(operation)}: {hint}"
    head = builder.base.head(operation.id, operation.branch)
    mine = builder.view(operation.id).head(operation.id, operation.branch)
    if head is None or (
        mine is not None and builder.base.version_entry(operation.id, operation.branch, mine.version) is None
    ):
        return InvalidInputError(f"{message} (the conflicting version is made by the same batch)")
    detail = conflict_detail(builder, index, operation, operation.transaction.read_version, hint, kind=kind)
    return BatchConflict(message, detail, operation.transaction.WhichOneof("operation") or "unknown", committed)
