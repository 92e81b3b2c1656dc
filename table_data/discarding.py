"""Removal of the files of a change that was rejected."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lance_core.errors import LanceCoreError
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.storage.port import ObjectStore
from lance_core.transaction.reachable import blob_directories, reachable_files, unlisted_index_directories
from table_data.batch_operations import BatchOperation, TransactionCommit

_log = logging.getLogger(__name__)


def remove_staged_files(store: ObjectStore, operations: Iterable[BatchOperation], base: ManifestFile | None) -> None:
    """Delete the files that transactions would have added to the version `base` of the table at the root of `store`.

    Only for transactions that are not committed and will not be. What cannot be deleted is left to garbage collection.
    """
    try:
        for key in _staged_files(store, operations, base):
            store.delete(key)
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
            keys += [found.path for directory in directories for found in store.list(directory)]
    return keys
