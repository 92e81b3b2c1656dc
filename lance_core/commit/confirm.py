"""Checks that a version written to a vacant slot continues its table.

A slot may be vacant because a clean-up removed its version. A writer that was suspended between reading the head and
writing then ends up below the newest version, where no reader finds its version and the next clean-up removes it.
"""

from __future__ import annotations

from lance_core.errors import ManifestNotSynchronized, StorageError, TransactionUnknown
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.transaction.lineage import lineage_break
from lance_core.versions import find_latest, with_transaction


def check_continues(
    store: ObjectStore, base: str, file: ManifestFile, head: ManifestFile | None, scheme: NamingScheme
) -> None:
    """Check that `file`, just written below `base` on `head`, is the newest version or an ancestor of it.

    One listing. The version directly above `file` counts as built on it unless its content shows otherwise. Removes
    nothing, because the version may have been committed.

    Raises:
        TransactionUnknown: The version is not part of the chain, or that cannot be determined.
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
            raise TransactionUnknown(
                f"{place} is written, but the newest version is {latest.version} and the versions between were "
                "removed: whether they were built on it is unknown"
            )
        built = with_transaction(store, base, parse_manifest_file(above, expected_version=file.version + 1))
        reason = None if built.transaction is None else lineage_break(file, built)
    except ManifestNotSynchronized:
        return  # committed in the external manifest store, which shows it once its final name can be written
    except StorageError as error:
        raise TransactionUnknown(f"{place} is written, but could not be confirmed: {error}") from error
    if reason is not None:
        raise TransactionUnknown(f"{place} is written, but version {file.version + 1} was not built on it: {reason}")
