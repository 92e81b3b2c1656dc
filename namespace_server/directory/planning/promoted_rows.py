"""Rows that must have their canonical names before a batch can be planned: those it builds on or removes (M1, P6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from namespace_server.access.subjects import Privilege
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ChainKey, ObjectId
from namespace_server.directory.model.operations import (
    Batch,
    CommitTransaction,
    CreateMode,
    CreateNamespace,
    CreateTableVersion,
    DeleteBranch,
    DeleteTableVersions,
    DeregisterTable,
    DropNamespace,
    DropTable,
    Operation,
    RegisterTable,
    RenameTable,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot


def rows_to_promote(
    batches: Iterable[Batch], snapshot: CatalogSnapshot, chains: Collection[ChainKey]
) -> list[VersionEntry]:
    """Committed rows that batches build on or remove, and the heads of `chains`; those among them that are open.

    That is the head of each chain that gets a version, and every open row of a table of which rows are removed or put
    under another name.
    """
    if not snapshot.state.open_places:
        return []
    heads, removed, policy = set(chains), set[ObjectId](), snapshot.policy
    for batch in batches:
        for operation in batch.operations:
            if policy is not None and not policy.allows(batch.subject, Privilege.SEE, operation.id):
                continue  # nothing is read for who may not see it
            if isinstance(operation, CommitTransaction | CreateTableVersion):
                heads.add((operation.id, operation.branch))
            elif (removed_id := _removed(operation)) is not None:
                removed.add(removed_id)
    rows = [head for chain in heads if _is_open(snapshot, chain) and (head := snapshot.head(*chain)) is not None]
    return [*rows, *_open_rows(snapshot, removed)] if removed else rows


def _removed(operation: Operation) -> ObjectId | None:
    """The table of which an operation removes or renames rows, or the namespace below which it removes all."""
    match operation:
        case DeleteTableVersions() | DeleteBranch() | DeregisterTable() | DropTable() | RenameTable():
            return operation.id
        case RegisterTable(overwrite=True) | DropNamespace(cascade=True) | CreateNamespace(mode=CreateMode.OVERWRITE):
            return operation.id
        case _:
            return None


def _is_open(snapshot: CatalogSnapshot, chain: ChainKey) -> bool:
    """Whether an open record published the head of a chain; its entry is made only then."""
    location, top = snapshot.location(chain[0]), snapshot.top(*chain)
    return location is not None and top is not None and (location, chain[1], top[0]) in snapshot.state.open_places


def _open_rows(snapshot: CatalogSnapshot, removed: Collection[ObjectId]) -> Iterator[VersionEntry]:
    for location, branch, version in snapshot.state.open_places:
        table_id = snapshot.table_at(location)
        if table_id is not None and _is_in(table_id, removed):
            entry = snapshot.version_entry(table_id, branch, version)
            if entry is not None:
                yield entry


def _is_in(table_id: ObjectId, removed: Collection[ObjectId]) -> bool:
    """Whether a table is one of these, or lies below one that is a namespace."""
    return any(table_id[:depth] in removed for depth in range(len(table_id) + 1))
