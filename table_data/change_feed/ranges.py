"""Which versions of a table a feed of its changes reads. Plain values, which a server sends its workers."""

from __future__ import annotations

from dataclasses import dataclass

from table_data.batch_operations import VersionIdentity


@dataclass(frozen=True, slots=True)
class NumberedVersion:
    """A version of the table, and the catalog version that published it.

    `identity` is that of the version beyond its number, None if it is not known.
    """

    version: int
    catalog_version: int
    identity: VersionIdentity | None = None


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The versions between the catalog versions `since` and `to`.

    Attributes:
        since: The catalog version whose rows are known.
        to: The catalog version up to which changes are read.
        known: The version whose rows are known; None if the table was not there.
        versions: Those after it, in order. Without a known version the first of them is new as a whole.
    """

    since: int
    to: int
    known: NumberedVersion | None
    versions: tuple[NumberedVersion, ...]
