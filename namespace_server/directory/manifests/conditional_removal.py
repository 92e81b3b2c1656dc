"""Remove a file only while it is the expected one, in a directory too.

A directory has no conditional removal: between a comparison and an `unlink` another process may put another file under
the name, such as the first versions of a branch that was made again. So the file is renamed to a name of its own first,
where nothing can replace it, then compared, then removed or put back. Its new key,
`_staging/removing/<uuid>/<expected e_tag>/<former key>`, says what is to be done with it. The sweep of every process
finishes what a process left that died in between.
"""

from __future__ import annotations

import logging
import uuid
from typing import NamedTuple

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.root_layout import QUARANTINE, REMOVALS

logger = logging.getLogger(__name__)


class _Taken(NamedTuple):
    """A file that was taken from its name: under `key` now, at `path` before; to be removed if it has this e_tag."""

    key: str
    path: str
    e_tag: str


def remove_if(store: ObjectStore, path: str, e_tag: str | None) -> None:
    """Remove an object whose e_tag is `e_tag` (None matches every object), and no other. Succeeds if there is none.

    In a directory another file is away from its name for a moment if it took the name during the call. A file on
    another file system than the root cannot be renamed: it is compared and removed in two steps.

    Raises `PreconditionFailed` for another object, which is kept; `StorageError`.
    """
    if e_tag is None or not store.content_e_tags:
        store.delete_if(path, if_match=e_tag)
        return
    try:
        found = store.head(path).e_tag
    except NotFound:
        return
    if found != e_tag:
        raise PreconditionFailed(f"{store.object_uri(path)}: expected e_tag {e_tag}, found {found}")
    unquoted = e_tag.strip('"')
    key = f"{REMOVALS}/{uuid.uuid4()}/{unquoted}/{path}"
    try:
        store.rename_if_absent(path, key, durable=False)
    except NotFound:
        return
    except StorageUnknown:
        raise
    except StorageError:
        store.delete_if(path, if_match=e_tag)
        return
    if not _finish(store, _Taken(key, path, e_tag)):
        raise PreconditionFailed(f"{store.object_uri(path)}: expected e_tag {e_tag}, found another object")


def finish_removals(store: ObjectStore) -> None:
    """Finish the removals that processes left which died. One look where there are none. Raises `StorageError`.

    A removal that is not left, but under way, is finished as its own process would finish it.
    """
    if not store.content_e_tags:
        return
    for meta in store.list(REMOVALS):
        _, unquoted, path = meta.path.removeprefix(f"{REMOVALS}/").split("/", 2)
        _finish(store, _Taken(meta.path, path, f'"{unquoted}"'))


def _finish(store: ObjectStore, taken: _Taken) -> bool:
    """Remove what was taken, or put it back if it is another file; whether it was to be removed.

    Where its name was taken meanwhile, it is moved to quarantine: the sweep puts the manifest of a row
    back under its name, and commits that of another writer again (M6, G22).
    """
    try:
        if store.head(taken.key).e_tag == taken.e_tag:
            store.delete(taken.key)
            return True
        try:
            store.rename_if_absent(taken.key, taken.path)
        except AlreadyExists:
            quarantined = f"{QUARANTINE}/{uuid.uuid4()}/{taken.path}"
            store.rename_if_absent(taken.key, quarantined)
            logger.error(
                "%s left its name, which has another file now: moved to quarantine, %s", taken.path, quarantined
            )
    except NotFound:  # another process finished it
        return True
    return False
