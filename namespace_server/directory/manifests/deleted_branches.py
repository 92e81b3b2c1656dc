"""Branches that a client deleted by path, and perhaps made again (rule M8).

Of a deleted one the reference and all manifests are gone. Of one that was made again there are others: they begin with
a Clone of their own, and none of them is of a row.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from lance_core.errors import NotFound
from lance_core.format.refs import branch_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import ManifestLocation, find_contents, list_versions
from namespace_server.directory.manifests.manifest_reader import ManifestReader, is_row
from namespace_server.directory.manifests.promoter import Promoter
from namespace_server.directory.manifests.quarantine import parsed
from namespace_server.directory.model.entries import VersionEntry, place_of
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.snapshot import CatalogSnapshot

_REMEMBERED: Final = 10_000


class DeletedBranches:
    """Finds branches of a catalog that clients deleted: one small request for each that was there before. Thread-safe.

    A branch that is made again gets another reference: what a reference is of is looked up once.
    """

    def __init__(self, store: ObjectStore, promoter: Promoter) -> None:
        self._store = store
        self._promoter = promoter
        self._lock = threading.Lock()
        self._there: dict[str, tuple[bytes, str]] = {}
        """The references of branches that were there, with the SHA-256 of the first row, by root."""

    def among(self, snapshot: CatalogSnapshot, chains: Iterable[ChainKey]) -> frozenset[ChainKey]:
        """Those of these chains that a client deleted, in one parallel step. Raises `StorageError`."""
        branches = [chain for chain in chains if chain[1] is not None]
        found = self._store.map(partial(self.is_deleted, snapshot), branches) if branches else ()
        return frozenset(chain for chain, deleted in zip(branches, found, strict=True) if deleted)

    def is_deleted(self, snapshot: CatalogSnapshot, chain: ChainKey) -> bool:
        """Whether a client deleted a branch that has a version; see `is_deleted_branch`. Raises `StorageError`."""
        head, branch = snapshot.head(*chain), chain[1]
        if branch is None or head is None:
            return False
        reference = self._store.find(branch_path(head.location, branch))
        first = next(snapshot.versions(*chain))
        if reference is not None and self._there.get(head.base) == (reference, first.sha256):
            return False
        was_promoted = self._promoter.is_promoted(head, snapshot)
        if is_deleted_branch(self._store, snapshot, head, was_promoted=was_promoted):
            return True
        if reference is not None:
            with self._lock:
                if len(self._there) >= _REMEMBERED:
                    self._there.clear()
                self._there[head.base] = (reference, first.sha256)
        return False


def is_deleted_branch(
    store: ObjectStore, snapshot: CatalogSnapshot, head: VersionEntry, *, was_promoted: bool = False
) -> bool:
    """Whether a client deleted the branch of `head`, its newest version in `snapshot`. False for a main chain.

    The staged name is looked at first: a version that is promoted meanwhile is found under its canonical name. It is
    not looked at if the head `was_promoted`. Raises `StorageError`.
    """
    if head.branch is None:
        return False
    if not was_promoted:
        staged = head.staged_path or snapshot.open_path(place_of(head))
        if ManifestReader(store).find_staged(replace(head, staged_path=staged)) is not None:
            return False
    listed = list_versions(store, head.base)
    if not listed:
        return not is_there(store, branch_path(head.location, head.branch))
    return _is_of_another(store, snapshot, head, listed)


def _is_of_another(
    store: ObjectStore, snapshot: CatalogSnapshot, head: VersionEntry, listed: Sequence[ManifestLocation]
) -> bool:
    """Whether the manifests of a branch, ascending, are those of another one that was begun under its name."""
    for found in reversed(listed):
        row = snapshot.version_entry(head.table_id, head.branch, found.version)
        data = None if row is None else find_contents(store, found.path)
        if row is not None and data is not None and is_row(row, data):
            return False
    data = find_contents(store, listed[0].path)
    file = None if data is None else parsed(data)
    return file is not None and file.operation == "clone" and (file.branch or None) == head.branch


def is_there(store: ObjectStore, path: str) -> bool:
    """Whether an object has this key. Raises `StorageError`."""
    try:
        store.head(path)
    except NotFound:
        return False
    return True
