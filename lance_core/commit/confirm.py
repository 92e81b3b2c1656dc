"""Whether a version that was written to a vacant slot continues its table.

A vacant slot may be one that a clean-up made free: a writer that was held between its look at the head and its write
then stands below the newest version, where no reader looks and the next clean-up removes it.
"""

from __future__ import annotations

from lance_core.errors import CommitUnknown, NotFound, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import find_latest


def continues_table(
    store: ObjectStore, base: str, file: ManifestFile, head: ManifestFile | None, scheme: NamingScheme
) -> bool:
    """Whether `file`, just written below `base` on `head`, is a version of the table, the newest or built on since.

    False: it is not, and its slot is vacant again. In a directory two looks tell as a rule, that the head is still
    there and that nothing is above; else, and on a bucket always, a listing does, in one request. Raises
    `CommitUnknown` when versions above it are gone or storage does not answer.
    """
    if head is None:
        return True
    path = manifest_path(base, file.version, scheme)
    try:
        above = store.find(manifest_path(base, file.version + 1, scheme)) if store.local else None
        if store.local and above is None and _is_there(store, manifest_path(base, head.version, scheme)):
            return True
        latest = find_latest(store, base)
        if latest.version == file.version:
            return True
        above = store.find(manifest_path(base, file.version + 1, scheme)) if above is None else above
        if above is None:
            raise CommitUnknown(
                f"{store.object_uri(path)} is written, but the newest version is {latest.version} and those between "
                "are gone: whether they were built on it cannot be told"
            )
        if lineage_break(file, parse_manifest_file(above, expected_version=file.version + 1)) is None:
            return True
        store.delete(path)  # by name: below a version that was built on another one nothing that counts is written
    except StorageError as error:
        raise CommitUnknown(f"{store.object_uri(path)} is written, but cannot be seen to count: {error}") from error
    return False


def _is_there(store: ObjectStore, path: str) -> bool:
    try:
        store.require([path])
    except NotFound:
        return False
    return True
