"""Two-phase commit of one table: stage the next version outside `_versions/`, inspect it, publish or discard it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from lance_core.commit.chain import VersionChain, replaced
from lance_core.commit.durability import write_before_publishing
from lance_core.commit.loop import Committed, PendingCommit, check_continues
from lance_core.commit.prepare import PreparedCommit
from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import InvalidTransaction, RetryableTransaction, TransactionUnknown
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import (
    TRANSACTIONS_DIRECTORY,
    NamingScheme,
    branch_base,
    join_key,
    manifest_name,
    manifest_path,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries

if TYPE_CHECKING:
    import lance

STAGING_DIRECTORY = "_staging"
"""Directory at the root of the store. Staged manifests are never below `_versions/`, which every writer lists."""


class StagedState(Enum):
    """State of a staged commit."""

    STAGED = "staged"
    PUBLISHED = "published"
    DISCARDED = "discarded"
    UNKNOWN = "unknown"
    """The outcome of publishing is unknown. Publishing may be repeated; discarding is refused."""


class StagedCommit:
    """A version that is complete except for its canonical name. `path` is the key of the staged manifest."""

    def __init__(
        self,
        store: ObjectStore,
        base: str,
        prepared: PreparedCommit,
        path: str,
        head: ManifestFile | None,
        scheme: NamingScheme,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.target = manifest_path(base, prepared.version, scheme)
        self._head = head
        self._scheme = scheme
        self.state = StagedState.STAGED
        self._store = store
        self._base = base
        self._prepared = prepared
        self._storage_options = storage_options

    @property
    def version(self) -> int:
        """The version number."""
        return self._prepared.version

    @property
    def file(self) -> ManifestFile:
        """The manifest that will be published."""
        return self._prepared.file

    @property
    def rebased(self) -> bool:
        """Whether it is built on a newer version than the transaction had read."""
        return self._prepared.rebased

    def open(self) -> lance.LanceDataset:
        """A pylance handle on the staged version, for reading and for staging files. It must never commit."""
        from lance_core.data import open_staged

        return open_staged(self._store.object_uri(self._base), self.file, self._storage_options)

    def publish(self) -> Committed:
        """Give the version its canonical name if the head has not moved. Atomic and idempotent.

        Raises:
            RetryableTransaction: Another version took the slot, or the place of the version that this one is built on,
                as where a branch is deleted and made again. Stage the transaction again.
            TransactionUnknown: The outcome is unknown. Only `publish` may be called again.
            InvalidTransaction: The version was discarded.
        """
        if self.state is StagedState.DISCARDED:
            raise InvalidTransaction(f"version {self.version} was staged at {self.path} and discarded")
        self._require_head()
        for key, data in _transaction_files(self._base, self._prepared):
            put_with_retries(self._store, key, data)
        outcome = claim_slot(self._store, self.target, self._prepared.manifest)
        if isinstance(outcome, SlotLost):
            self.state = StagedState.STAGED
            raise RetryableTransaction(
                self.version,
                f"a newer version was committed since version {self.version} was staged on {self.version - 1}",
            )
        if isinstance(outcome, SlotUnknown):
            self.state = StagedState.UNKNOWN
            raise TransactionUnknown(f"staged version {self.version} ({self.path}): {outcome.reason}")
        try:
            check_continues(self._store, self._base, self.file, self._head, self._scheme)
        except TransactionUnknown:
            self.state = StagedState.UNKNOWN
            raise
        self.state = StagedState.PUBLISHED
        self._store.delete(self.path)
        return Committed(self.version, self.target, self.file, outcome.e_tag, self.rebased)

    def _require_head(self) -> None:
        """Check that the version that this one is built on is there still. A free slot does not show that."""
        if self._head is None or self.state is StagedState.PUBLISHED:
            return
        number, expected = self._head.version, self._head.identity.sha256
        data = self._store.find(manifest_path(self._base, number, self._scheme))
        if data is None and self.state is StagedState.UNKNOWN:
            return  # it may be an old version by now, which was cleaned up
        found = "none" if data is None else hashlib.sha256(data).hexdigest()
        if found == expected:
            return
        if self.state is StagedState.UNKNOWN:
            raise TransactionUnknown(
                f"staged version {self.version} ({self.path}): {replaced(number, expected, found)}"
            )
        raise replaced(number, expected, found)

    def discard(self) -> None:
        """Remove the files that staging wrote: the manifest and the deletion files. Data files are not removed.

        Raises `InvalidTransaction` if the version was, or may have been, published.
        """
        if self.state in {StagedState.PUBLISHED, StagedState.UNKNOWN}:
            raise InvalidTransaction(f"version {self.version}, staged at {self.path}, is {self.state.value}")
        for key, _ in _deletion_files(self._base, self._prepared):
            self._store.delete(key)
        self._store.delete(self.path)
        self.state = StagedState.DISCARDED


def stage_commit(
    store: ObjectStore,
    base: str,
    transaction: pb.Transaction,
    *,
    branch: str | None = None,
    stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
    manifest_sha256: str | None = None,
) -> StagedCommit:
    """Judge, rebase and build the next version of the table at key `base` without publishing it. One attempt.

    The manifest is written to `_staging/<fresh uuid>/` at the root of the store (rule N5). All files that it refers to
    are durable on return, except the transaction file, which `publish` writes.

    Args:
        store: The store that holds the table.
        base: The key of the table's root.
        transaction: The transaction.
        branch: The branch to commit to; None for main.
        stable_row_ids: Whether a new table has stable row ids.
        storage_options: Options for reading the staged version through pylance.
        manifest_sha256: SHA-256 of the manifest that the transaction was computed on, as for `commit_transaction`.

    Raises:
        InvalidTransaction: The transaction contradicts itself or the table, or is committed already.
        RetryableTransaction, IncompatibleTransaction, UnsupportedFeature, ReferenceNotFound: As `commit_transaction`.
    """
    chain = VersionChain(store, branch_base(base, branch))
    found = PendingCommit(chain, transaction, branch, stable_row_ids, manifest_sha256=manifest_sha256).prepare()
    if isinstance(found, Committed):
        raise InvalidTransaction(f"transaction {transaction.uuid} is committed already, as version {found.version}")
    prepared, head, scheme = found
    path = join_key(STAGING_DIRECTORY, str(uuid.uuid4()), manifest_name(prepared.version, scheme))
    assert prepared.file.transaction is not None
    deletions = _deletion_files(chain.base, prepared)
    write_before_publishing(store, chain.base, prepared.file.transaction, head, deletions)
    put_with_retries(store, path, prepared.manifest)
    return StagedCommit(store, chain.base, prepared, path, head, scheme, storage_options)


def _is_transaction_file(base: str, key: str) -> bool:
    return key.startswith(join_key(base, TRANSACTIONS_DIRECTORY) + "/")


def _transaction_files(base: str, prepared: PreparedCommit) -> list[tuple[str, bytes]]:
    return [file for file in prepared.files if _is_transaction_file(base, file[0])]


def _deletion_files(base: str, prepared: PreparedCommit) -> list[tuple[str, bytes]]:
    return [file for file in prepared.files if not _is_transaction_file(base, file[0])]
