"""Plan the operations on a chain: the versions of one table on one branch."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.commit.prepare import PreparedCommit
from lance_core.errors import (
    CommitConflict,
    CorruptFile,
    InvalidTransaction,
    NotFound,
    RetryableConflict,
    UnsupportedFeature,
)
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.heads import check_room
from lance_core.transaction.lineage import lineage_break
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.errors import BatchConflict, ConflictDetail
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    CreateTableVersion,
    DeleteTableVersions,
    TableOperation,
)
from namespace_server.directory.model.root_layout import is_in_staging, staged_manifest_key
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import (
    AddedFiles,
    PlanBuilder,
    Result,
    StagedManifest,
    version_result,
)
from namespace_server.directory.planning.planning_context import Basis, PlannedVersion, PlanningContext


def create_version(builder: PlanBuilder, index: int, operation: CreateTableVersion) -> Result:
    """The staged manifest becomes head + 1, if it is that and was built on the head (P3)."""
    table = builder.table(operation.id)
    view = builder.view(operation.id)
    head = view.head(operation.id, operation.branch)
    taken = head is not None and operation.version <= head.version
    if taken and view.version_entry(operation.id, operation.branch, operation.version) is not None:
        raise _version_exists(builder, index, operation, operation.version)
    expected = _expected_version(operation, head)
    if expected is not None and operation.version != expected:
        raise _wrong_number(operation, head, expected)
    if head is not None and operation.naming_scheme != head.naming_scheme:
        raise InvalidInputError(
            f"version {operation.version} of {_chain(operation)}: naming_scheme {operation.naming_scheme}, "
            f"but version {head.version} is named by {head.naming_scheme}"
        )
    staged = builder.findings.get(index)
    if isinstance(staged, LanceNamespaceError):
        raise staged
    if not isinstance(staged, StagedManifest):
        raise TypeError("a version was planned that was not verified")
    base = branch_base(table.location, operation.branch)
    if not (is_in_staging(staged.key) or staged.key.startswith(f"{base}/")):
        raise InvalidInputError(f"{_chain(operation)} lies at {table.location}, the manifest at {staged.key}")
    if staged.location != table.location:
        raise InvalidInputError(f"{_chain(operation)} lies at {table.location}, its files at {staged.location}")
    if head is None:
        _check_bases(operation, staged, None)
        _check_first(builder, operation, staged.file)
    else:
        builder.require_head_promoted(head)
        if staged.refused_bases:
            _check_bases(operation, staged, builder.context.manifest(head))
        _check_next(builder, operation, head, staged.file)
    entry = VersionEntry(
        table_id=operation.id,
        branch=operation.branch,
        version=operation.version,
        location=table.location,
        size=len(staged.data),
        sha256=staged.file.identity.sha256,
        transaction_uuid=staged.file.identity.transaction_uuid,
        timestamp_ms=staged.file.timestamp_ns // 1_000_000,
        e_tag=operation.e_tag or staged.e_tag,
        naming_scheme=operation.naming_scheme,
        staged_path=staged.key,
        metadata=operation.metadata,
    )
    return builder.publish(PlannedVersion(entry, staged.data, staged.file))


def delete_versions(builder: PlanBuilder, operation: DeleteTableVersions) -> Result:
    """Version rows go; the head never does (N2), and none that is not promoted (P6)."""
    builder.table(operation.id)
    head = _require_chain(builder, operation)
    doomed: dict[int, VersionEntry] = {}
    for start, end in operation.ranges:
        limit = head.version if end < 0 else end
        if start <= head.version < limit:
            raise InvalidInputError(
                f"versions {start} to {limit - 1} of {_chain(operation)}: version {head.version} is the head "
                "and goes only with the table or the branch"
            )
        for entry in builder.view(operation.id).versions(operation.id, operation.branch, descending=False):
            if start <= entry.version < limit:
                doomed[entry.version] = entry
    builder.require_promoted(list(doomed.values()))
    builder.change(removes=[entry.object_id for entry in doomed.values()])
    return {"deleted_count": len(doomed)}


def commit_transaction(builder: PlanBuilder, index: int, operation: CommitTransaction) -> Result:
    """The transaction becomes head + 1, rebased over what was committed since its read version; a Clone a branch."""
    table = _table_at(builder, operation)
    transaction = operation.transaction
    if transaction.WhichOneof("operation") == "clone":
        return _begin_branch(builder, index, operation, table)
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    if isinstance(finding, AddedFiles) and finding.location != table.location:
        raise InvalidInputError(
            f"transaction {transaction.uuid} on {_chain(operation)}: its files lie at {finding.location}, the table of "
            f"that name is at {table.location} now (N1); stage again"
        )
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is None and operation.branch is not None:
        raise TableBranchNotFoundError(f"{_chain(operation)} does not exist; fork it before committing to it")
    top = 0 if head is None else head.version
    if transaction.read_version > top:
        raise InvalidInputError(
            f"transaction {transaction.uuid} on {_chain(operation)}: read version {transaction.read_version}, "
            f"but the head is {top}"
        )
    concurrent: list[VersionEntry] = []
    for version in range(transaction.read_version + 1, top + 1):
        entry = builder.view(operation.id).version_entry(operation.id, operation.branch, version)
        if entry is None:
            raise _conflict(builder, index, operation, f"version {version} is no longer readable; redo the operation")
        if entry.transaction_uuid == transaction.uuid:
            return {**version_result(entry), "rebased": False}
        concurrent.append(entry)
    if head is not None:
        builder.require_head_promoted(head)
    read = builder.view(operation.id).version_entry(operation.id, operation.branch, transaction.read_version)
    prepared = _prepare(builder, index, operation, table, Basis(read, head, tuple(concurrent)))
    return _publish(builder, index, operation, table, prepared, "V2" if head is None else head.naming_scheme)


def _begin_branch(builder: PlanBuilder, index: int, operation: CommitTransaction, table: TableEntry) -> Result:
    """A Clone becomes the first version of a branch that is not there, under its parent's number (P4)."""
    clone = operation.transaction.clone
    place = f"transaction {operation.transaction.uuid} on {_chain(operation)}"
    if operation.branch is None:
        raise InvalidInputError(f"{place}: a Clone begins a branch, expected the name of one")
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is not None:
        first = builder.view(operation.id).version_entry(operation.id, operation.branch, clone.ref_version)
        if first is not None and first.transaction_uuid == operation.transaction.uuid:
            return {**version_result(first), "rebased": False}
        raise TableBranchAlreadyExistsError(f"{_chain(operation)} exists, at version {head.version}")
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    parent = _forked(builder, operation, clone)
    prepared = _prepare(builder, index, operation, table, Basis(cloned=parent))
    return _publish(builder, index, operation, table, prepared, "V2")


