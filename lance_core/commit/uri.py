"""Committing a transaction to a table that is known by its URI."""

from __future__ import annotations

import os
from collections.abc import Mapping

from google.protobuf.message import DecodeError

from lance_core.commit.handlers.handler import CommitHandler, handle
from lance_core.commit.loop import MAX_RETRIES, Committed
from lance_core.commit.loop import commit_transaction as commit_to_store
from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store


def commit_transaction(
    uri: str | os.PathLike[str],
    transaction: pb.Transaction | bytes,
    *,
    branch: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    commit_handler: CommitHandler | None = None,
    max_retries: int = MAX_RETRIES,
) -> Committed:
    """Publish `transaction`, a message or its bytes, as the next version of the table at `uri` or of its `branch`.

    It is judged against every version since the one that it read, and rebased over those that it may follow; the
    answer says which version it became and whether it was rebased. When another writer takes the slot first, it
    begins again, at most `max_retries` times. A transaction that is committed already is answered with its version,
    so a call may be repeated. `commit_handler` says how the slot is claimed (see `lance_core.commit.handlers`); every
    writer of the table must use the same. None is what the store has itself.

    Nothing was committed when this raises `RetryableConflict` (also when the tries are used up) or
    `IncompatibleTransaction`, both with the concurrent version and the reason; `InvalidTransaction` for one that
    contradicts itself or the table, or bytes that are none; `UnsupportedFeature`; `ReferenceNotFound` for a table or
    branch that is not there; `StorageError` for a URI that leads to no store. After `CommitUnknown` it may have been
    committed, or may yet be.
    """
    message = transaction if isinstance(transaction, pb.Transaction) else _parse(transaction)
    store = handle(open_store(uri, storage_options), commit_handler)
    return commit_to_store(store, "", message, branch=branch, max_retries=max_retries)


def _parse(data: bytes) -> pb.Transaction:
    try:
        return pb.Transaction.FromString(data)
    except DecodeError as error:
        raise InvalidTransaction(f"{len(data)} bytes are not a transaction: {error}") from error
