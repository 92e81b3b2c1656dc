"""Features that readers and writers of a table must support: feature flags, and fields that change others' meaning."""

from __future__ import annotations

from enum import IntEnum

from lance_core.errors import UnsupportedFeature
from lance_core.format.outline import AnyManifest, FragmentFacts, fragment_facts


class Feature(IntEnum):
    """The known bits of `reader_feature_flags` and `writer_feature_flags`."""

    DELETION_FILES = 1 << 0
    STABLE_ROW_IDS = 1 << 1
    V2_FORMAT = 1 << 2
    """Set by early writers of the current data files; without meaning today."""
    TABLE_CONFIG = 1 << 3
    BASE_PATHS = 1 << 4
    NO_TRANSACTION_FILES = 1 << 5


READABLE = 0x3F | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 14
"""The reader bits that current stock readers support: all below 16 except 6, 9, 12, 13 and 15."""

WRITABLE = (
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILES
)
"""The writer bits whose rules this engine follows."""

_UNWRITABLE_FIELDS = ("max_allocated_field_id", "clustering", "max_clustering_id")


def check_readable(manifest: AnyManifest) -> None:
    """Raise `UnsupportedFeature` if the table has a feature that readers must support and this engine does not."""
    if unknown := manifest.reader_feature_flags & ~READABLE:
        raise UnsupportedFeature(f"version {manifest.version} has reader feature bits {_bits(unknown)}, expected none")
    if manifest.HasField("fragment_tree"):
        raise UnsupportedFeature(f"version {manifest.version} keeps its fragments in a tree, expected a list")


def check_writable(manifest: AnyManifest, *, tolerated: int = 0, facts: FragmentFacts | None = None) -> None:
    """Raise `UnsupportedFeature` unless this engine can build the next version on `manifest`.

    `tolerated` are further writer bits, which the caller sets on its own tables and supports itself.
    `facts` are those about the fragments, if they are known.
    """
    check_readable(manifest)
    if unknown := manifest.writer_feature_flags & ~(WRITABLE | tolerated):
        raise UnsupportedFeature(f"version {manifest.version} has writer feature bits {_bits(unknown)}, expected none")
    for name in _UNWRITABLE_FIELDS:
        if manifest.HasField(name):
            raise UnsupportedFeature(f"version {manifest.version} has {name}, expected a table without it")
    if (facts or fragment_facts(manifest)).overlays:
        raise UnsupportedFeature(f"version {manifest.version} has data overlays, expected none")


def _bits(flags: int) -> str:
    return ", ".join(str(bit) for bit in range(flags.bit_length()) if flags >> bit & 1)
