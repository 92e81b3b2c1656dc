"""`Dataset`, a table at one version: open, check out another version, list the history, commit, clone."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyroaring import BitMap

from lance_core import data
from lance_core.commit.copying import Origin
from lance_core.commit.handlers.handler import CommitHandler, handle
from lance_core.commit.loop import MAX_RETRIES, Committed, commit_transaction
from lance_core.commit.staged import StagedCommit, stage_commit
from lance_core.errors import AlreadyExists, IncompatibleTransaction, ReferenceNotFound
from lance_core.format.features import check_readable
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import NamingScheme, branch_base
from lance_core.format.schema import check_depth
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles, root_path
from lance_core.tables.branches import Branches
from lance_core.tables.references import FoundVersion, Reference, find, find_from, read_found, resolve
from lance_core.tables.tags import Tags
from lance_core.transaction.operations import Clone, encode_transaction
from lance_core.versions import (
    ManifestLocation,
    find_latest,
    list_versions,
    read_unless_removed,
    with_transaction,
)

if TYPE_CHECKING:
    import lance

__all__ = ["Dataset", "HistoryEntry", "Reference"]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version in the history of a branch.

    `operation` is the field name of the transaction's operation, such as `append`; None if the transaction cannot be
    found or its kind is unknown. `transaction_uuid` is '' if the version names no transaction.
    """

    version: int
    timestamp_ns: int
    transaction_uuid: str
    operation: str | None
    read_version: int | None


