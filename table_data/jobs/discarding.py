"""Removal of the files of a change that was rejected."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lance_core.errors import LanceCoreError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base, transaction_path
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.transaction.reachable import blob_directories, reachable_files, unlisted_index_directories
from table_data.batch_operations import BatchOperation, TransactionCommit
from table_data.table_changes import TableChanges

_log = logging.getLogger(__name__)


def remove_staged_files(changes: TableChanges, operations: Iterable[BatchOperation]) -> None:
    """Delete the files that these transactions would have added to the table, and their transaction files.

    Only for transactions that are not committed and will not be, and that nobody else has. What cannot be deleted is
    left to garbage collection; so are the transaction files of attempts that were rebased.
    """
    store, above = changes.store, ""
    if changes.new:  # a table that was never there leaves no directory either
        parent, _, name = changes.state.uri.rpartition("/")
        store, above = open_store(parent, changes.options), f"{name}/"
    try:
        for key in _staged_files(changes.store, operations, changes.base):
            store.delete(above + key)
    except LanceCoreError as error:
        _log.warning("files of a rejected change were left (%s)", type(error).__name__)


def _staged_files(store: ObjectStore, operations: Iterable[BatchOperation], base: ManifestFile | None) -> list[str]:
    keys: list[str] = []
    for operation in operations:
        if isinstance(operation, TransactionCommit):
            place = branch_base("", operation.branch)
            added = reachable_files(operation.transaction, place, base)
            directories = blob_directories(added, place) + unlisted_index_directories(operation.transaction, place)
            keys += added
            keys.append(transaction_path(place, operation.transaction.read_version, operation.transaction.uuid))
            keys += [found.path for directory in directories for found in store.list(directory)]
    return keys
