"""Who had grants on tables that were dropped, as their tombstones say: so it is known without the version before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.model.entries import RecordEntry, TableEntry

_GRANTEES: Final = "lance.dropped.grantees"
"""The property of a tombstone with those who had grants on its tables, or on the namespaces above them: a short digest
of each, with spaces between. Two of them may have the same one."""
_MAKES_ONLY: Final = frozenset({Privilege.CREATE})


def grantees_property(policy: AccessPolicy | None, tables: Iterable[TableEntry]) -> Mapping[str, str]:
    """The property of the tombstone of these tables, to be made before their grants end."""
    if policy is None:
        return {}
    places = {table.id[:end] for table in tables for end in range(1, len(table.id) + 1)}
    entries = (entry for place in places for entry in policy.on(place))
    found = {entry.to for entry in entries if entry.kind == "table" or entry.privileges != _MAKES_ONLY}
    return {_GRANTEES: " ".join(sorted(map(_digest, found)))} if found else {}


def had_grants(tombstone: RecordEntry, grantees: Collection[Grantee]) -> bool:
    """Whether one of these may have had a grant on a table of a tombstone, or above it."""
    said = tombstone.properties.get(_GRANTEES, "")
    return any(_digest(each) in said for each in grantees)


def _digest(grantee: Grantee) -> str:
    return blake2b(str(grantee).encode(), digest_size=4).hexdigest()
