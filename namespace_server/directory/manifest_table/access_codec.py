"""Metadata of the rows that grant, and back."""

from __future__ import annotations

from typing import Any, Final, get_args

import orjson

from namespace_server.access.grants import (
    ACCESS_ID,
    AccessEntry,
    AccessRow,
    GrantEntry,
    Kind,
    MembershipEntry,
)
from namespace_server.access.subjects import Grantee, Privilege, ordered
from namespace_server.directory.model.limits import is_int64

_ACCESS: Final = "access"
_GRANT: Final = "grant"
_MEMBERSHIP: Final = "membership"
"""The values that the metadata of these rows have in the place of a record's state."""


def encode_access(entry: AccessRow) -> str:
    """The metadata of a row that grants."""
    values: dict[str, Any]
    if isinstance(entry, AccessEntry):
        values = {"state": _ACCESS}
    elif isinstance(entry, MembershipEntry):
        values = {"state": _MEMBERSHIP, "role": entry.role, "to": list(entry.to)}
    else:
        values = {"state": _GRANT, "kind": entry.kind, "on": entry.on, "to": list(entry.to), "since": entry.since}
        values["privileges"] = ordered(entry.privileges)
    values["timestamp_millis"] = entry.timestamp_ms
    if entry.principal is not None:
        values["principal"] = entry.principal
    return orjson.dumps(values).decode()


def decode_access(object_id: str, metadata: str | None) -> AccessRow | None:
    """The entry of a row that grants; None for one that is not recognised, which grants nothing.

    The row that puts grants in force is recognised whatever it says: if it is damaged, nothing is open to everybody.
    """
    try:
        found = orjson.loads(metadata or "{}")
        values: dict[str, Any] = found if isinstance(found, dict) else {}
    except orjson.JSONDecodeError:
        values = {}
    principal, time = values.get("principal"), values.get("timestamp_millis")
    made = (principal if isinstance(principal, str) else None, time if isinstance(time, int) else 0)
    if object_id == ACCESS_ID:
        return AccessEntry(*made)
    try:
        entry: AccessRow
        if values.get("state") == _MEMBERSHIP:
            entry = MembershipEntry(_text(values["role"]), _grantee(values["to"]), *made)
        elif values.get("state") == _GRANT and values["kind"] in get_args(Kind):
            privileges = frozenset(map(Privilege, values["privileges"]))
            on = tuple(map(_text, _list(values["on"])))
            entry = GrantEntry(values["kind"], on, _grantee(values["to"]), privileges, _number(values["since"]), *made)
        else:
            return None
    except (KeyError, TypeError, ValueError):
        return None
    if isinstance(entry, GrantEntry) and (not entry.privileges or (entry.kind == "catalog") != (not entry.on)):
        return None
    return entry if entry.object_id == object_id else None


def _grantee(value: Any) -> Grantee:
    kind, name = value
    if kind not in {"principal", "role"}:
        raise ValueError(kind)
    return Grantee(kind, _text(name))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(type(value).__name__)
    return value


def _number(value: Any) -> int:
    if not is_int64(value):
        raise TypeError(type(value).__name__)
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
