"""One attempt of a commit, up to the point where something becomes visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from lance_core.commit.concurrent_commits import ConcurrentVersion
from lance_core.commit.table_files import TableFiles
from lance_core.errors import (
    CorruptFile,
    IncompatibleTransaction,
    InvalidTransaction,
    NotFound,
    RetryableConflict,
    UnsupportedFeature,
)
from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import Identity, ManifestFile, build_manifest_file
from lance_core.format.naming import transaction_path
from lance_core.format.outline import find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import apply_transaction
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

__all__ = ["PreparedCommit", "TableFiles", "prepare_commit"]

_UUID = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A manifest that may be published as `version`, on `head` and on no other (P2).

    `files` are store keys and bytes that must be written before: the transaction file and deletion files.
    `rebased` says that versions were committed after the one that the transaction read.
    """

    version: int
    manifest: bytes
    file: ManifestFile
    head: ManifestFile | None
    rebased: bool
    files: tuple[tuple[str, bytes], ...]

    @property
    def parent(self) -> Identity | None:
        """What distinguishes the head that it stands on; None for a first version."""
        return None if self.head is None else self.head.identity


def prepare_commit(
    transaction: pb.Transaction,
    head: ManifestFile | None,
    concurrent: Sequence[ConcurrentVersion],
    files: TableFiles,
    *,
    now_ns: int,
    branch: str | None = None,
    read: ManifestFile | None = None,
    stable_row_ids: bool = False,
    load: Callable[[int], ManifestFile] | None = None,
    cloned: ManifestFile | None = None,
) -> PreparedCommit:
    """Judge, rebase and apply a transaction.

    `head` is the version to build on, None for the first version of a new table (an Overwrite) or branch (a Clone of
    the version `cloned`), which alone look at `branch` and `stable_row_ids`. `concurrent` holds every committed
    version above the transaction's read version, up to and with the head, ascending, each with its transaction.
    `read` is the read version itself; it is wanted only when both changed rows of one fragment, and read from its
    canonical name if it is not given. `load` gives a version of the same table or branch by number, for a Restore; it
    raises `NotFound`. By default it reads canonical names.

    Reads deletion files when both changed rows of one fragment, and what is restored; writes nothing. Raises
    `RetryableConflict` or `IncompatibleTransaction` with the version that stands in the way, `InvalidTransaction` for
    what contradicts itself or the table (one that was committed already, too), `CorruptFile` for a head that nothing
    can be built upon, `UnsupportedFeature` for what we do not build.
    """
    if not _UUID.fullmatch(transaction.uuid):
        raise InvalidTransaction(f"transaction uuid {transaction.uuid!r}: expected letters, digits, '-' and '_'")
    operation = decode_operation(transaction)
    merged: tuple[tuple[str, bytes], ...] = ()
    if head is not None:
        check_head(head.outline)
        _check_sequence(transaction, head, concurrent)
        if concurrent:
            rebased = _follow(operation, transaction, head, concurrent, files, read)
            if rebased is not None:
                transaction = _restate(transaction, rebased, head.version)
                merged = tuple(
                    (deletion_file_path(files.base, file.fragment_id, file.message), file.data)
                    for file in rebased.files
                )
    source = _source(operation, head, load or files.manifest) if cloned is None else cloned
    first = operation.ref_version if isinstance(operation, Clone) else 1
    version = head.version + 1 if head is not None else first
    built = apply_transaction(
        head,
        transaction,
        version=version,
        now_ns=now_ns,
        branch=branch,
        stable_row_ids=stable_row_ids,
        source=source,
    )
    data, file = build_manifest_file(built.manifest, transaction, built.indices)
    if writes_transaction_files(built.manifest):
        key = transaction_path(files.base, transaction.read_version, transaction.uuid)
        merged = ((key, transaction.SerializeToString(deterministic=True)), *merged)
    return PreparedCommit(
        version,
        data,
        file,
        head,
        bool(concurrent),
        merged,
    )


