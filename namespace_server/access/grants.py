"""The rows of a catalog that grant.

An object is named by its id: `()` is the catalog, and a namespace and a table never have the same one. A privilege on
an object holds for everything below it. There is no denial: what no grant allows is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal

from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.model.object_ids import RECORD_PREFIX, ObjectId, join

ACCESS_ID: Final = f"{RECORD_PREFIX}access"
"""The object id of the row that puts grants in force."""
GRANT_PREFIX: Final = f"{RECORD_PREFIX}grant$"
"""The prefix of the object ids of grants."""
MEMBERSHIP_PREFIX: Final = f"{RECORD_PREFIX}member$"
"""The prefix of the object ids of memberships."""

_DIGEST_BYTES: Final = 16


Kind = Literal["catalog", "namespace", "table"]
"""What an object is."""


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """The row that puts grants in force, put by `principal` at `timestamp_ms` since the epoch."""

    principal: str | None = None
    timestamp_ms: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return ACCESS_ID


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """The privileges of one grantee on one object.

    Attributes:
        kind: What the object is.
        on: Its id; `()` for the catalog.
        to: Who has the privileges.
        privileges: At least one.
        since: The catalog version from which on the object of this name is the one that is meant.
        principal: Who granted the last of them; None for the operator.
        timestamp_ms: When, since the epoch.
    """

    kind: Kind
    on: ObjectId
    to: Grantee
    privileges: frozenset[Privilege]
    since: int = 0
    principal: str | None = None
    timestamp_ms: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row: a digest, since names have any form and length."""
        return grant_id(self.on, self.to)


@dataclass(frozen=True, slots=True)
class MembershipEntry:
    """A role that a principal or another role has, given by `principal` at `timestamp_ms` since the epoch."""

    role: str
    to: Grantee
    principal: str | None = None
    timestamp_ms: int = 0

    @property
    def object_id(self) -> str:
        """The key of the row."""
        return membership_id(self.role, self.to)


AccessRow = AccessEntry | GrantEntry | MembershipEntry


def grant_id(on: ObjectId, to: Grantee) -> str:
    """The object id of the row of a grantee's privileges on an object."""
    return GRANT_PREFIX + _digest(*to, *on)


def membership_id(role: str, to: Grantee) -> str:
    """The object id of the row of a membership."""
    return MEMBERSHIP_PREFIX + _digest(role, *to)


def object_name(kind: Kind, on: ObjectId) -> str:
    """An object as texts name it."""
    return "the catalog" if not on else f"{kind} {join(on)}"


def _digest(*parts: str) -> str:
    """Names no two lists of texts by the same digest: each part stands behind its length."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.hexdigest()