def _publish(
    builder: PlanBuilder,
    index: int,
    operation: CommitTransaction,
    table: TableEntry,
    prepared: PreparedCommit,
    scheme: str,
) -> Result:
    entry = VersionEntry(
        table_id=operation.id,
        branch=operation.branch,
        version=prepared.version,
        location=table.location,
        size=prepared.file.identity.size,
        sha256=prepared.file.identity.sha256,
        transaction_uuid=prepared.file.identity.transaction_uuid,
        timestamp_ms=prepared.file.timestamp_ns // 1_000_000,
        e_tag=None,
        naming_scheme=scheme,
        staged_path=staged_manifest_key(builder.batch.uuid, builder.context.attempt, index, prepared.version),
        metadata={},
    )
    builder.staged += [*prepared.files, (entry.staged_path or "", prepared.manifest)]
    result = builder.publish(PlannedVersion(entry, prepared.manifest, prepared.file))
    return {**result, "rebased": prepared.rebased}


def assert_version(builder: PlanBuilder, index: int, operation: AssertTableVersion) -> Result:
    """The read-set check: holds against the snapshot that the flip is planned on (P9)."""
    _table_at(builder, operation)
    head = builder.view(operation.id).head(operation.id, operation.branch)
    actual = 0 if head is None else head.version
    if actual != operation.version:
        message = f"{_chain(operation)}: expected version {operation.version} to be the head, found {actual}"
        hint = f"read version {actual} and redo what depended on version {operation.version}"
        raise BatchConflict(message, _detail(builder, index, operation, operation.version, hint))
    return {}


