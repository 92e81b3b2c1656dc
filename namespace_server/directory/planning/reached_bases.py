"""The base paths below which an operation brings its table files that it did not have: judged by who may read there.

A base path that a table has already is no permission for each file below it: it may have been added by another
principal, or by one that may not read there any more (GR10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.base_files import bases_of_transaction, bases_of_version, new_bases
from namespace_server.directory.model.operations import CloneTable, CommitTransaction, CreateTableVersion, Operation
from namespace_server.directory.planning.cloning import cloned_bases
from namespace_server.directory.planning.plan_builder import Finding, PlanBuilder, StagedManifest


def added_bases(operation: Operation) -> list[str]:
    """The base paths that a transaction adds to its table, as it says itself."""
    if not isinstance(operation, CommitTransaction):
        return []
    return [base.path for base in new_bases(operation.transaction)]


def reached_bases(builder: PlanBuilder, operation: Operation, finding: Finding | None) -> Collection[str]:
    """The base paths below which an operation names files that the head does not have there, and those that it adds.

    Raises `CorruptFile`, and `NotFound` for a version that was removed.
    """
    if isinstance(operation, CloneTable):
        return cloned_bases(builder, operation)
    if not isinstance(operation, CommitTransaction | CreateTableVersion):
        return ()
    chain = (operation.id, operation.branch)
    view = builder.view(operation.id)
    row = view.head(*chain)
    head = None if row is None else builder.context.manifest(row)
    known = set() if head is None else {base.path for base in head.outline.base_paths}
    if isinstance(operation, CommitTransaction):
        reached = bases_of_change(
            operation.transaction, head, lambda version: builder.context.row_manifest(view, chain, version)
        )
        return reached | (set(added_bases(operation)) - known)
    if isinstance(finding, StagedManifest):
        return bases_of_version(finding.file, head) | ({base.path for base in finding.file.outline.base_paths} - known)
    return ()


def bases_of_change(
    transaction: pb.Transaction, head: ManifestFile | None, at: Callable[[int], ManifestFile | None]
) -> set[str]:
    """The base paths of the head below which a transaction names files that the head does not have there.

    `at` gives the version that a Restore goes back to; None for one that is not there. Raises `CorruptFile`.
    """
    if head is None:
        return set()
    if transaction.HasField("restore"):
        source = at(transaction.restore.version)
        return set() if source is None else bases_of_version(source, head)
    return bases_of_transaction(transaction, head)


def reaches_others(bases: Iterable[str], location: str, key_of: Callable[[str], str | None]) -> bool:
    """Whether a base path leads elsewhere than into the table at a location, as that of a branch does."""
    return not all((key := key_of(base)) is not None and f"{key}/".startswith(f"{location}/") for base in bases)
