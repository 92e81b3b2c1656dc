"""The commit loop of one table: prepare on the head, claim the slot, repeat if another writer took it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tenacity import RetryError, Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from lance_core.commit.chain import VersionChain, replaced
from lance_core.commit.copying import Origin, copy_files
from lance_core.commit.durability import write_before_publishing
from lance_core.commit.prepare import FirstVersion, History, PreparedCommit, prepare_commit
from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import (
    IncompatibleTransaction,
    ManifestNotSynchronized,
    NotFound,
    ReferenceNotFound,
    RetryableTransaction,
    StorageError,
    TransactionUnknown,
)
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, branch_base, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import ManifestLocation, find_latest, read_version, with_transaction

MAX_RETRIES = 20

_WAIT = wait_random_exponential(multiplier=0.005, max=1.0)


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that was published under its canonical key `path`.

    `rebased` is true if it was built on a newer version than the transaction had read. `e_tag` is None if the store
    has none or its answer was lost.
    """

    version: int
    path: str
    file: ManifestFile
    e_tag: str | None
    rebased: bool


def commit_transaction(
    store: ObjectStore,
    base: str,
    transaction: pb.Transaction,
    *,
    branch: str | None = None,
    max_retries: int = MAX_RETRIES,
    stable_row_ids: bool = False,
    origin: Origin | None = None,
    manifest_sha256: str | None = None,
) -> Committed:
    """Publish `transaction` as the next version of the table at key `base`, or of one of its branches.

    Each attempt judges the transaction against every version since its read version, rebases it, writes the files it
    refers to and claims the slot after the head. If another writer took the slot, the next attempt follows after a
    pause with jitter. A call may be repeated: a transaction that is committed already returns the version it made.

    A Clone begins a branch, or a clone at another `base`, under the number of the version that it copies. The check
    that its target is empty is not part of the claim, so the target must be reserved by the caller (`Branches.create`
    reserves the name of a branch). A deep clone copies the files first and is always a table of its own.

    Files of failed attempts are left to garbage collection. Returns and raises as `uri.commit_transaction`.

    Args:
        store: The store that holds the table.
        base: The key of the table's root.
        transaction: The transaction.
        branch: The branch to commit to; None for main.
        max_retries: How many times an attempt is repeated.
        stable_row_ids: Whether a new table has stable row ids.
        origin: The version that a Clone copies. By default it is found in `store` by the path that the Clone names.
        manifest_sha256: As for `uri.commit_transaction`.
    """
    chain = VersionChain(store, branch_base(base, branch))
    pending = PendingCommit(chain, transaction, branch, stable_row_ids, origin, manifest_sha256)
    retrying = Retrying(
        stop=stop_after_attempt(max_retries + 1), wait=_WAIT, retry=retry_if_result(lambda result: result is None)
    )
    try:
        committed = retrying(pending.attempt)
    except RetryError as error:
        reason = f"another writer committed first, {max_retries + 1} times"
        raise RetryableTransaction(pending.last_slot, reason) from error
    assert committed is not None
    return committed