class Dataset:
    """An immutable handle on one committed version; `checkout` and `commit` return new handles.

    Rows are read through pylance (`to_pylance`). As thread-safe as its store.
    """

    def __init__(
        self,
        store: ObjectStore,
        location: str,
        branch: str | None,
        manifest_location: ManifestLocation,
        file: ManifestFile,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        check_readable(file.outline)
        check_depth(file.outline.fields)
        self.store = store
        self.location = location
        self.branch = branch
        self.file = file
        self._manifest_location = manifest_location
        self._storage_options = storage_options

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str] | ObjectStore,
        ref: Reference = None,
        *,
        location: str = "",
        storage_options: Mapping[str, str] | None = None,
        commit_handler: CommitHandler | None = None,
    ) -> Dataset:
        """Open a table at a version.

        Args:
            target: The URI of the table's root, or a store.
            ref: The version; None for the latest of main.
            location: The key of the table's root in the store.
            storage_options: Options of the store, by Lance's own keys.
            commit_handler: How this handle, and handles derived from it, claim a name; None uses the put-if-absent
                of the store. A table with an external manifest store needs its handler for reading, too.

        Raises:
            ReferenceNotFound: There is no such table, branch, version or tag.
            CorruptFile: The manifest cannot be decoded.
            UnsupportedFeature: Reading the table needs a feature that this engine does not support.
        """
        store = target if isinstance(target, ObjectStore) else open_store(target, storage_options)
        store = handle(store, commit_handler)
        found = find_from(store, location, ref, None, None)
        return cls(store, location, found.branch, found.location, found.file, storage_options)

    def checkout(self, ref: Reference) -> Dataset:
        """The same table at another version; this handle itself if that is the version it has open.

        For the open version: by its number without I/O; by a tag with one read of the tag; by None (the latest) with
        one listing, if the store has e_tags. A manifest that was replaced under its name is detected by its e_tag.
        """
        branch, position = resolve(self.store, self.location, ref, self.branch)
        if branch != self.branch:
            return self._opened(find(self.store, self.location, branch, position))
        if position is None:
            latest = find_latest(self.store, self.base)
            if self.e_tag is not None and (latest.path, latest.e_tag) == (self._manifest_location.path, self.e_tag):
                return self
            return self._opened(read_found(self.store, branch, latest))
        if position == self.version:
            return self
        return self._opened(find(self.store, self.location, branch, position, scheme=self.naming_scheme))

    @property
    def version(self) -> int:
        """The version number."""
        return self.file.version

    @property
    def e_tag(self) -> str | None:
        """The e_tag of the manifest from the listing or commit that found it; None if it is not known."""
        return self._manifest_location.e_tag

    @property
    def manifest(self) -> pb.Manifest:
        """The manifest. It is shared: copy it before changing it.

        Its fragments are decoded on first access, which raises `CorruptFile` if one cannot be decoded.
        """
        return self.file.manifest

    @property
    def indices(self) -> pb.IndexSection | None:
        """The index section, or None if the table has no index."""
        return self.file.indices

    @property
    def naming_scheme(self) -> NamingScheme:
        """The naming scheme of the manifests of this branch."""
        return self._manifest_location.scheme

    @property
    def base(self) -> str:
        """The key of the branch's root in the store."""
        return branch_base(self.location, self.branch)

    @property
    def uri(self) -> str:
        """The URI of the branch's root."""
        return self.store.object_uri(self.base)

    @cached_property
    def transaction(self) -> pb.Transaction | None:
        """The transaction that made this version, read from its file if it is not inline; None if it is lost."""
        return with_transaction(self.store, self.base, self.file).transaction

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        return data.arrow_schema(self.file.outline.fields, self.file.outline.schema_metadata)

    @property
    def tags(self) -> Tags:
        """The tags of the table. References are resolved on this branch; None stands for this version."""
        return Tags(self.store, self.location, self.branch, self.version)

    @property
    def branches(self) -> Branches:
        """The branches of the table. References are resolved on this branch; None stands for this version."""
        return Branches(self.store, self.location, self.branch, self.version)

    def deleted_rows(self, fragment: pb.DataFragment) -> BitMap:
        """The offsets of the deleted rows of a fragment of this version. Raises as `TableFiles.deleted_rows`."""
        return TableFiles(self.store, self.base).deleted_rows(self.manifest, fragment)

    def history(self) -> list[HistoryEntry]:
        """The existing versions of this branch, newest first, read in parallel.

        The first version of a branch is a clone of the version it was forked from. Earlier versions are in the history
        of its parent.
        """
        entries = self.store.map(self._describe, list_versions(self.store, self.base)[::-1])
        return [entry for entry in entries if entry is not None]

    def commit(self, transaction: pb.Transaction, *, max_retries: int = MAX_RETRIES) -> Dataset:
        """Publish `transaction` on this branch and open the version that it made.

        The transaction is rebased onto the versions committed since its `read_version`, which need not be the open
        version. If it is, another version that took its place is a conflict. Raises as `commit_transaction` does.
        """
        done = commit_transaction(
            self.store,
            self.location,
            transaction,
            branch=self.branch,
            max_retries=max_retries,
            manifest_sha256=self.hash_for(transaction),
        )
        found = ManifestLocation(done.path, done.version, self.naming_scheme, done.file.size, done.e_tag)
        return Dataset(self.store, self.location, self.branch, found, done.file, self._storage_options)

    def stage(self, transaction: pb.Transaction) -> StagedCommit:
        """Build the next version of this branch from `transaction` without publishing it. Raises as `stage_commit`."""
        return stage_commit(
            self.store,
            self.location,
            transaction,
            branch=self.branch,
            storage_options=self._storage_options,
            manifest_sha256=self.hash_for(transaction),
        )

    def hash_for(self, transaction: pb.Transaction) -> str | None:
        """SHA-256 of the manifest of the open version, if the transaction was computed on a version of its number."""
        return self.file.identity.sha256 if transaction.read_version == self.version else None

    def shallow_clone(
        self,
        target: str | os.PathLike[str] | ObjectStore,
        ref: Reference = None,
        *,
        location: str = "",
        storage_options: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Create a new table at another root from a version of this table. Atomic and idempotent.

        The new table refers to the files of this table, and is valid as long as those files exist.

        Args:
            target: The URI of the new root, or a store.
            ref: The version; None for the open version.
            location: The key of the new root in the store.
            storage_options: Options of the target store; by default the options of this table.

        Raises:
            AlreadyExists, ReferenceNotFound, UnsupportedFeature, TransactionUnknown: As `clone_table`.
        """
        return self._clone(target, ref, location, storage_options, is_shallow=True)

    def deep_clone(
        self,
        target: str | os.PathLike[str] | ObjectStore,
        ref: Reference = None,
        *,
        location: str = "",
        storage_options: Mapping[str, str] | None = None,
    ) -> Dataset:
        """As `shallow_clone`, with copies of all files: the new table is independent of this table."""
        return self._clone(target, ref, location, storage_options, is_shallow=False)

    def to_pylance(self) -> lance.LanceDataset:
        """A pylance handle on this version. Raises `ReferenceNotFound` if another version took its place."""
        opened = data.open_published(self.uri, self.version, self._storage_options)
        if data.commit_time(opened) not in {None, self.file.timestamp_ns}:
            raise ReferenceNotFound(f"{self.uri}: version {self.version} was replaced by another one")
        return opened

    def __repr__(self) -> str:
        return f"Dataset({self.uri!r}, version={self.version})"

    def _clone(
        self,
        target: str | os.PathLike[str] | ObjectStore,
        ref: Reference,
        location: str,
        storage_options: Mapping[str, str] | None,
        *,
        is_shallow: bool,
    ) -> Dataset:
        found = find_from(self.store, self.location, ref, self.branch, self.version)
        options = self._storage_options if storage_options is None else storage_options
        store = target if isinstance(target, ObjectStore) else open_store(target, options)
        base = branch_base(self.location, found.branch)
        origin = Origin(self.store, base, found.file, self._storage_options)
        done = clone_table(origin, store, location, is_shallow=is_shallow)
        manifest = ManifestLocation(done.path, done.version, NamingScheme.V2, done.file.size, done.e_tag)
        return Dataset(store, location, None, manifest, done.file, options)

    def _opened(self, found: FoundVersion) -> Dataset:
        same = (found.branch, found.location.path) == (self.branch, self._manifest_location.path)
        if same and found.file.identity == self.file.identity and (self.e_tag or not found.location.e_tag):
            return self
        return Dataset(self.store, self.location, found.branch, found.location, found.file, self._storage_options)

    def _describe(self, location: ManifestLocation) -> HistoryEntry | None:
        file = read_unless_removed(self.store, location)
        if file is None:
            return None
        file = with_transaction(self.store, self.base, file)
        read = None if file.transaction is None else file.transaction.read_version
        return HistoryEntry(file.version, file.timestamp_ns, file.transaction_uuid, file.operation, read)


def clone_table(origin: Origin, target: ObjectStore, base: str, *, is_shallow: bool) -> Committed:
    """Create a new table at the key `base` of `target` from a version. As in stock pylance, it keeps its number.

    A deep clone's files are copied, and durable, before the first manifest is written: a crash leaves no table. A call
    may be repeated, even after later commits to the clone: the uuid of the transaction is derived from the origin and
    the target.

    Raises:
        AlreadyExists: There is a table that this clone did not make.
        ReferenceNotFound: A file of the version no longer exists.
        UnsupportedFeature: The version cannot be continued or copied.
        TransactionUnknown: The clone may have been created, or may still be.
    """
    version = origin.file.version
    operation = Clone(root_path(origin.store, origin.base), version, origin.file.branch, None, is_shallow=is_shallow)
    name = _uuid(operation, origin, target.object_uri(base))
    try:
        return commit_transaction(
            target, base, encode_transaction(operation, read_version=version, uuid=name), origin=origin
        )
    except IncompatibleTransaction as error:
        raise AlreadyExists(f"{target.object_uri(base)}: expected no table, found version {error.version}") from error


def _uuid(operation: Clone, origin: Origin, target: str) -> str:
    kind = "shallow" if operation.is_shallow else "deep"
    named = "\n".join((kind, operation.ref_path, str(operation.ref_version), origin.file.identity.sha256, target))
    return str(uuid.uuid5(uuid.NAMESPACE_URL, named))
