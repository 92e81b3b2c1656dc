"""Removes the files of deleted branches, behind the flip that removed their rows (rule B2).

The record of such a branch has the state `removing`, and stays until the files are gone. While it stays, nothing is
committed on a branch of that name, and nothing is adopted from its remaining files.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from lance_core.errors import LanceCoreError, NotFound, PreconditionFailed
from lance_core.format.naming import VERSIONS_DIRECTORY, branch_base, parse_manifest_name
from lance_core.format.refs import branch_path
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.tables.branches import Branches, find_children
from lance_core.tables.tags import Tags
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.conditional_removal import remove_if
from namespace_server.directory.model.entries import REMOVING, RecordEntry
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

LOOK_INTERVAL: Final = 60.0
"""Seconds between two looks for branches that other processes left, each of which reads all records."""


class BranchRemoval:
    """Removes the files of deleted branches. Thread-safe; several processes may do it at once."""

    def __init__(self, store: ObjectStore, table: ManifestTable) -> None:
        self._store = store
        self._table = table
        self._lock = threading.Lock()
        self._looked: float | None = None

    def waiting(self, snapshot: CatalogSnapshot, chains: Iterable[ChainKey]) -> list[RecordEntry]:
        """The records of deleted branches, among these, whose files are not all gone."""
        found = []
        for table_id, branch in chains:
            table = None if branch is None else snapshot.table(table_id)
            record = None if table is None else snapshot.tombstone_at(branch_base(table.location, branch))
            if record is not None and record.state == REMOVING:
                found.append(record)
        return found

    def left_by_others(self, snapshot: CatalogSnapshot) -> list[RecordEntry]:
        """All such records; looks once in a while, because that reads all records. A step of the sweep."""
        if self._looked is not None and time.monotonic() - self._looked < LOOK_INTERVAL:
            return []
        self._looked = time.monotonic()
        return [record for record in snapshot.records() if record.state == REMOVING]

    def remove_files(self, records: Iterable[RecordEntry]) -> list[RecordEntry]:
        """Remove the files of deleted branches; returns the records of those that are gone, to be removed by a flip.

        Raises nothing: a failed removal is logged and left to the sweep.
        """
        done = []
        for record in records:
            try:
                with self._lock:
                    if self._remove(record):
                        done.append(record)
            except LanceCoreError as error:
                logger.warning("the files of a deleted branch are left to the sweep: %s", error)
        return done

    def _remove(self, record: RecordEntry) -> bool:
        """Whether nothing is left. The reference file goes first: stock clients see the branch by it.

        Files listed before the newest catalog version that still has the record belong to the deleted branch, and to
        none that was made again under its name: none is, while the record stands. Names that such a one uses again are
        removed only if they still hold the listed object. The newest version goes last: without it, the others could be
        taken for a chain that a client cleaned up.
        """
        [party] = record.participants
        base, branch = party.location, party.branch or ""
        location = base.removesuffix(f"/tree/{branch}")
        listed = self._own_files(base, location, branch)
        reference = self._find(branch_path(location, branch))
        newest = self._table.refresh()
        if newest.record(record.batch_uuid) is None:
            return False  # another process was faster
        needed = self._needed(location, branch)
        if needed:
            logger.error("branch %s at %s was deleted, and its files stay: %s", branch, base, needed)
            return False
        if reference is not None:
            self._delete_listed(reference)
        self._store.map(self._store.delete, _staged_names(newest, location, branch))
        manifests, others = _parted(base, listed)
        self._store.map(self._delete_listed, others)
        self._store.map(self._delete_listed, manifests[:-1])
        self._store.map(self._delete_listed, manifests[-1:])
        return not self._own_files(base, location, branch) and self._find(branch_path(location, branch)) is None

    def _needed(self, location: str, branch: str) -> str | None:
        """References, made since the deletion by clients without a catalog, that name the branch; None without any."""
        tags = sorted(tag for tag, contents in Tags(self._store, location).list().items() if contents.branch == branch)
        children = find_children(branch, Branches(self._store, location).list())
        found = [f"tag {tag}" for tag in tags] + [f"branch {child} that begins at it" for child in children]
        return f"found {', '.join(found[:10])}" if found else None

    def _own_files(self, base: str, location: str, branch: str) -> list[ObjectMeta]:
        """Files below the root of a branch and not below that of a nested one, whose name begins with this one."""
        found = list(self._store.list(base))
        names = Branches(self._store, location).list()
        nested = {branch_base(location, name) for name in names if name.startswith(f"{branch}/")}
        marker = f"/{VERSIONS_DIRECTORY}/"
        for meta in found:
            position = meta.path.find(marker, len(base) + 1)
            if position > 0:
                nested.add(meta.path[:position])
        roots = tuple(f"{root}/" for root in nested)
        return [meta for meta in found if not meta.path.startswith(roots)]

    def _find(self, path: str) -> ObjectMeta | None:
        try:
            return self._store.head(path)
        except NotFound:
            return None

    def _delete_listed(self, meta: ObjectMeta) -> None:
        """Remove an object if it is still the listed one. Names that are not used again need no comparison (N5)."""
        if "/_refs/" not in meta.path and f"/{VERSIONS_DIRECTORY}/" not in meta.path:
            self._store.delete(meta.path)
            return
        with suppress(PreconditionFailed):
            remove_if(self._store, meta.path, meta.e_tag)


def _staged_names(snapshot: CatalogSnapshot, location: str, branch: str) -> list[str]:
    """Staged paths, by open records, of versions of a branch that has no rows any more. Each is used once (N5)."""
    return [
        party.staged_path
        for record in snapshot.open_records()
        for party in record.participants
        if party.staged_path and (party.location, party.branch) == (location, branch)
    ]


def _parted(base: str, listed: Sequence[ObjectMeta]) -> tuple[list[ObjectMeta], list[ObjectMeta]]:
    """The manifests, ascending by version, and all other files."""
    directory = f"{base}/{VERSIONS_DIRECTORY}/"
    numbered = {}
    for meta in listed:
        named = parse_manifest_name(meta.path.removeprefix(directory)) if meta.path.startswith(directory) else None
        if named is not None:
            numbered[meta.path] = (named[0], meta)
    manifests = [meta for _, meta in sorted(numbered.values(), key=lambda item: item[0])]
    return manifests, [meta for meta in listed if meta.path not in numbered]
