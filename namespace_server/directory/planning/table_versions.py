"""Plan the operations on versions of a table: create, delete, assert."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.errors import (
    CorruptFile,
    InvalidTransaction,
)
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fragments import require_unshared
from lance_core.transaction.heads import check_room
from lance_core.transaction.lineage import has_fragments_of, lineage_break, misplaced_index, unseen_deletions
from lance_core.transaction.reachable import new_fragments
from namespace_server.directory.manifests.manifest_reader import PlannedVersion
from namespace_server.directory.model.entries import DROPPED, TableEntry, VersionEntry
from namespace_server.directory.model.errors import BatchConflict
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CreateTableVersion,
    DeleteTableVersions,
    TableOperation,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.model.root_layout import is_in_staging
from namespace_server.directory.planning.chains import (
    chain_name,
    conflict_detail,
    forked_version,
    replacement,
    require_head,
    require_removed,
    rows_added,
    table_at_location,
)
from namespace_server.directory.planning.freshness import require_fresh
from namespace_server.directory.planning.plan_builder import (
    PlanBuilder,
    StagedManifest,
)
from namespace_server.directory.planning.references import refuse_tagged


def create_version(builder: PlanBuilder, index: int, operation: CreateTableVersion) -> OperationResult:
    """Publish a staged manifest as head + 1, if it has that number and was built on the head (P3)."""
    table = builder.table_in_place(operation.id)
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
            f"version {operation.version} of {chain_name(operation)}: naming_scheme {operation.naming_scheme}, "
            f"but version {head.version} is named by {head.naming_scheme}"
        )
    staged = builder.findings.get(index)
    if isinstance(staged, LanceNamespaceError):
        raise staged
    if not isinstance(staged, StagedManifest):
        raise TypeError(f"operation {index}: no verification result")
    base = branch_base(table.location, operation.branch)
    if not (is_in_staging(staged.key) or staged.key.startswith(f"{base}/")):
        raise InvalidInputError(f"{chain_name(operation)} lies at {table.location}, the manifest at {staged.key}")
    if staged.location != table.location:
        raise InvalidInputError(f"{chain_name(operation)} lies at {table.location}, its files at {staged.location}")
    require_fresh(builder, operation, table, staged)
    below: ManifestFile | None = None
    if head is None:
        require_removed(builder, table, operation)
        _check_bases(operation, staged, None)
        _check_first(builder, operation, staged.file)
    else:
        builder.require_head_promoted(head)
        # What it read as a version that another batch of the group makes is not in quarantine yet.
        builder.follows |= builder.context.is_made_by_group(head, builder.base)
        if staged.refused_bases:
            _check_bases(operation, staged, builder.context.manifest(head))
        below = _check_next(builder, operation, head, staged.file)
    entry = VersionEntry(
        table_id=operation.id,
        branch=operation.branch,
        version=operation.version,
        location=table.location,
        size=len(staged.data),
        sha256=staged.file.identity.sha256,
        transaction_uuid=staged.file.identity.transaction_uuid,
        timestamp_ms=staged.file.timestamp_ms,
        e_tag=operation.e_tag or staged.e_tag,
        naming_scheme=operation.naming_scheme,
        staged_path=staged.key,
        metadata=operation.metadata,
    )
    return builder.publish(PlannedVersion(entry, staged.data, staged.file, rows_added(staged.file, below)))


def delete_versions(builder: PlanBuilder, index: int, operation: DeleteTableVersions) -> OperationResult:
    """Remove version rows, none that is not promoted (P6) or that a tag names (B1); the head only with all others (N2).

    Where all go, tags go with them, as with a table that is dropped.
    """
    table = builder.table_in_place(operation.id)
    head = require_head(builder, operation)
    removed: dict[int, VersionEntry] = {}
    for start, end in operation.ranges:
        limit = head.version + 1 if end < 0 else end
        for entry in builder.view(operation.id).versions(operation.id, operation.branch, descending=False):
            if start <= entry.version < limit:
                removed[entry.version] = entry
    builder.require_promoted(list(removed.values()))
    if head.version in removed:
        _remove_all(builder, operation, table, removed.keys())
    else:
        refuse_tagged(builder, index, table, list(removed.values()))
        builder.change(removes=[entry.object_id for entry in removed.values()])
    return {"deleted_count": len(removed)}


def _remove_all(
    builder: PlanBuilder, operation: DeleteTableVersions, table: TableEntry, removed: Collection[int]
) -> None:
    """Remove all versions: the table keeps its name and properties, and is only declared, at a fresh location.

    Its versions begin at 1 again there, and are none of the old chain (N1, N2). The old location is treated as that of
    a table that was dropped (G15).
    """
    reason = None
    if operation.branch is not None:
        reason = "the head of a branch goes only with the branch"
    elif any(entry.version not in removed for entry in builder.view(table.id).versions(table.id, None)):
        reason = "the head goes only with all other versions: else an older one becomes the head, its number is reused"
    elif builder.work.branches(table.id):
        reason = f"the branches {', '.join(builder.work.branches(table.id))} stand on the table; they go only with it"
    elif sum(isinstance(each, TableOperation) and each.id == table.id for each in builder.batch.operations) > 1:
        reason = "a batch that deletes all versions of a table does nothing else with its versions"
    if reason is not None:
        head = require_head(builder, operation)
        raise InvalidInputError(
            f"{chain_name(operation)}: version {head.version} is the head, it is not deleted: {reason}"
        )
    builder.put_tombstones([table], DROPPED, ends_grants=False)
    builder.change(removes=list(builder.work.object_ids(table.id)))
    builder.change([replace(table, location=operation.fresh_location)])


def assert_version(builder: PlanBuilder, index: int, operation: AssertTableVersion) -> OperationResult:
    """Fail the batch unless the version is the head in the snapshot that the flip is planned on (P9, P11)."""
    builder.table_in_place(table_at_location(builder, operation).id)
    head = builder.view(operation.id).head(operation.id, operation.branch)
    actual = 0 if head is None else head.version
    if actual != operation.version:
        message = f"{chain_name(operation)}: expected version {operation.version} to be the head, found {actual}"
        hint = f"read version {actual} and redo what depended on version {operation.version}"
        raise _refused(builder, index, operation, message, hint)
    replaced = None if head is None else replacement(head, operation.manifest_sha256)
    if replaced is not None:
        message = f"{chain_name(operation)}: {replaced}"
        hint = f"read version {actual} again and redo what depended on it"
        raise _refused(builder, index, operation, message, hint)
    return {}


def _refused(builder: PlanBuilder, index: int, operation: AssertTableVersion, message: str, hint: str) -> BatchConflict:
    detail = conflict_detail(builder, index, operation, operation.version, hint)
    return BatchConflict(message, detail, operation.name)


def _expected_version(operation: CreateTableVersion, head: VersionEntry | None) -> int | None:
    if head is not None:
        return head.version + 1
    return 1 if operation.branch is None else None


def _check_first(builder: PlanBuilder, operation: CreateTableVersion, file: ManifestFile) -> None:
    """A main chain begins at 1; a branch begins with the Clone of a version that the catalog holds (P4)."""
    _check_contents(operation, None, file)
    if operation.branch is None:
        if file.operation == "clone" and file.branch is not None:
            raise InvalidInputError(
                f"version 1 of {chain_name(operation)}: the manifest is a fork of branch {file.branch}"
            )
        return
    if file.operation != "clone" or file.transaction is None:
        raise TableBranchNotFoundError(f"{chain_name(operation)} does not exist, and the manifest does not fork it")
    clone = file.transaction.clone
    if clone.branch_name != operation.branch or clone.ref_version != operation.version:
        raise InvalidInputError(
            f"version {operation.version} of {chain_name(operation)}: the manifest forks branch {clone.branch_name!r} "
            f"from version {clone.ref_version}"
        )
    forked_version(builder, operation, clone)


def _check_next(
    builder: PlanBuilder, operation: CreateTableVersion, head: VersionEntry, file: ManifestFile
) -> ManifestFile:
    """A manifest continues the chain of its head (P3). Returns that of the head."""
    if file.operation == "clone":
        if operation.branch is None:
            raise InvalidInputError(f"version {operation.version} of {chain_name(operation)}: a Clone begins a chain")
        raise TableBranchAlreadyExistsError(f"{chain_name(operation)} exists, at version {head.version}")
    below, view = builder.context.manifest(head), builder.view(operation.id)
    chain = (operation.id, operation.branch)
    try:
        reason = (
            lineage_break(below, file)
            or unseen_deletions(below, file, lambda version: builder.context.row_manifest(view, chain, version))
            or _restores_another(builder, operation, file)
            or (None if builder.publishes(head) else builder.context.dirty_read(view, head, file))
        )
    except CorruptFile as error:
        reason = str(error)
    if reason is not None:
        raise InvalidInputError(
            f"version {operation.version} of {chain_name(operation)} is not built on version {head.version}: {reason}; "
            "reopen the table and redo the operation"
        )
    index = misplaced_index(below, file)
    if index is not None:
        raise InvalidInputError(
            f"version {operation.version} of {chain_name(operation)}: expected the segments of index {index!r} where "
            "they are, found one stated below another root, as pylance does where it compacts a branch or a clone; use "
            "`maintain`, or `tx.compact` of namespace_client"
        )
    _check_contents(operation, below, file)
    return below


def _restores_another(builder: PlanBuilder, operation: CreateTableVersion, file: ManifestFile) -> str | None:
    """Why the rows of a Restore are not those of the version that it names, in words; None if they are."""
    if file.transaction is None or file.operation != "restore":
        return None
    number = file.transaction.restore.version
    restored = builder.context.row_manifest(builder.view(operation.id), (operation.id, operation.branch), number)
    if restored is None:
        return f"it restores version {number}, which is not there"
    return None if has_fragments_of(restored, file) else f"it restores another version {number} than that of the table"


def _check_bases(operation: CreateTableVersion, staged: StagedManifest, below: ManifestFile | None) -> None:
    """Base paths may lead where the catalog allows it; those of the version before stay."""
    before = () if below is None else {base.path for base in below.outline.base_paths}
    for path, reason in staged.refused_bases.items():
        if path not in before:
            raise InvalidInputError(f"version {operation.version} of {chain_name(operation)}: base path {reason}")


def _check_contents(operation: CreateTableVersion, below: ManifestFile | None, file: ManifestFile) -> None:
    """A version must leave numbers for those that follow it.

    The data files of its new fragments are none of other fragments, whose rows would be there twice.
    """
    try:
        check_room(below, file)
        if file.transaction is not None:
            kept = pb.ManifestOutline() if below is None or file.operation == "overwrite" else below.outline
            require_unshared(kept, new_fragments(file.transaction))
    except (InvalidTransaction, CorruptFile) as error:
        raise InvalidInputError(f"version {operation.version} of {chain_name(operation)}: {error}") from error


def _version_exists(
    builder: PlanBuilder, index: int, operation: CreateTableVersion, version: int
) -> LanceNamespaceError:
    if builder.base.version_entry(operation.id, operation.branch, version) is None:
        return InvalidInputError(f"version {version} of {chain_name(operation)} is created twice by this batch")
    head = builder.view(operation.id).head(operation.id, operation.branch)
    top = version if head is None else head.version
    message = f"version {version} of {chain_name(operation)} exists already with different content; the head is {top}"
    hint = f"rebase onto version {top} and commit version {top + 1}"
    return BatchConflict(
        message, conflict_detail(builder, index, operation, top + 1, hint, winner=version), operation.name
    )


def _wrong_number(operation: CreateTableVersion, head: VersionEntry | None, expected: int) -> LanceNamespaceError:
    message = f"version {operation.version} of {chain_name(operation)}: expected head + 1 = {expected}"
    if head is not None and operation.version <= head.version:
        return TableVersionNotFoundError(f"{message}; that version existed and was removed")
    return InvalidInputError(message)