@dataclass(slots=True)
class PendingCommit:
    """A transaction that is to be the next version of a chain; see the arguments of `commit_transaction`.

    `last_slot` is the version that the last attempt tried to be.
    """

    chain: VersionChain
    transaction: pb.Transaction
    branch: str | None = None
    stable_row_ids: bool = False
    origin: Origin | None = None
    manifest_sha256: str | None = None
    last_slot: int = 0

    def attempt(self) -> Committed | None:
        """Make one attempt. Returns None if another writer took the slot."""
        store, base = self.chain.store, self.chain.base
        found = self.prepare()
        if isinstance(found, Committed):
            return found
        prepared, head, scheme = found
        self.last_slot = prepared.version
        assert prepared.file.transaction is not None
        write_before_publishing(store, base, prepared.file.transaction, head, prepared.files)
        path = manifest_path(base, prepared.version, scheme)
        outcome = claim_slot(store, path, prepared.manifest)
        if isinstance(outcome, SlotLost):
            return None
        if isinstance(outcome, SlotUnknown):
            raise TransactionUnknown(
                f"transaction {self.transaction.uuid} at version {prepared.version}: {outcome.reason}"
            )
        check_continues(store, base, prepared.file, head, scheme)
        return Committed(prepared.version, path, prepared.file, outcome.e_tag, prepared.rebased)

    def prepare(self) -> tuple[PreparedCommit, ManifestFile | None, NamingScheme] | Committed:
        """Prepare the next version of the chain.

        Returns the prepared commit, the head that it is built on and the naming scheme of the chain; or the version
        that the transaction has made already. Raises as `commit_transaction` does, except `TransactionUnknown`.
        """
        transaction, chain = self.transaction, self.chain
        if transaction.WhichOneof("operation") == "clone":
            return self._prepare_clone(transaction.clone, TableFiles(chain.store, chain.base))
        since = chain.load_since(transaction.read_version)
        if since.head is None and self.branch is not None:
            raise ReferenceNotFound(
                f"branch {self.branch} ({chain.store.object_uri(chain.base)}): expected a version, found none"
            )
        done = since.find(transaction.uuid)
        if done is not None:
            path = manifest_path(chain.base, done.version, since.scheme)
            file = chain.read_complete(done, since.scheme)
            return Committed(done.version, path, file, None, done.version > transaction.read_version + 1)
        if self.manifest_sha256 is not None:
            chain.require(transaction.read_version, self.manifest_sha256, since)
        prepared = prepare_commit(
            transaction,
            History(since.head, since.concurrent),
            TableFiles(chain.store, chain.base),
            now_ns=time.time_ns(),
            first=FirstVersion(stable_row_ids=self.stable_row_ids),
        )
        return prepared, since.head, since.scheme

    def _prepare_clone(
        self, clone: pb.Transaction.Clone, files: TableFiles
    ) -> tuple[PreparedCommit, None, NamingScheme] | Committed:
        """Prepare the first version of a branch or clone; or return the version that the Clone has made already."""
        try:
            latest = find_latest(files.store, files.base)
        except ReferenceNotFound:
            pass
        else:
            return _committed_clone(files, self.transaction, latest)
        origin = self.origin or _find_origin(files, clone)
        if self.manifest_sha256 not in {None, origin.file.identity.sha256}:
            raise replaced(clone.ref_version, str(self.manifest_sha256), origin.file.identity.sha256)
        first = FirstVersion(self.branch, cloned=origin.file)
        prepared = prepare_commit(self.transaction, History(None), files, now_ns=time.time_ns(), first=first)
        if not clone.is_shallow:
            copy_files(origin, files.store, files.base)
        return prepared, None, NamingScheme.V2


def _committed_clone(files: TableFiles, transaction: pb.Transaction, latest: ManifestLocation) -> Committed:
    """The version that the Clone has made. Raises `IncompatibleTransaction` if another transaction made the table."""
    refusal = IncompatibleTransaction(latest.version, "a Clone can only be the first version")
    try:
        found, file = read_version(files.store, files.base, transaction.clone.ref_version, latest.scheme)
    except ReferenceNotFound:
        raise refusal from None
    if file.transaction_uuid != transaction.uuid:
        raise refusal
    return Committed(found.version, found.path, file, None, False)


def _find_origin(files: TableFiles, clone: pb.Transaction.Clone) -> Origin:
    """The version that a Clone names, if it is in the same store. Raises `ReferenceNotFound`, `UnsupportedFeature`."""
    try:
        file = files.cloned(clone.ref_path, clone.ref_version)
    except NotFound as error:
        raise ReferenceNotFound(f"clone of version {clone.ref_version} of {clone.ref_path}: {error}") from error
    return Origin(files.store, files.key_of(clone.ref_path) or "", file)


def check_continues(
    store: ObjectStore, base: str, file: ManifestFile, head: ManifestFile | None, scheme: NamingScheme
) -> None:
    """Check that `file`, just written below `base` on `head`, is the newest version or an ancestor of it.

    Its slot may have been vacant because a clean-up removed the version there. A writer that was suspended between
    reading the head and writing ends up below the newest version then, where the next clean-up removes its version.

    One listing. The version directly above `file` counts as built on it unless its content shows otherwise. Removes
    nothing, because the version may have been committed.

    Raises:
        TransactionUnknown: The version is not part of the chain, or that cannot be determined.
    """
    if head is None:
        return
    place = store.object_uri(manifest_path(base, file.version, scheme))
    try:
        latest = find_latest(store, base)
        if latest.version == file.version:
            return
        above = store.find(manifest_path(base, file.version + 1, scheme))
        if above is None:
            raise TransactionUnknown(
                f"{place} is written, but the newest version is {latest.version} and the versions between were "
                "removed: whether they were built on it is unknown"
            )
        built = with_transaction(store, base, parse_manifest_file(above, expected_version=file.version + 1))
        reason = None if built.transaction is None else lineage_break(file, built)
    except ManifestNotSynchronized:
        return  # committed in the external manifest store, which shows it once its final name can be written
    except StorageError as error:
        raise TransactionUnknown(f"{place} is written, but could not be confirmed: {error}") from error
    if reason is not None:
        raise TransactionUnknown(f"{place} is written, but version {file.version + 1} was not built on it: {reason}")
