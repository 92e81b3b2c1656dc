"""Who had grants on tables that were dropped, as their tombstones say: so it is known without the version before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import orjson

from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.model.entries import RecordEntry, TableEntry

_GRANTEES: Final = "lance.dropped.grantees"
"""The property of a tombstone with those who had grants on its tables, or on the namespaces above them."""
_MAKES_ONLY: Final = frozenset({Privilege.CREATE})
_MOST: Final = 100
"""The most grantees that are named; of more it is only said that there were some."""


def grantees_property(policy: AccessPolicy | None, tables: Iterable[TableEntry]) -> Mapping[str, str]:
    """The property of the tombstone of these tables, to be made before their grants end."""
    if policy is None:
        return {}
    places = {table.id[:end] for table in tables for end in range(1, len(table.id) + 1)}
    entries = (entry for place in places for entry in policy.on(place))
    found = {entry.to for entry in entries if entry.kind == "table" or entry.privileges != _MAKES_ONLY}
    return (
        {_GRANTEES: orjson.dumps(sorted(map(list, found)) if len(found) <= _MOST else None).decode()} if found else {}
    )


def had_grants(tombstone: RecordEntry, grantees: Collection[Grantee]) -> bool:
    """Whether one of these may have had a grant on a table of a tombstone, or above it. It may have, if in doubt."""
    said = tombstone.properties.get(_GRANTEES)
    if said is None:
        return False
    try:
        named = orjson.loads(said)
    except orjson.JSONDecodeError:
        return True
    return not isinstance(named, list) or any(list(each) in named for each in grantees)