def _table_at(builder: PlanBuilder, operation: CommitTransaction | AssertTableVersion) -> TableEntry:
    """The table, if it is still the one that the client means: versions of another one begin at 1 as well."""
    table = builder.table(operation.id)
    if operation.location not in {None, table.location, unquote(table.location)}:
        raise TableNotFoundError(
            f"Table not found: {_chain(operation)} at {operation.location} does not exist any more; "
            f"the table of that name is at {table.location}"
        )
    return table


def adopt_found(
    snapshot: CatalogSnapshot,
    table: TableEntry,
    branch: str | None,
    found: Sequence[tuple[str, ManifestFile, str | None]],
    context: PlanningContext,
) -> list[VersionEntry]:
    """Rows for canonical files that others committed above the head: upward, contiguous, each on the last (P5).

    `found` is (naming scheme, parsed file, e_tag), ascending. What does not descend from the head is left alone.
    """
    adopted: list[VersionEntry] = []
    head = snapshot.head(table.id, branch)
    below = None if head is None else context.manifest(head)
    for scheme, file, e_tag in found:
        if below is not None and file.version <= below.version:
            continue
        if below is None and branch is None and file.version != 1:
            break
        if below is not None and (file.version != below.version + 1 or lineage_break(below, file) is not None):
            break
        if (file.branch or None) != branch:
            break
        adopted.append(found_entry(table, branch, file, e_tag, scheme))
        below = file
    return adopted


def found_entry(
    table: TableEntry, branch: str | None, file: ManifestFile, e_tag: str | None, scheme: str
) -> VersionEntry:
    """The row of a version that stands under its canonical name already."""
    return VersionEntry(
        table_id=table.id,
        branch=branch,
        version=file.version,
        location=table.location,
        size=file.identity.size,
        sha256=file.identity.sha256,
        transaction_uuid=file.identity.transaction_uuid,
        timestamp_ms=file.timestamp_ns // 1_000_000,
        e_tag=e_tag,
        naming_scheme=scheme,
        staged_path=None,
        metadata={},
    )


def _prepare(
    builder: PlanBuilder,
    index: int,
    operation: CommitTransaction,
    table: TableEntry,
    basis: Basis,
) -> PreparedCommit:
    place = f"transaction {operation.transaction.uuid} on {_chain(operation)}"
    try:
        return builder.context.prepare(
            operation.transaction, table, operation.branch, basis, stable_row_ids=operation.stable_row_ids
        )
    except NotFound as error:
        raise _conflict(builder, index, operation, f"{error} is no longer readable; redo the operation") from error
    except CommitConflict as error:
        redo = "redo the operation on the head" if isinstance(error, RetryableConflict) else "it cannot be redone as is"
        hint = f"{'retryable' if isinstance(error, RetryableConflict) else 'incompatible'}: {error.reason}; {redo}"
        raise _conflict(builder, index, operation, hint) from error
    except (InvalidTransaction, UnsupportedFeature) as error:
        raise InvalidInputError(f"{place}: {error}") from error


def _expected_version(operation: CreateTableVersion, head: VersionEntry | None) -> int | None:
    if head is not None:
        return head.version + 1
    return 1 if operation.branch is None else None


def _check_first(builder: PlanBuilder, operation: CreateTableVersion, file: ManifestFile) -> None:
    """A main chain begins at 1; a branch begins with the Clone of a version that the catalog holds (P4)."""
    _check_room(operation, None, file)
    if operation.branch is None:
        if file.operation == "clone" and file.branch is not None:
            raise InvalidInputError(f"version 1 of {_chain(operation)}: the manifest is a fork of branch {file.branch}")
        return
    if file.operation != "clone" or file.transaction is None:
        raise TableBranchNotFoundError(f"{_chain(operation)} does not exist, and the manifest does not fork it")
    clone = file.transaction.clone
    if clone.branch_name != operation.branch or clone.ref_version != operation.version:
        raise InvalidInputError(
            f"version {operation.version} of {_chain(operation)}: the manifest forks branch {clone.branch_name!r} "
            f"from version {clone.ref_version}"
        )
    _forked(builder, operation, clone)


