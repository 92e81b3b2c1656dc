"""Commits a transaction to a table that is given by its URI."""

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
    manifest_sha256: str | None = None,
) -> Committed:
    """Publish a transaction as the next version of a table or branch.

    The transaction is judged against every version since its read version, and rebased where that is possible. A call
    may be repeated: a transaction that is committed already returns the version it made.

    Args:
        uri: The URI or path of the table's root.
        transaction: The transaction, as a message or its bytes.
        branch: The branch to commit to; None for main.
        storage_options: Options of the store, by Lance's own keys.
        commit_handler: How the slot is claimed, see `lance_core.commit.handlers`. Every writer of the table must use
            the same handler. None uses the put-if-absent of the store.
        max_retries: How many times an attempt is repeated if another writer takes the slot.
        manifest_sha256: SHA-256 of the manifest that the transaction was computed on, in hexadecimal digits. Another
            version of that number, of a branch or table that was made again, is a conflict.

    Returns:
        The version that the transaction made, and whether it was rebased.

    Raises:
        RetryableTransaction: A concurrent version conflicts and the operation can be redone, or the retries are
            exhausted. Nothing was committed.
        IncompatibleTransaction: A concurrent version conflicts irreconcilably. Nothing was committed.
        InvalidTransaction: The transaction contradicts itself or the table, or the bytes are not a transaction.
            Nothing was committed.
        UnsupportedFeature: The table or the operation is not supported. Nothing was committed.
        ReferenceNotFound: The table or branch does not exist. Nothing was committed.
        StorageError: The URI or the options are not valid for any store, or the store failed. Nothing was committed.
        TransactionUnknown: The transaction may have been committed, or may still be.
    """
    message = transaction if isinstance(transaction, pb.Transaction) else _parse(transaction)
    store = handle(open_store(uri, storage_options), commit_handler)
    return commit_to_store(store, "", message, branch=branch, max_retries=max_retries, manifest_sha256=manifest_sha256)


def _parse(data: bytes) -> pb.Transaction:
    try:
        return pb.Transaction.FromString(data)
    except DecodeError as error:
        raise InvalidTransaction(f"{len(data)} bytes are not a transaction: {error}") from error
