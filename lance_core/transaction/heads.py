"""What must hold of a manifest before another is built upon it, whoever wrote it."""

from __future__ import annotations

from lance_core.errors import CorruptFile
from lance_core.format.naming import DETACHED_BIT
from lance_core.format.outline import AnyManifest, ids_of_fragments

LAST_FRAGMENT_ID = (1 << 32) - 1
LAST_ROW = (1 << 32) - 1
LAST_ROW_ID = (1 << 63) - 1
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, where timestamps end."""
_NANOSECONDS = 1_000_000_000


def check_head(manifest: AnyManifest) -> None:
    """Raise `CorruptFile` for a manifest that contradicts itself or is at the end of what can be counted.

    Of two fragments with one id readers show one, so a version built upon both would lose rows for good.
    """
    version = manifest.version
    if not 0 < version < DETACHED_BIT - 1:
        raise CorruptFile(f"version {version}: expected a number from 1 to 2^63 - 2 to build upon")
    known = set(ids_of_fragments(manifest))
    if len(known) < len(manifest.fragments):
        raise CorruptFile(f"version {version} has {len(manifest.fragments)} fragments with {len(known)} ids")
    if known and max(known) > LAST_FRAGMENT_ID:
        raise CorruptFile(f"version {version} has fragment {max(known)}, expected ids up to {LAST_FRAGMENT_ID}")
    if manifest.next_row_id > LAST_ROW_ID:
        raise CorruptFile(f"version {version} has used {manifest.next_row_id} row ids, expected up to {LAST_ROW_ID}")
    timestamp = manifest.timestamp
    if not (0 <= timestamp.seconds < _LAST_SECOND and 0 <= timestamp.nanos < _NANOSECONDS):
        raise CorruptFile(f"version {version} is of {timestamp.seconds} s and {timestamp.nanos} ns: expected a time")
