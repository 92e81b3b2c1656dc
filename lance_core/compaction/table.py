"""Compacting a table that is known by its URI."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lance_core.commit.handlers.handler import CommitHandler, handle
from lance_core.commit.loop import MAX_RETRIES, Committed, commit_transaction
from lance_core.compaction.plan import CompactionOptions
from lance_core.compaction.rewrite import discard_compaction, prepare_compaction
from lance_core.errors import CommitConflict, InvalidTransaction
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import ReserveFragments, encode_transaction


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did. `committed` is None when there was nothing to do, and `version` the newest then."""

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
    """Rewrite the newest version of the table at `uri`, or of its `branch`, into fewer fragments and commit that.

    Rows, their ids, columns, tags and history stay as they are, and indices follow. When an index has to be rewritten
    the ids of the new fragments are reserved first, in a version of their own. Readers and appending writers are not
    disturbed; what changes rows of the same fragments meanwhile wins. `commit_handler` is as for `commit_transaction`.

    Raises `RetryableConflict` then, and `IncompatibleTransaction` when the table was replaced meanwhile: nothing was
    compacted, and the files written for it are gone. After `CommitUnknown` it may have been committed, or may yet
    be. Raises `ReferenceNotFound`, `CorruptFile`, `StorageError`, and `UnsupportedFeature` as `prepare_compaction`.
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
    """As `compact`, for the table at the key `location`; `storage_options` are for pylance, on the same store."""
    dataset = Dataset.open(store, (branch, None), location=location, storage_options=storage_options)

    def reserve(count: int) -> int:
        transaction = encode_transaction(ReserveFragments(count), read_version=dataset.version)
        done = commit_transaction(
            dataset.store, dataset.location, transaction, branch=dataset.branch, max_retries=max_retries
        )
        return done.file.manifest.max_fragment_id - count + 1

    prepared = prepare_compaction(
        dataset.store, dataset.base, dataset.file, reserve=reserve, options=options, storage_options=storage_options
    )
    if prepared is None:
        return Compacted(dataset.version, None)
    try:
        committed = commit_transaction(
            dataset.store, dataset.location, prepared.transaction, branch=dataset.branch, max_retries=max_retries
        )
    except (CommitConflict, InvalidTransaction):
        discard_compaction(dataset.store, prepared)
        raise
    return Compacted(
        committed.version,
        committed,
        prepared.removed_fragments,
        prepared.added_fragments,
        len(prepared.transaction.rewrite.rewritten_indices),
    )
