"""Removal of the files of a change that was rejected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from lance_core.errors import LanceCoreError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base, transaction_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.transaction.reachable import blob_directories, reachable_files, unlisted_index_directories
from table_data.batch_operations import BatchOperation, TransactionCommit
from table_data.composition import Step
from table_data.table_changes import TableChanges

_log = logging.getLogger(__name__)


def remove_staged_files(changes: TableChanges, operations: Iterable[BatchOperation]) -> None:
    """Delete the files that these transactions would have added to the table, and their transaction files.

    Only for transactions that are not committed and will not be, and that no other process has. What cannot be deleted
    is left to garbage collection; so are the transaction files of attempts that were rebased.
    """
    transactions = [operation.transaction for operation in operations if isinstance(operation, TransactionCommit)]
    place = branch_base("", changes.state.branch)

    def find(store: ObjectStore) -> Iterable[str]:
        written = (transaction_path(place, each.read_version, each.uuid) for each in transactions)
        return [*_added_files(store, transactions, place, changes.base), *written]

    _remove(changes, find)


def remove_files_of_steps(changes: TableChanges, steps: Iterable[Step], kept: Iterable[Step]) -> None:
    """Delete the files that these steps have added to the table, but none that a step of `kept` names.

    Only for steps of a transaction that is not committed and will not be. What cannot be deleted is left to garbage
    collection.
    """
    place = branch_base("", changes.state.branch)

    def find(store: ObjectStore) -> Iterable[str]:
        added = _added_files(store, [step.transaction for step in steps], place, changes.base)
        staying = _added_files(store, [step.transaction for step in kept], place, changes.base)
        return [key for key in added if key not in staying]

    _remove(changes, find)


def _remove(changes: TableChanges, find: Callable[[ObjectStore], Iterable[str]]) -> None:
    store, above = changes.store, ""
    try:
        keys = find(store)
        if changes.new:  # a table that was never there leaves no directory either
            parent, _, name = changes.state.uri.rpartition("/")
            store, above = open_store(parent, changes.options), f"{name}/"
        for key in keys:
            store.delete(above + key)
    except LanceCoreError as error:
        _log.warning("files of a rejected change were left (%s)", type(error).__name__)


def _added_files(
    store: ObjectStore, transactions: Iterable[pb.Transaction], place: str, base: ManifestFile | None
) -> dict[str, None]:
    keys: dict[str, None] = {}
    for transaction in transactions:
        added = reachable_files(transaction, place, base)
        directories = blob_directories(added, place) + unlisted_index_directories(transaction, place)
        keys.update(dict.fromkeys(added))
        keys.update(dict.fromkeys(found.path for directory in directories for found in store.list(directory)))
    return keys
