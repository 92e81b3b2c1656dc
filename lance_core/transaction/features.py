"""Feature flags of manifests being built."""

from __future__ import annotations

from lance_core.errors import UnsupportedFeature
from lance_core.format.features import WRITABLE, Feature, check_writable
from lance_core.format.outline import AnyManifest, FragmentFacts, has_deletion_files

_KEPT = Feature.STABLE_ROW_IDS | Feature.NO_TRANSACTION_FILES
"""Flags that cannot be computed from the content."""


def check_continuable(manifest: AnyManifest, facts: FragmentFacts | None = None) -> None:
    """Raise `UnsupportedFeature` if the next version of this manifest would need a feature that is not supported.

    `facts` are those about its fragments, if they are known.
    """
    check_writable(manifest, facts=facts)
    unknown = manifest.reader_feature_flags & ~WRITABLE
    if unknown:
        bits = ", ".join(str(bit) for bit in range(64) if unknown >> bit & 1)
        raise UnsupportedFeature(f"version {manifest.version} has reader feature bits {bits}, expected none")


def set_flags(manifest: AnyManifest, facts: FragmentFacts | None = None) -> None:
    """Compute both flag words from the content; flags that cannot be computed are kept.

    `facts` are those about the fragments, if they are known.
    """
    both = 0
    if facts.deletion_files if facts else has_deletion_files(manifest):
        both |= Feature.DELETION_FILES
    if manifest.base_paths:
        both |= Feature.BASE_PATHS
    writer = both | (Feature.TABLE_CONFIG if manifest.config else 0)
    manifest.reader_feature_flags = both | (manifest.reader_feature_flags & _KEPT)
    manifest.writer_feature_flags = writer | (manifest.writer_feature_flags & _KEPT)


def has_stable_row_ids(manifest: AnyManifest) -> bool:
    """Whether the table has stable row ids, which every fragment then carries."""
    return bool(manifest.writer_feature_flags & Feature.STABLE_ROW_IDS)


def writes_transaction_files(manifest: AnyManifest) -> bool:
    """Whether a commit writes a transaction file in addition to the inline transaction."""
    return not manifest.writer_feature_flags & Feature.NO_TRANSACTION_FILES
