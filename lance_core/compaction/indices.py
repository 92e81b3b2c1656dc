"""Prepares the transaction that extends indices to the rows that they do not cover. Nothing is committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_core.compaction.scratch import Scratch
from lance_core.errors import UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from lance_core.transaction.features import check_continuable
from lance_core.transaction.indices import FRAGMENT_REUSE, SYSTEM_INDICES
from lance_core.transaction.operations import CreateIndex


def prepare_indices(
    store: ObjectStore,
    base: str,
    file: ManifestFile,
    names: Sequence[str],
    *,
    storage_options: Mapping[str, str] | None = None,
) -> CreateIndex | None:
    """Write one segment for each index, over all rows: those that its segments cover, and all others. Commits nothing.

    A vector index is not trained again: its partitions get the rows. A segment over the other rows alone would be less
    work, and is not safe. After a column was rewritten in a fragment, a segment no longer covers the fragment, but
    still has its old values. Pylance 14 leaves them out when it merges the segment, and finds them again if another
    segment covers the fragment.

    Args:
        store: The store that holds the table.
        base: The key of the root of the table or branch.
        file: The version. It need not be published.
        names: The indices.
        storage_options: Options for pylance, by Lance's own keys.

    Returns:
        The new segments, whose files are in the table's own directory under fresh names, and the segments that they
        replace, whose files stay. None if pylance finds nothing to do.

    Raises:
        UnsupportedFeature: There is no such index, its segments refer to fragments from before a compaction, this
            engine cannot write the table, or pylance cannot reach the store.
        StorageError: Pylance cannot read or write.
    """
    check_continuable(file.manifest)
    if store.uri.startswith("memory:"):
        raise UnsupportedFeature(f"{store.uri}: expected a store that pylance can open, found one in memory")
    segments = {index.uuid.uuid: index for index in (file.indices.indices if file.indices is not None else ())}
    present = {index.name for index in segments.values()}
    if FRAGMENT_REUSE in present:
        raise UnsupportedFeature(
            f"version {file.version} has the index {FRAGMENT_REUSE}, so other indices refer to fragments from before "
            "an earlier compaction: expected indices that were brought up to date"
        )
    if missing := set(names) - (present - SYSTEM_INDICES):
        raise UnsupportedFeature(f"version {file.version} has no index {min(missing)!r}")
    if not names:
        return None
    with Scratch(store, base, file, storage_options) as scratch:
        made = scratch.optimize_indices(names, len(segments))
        if made is None:
            return None
        scratch.move_indices(index.uuid.uuid for index in made.new)
    return CreateIndex(made.new, tuple(segments[index.uuid.uuid] for index in made.removed))
