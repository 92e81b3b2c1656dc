"""Committing one transaction to one table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tenacity import RetryError, Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from lance_core.commit.chain import VersionChain
from lance_core.commit.confirm import check_continues
from lance_core.commit.copying import Origin, copy_files
from lance_core.commit.durability import write_before_publishing
from lance_core.commit.prepare import PreparedCommit, prepare_commit
from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.commit.table_files import TableFiles
from lance_core.errors import CommitUnknown, IncompatibleTransaction, NotFound, ReferenceNotFound, RetryableConflict
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, branch_base, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, find_latest, read_version

MAX_RETRIES = 20

_WAIT = wait_random_exponential(multiplier=0.005, max=1.0)


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that was published under its canonical key `path`.

    `rebased` says that it was put on a newer version than the transaction had read. `e_tag` is None where the store
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
) -> Committed:
    """Publish `transaction` as the next version of the table at key `base`, or of one of its branches.

    Each attempt judges it against every version since the one it read, rebases it, writes what must be there first
    and claims the slot after the head; when another writer took that, it begins again after a pause with jitter, at
    most `max_retries` times. A transaction that is found to be committed already is answered with the version that
    it made, so a call may be repeated. `stable_row_ids` is for the first version of a table.

    A Clone begins a branch, or a shallow clone at another `base`, under the number of the version that it copies. That
    its place is empty is looked at before, not as part of the claim: the place must be the caller's own, as a branch
    is whose name nobody else is creating (`Branches.create` sees to that). `origin` is the version that it copies,
    where it is at hand or lies in another store. A deep one copies the files first; only a table can be one.

    Raises `RetryableConflict` (also when the tries are used up), `IncompatibleTransaction`, `InvalidTransaction`,
    `UnsupportedFeature`, `ReferenceNotFound` for a branch or table that is not there: nothing was committed.
    `CommitUnknown`: it may have been, or may yet be. Files of lost attempts stay for a collector (G4).
    """
    attempt = _CommitAttempt(store, branch_base(base, branch), transaction, branch, stable_row_ids, origin)
    retrying = Retrying(
        stop=stop_after_attempt(max_retries + 1), wait=_WAIT, retry=retry_if_result(lambda result: result is None)
    )
    try:
        committed = retrying(attempt.run)
    except RetryError as error:
        reason = f"another writer took the slot in each of {max_retries + 1} attempts"
        raise RetryableConflict(attempt.last_slot, reason) from error
    assert committed is not None
    return committed


def prepare_on_head(
    chain: VersionChain,
    transaction: pb.Transaction,
    *,
    branch: str | None = None,
    stable_row_ids: bool = False,
    origin: Origin | None = None,
) -> tuple[PreparedCommit, ManifestFile | None, NamingScheme] | Committed:
    """The next version of the chain as `transaction` makes it, with the head that it stands on.

    Or the version that it has made already. Raises as `commit_transaction` does, but nothing of unknown outcome.
    """
    if transaction.WhichOneof("operation") == "clone":
        return _clone_on_nothing(chain, transaction, branch, origin)
    landed = chain.load_since(transaction.read_version)
    if landed.head is None and branch is not None:
        raise ReferenceNotFound(
            f"branch {branch} ({chain.store.object_uri(chain.base)}): expected a version, found none"
        )
    done = landed.find(transaction.uuid)
    if done is not None:
        path = manifest_path(chain.base, done.version, landed.scheme)
        file = chain.whole(done, landed.scheme)
        return Committed(done.version, path, file, None, done.version > transaction.read_version + 1)
    prepared = prepare_commit(
        transaction,
        landed.head,
        landed.concurrent,
        TableFiles(chain.store, chain.base),
        now_ns=time.time_ns(),
        stable_row_ids=stable_row_ids,
    )
    return prepared, landed.head, landed.scheme


def _clone_on_nothing(
    chain: VersionChain, transaction: pb.Transaction, branch: str | None, origin: Origin | None
) -> tuple[PreparedCommit, ManifestFile | None, NamingScheme] | Committed:
    """The first version of a branch or clone, where none is yet, or the one that it has made already."""
    clone = transaction.clone
    files = TableFiles(chain.store, chain.base)
    try:
        latest = find_latest(chain.store, chain.base)
    except ReferenceNotFound:
        pass
    else:
        return _begun(files, transaction, latest)
    origin = origin or _find_origin(files, clone)
    prepared = prepare_commit(transaction, None, (), files, now_ns=time.time_ns(), branch=branch, cloned=origin.file)
    if not clone.is_shallow:
        copy_files(origin, chain.store, chain.base)
    return prepared, None, NamingScheme.V2


def _begun(files: TableFiles, transaction: pb.Transaction, latest: ManifestLocation) -> Committed:
    """The version that a Clone made of the place that it was for. Raises `IncompatibleTransaction` if others did."""
    refusal = IncompatibleTransaction(latest.version, "a Clone can only be the first version")
    try:
        found, file = read_version(files.store, files.base, transaction.clone.ref_version, latest.scheme)
    except ReferenceNotFound:
        raise refusal from None
    if file.transaction_uuid != transaction.uuid:
        raise refusal
    return Committed(found.version, found.path, file, None, False)


def _find_origin(files: TableFiles, clone: pb.Transaction.Clone) -> Origin:
    """What a Clone names, where it lies in the store."""
    try:
        file = files.cloned(clone.ref_path, clone.ref_version)
    except NotFound as error:
        raise ReferenceNotFound(f"clone of version {clone.ref_version} of {clone.ref_path}: {error}") from error
    return Origin(files.store, files.key_of(clone.ref_path) or "", file)


class _CommitAttempt:
    def __init__(
        self,
        store: ObjectStore,
        base: str,
        transaction: pb.Transaction,
        branch: str | None,
        stable_row_ids: bool,
        origin: Origin | None,
    ) -> None:
        self._chain = VersionChain(store, base)
        self._transaction = transaction
        self._branch = branch
        self._stable_row_ids = stable_row_ids
        self._origin = origin
        self.last_slot = 0

    def run(self) -> Committed | None:
        """Try once. None when another writer took the slot."""
        store, base = self._chain.store, self._chain.base
        found = prepare_on_head(
            self._chain,
            self._transaction,
            branch=self._branch,
            stable_row_ids=self._stable_row_ids,
            origin=self._origin,
        )
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
            raise CommitUnknown(f"transaction {self._transaction.uuid} at version {prepared.version}: {outcome.reason}")
        check_continues(store, base, prepared.file, head, scheme)
        return Committed(prepared.version, path, prepared.file, outcome.e_tag, prepared.rebased)
