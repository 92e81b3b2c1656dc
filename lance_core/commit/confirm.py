"""Whether a version that was written to a vacant slot continues its table.

A vacant slot may be one that a clean-up made free: a writer that was held between its look at the head and its write
then stands below the newest version, where no reader looks and the next clean-up removes it.
"""

from __future__ import annotations

from lance_core.errors import CommitUnknown, ManifestNotSynchronized, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import find_latest, with_transaction


def check_continues(
    store: ObjectStore, base: str, file: ManifestFile, head: ManifestFile | None, scheme: NamingScheme
) -> None:
    """Raise `CommitUnknown` unless `file`, just written below `base` on `head`, is the newest version or was built on.

    By listing; in a directory, as on a bucket, one call. Where a newer version stands directly above, it is taken to be
    built on this one unless it shows that it was not. Removes nothing: what cannot be told may have been committed.
    """
    if head is None:
        return
    place = store.object_uri(manifest_path(base, file.version, scheme))
    try:
        latest = find_latest(store, base)
        if latest.version == file.version:
            return
        above = store.find(manifest_path(base, file.version + 1, scheme))
        if above is None:
            raise CommitUnknown(
                f"{place} is written, but the newest version is {latest.version} and those between are gone: whether "
                "they were built on it cannot be told"
            )
        built = with_transaction(store, base, parse_manifest_file(above, expected_version=file.version + 1))
        reason = None if built.transaction is None else lineage_break(file, built)
    except ManifestNotSynchronized:
        return  # an external manifest store holds it, and shows it once its final name can be written
    except StorageError as error:
        raise CommitUnknown(f"{place} is written, but cannot be seen to count: {error}") from error
    if reason is not None:
        raise CommitUnknown(f"{place} is written, but version {file.version + 1} was not built on it: {reason}")
