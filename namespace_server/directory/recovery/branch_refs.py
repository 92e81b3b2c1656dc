"""Ref files of branches: written for branches that begin, missed where a client deleted the branch (M8)."""

from __future__ import annotations

import logging
import threading
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lance_core.errors import AlreadyExists, LanceCoreError, NotFound
from lance_core.format.refs import BranchContents, branch_path, decode_branch, encode_branch
from lance_core.storage.port import ObjectStore
from lance_core.versions import list_versions
from namespace_server.directory.committing.group_planner import PendingBatch
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.manifests.deleted_branches import is_there
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import CommitTransaction, CreateBranch
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan

logger = logging.getLogger(__name__)

_FORMING = timedelta(seconds=60)


class BranchRefs:
    """Writes the ref files of branches whose first version is committed. Thread-safe.

    A client writes the ref of a branch that it staged itself; the server writes those of Clones that it built at once,
    and the others a minute after the first version, by the store's clock: their client has died.
    """

    def __init__(self, store: ObjectStore, promoter: Promoter, manifests: ManifestCache) -> None:
        self._store = store
        self._promoter = promoter
        self._manifests = manifests
        self._lock = threading.Lock()
        self._forming: set[tuple[ObjectId, str]] | None = None
        """Branches that may lack a ref file; None before the first sweep, when that may be any branch."""

    def note_forks(self, pending: PendingBatch, table: ManifestTable) -> None:
        """Note the branches that a batch began, if it is committed; write the refs of Clones that the server built.

        Raises nothing: a ref that cannot be written now is left to the sweep.
        """
        if not isinstance(pending.verdict, Plan):
            return
        forks = {
            (version.entry.table_id, version.entry.branch)
            for version in pending.verdict.published
            if version.entry.branch is not None and version.file.operation == "clone"
        }
        if not forks:
            return
        with self._lock:
            if self._forming is not None:
                self._forming |= forks
        for operation in pending.batch.operations:
            if isinstance(operation, CommitTransaction | CreateBranch) and (operation.id, operation.branch) in forks:
                self._write_at_once(table.current, operation.id, operation.branch or "")

    def complete_forming(self, snapshot: CatalogSnapshot) -> None:
        """Complete every branch that may lack a ref file; a step of the sweep."""
        if self._forming is None:
            found = set(snapshot.all_branches())
            with self._lock:
                self._forming = found
        for table_id, branch in list(self._forming):
            try:
                complete = self.complete(snapshot, table_id, branch)
            except LanceCoreError as error:
                logger.warning("branch %s of table %s: %s", branch, join(table_id), error)
                continue
            if complete:
                with self._lock:
                    self._forming.discard((table_id, branch))

    def complete(
        self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str, *, after: timedelta = _FORMING
    ) -> bool:
        """Write the ref of a branch whose first version is older than `after`. True when nothing is left to do.

        Raises `StorageError`, `NotFound`, `CorruptFile`.
        """
        table = snapshot.table(table_id)
        first = next(snapshot.versions(table_id, branch), None)
        if table is None or first is None:
            return True
        path = branch_path(table.location, branch)
        if is_there(self._store, path):
            return True
        try:
            written = self._store.head(first.canonical_path).last_modified
        except NotFound:
            return False
        if after and datetime.now(UTC) - written < after:
            return False
        return self._write(snapshot, first, path, int(written.timestamp()))

    def _write_at_once(self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str) -> None:
        try:
            self.complete(snapshot, table_id, branch, after=timedelta(0))
        except LanceCoreError as error:
            logger.warning("branch %s: its ref file is left to the sweep: %s", branch, error)

    def _write(self, snapshot: CatalogSnapshot, first: VersionEntry, path: str, created_at: int) -> bool:
        contents = self._beginning(snapshot, first, created_at)
        if contents is None:
            return True
        parent = contents.parent_branch
        if parent is not None:
            data = self._store.find(branch_path(first.location, parent))
            if data is None:
                return False
            above = decode_branch(data).identifier or ()
            contents = replace(contents, identifier=(*above, *(contents.identifier or ())))
        try:
            e_tag = self._store.put_if_absent(path, encode_branch(contents))
        except AlreadyExists:
            return True
        if not list_versions(self._store, first.base):
            # Another process wrote it first, and a client has deleted the branch since: its ref must not come back.
            remove_if(self._store, path, e_tag)
            return True
        logger.info("branch %s had no ref file %s yet: written", first.branch, path)
        return True

    def beginning(self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str) -> BranchContents | None:
        """The contents for the missing ref of a branch; None if no Clone is at its beginning.

        Raises `NotFound`, `CorruptFile`.
        """
        first = next(snapshot.versions(table_id, branch), None)
        return None if first is None else self._beginning(snapshot, first, first.timestamp_ms // 1000)

    def _beginning(self, snapshot: CatalogSnapshot, first: VersionEntry, created_at: int) -> BranchContents | None:
        """By the Clone; the identifier is that of the branch alone, without its ancestors."""
        transaction = self._manifests.load(first).transaction
        if transaction is None or transaction.WhichOneof("operation") != "clone":
            return None
        parent = transaction.clone.ref_name or None
        forked = snapshot.version_entry(first.table_id, parent, first.version)
        return BranchContents(
            parent_version=first.version,
            manifest_size=first.size if forked is None else forked.size,
            parent_branch=parent,
            identifier=((first.version, uuid.uuid4().hex),),
            created_at=created_at,
        )
