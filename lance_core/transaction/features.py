"""Feature flags: which tables we may write to, and which flags a manifest must carry."""

from __future__ import annotations

from lance_core.errors import UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb

DELETION_FILES = 1 << 0
STABLE_ROW_IDS = 1 << 1
V2_FORMAT = 1 << 2
"""Deprecated; old tables carry it and it means nothing any more."""
TABLE_CONFIG = 1 << 3
BASE_PATHS = 1 << 4
NO_TRANSACTION_FILES = 1 << 5

_WRITABLE = DELETION_FILES | STABLE_ROW_IDS | V2_FORMAT | TABLE_CONFIG | BASE_PATHS | NO_TRANSACTION_FILES
_STICKY = STABLE_ROW_IDS | V2_FORMAT | NO_TRANSACTION_FILES


def check_writable(manifest: pb.Manifest) -> None:
    """Raise `UnsupportedFeature` naming what a next version of this manifest would have to keep and we cannot."""
    for which, flags in (("reader", manifest.reader_feature_flags), ("writer", manifest.writer_feature_flags)):
        foreign = flags & ~_WRITABLE
        if foreign:
            bits = ", ".join(str(bit) for bit in range(64) if foreign >> bit & 1)
            raise UnsupportedFeature(
                f"version {manifest.version} has {which} feature flag bit {bits}: cannot write to it"
            )
    for name in ("fragment_tree", "max_allocated_field_id", "clustering", "max_clustering_id"):
        if manifest.HasField(name):
            raise UnsupportedFeature(f"version {manifest.version} has field {name}: cannot write to it")


def set_flags(manifest: pb.Manifest) -> None:
    """Compute both flag words from the content; those that content does not show are kept."""
    both = 0
    if any(fragment.HasField("deletion_file") for fragment in manifest.fragments):
        both |= DELETION_FILES
    if manifest.base_paths:
        both |= BASE_PATHS
    manifest.reader_feature_flags = both | (manifest.reader_feature_flags & _STICKY)
    writer = both | (manifest.writer_feature_flags & _STICKY)
    manifest.writer_feature_flags = writer | (TABLE_CONFIG if manifest.config else 0)


def has_stable_row_ids(manifest: pb.Manifest) -> bool:
    """Whether every fragment carries row ids."""
    return bool(manifest.writer_feature_flags & STABLE_ROW_IDS)


def writes_transaction_files(manifest: pb.Manifest) -> bool:
    """Whether a commit leaves a transaction file beside the inline transaction."""
    return not manifest.writer_feature_flags & NO_TRANSACTION_FILES
