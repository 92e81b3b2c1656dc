"""Plan the operations on branches and tags: begin and delete a branch, confirm a tag that was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote
from uuid import NAMESPACE_OID, uuid5

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from lance_core.errors import NotFound
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.answer import json_bytes
from namespace_server.directory.model.entries import (
    REMOVED,
    REMOVING,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
)
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import (
    CommitTransaction,
    ConfirmTag,
    CreateBranch,
    DeleteBranch,
    DeleteTag,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.chains import chain_name, require_head
from namespace_server.directory.planning.plan_builder import PlanBuilder, TableReferences
from namespace_server.directory.planning.transactions import begin_branch

_REMEMBERED: Final = 1_000
"""Versions of a deleted branch, the newest ones, that are known again if their manifests are written late."""
_NAMED = 10
"""The most names that a refusal lists."""
_OWN_DIRECTORIES = frozenset({"", "data", "_deletions", "_indices"})
"""What of the root of a branch a base path may name: the root itself, or a directory of its files."""


def plan_reference(
    builder: PlanBuilder, index: int, operation: CreateBranch | DeleteBranch | ConfirmTag | DeleteTag
) -> OperationResult:
    """Plan one operation on a branch or a tag."""
    match operation:
        case CreateBranch():
            return _create_branch(builder, index, operation)
        case DeleteBranch():
            return _delete_branch(builder, index, operation)
        case ConfirmTag():
            return _confirm_tag(builder, operation)
        case DeleteTag():
            return _delete_tag(builder, operation)


def _create_branch(builder: PlanBuilder, index: int, operation: CreateBranch) -> OperationResult:
    """Begin a branch with a Clone of the version that is asked for, or of the head of its parent (P4)."""
    table = builder.table(operation.id)
    parent = _forked(builder, operation)
    clone = Clone(builder.context.root_path(parent), parent.version, parent.branch, operation.branch)
    transaction = encode_transaction(clone, read_version=parent.version, uuid=operation.transaction_uuid)
    begin_branch(builder, index, CommitTransaction(operation.id, operation.branch, transaction), table)
    return {}


def _delete_branch(builder: PlanBuilder, index: int, operation: DeleteBranch) -> OperationResult:
    """Remove the rows of a branch that is not needed, and note that its files are to be removed (B2)."""
    table = builder.table(operation.id)
    head = require_head(builder, operation)
    references = _references(builder, index, table)
    tags = [tag for tag, branch, _ in references.tags if branch == operation.branch]
    if tags:
        raise InvalidInputError(f"{chain_name(operation)}: expected no tag on it, found {_listed(tags)}")
    if references.children:
        raise InvalidInputError(
            f"{chain_name(operation)}: expected no branch that begins at it, found {_listed(references.children)}"
        )
    readers = {*references.readers, *_later_readers(builder, operation, table, references)}
    if readers:
        raise InvalidInputError(
            f"{chain_name(operation)}: its files are read by {_listed(sorted(readers))}; these go first"
        )
    rows = list(builder.view(operation.id).versions(operation.id, operation.branch))
    builder.require_promoted(rows)
    base = branch_base(table.location, operation.branch)
    removing = RecordEntry(
        str(uuid5(NAMESPACE_OID, f"{builder.batch.uuid}/removing/{index}")),
        REMOVING,
        principal=builder.batch.principal,
        timestamp_ms=builder.context.now_ms,
        attempt=builder.context.attempt,
        participants=(Participant(table.id, operation.branch, head.version, base, None),),
    )
    removed = replace(
        removing,
        batch_uuid=str(uuid5(NAMESPACE_OID, f"{builder.batch.uuid}/removed/{index}")),
        state=REMOVED,
        results=json_bytes([row.sha256 for row in rows[-_REMEMBERED:]]),
    )
    builder.change([removing, removed], [row.object_id for row in rows])
    return {}


def _delete_tag(builder: PlanBuilder, operation: DeleteTag) -> OperationResult:
    """Record the removal of a tag, and which file it is whose removal a repetition of the call may have to finish."""
    _require_location(builder, operation)
    builder.require_record()
    return {"location": operation.location, "sha256": operation.sha256}


def _require_location(builder: PlanBuilder, operation: ConfirmTag | DeleteTag) -> None:
    if builder.table(operation.id).location != operation.location:
        raise TableNotFoundError(
            f"Table not found: {join(operation.id)} at {operation.location} does not exist any more"
        )


def _confirm_tag(builder: PlanBuilder, operation: ConfirmTag) -> OperationResult:
    """Hold if the version that a tag was written for is a row of this flip; the flip orders it with deletions (B1)."""
    _require_location(builder, operation)
    entry = builder.view(operation.id).version_entry(operation.id, operation.branch, operation.version)
    if entry is None or entry.sha256 != operation.sha256:
        raise TableVersionNotFoundError(
            f"tag {operation.tag}: version {operation.version} of {chain_name(operation)} was removed meanwhile"
        )
    builder.require_record()
    return {}


def refuse_tagged(builder: PlanBuilder, index: int, table: TableEntry, versions: list[VersionEntry]) -> None:
    """Raise InvalidInputError (13) if a tag names one of the versions that are to be removed (B1)."""
    if not versions:
        return
    wanted = {(entry.branch, entry.version) for entry in versions}
    named = [
        f"{tag} (version {version})"
        for tag, branch, version in _references(builder, index, table).tags
        if (branch, version) in wanted
    ]
    if named:
        raise InvalidInputError(
            f"table {join(table.id)}: expected no tag on a version to be deleted, found {_listed(named)}"
        )


def _references(builder: PlanBuilder, index: int, table: TableEntry) -> TableReferences:
    finding = builder.findings.get(index)
    if isinstance(finding, LanceNamespaceError):
        raise finding
    if not isinstance(finding, TableReferences) or finding.location != table.location:
        raise TableNotFoundError(f"Table not found: {join(table.id)} was made again meanwhile, at {table.location}")
    return finding


def _forked(builder: PlanBuilder, operation: CreateBranch) -> VersionEntry:
    """The version that a branch begins at, whose manifest can be read."""
    view, source = builder.view(operation.id), operation.from_branch
    place = f"table {join(operation.id)}" if source is None else f"branch {source} of table {join(operation.id)}"
    head = view.head(operation.id, source)
    if head is None:
        kind = TableVersionNotFoundError if source is None else TableBranchNotFoundError
        raise kind(f"{place} {'has no version yet' if source is None else 'does not exist'}, expected one to begin at")
    entry = head
    if operation.from_version is not None:
        found = view.version_entry(operation.id, source, operation.from_version)
        if found is None:
            raise TableVersionNotFoundError(f"version {operation.from_version} of {place} does not exist")
        entry = found
    try:
        builder.context.manifest(entry)
    except NotFound as error:
        raise TableVersionNotFoundError(
            f"version {entry.version} of {place} was removed by a cleanup: {error}"
        ) from error
    return entry


def reads_below(manifest: ManifestFile, base: str) -> bool:
    """Whether a version may have files below the root of a branch at the key `base`, by one of its base paths.

    The location of a table occurs once, so the end of a path is enough, however its beginning is spelt. The root of a
    nested branch lies below that of another one, and is a place of its own.
    """
    for entry in manifest.outline.base_paths:
        path = unquote(entry.path) if "://" in entry.path else entry.path
        _, found, below = f"{path.rstrip('/')}/".partition(f"/{base}/")
        if found and below.split("/")[0] in _OWN_DIRECTORIES:
            return True
    return False


def _later_readers(
    builder: PlanBuilder, operation: DeleteBranch, table: TableEntry, references: TableReferences
) -> set[str]:
    """Chains that read files of the branch by versions that were committed after the references were read."""
    base = branch_base(table.location, operation.branch)
    view = builder.view(table.id)
    return {
        entry.branch or "main"
        for branch in view.chains(table.id)
        if branch != operation.branch
        for entry in view.versions(table.id, branch, descending=True)
        if entry.sha256 not in references.checked and reads_below(builder.context.manifest(entry), base)
    }


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
