"""Feature flags of the manifests that we build."""

from __future__ import annotations

from lance_core.errors import UnsupportedFeature
from lance_core.format.features import WRITABLE, Feature, check_writable
from lance_core.format.outline import AnyManifest, has_deletion_files

_KEPT = Feature.STABLE_ROW_IDS | Feature.NO_TRANSACTION_FILES
"""Flags that the content does not show."""


def check_continuable(manifest: AnyManifest) -> None:
    """Raise `UnsupportedFeature` naming what the next version of this manifest would have to keep and we cannot."""
    check_writable(manifest)
    foreign = manifest.reader_feature_flags & ~WRITABLE
    if foreign:
        bits = ", ".join(str(bit) for bit in range(64) if foreign >> bit & 1)
        raise UnsupportedFeature(f"version {manifest.version} has reader feature bits {bits}, expected none")


def set_flags(manifest: AnyManifest) -> None:
    """Compute both flag words from the content; those that content does not show are kept."""
    both = 0
    if has_deletion_files(manifest):
        both |= Feature.DELETION_FILES
    if manifest.base_paths:
        both |= Feature.BASE_PATHS
    writer = both | (Feature.TABLE_CONFIG if manifest.config else 0)
    manifest.reader_feature_flags = int(both | (manifest.reader_feature_flags & _KEPT))
    manifest.writer_feature_flags = int(writer | (manifest.writer_feature_flags & _KEPT))


def has_stable_row_ids(manifest: AnyManifest) -> bool:
    """Whether every fragment carries row ids."""
    return bool(manifest.writer_feature_flags & Feature.STABLE_ROW_IDS)


def writes_transaction_files(manifest: AnyManifest) -> bool:
    """Whether a commit leaves a transaction file beside the inline transaction."""
    return not manifest.writer_feature_flags & Feature.NO_TRANSACTION_FILES
