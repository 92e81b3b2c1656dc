"""The operations that change grants, as plain values; see `operations`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from namespace_server.access.grants import Kind
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.directory.model.object_ids import ObjectId


@dataclass(frozen=True, slots=True)
class EnableGrants:
    """Put grants in force, for good. The `administrators`, at least one, own the catalog from then on."""

    name: ClassVar = "enable_grants"
    administrators: tuple[Grantee, ...]

    @property
    def id(self) -> ObjectId:
        """The catalog."""
        return ()


@dataclass(frozen=True, slots=True)
class GrantPrivileges:
    """Give a grantee privileges on an object, beside those that it has there."""

    name: ClassVar = "grant_privileges"
    kind: Kind
    id: ObjectId
    to: Grantee
    privileges: frozenset[Privilege]


@dataclass(frozen=True, slots=True)
class RevokePrivileges:
    """Take privileges on an object from a grantee; all that it has there if `privileges` is None."""

    name: ClassVar = "revoke_privileges"
    kind: Kind
    id: ObjectId
    to: Grantee
    privileges: frozenset[Privilege] | None


@dataclass(frozen=True, slots=True)
class _OnRole:
    role: str
    to: Grantee

    @property
    def id(self) -> ObjectId:
        """The name of the role, as what errors name the operation by."""
        return (self.role,)


@dataclass(frozen=True, slots=True)
class GrantRole(_OnRole):
    """Give a role to a principal or to another role."""

    name: ClassVar = "grant_role"


@dataclass(frozen=True, slots=True)
class RevokeRole(_OnRole):
    """Take a role from a principal or from another role."""

    name: ClassVar = "revoke_role"


GrantOperation = EnableGrants | GrantPrivileges | RevokePrivileges | GrantRole | RevokeRole
