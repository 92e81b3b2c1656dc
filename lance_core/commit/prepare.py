"""Preparing a commit: judge, rebase and apply a transaction. Nothing becomes visible to readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.errors import (
    CorruptFile,
    IncompatibleTransaction,
    InvalidTransaction,
    NotFound,
    RetryableTransaction,
    UnsupportedFeature,
)
from lance_core.format.manifest import Identity, ManifestFile, build_manifest_file
from lance_core.format.naming import transaction_path
from lance_core.format.outline import find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.table_files import TableFiles
from lance_core.transaction.apply import apply_transaction
from lance_core.transaction.checks import check_operation
from lance_core.transaction.conflicts.rules import Context, Outcome, judge, shared_fragments
from lance_core.transaction.features import writes_transaction_files
from lance_core.transaction.heads import check_head
from lance_core.transaction.operations import (
    Clone,
    CreateIndex,
    Delete,
    Operation,
    Restore,
    Update,
    decode_operation,
    encode_transaction,
)
from lance_core.transaction.rebase import Rebased, rebase_coverage, rebase_deletions

__all__ = ["FirstVersion", "History", "PreparedCommit", "TableFiles", "prepare_commit"]

_UUID = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class History:
    """The committed versions that a transaction is judged against and built on.

    Attributes:
        head: The version to build on. None for the first version of a table or branch.
        concurrent: Every committed version above the transaction's read version, up to and including the head,
            ascending, each with its transaction.
        load: Returns a version of the same table or branch by its number; raises `NotFound`. It is called for a
            Restore, and for the read version if the transaction and a concurrent one changed rows of the same
            fragment. By default canonical names are read.
    """

    head: ManifestFile | None
    concurrent: Sequence[ConcurrentVersion] = ()
    load: Callable[[int], ManifestFile] | None = None


@dataclass(frozen=True, slots=True)
class FirstVersion:
    """Properties of a first version. They are ignored where there is a head.

    Attributes:
        branch: The branch that begins; None for main.
        stable_row_ids: Whether the new table has stable row ids.
        data_storage_version: The format of its data files; None for that of the files it begins with.
        cloned: The version that a Clone copies.
    """

    branch: str | None = None
    stable_row_ids: bool = False
    data_storage_version: str | None = None
    cloned: ManifestFile | None = None


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A manifest that may be published as `version` on `head`, and on no other version (rule P2).

    `files` are the store keys and bytes to be written first: the transaction file and deletion files. `rebased` is
    true if versions were committed after the read version of the transaction.
    """

    version: int
    manifest: bytes
    file: ManifestFile
    head: ManifestFile | None
    rebased: bool
    files: tuple[tuple[str, bytes], ...]

    @property
    def parent(self) -> Identity | None:
        """The identity of the head that the manifest is built on; None for a first version."""
        return None if self.head is None else self.head.identity


def prepare_commit(
    transaction: pb.Transaction,
    history: History,
    files: TableFiles,
    *,
    now_ns: int,
    first: FirstVersion | None = None,
) -> PreparedCommit:
    """Judge, rebase and apply a transaction.

    Reads deletion files if the transaction and a concurrent one changed rows of the same fragment, and the version
    that a Restore goes back to. Writes nothing.

    Args:
        transaction: The transaction. Without a head it is an Overwrite or a Clone.
        history: The committed versions to follow.
        files: The files of the table or branch.
        now_ns: The commit time in nanoseconds since the epoch.
        first: Properties of a first version.

    Returns:
        The next version.

    Raises:
        RetryableTransaction: A concurrent version conflicts; the operation can be redone.
        IncompatibleTransaction: A concurrent version conflicts irreconcilably.
        InvalidTransaction: The transaction contradicts itself or the table, or is committed already.
        CorruptFile: The head is not fit to be built on.
        UnsupportedFeature: The head or the operation is not supported.
    """
    if not _UUID.fullmatch(transaction.uuid):
        raise InvalidTransaction(f"transaction uuid {transaction.uuid!r}: expected letters, digits, '-' and '_'")
    first = first or FirstVersion()
    head = history.head
    operation = decode_operation(transaction)
    merged: tuple[tuple[str, bytes], ...] = ()
    if head is not None:
        check_head(head)
        _check_sequence(transaction, head, history.concurrent)
        if history.concurrent:
            rebased = _rebase(operation, transaction, head, history, files)
            if rebased is not None:
                transaction = restate_transaction(transaction, rebased.operation, head.version)
                operation = rebased.operation
                merged = tuple((file.path(files.base), file.data) for file in rebased.files)
    check_operation(operation, head, rebased=bool(history.concurrent))
    source = _restored(operation, head, history.load or files.manifest) if first.cloned is None else first.cloned
    first_number = operation.ref_version if isinstance(operation, Clone) else 1
    version = head.version + 1 if head is not None else first_number
    built = apply_transaction(
        head,
        transaction,
        version=version,
        now_ns=now_ns,
        branch=first.branch,
        stable_row_ids=first.stable_row_ids,
        data_storage_version=first.data_storage_version,
        source=source,
    )
    data, file = build_manifest_file(built.manifest, transaction, built.indices)
    if built.facts is not None:
        file.note_facts(built.facts)
    if writes_transaction_files(built.manifest):
        key = transaction_path(files.base, transaction.read_version, transaction.uuid)
        merged = ((key, transaction.SerializeToString(deterministic=True)), *merged)
    return PreparedCommit(version, data, file, head, bool(history.concurrent), merged)


