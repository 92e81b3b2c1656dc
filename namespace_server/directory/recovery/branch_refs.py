"""BranchRefs between their first version and their ref file, and after a client deleted them (M8)."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta

from lance_core.errors import AlreadyExists, NotFound
from lance_core.format.refs import BranchContents, branch_path, decode_branch, encode_branch
from lance_core.storage.port import ObjectStore
from lance_core.versions import list_versions
from namespace_server.directory.committing.manifest_cache import ManifestCache
from namespace_server.directory.committing.promoter import Promoter
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

_FORMING = timedelta(seconds=60)


class BranchRefs:
    """Completes branches whose creator died before writing the ref, by the store's clock a minute after."""

    def __init__(self, store: ObjectStore, promoter: Promoter, manifests: ManifestCache) -> None:
        self._store = store
        self._promoter = promoter
        self._manifests = manifests

    def complete(
        self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str, *, after: timedelta = _FORMING
    ) -> bool:
        """Write the ref of a branch that has been forming for so long. True when nothing is left to do."""
        table = snapshot.table(table_id)
        first = next(snapshot.versions(table_id, branch), None)
        if table is None or first is None:
            return True
        path = branch_path(table.location, branch)
        if self._exists(path):
            return True
        try:
            written = self._store.head(first.canonical_path).last_modified
        except NotFound:
            return False
        if after and datetime.now(UTC) - written < after:
            return False
        return self._write(snapshot, first, path, int(written.timestamp()))

    def _write(self, snapshot: CatalogSnapshot, first: VersionEntry, path: str, created_at: int) -> bool:
        transaction = self._manifests.load(first, self._promoter.read).transaction
        if transaction is None or transaction.WhichOneof("operation") != "clone":
            return True
        parent = transaction.clone.ref_name or None
        above: tuple[tuple[int, str], ...] = ()
        if parent is not None:
            data = self._store.find(branch_path(first.location, parent))
            if data is None:
                return False
            above = decode_branch(data).identifier or ()
        forked = snapshot.version_entry(first.table_id, parent, first.version)
        contents = BranchContents(
            parent_version=first.version,
            manifest_size=first.size if forked is None else forked.size,
            parent_branch=parent,
            identifier=(*above, (first.version, uuid.uuid4().hex)),
            created_at=created_at,
        )
        try:
            e_tag = self._store.put_if_absent(path, encode_branch(contents))
        except AlreadyExists:
            return True
        if not list_versions(self._store, first.base):
            # Others wrote it first, and a client has deleted the branch since: its ref must not come back.
            self._store.delete_if(path, if_match=e_tag)
            return True
        logger.info("branch %s had no ref file %s yet: written", first.branch, path)
        return True

    def is_deleted(self, snapshot: CatalogSnapshot, table_id: ObjectId, branch: str) -> bool:
        """Whether a client deleted the branch: its ref and all its manifests are gone, staged ones too.

        Staged names are looked at first: what is promoted meanwhile is found under its canonical one.
        """
        head = snapshot.head(table_id, branch)
        if head is None or (not self._promoter.is_promoted(head, snapshot) and self._is_staged(head, snapshot)):
            return False
        if list_versions(self._store, head.base):
            return False
        return not self._exists(branch_path(head.location, branch))

    def _is_staged(self, entry: VersionEntry, snapshot: CatalogSnapshot) -> bool:
        path = self._promoter.locate(entry, snapshot).staged_path
        return path is not None and self._exists(path)

    def _exists(self, path: str) -> bool:
        try:
            self._store.head(path)
        except NotFound:
            return False
        return True
