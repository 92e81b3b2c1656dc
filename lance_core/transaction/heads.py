"""Checks of a manifest, of any writer, before another version is built on it.

Fragment ids, row ids and timestamps only grow, and are bounded. A version at one of the bounds would be the last of its
table, so `check_room` refuses commits that come near a bound in a few steps.
"""

from __future__ import annotations

from lance_core.errors import CorruptFile, InvalidTransaction
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import DETACHED_BIT

LAST_FRAGMENT_ID = (1 << 32) - 1
LAST_ROW = (1 << 32) - 1
LAST_ROW_ID = (1 << 63) - 1
_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, the largest timestamp."""
_NANOSECONDS = 1_000_000_000
_SHARE = 256
_LATEST_SECOND = 221_845_392_000
"""A second of the year 8999. Timestamps above it grow by nanoseconds per commit, so there is room up to the bound."""
LAST_BASE_ID = (1 << 32) - 1
LAST_CHOSEN_BASE_ID = (1 << 31) - 1
"""Largest base path id that a transaction may choose; larger ids are assigned in sequence."""


def reservable_fragment_ids(mark: int) -> int:
    """The largest number of fragment ids that one transaction may reserve if `mark` is the highest id in use.

    A share of those that are left, so that no number of reservations leaves none.
    """
    return max(LAST_FRAGMENT_ID - mark, 0) // _SHARE


def check_room(head: ManifestFile | None, proposed: ManifestFile) -> None:
    """Raise `InvalidTransaction` for a manifest of another writer that uses up more numbers than it needs.

    `head` is the version before, None for the first one of a chain. Raises `CorruptFile` for anything but a manifest.
    """
    after = proposed.outline
    place = f"version {proposed.version}"
    if proposed.version >= DETACHED_BIT - 1 or not 0 <= after.timestamp.seconds < _LATEST_SECOND:
        raise InvalidTransaction(
            f"{place} is of second {after.timestamp.seconds}: expected a number and a time that others can follow"
        )
    fragments = len(after.fragments)
    mark = -1 if head is None else _mark(head)
    most = LAST_FRAGMENT_ID // 2 if head is None else mark + max(fragments, reservable_fragment_ids(mark))
    if _mark(proposed) > max(mark, most):
        raise InvalidTransaction(
            f"{place} takes the fragment ids up to {_mark(proposed)}: expected at most {most} for {fragments} fragments"
        )
    rows = 0 if head is None else head.outline.next_row_id
    most = LAST_ROW_ID // 2 if head is None else rows + fragments * (LAST_ROW + 1)
    if after.next_row_id > most:
        raise InvalidTransaction(
            f"{place} takes the row ids up to {after.next_row_id}: expected at most {most} for {fragments} fragments"
        )


def _mark(file: ManifestFile) -> int:
    mark = file.outline.max_fragment_id if file.outline.HasField("max_fragment_id") else -1
    return max(mark, file.facts.highest)


def check_head(head: ManifestFile) -> None:
    """Raise `CorruptFile` for a manifest that contradicts itself or has no number or id left.

    Readers show one of two fragments with the same id, so a version built on such a manifest would lose rows.
    """
    manifest, facts = head.outline, head.facts
    version = manifest.version
    if not 0 < version < DETACHED_BIT - 1:
        raise CorruptFile(f"version {version}: expected a number from 1 to 2^63 - 2 to build on")
    if facts.ids < len(manifest.fragments):
        raise CorruptFile(f"version {version} has {len(manifest.fragments)} fragments with {facts.ids} ids")
    if facts.highest > LAST_FRAGMENT_ID:
        raise CorruptFile(f"version {version} has fragment {facts.highest}, expected ids up to {LAST_FRAGMENT_ID}")
    if manifest.next_row_id > LAST_ROW_ID:
        raise CorruptFile(f"version {version} has used {manifest.next_row_id} row ids, expected up to {LAST_ROW_ID}")
    timestamp = manifest.timestamp
    if not (0 <= timestamp.seconds < _LAST_SECOND and 0 <= timestamp.nanos < _NANOSECONDS):
        raise CorruptFile(
            f"version {version} has the timestamp {timestamp.seconds} s and {timestamp.nanos} ns: expected one from "
            "1970 to 9999"
        )
