"""Branches that a client deleted by path: their reference and all their manifests are gone (rule M8)."""

from __future__ import annotations

from dataclasses import replace

from lance_core.errors import NotFound
from lance_core.format.refs import branch_path
from lance_core.storage.port import ObjectStore
from lance_core.versions import list_versions
from namespace_server.directory.committing.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import VersionEntry, place_of
from namespace_server.directory.model.snapshot import CatalogSnapshot


def is_deleted_branch(
    store: ObjectStore, snapshot: CatalogSnapshot, head: VersionEntry, *, was_promoted: bool = False
) -> bool:
    """Whether a client deleted the branch of `head`, its newest version in `snapshot`. False for a main chain.

    The staged name is looked at first: a version that is promoted meanwhile is found under its canonical name. It is
    not looked at if the head `was_promoted`. Two requests for a branch that is there, one of them a listing; one if it
    was promoted. Raises `StorageError`.
    """
    if head.branch is None:
        return False
    if not was_promoted:
        staged = head.staged_path or snapshot.open_path(place_of(head))
        if ManifestReader(store).find_staged(replace(head, staged_path=staged)) is not None:
            return False
    return not list_versions(store, head.base) and not is_there(store, branch_path(head.location, head.branch))


def is_there(store: ObjectStore, path: str) -> bool:
    """Whether an object has this key. Raises `StorageError`."""
    try:
        store.head(path)
    except NotFound:
        return False
    return True