def _source(
    operation: Operation, head: ManifestFile | None, load: Callable[[int], ManifestFile]
) -> ManifestFile | None:
    """The manifest that the operation needs besides the head's."""
    if not isinstance(operation, Restore) or head is None:
        return None
    if operation.version == head.version:
        return head
    if not 1 <= operation.version < head.version:
        raise InvalidTransaction(f"restore of version {operation.version}: expected one from 1 to {head.version}")
    try:
        return load(operation.version)
    except NotFound as error:
        raise InvalidTransaction(f"restore of version {operation.version}, which is not there: {error}") from error


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


def _follow(
    operation: Operation,
    transaction: pb.Transaction,
    head: ManifestFile,
    concurrent: Sequence[ConcurrentVersion],
    files: TableFiles,
    read: ManifestFile | None,
) -> Rebased | None:
    """Judge against each version in turn; the operation in terms of the head where that differs."""
    rows = _Rows(operation, transaction, head, files, read)
    for file in concurrent:
        shared = shared_fragments(operation, file.transaction)
        verdict = judge(operation, file.transaction, rows.context(file, shared))
        if verdict.outcome is Outcome.RETRYABLE:
            raise RetryableConflict(file.version, verdict.reason)
        if verdict.outcome is Outcome.INCOMPATIBLE:
            raise IncompatibleTransaction(file.version, verdict.reason)
    rebased: Rebased
    match operation:
        case Delete() | Update():
            rebased = rebase_deletions(operation, head.outline, rows.complete, rows.in_head())
        case CreateIndex():
            committed = [file.transaction for file in concurrent if file.transaction is not None]
            rebased = rebase_coverage(operation, head.outline, committed)
        case _:
            return None
    return rebased if rebased.operation != operation else None


def _restate(transaction: pb.Transaction, rebased: Rebased, version: int) -> pb.Transaction:
    restated = encode_transaction(
        rebased.operation,
        read_version=version,
        uuid=transaction.uuid,
        properties=transaction.transaction_properties,
    )
    restated.tag = transaction.tag
    return restated


class _Rows:
    """What a verdict may depend on besides the messages: the rows behind a Delete or Update, read when asked for."""

    def __init__(
        self,
        operation: Operation,
        transaction: pb.Transaction,
        head: ManifestFile,
        files: TableFiles,
        read: ManifestFile | None,
    ) -> None:
        self._updated = (
            {fragment.id: fragment for fragment in operation.updated} if isinstance(operation, (Delete, Update)) else {}
        )
        self._read_version = transaction.read_version
        self._head = head
        self._files = files
        self._read = read
        self._before: dict[int, pb.DataFragment] | None = None
        self._ours: dict[int, BitMap] = {}
        self.complete: dict[int, BitMap] = {}
        """All rows in our deletion files, by fragment, of the fragments that were asked for."""

    def context(self, other: ConcurrentVersion, shared: frozenset[int]) -> Context:
        """What `judge` needs to know against `other`; rows that can no longer be read are left out (P8)."""
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
        """All rows that are deleted in the head, of the fragments that were asked for."""
        found: dict[int, BitMap] = {}
        for number, fragment in find_fragments(self._head.outline, self._ours.keys()).items():
            try:
                found[number] = self._files.deleted_rows(self._head.outline, fragment)
            except (NotFound, UnsupportedFeature) as error:
                reason = f"its deletions in fragment {number} cannot be read: {error}"
                raise RetryableConflict(self._head.version, reason) from error
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
            self._read = self._files.manifest(self._read_version)
        if self._before is None:
            self._before = find_fragments(self._read.outline, self._updated.keys())
        fragment = self._before.get(identifier)
        before = BitMap() if fragment is None else self._files.deleted_rows(self._read.outline, fragment)
        self._ours[identifier] = complete - before
