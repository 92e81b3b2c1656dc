"""Makes files survive a power loss before a manifest refers to them (rule S1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_core.errors import InvalidTransaction, NotFound
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.keys import is_key
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries
from lance_core.transaction.reachable import (
    UNSTATED,
    StatedFiles,
    blob_directories,
    reachable_files,
    unlisted_index_directories,
)

BLOB_EXTENSION = "lance.blob.v2"
"""Columns of this type may keep large values in `data/<name of the data file>/`, which no manifest lists."""


def added_files(
    store: ObjectStore,
    base: str,
    transaction: pb.Transaction,
    head: ManifestFile | None = None,
    made: ManifestFile | None = None,
) -> StatedFiles:
    """All files that `transaction` adds to the table at `base`, by key (rule S1: they must be durable first).

    Lists index directories of older writers and, on a local disk, the blobs beside data files.

    Args:
        store: The store that holds the table.
        base: The key of the root of the table or branch.
        transaction: The transaction.
        head: The version that the transaction is committed on. Without it, older files may be among the result.
        made: The version that the transaction makes, if it is built already.
    """
    files = reachable_files(transaction, base, head)
    directories = unlisted_index_directories(transaction, base)
    if store.local and _may_have_blobs(transaction, head, made):  # remote stores make every write durable themselves
        directories += filter(is_key, blob_directories(files, base))  # names that are no keys are refused later
    for directory in directories:
        files.update((meta.path, UNSTATED) for meta in store.list(directory) if meta.path not in files)
    return files


def _may_have_blobs(transaction: pb.Transaction, head: ManifestFile | None, made: ManifestFile | None) -> bool:
    """Whether the table may have, or may get, a column whose values are stored in separate files."""
    if made is not None:
        return _has_blobs(made.outline.fields)
    if head is None and not transaction.HasField("overwrite"):
        return True
    known = () if head is None else head.outline.fields
    return any(map(_has_blobs, (transaction.overwrite.schema, transaction.merge.schema, known)))


def _has_blobs(fields: Iterable[pb.Field]) -> bool:
    return any(field.extension_name == BLOB_EXTENSION for field in fields)


def write_before_publishing(
    store: ObjectStore,
    base: str,
    transaction: pb.Transaction,
    head: ManifestFile | None,
    files: Sequence[tuple[str, bytes]],
) -> None:
    """Write `files`, and make them and all files that `transaction` adds to the table at `base` durable.

    Stock clients do not sync their files, so data, deletion and index files are synced here, regardless of the writer.
    Raises `InvalidTransaction` if the store reports one of them as missing.
    """
    store.map(lambda file: put_with_retries(store, file[0], file[1], durable=False), files)
    keys = [*(key for key, _ in files), *added_files(store, base, transaction, head)]
    try:
        store.sync(dict.fromkeys(keys))
    except NotFound as error:
        raise InvalidTransaction(f"transaction {transaction.uuid} names a file that does not exist: {error}") from error
