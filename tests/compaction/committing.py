"""A compaction of a table that is given by its URI or store, committed as a transaction of one table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lance_core.commit.handlers.handler import CommitHandler, handle
from lance_core.commit.loop import MAX_RETRIES, Committed, commit_transaction
from lance_core.compaction.rewrite import CompactionOptions, prepare_compaction
from lance_core.errors import InvalidTransaction, TransactionConflict
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import ReserveFragments, encode_transaction


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction.

    Attributes:
        version: The version that the compaction made, or the newest version if there was nothing to compact.
        committed: The commit; None if there was nothing to compact.
        removed_fragments: The number of fragments that were replaced.
        added_fragments: The number of fragments that replaced them.
        rewritten_indices: The number of index segments that were rewritten.
    """

    version: int
    committed: Committed | None
    removed_fragments: int = 0
    added_fragments: int = 0
    rewritten_indices: int = 0


def compact(
    uri: str | os.PathLike[str],
    options: CompactionOptions | None = None,
    *,
    branch: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_handler: CommitHandler | None = None,
    max_retries: int = MAX_RETRIES,
) -> Compacted:
    """Rewrite the newest version of a table or branch into fewer fragments, and commit the result.

    If an index must be rewritten, the ids of the new fragments are reserved first, in a version of its own. Files of a
    compaction that is not committed are removed, except after an unknown outcome. Raises as `commit_transaction` and
    `prepare_compaction`.
    """
    return compact_table(
        handle(open_store(uri, storage_options), commit_handler),
        "",
        options,
        branch=branch,
        storage_options=storage_options,
        max_retries=max_retries,
    )


def compact_table(
    store: ObjectStore,
    location: str,
    options: CompactionOptions | None = None,
    *,
    branch: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    max_retries: int = MAX_RETRIES,
) -> Compacted:
    """As `compact`, for the table at the key `location` of `store`. Pylance opens the store with `storage_options`."""
    dataset = Dataset.open(store, (branch, None), location=location, storage_options=storage_options)

    def commit(transaction: pb.Transaction) -> Committed:
        return commit_transaction(
            dataset.store,
            dataset.location,
            transaction,
            branch=dataset.branch,
            max_retries=max_retries,
            manifest_sha256=dataset.hash_for(transaction),
        )

    def reserve(count: int) -> int:
        transaction = encode_transaction(ReserveFragments(count), read_version=dataset.version)
        done = commit(transaction)
        return done.file.manifest.max_fragment_id - count + 1

    prepared = prepare_compaction(
        dataset.store, dataset.base, dataset.file, reserve=reserve, options=options, storage_options=storage_options
    )
    if prepared is None:
        return Compacted(dataset.version, None)
    try:
        committed = commit(prepared.transaction)
    except (TransactionConflict, InvalidTransaction):
        dataset.store.delete_all(prepared.files)
        raise
    return Compacted(
        committed.version,
        committed,
        prepared.removed_fragments,
        prepared.added_fragments,
        len(prepared.transaction.rewrite.rewritten_indices),
    )
