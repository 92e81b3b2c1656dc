"""What a manifest asks of those who read or continue it: feature flags and fields that change the meaning of others."""

from __future__ import annotations

from enum import IntFlag

from lance_core.errors import UnsupportedFeature
from lance_core.format.outline import AnyManifest, has_overlays


class Feature(IntFlag):
    """The bits of `reader_feature_flags` and `writer_feature_flags` that have a known meaning here."""

    DELETION_FILES = 1 << 0
    STABLE_ROW_IDS = 1 << 1
    V2_FORMAT = 1 << 2
    """Set by early writers of the current data files; says nothing any more."""
    TABLE_CONFIG = 1 << 3
    BASE_PATHS = 1 << 4
    NO_TRANSACTION_FILES = 1 << 5


READABLE = 0x3F | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 14
"""The reader bits with which stock readers of our time open a table. Bits 6, 9, 12, 13, 15 and all above are not."""

WRITABLE = int(
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILES
)
"""The writer bits whose rules this engine keeps."""

_UNWRITABLE_FIELDS = ("max_allocated_field_id", "clustering", "max_clustering_id")


def check_readable(manifest: AnyManifest) -> None:
    """Raise `UnsupportedFeature` unless every feature that readers must know is known."""
    if unknown := manifest.reader_feature_flags & ~READABLE:
        raise UnsupportedFeature(f"version {manifest.version} has reader feature bits {_bits(unknown)}, expected none")
    if manifest.HasField("fragment_tree"):
        raise UnsupportedFeature(f"version {manifest.version} keeps its fragments in a tree, expected a list")


def check_writable(manifest: AnyManifest, *, tolerated: int = 0) -> None:
    """Raise `UnsupportedFeature` unless this engine can build the next version on `manifest`.

    `tolerated` are further writer bits that the caller sets on tables of its own and knows how to keep.
    """
    check_readable(manifest)
    if unknown := manifest.writer_feature_flags & ~(WRITABLE | tolerated):
        raise UnsupportedFeature(f"version {manifest.version} has writer feature bits {_bits(unknown)}, expected none")
    for name in _UNWRITABLE_FIELDS:
        if manifest.HasField(name):
            raise UnsupportedFeature(f"version {manifest.version} has {name}, expected a table without it")
    if has_overlays(manifest):
        raise UnsupportedFeature(f"version {manifest.version} has data overlays, expected none")


def _bits(flags: int) -> str:
    return ", ".join(str(bit) for bit in range(flags.bit_length()) if flags >> bit & 1)