def _forked(
    builder: PlanBuilder, operation: CreateTableVersion | CommitTransaction, clone: pb.Transaction.Clone
) -> VersionEntry:
    """The row of the version that a Clone forks."""
    parent = clone.ref_name or None
    entry = builder.view(operation.id).version_entry(operation.id, parent, clone.ref_version)
    if entry is None:
        origin = join(operation.id) if parent is None else f"{join(operation.id)} branch {parent}"
        raise TableVersionNotFoundError(f"{_chain(operation)}: version {clone.ref_version} of {origin} does not exist")
    return entry


def _check_bases(operation: CreateTableVersion, staged: StagedManifest, below: ManifestFile | None) -> None:
    """Base paths may lead where the catalog allows it; those of the version before stay."""
    before = () if below is None else {base.path for base in below.outline.base_paths}
    for path, reason in staged.refused_bases.items():
        if path not in before:
            raise InvalidInputError(f"version {operation.version} of {_chain(operation)}: base path {reason}")


def _check_room(operation: CreateTableVersion, below: ManifestFile | None, file: ManifestFile) -> None:
    """A version must leave numbers for those that follow it."""
    try:
        check_room(below, file)
    except (InvalidTransaction, CorruptFile) as error:
        raise InvalidInputError(f"version {operation.version} of {_chain(operation)}: {error}") from error


def _check_next(builder: PlanBuilder, operation: CreateTableVersion, head: VersionEntry, file: ManifestFile) -> None:
    if file.operation == "clone":
        if operation.branch is None:
            raise InvalidInputError(f"version {operation.version} of {_chain(operation)}: a Clone begins a chain")
        raise TableBranchAlreadyExistsError(f"{_chain(operation)} exists, at version {head.version}")
    below = builder.context.manifest(head)
    try:
        reason = lineage_break(below, file)
    except CorruptFile as error:
        reason = str(error)
    if reason is not None:
        raise InvalidInputError(
            f"version {operation.version} of {_chain(operation)} is not built on version {head.version}: {reason}; "
            "reopen the table and redo the operation"
        )
    _check_room(operation, below, file)


def _version_exists(
    builder: PlanBuilder, index: int, operation: CreateTableVersion, version: int
) -> LanceNamespaceError:
    if builder.base.version_entry(operation.id, operation.branch, version) is None:
        return InvalidInputError(f"version {version} of {_chain(operation)} is created twice by this batch")
    head = builder.view(operation.id).head(operation.id, operation.branch)
    top = version if head is None else head.version
    message = f"version {version} of {_chain(operation)} exists already with different content; the head is {top}"
    hint = f"rebase onto version {top} and commit version {top + 1}"
    return BatchConflict(message, _detail(builder, index, operation, top + 1, hint, winner=version))


def _wrong_number(operation: CreateTableVersion, head: VersionEntry | None, expected: int) -> LanceNamespaceError:
    message = f"version {operation.version} of {_chain(operation)}: expected head + 1 = {expected}"
    if head is not None and operation.version <= head.version:
        return TableVersionNotFoundError(f"{message}; that version existed and was removed")
    return InvalidInputError(message)


def _conflict(builder: PlanBuilder, index: int, operation: CommitTransaction, hint: str) -> LanceNamespaceError:
    message = f"transaction {operation.transaction.uuid} on {_chain(operation)}: {hint}"
    head = builder.base.head(operation.id, operation.branch)
    mine = builder.view(operation.id).head(operation.id, operation.branch)
    if head is None or (
        mine is not None and builder.base.version_entry(operation.id, operation.branch, mine.version) is None
    ):
        return InvalidInputError(f"{message} (the conflicting version is made by this very batch)")
    return BatchConflict(message, _detail(builder, index, operation, operation.transaction.read_version, hint))


def _detail(
    builder: PlanBuilder, index: int, operation: TableOperation, expected: int, hint: str, winner: int | None = None
) -> ConflictDetail:
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
    )


def _require_chain(builder: PlanBuilder, operation: TableOperation) -> VersionEntry:
    head = builder.view(operation.id).head(operation.id, operation.branch)
    if head is not None:
        return head
    if operation.branch is not None:
        raise TableBranchNotFoundError(f"{_chain(operation)} does not exist")
    raise TableVersionNotFoundError(f"{_chain(operation)} has no versions yet")


def _chain(operation: TableOperation) -> str:
    name = join(operation.id)
    return f"table {name}" if operation.branch is None else f"branch {operation.branch} of table {name}"
