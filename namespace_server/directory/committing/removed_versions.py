"""Which versions a client's cleanup removed: these are gone (rule M5).

A row is gone if its canonical name is vacant below a higher one, or was vacated after the promotion of the row. A head
is never gone, nor is a version whose file is in quarantine (rule G22).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lance_core.errors import NotFound
from lance_core.storage.port import ObjectStore
from lance_core.versions import list_versions
from namespace_server.directory.model.entries import VersionEntry


def is_vacant_below_higher(version: int, canonical: Collection[int]) -> bool:
    """Whether a chain with these canonical names has none for `version`, but one above it.

    For a row that is not the head, and whose promotion is not known to have happened, this means that it is gone.
    """
    return version not in canonical and max(canonical, default=0) > version


def find_removed(
    store: ObjectStore,
    head: VersionEntry,
    promoted: Sequence[VersionEntry],
    quarantined_paths: Callable[[], frozenset[str]],
) -> list[VersionEntry]:
    """Of versions of the chain of `head` that are known to be promoted, and are not the head, those that are gone.

    Storage is read after the call: a version that was promoted between two looks is not taken for a removed one.
    `quarantined_paths` gives the canonical names of the files that are in quarantine now. Raises `StorageError`.
    """
    if len(promoted) == 1:
        try:
            store.head(promoted[0].canonical_path)
        except NotFound:
            pass
        else:
            return []
    quarantined = quarantined_paths()
    present = {found.version for found in list_versions(store, head.base)}
    return [entry for entry in promoted if entry.version not in present and entry.canonical_path not in quarantined]