def _restored(
    operation: Operation, head: ManifestFile | None, load: Callable[[int], ManifestFile]
) -> ManifestFile | None:
    """The version that a Restore goes back to; None for every other operation."""
    if not isinstance(operation, Restore) or head is None:
        return None
    if operation.version == head.version:
        return head
    if not 1 <= operation.version < head.version:
        raise InvalidTransaction(f"restore of version {operation.version}: expected one from 1 to {head.version}")
    try:
        return load(operation.version)
    except NotFound as error:
        raise InvalidTransaction(f"restore of version {operation.version}, which does not exist: {error}") from error


def _check_sequence(transaction: pb.Transaction, head: ManifestFile, concurrent: Sequence[ConcurrentVersion]) -> None:
    read_version = transaction.read_version
    if read_version > head.version:
        raise InvalidTransaction(
            f"transaction {transaction.uuid} read version {read_version}: expected at most the head, {head.version}"
        )
    found = [file.version for file in concurrent]
    if found != list(range(read_version + 1, head.version + 1)):
        raise ValueError(f"concurrent versions {found}: expected {read_version + 1} to {head.version}")
    for file in concurrent:
        if file.transaction_uuid == transaction.uuid:
            raise InvalidTransaction(f"transaction {transaction.uuid} is committed already, as version {file.version}")


def _rebase(
    operation: Operation, transaction: pb.Transaction, head: ManifestFile, history: History, files: TableFiles
) -> Rebased | None:
    """Judge the operation against each concurrent version; return it in terms of the head, or None if unchanged."""
    rows = _DeletedRows(operation, transaction, head, files, history.load or files.manifest)
    for file in history.concurrent:
        shared = shared_fragments(operation, file.transaction)
        verdict = judge(operation, file.transaction, rows.context(file, shared))
        if verdict.outcome in {Outcome.RETRYABLE, Outcome.INCOMPATIBLE}:
            kind = RetryableTransaction if verdict.outcome is Outcome.RETRYABLE else IncompatibleTransaction
            committed = None if file.transaction is None else file.transaction.WhichOneof("operation")
            raise kind(file.version, verdict.reason, committed)
    rebased: Rebased
    match operation:
        case Delete() | Update():
            rebased = rebase_deletions(operation, head.outline, rows.complete, rows.in_head())
        case CreateIndex():
            committed = [file.transaction for file in history.concurrent if file.transaction is not None]
            rebased = rebase_coverage(operation, head.outline, committed)
        case _:
            return None
    return rebased if rebased.operation != operation else None


def restate_transaction(transaction: pb.Transaction, operation: Operation, version: int) -> pb.Transaction:
    """A transaction with another operation, as one that read `version`."""
    restated = encode_transaction(
        operation,
        read_version=version,
        uuid=transaction.uuid,
        properties=transaction.transaction_properties,
    )
    restated.tag = transaction.tag
    return restated


class _DeletedRows:
    """The rows that a Delete or Update and the versions concurrent to it delete, read from deletion files on demand."""

    def __init__(
        self,
        operation: Operation,
        transaction: pb.Transaction,
        head: ManifestFile,
        files: TableFiles,
        load: Callable[[int], ManifestFile],
    ) -> None:
        self._updated = (
            {fragment.id: fragment for fragment in operation.updated} if isinstance(operation, (Delete, Update)) else {}
        )
        self._read_version = transaction.read_version
        self._head = head
        self._files = files
        self._load = load
        self._read: ManifestFile | None = None
        self._before: dict[int, pb.DataFragment] = {}
        self._ours: dict[int, BitMap] = {}
        self.complete: dict[int, BitMap] = {}
        """All rows in the operation's deletion files, by fragment id, of the fragments requested so far."""

    def context(self, other: ConcurrentVersion, shared: frozenset[int]) -> Context:
        """The context for judging against `other`, without rows that can no longer be read (rule P8)."""
        theirs: dict[int, BitMap] = {}
        try:
            changed = find_fragments(other.outline, shared & self._updated.keys()) if shared else {}
        except (NotFound, CorruptFile):
            changed = {}
        for number, fragment in changed.items():
            complete = self._complete(number)
            try:
                self._subtract(number, complete)
                theirs[number] = self._files.deleted_rows(other.outline, fragment)
            except (NotFound, CorruptFile, UnsupportedFeature):
                continue
        return Context(self._ours, theirs, self._head.outline.fields)

    def in_head(self) -> dict[int, BitMap]:
        """All rows deleted in the head, by fragment id, of the fragments requested so far."""
        found: dict[int, BitMap] = {}
        for number, fragment in find_fragments(self._head.outline, self._ours.keys()).items():
            try:
                found[number] = self._files.deleted_rows(self._head.outline, fragment)
            except (NotFound, UnsupportedFeature) as error:
                reason = f"its deletions in fragment {number} cannot be read: {error}"
                raise RetryableTransaction(self._head.version, reason) from error
        return found

    def _complete(self, identifier: int) -> BitMap:
        if identifier not in self.complete:
            try:
                rows = self._files.deleted_rows(self._head.outline, self._updated[identifier])
            except NotFound as error:
                raise InvalidTransaction(f"deletion file of fragment {identifier}: {error}") from error
            self.complete[identifier] = rows
        return self.complete[identifier]

    def _subtract(self, identifier: int, complete: BitMap) -> None:
        if identifier in self._ours:
            return
        if self._read is None:
            self._read = self._load(self._read_version)
            self._before = find_fragments(self._read.outline, self._updated.keys())
        fragment = self._before.get(identifier)
        before = BitMap() if fragment is None else self._files.deleted_rows(self._read.outline, fragment)
        self._ours[identifier] = complete - before
